//! The greeting between client and server.

use rumba_engine_api::bson::{Document, DocumentBuf, Malformed, Value};

/// The server's greeting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The newest version of the protocol that it supports: 6 is 3.6's, 7 is 4.0's, 21 is 7.0's.
    pub wire_version: i64,
    /// The longest document that it accepts, in bytes.
    pub longest_document: usize,
    /// The longest message that it accepts, in bytes.
    pub longest_message: usize,
    /// Whether it belongs to a replica set.
    pub in_replica_set: bool,
    /// Whether it is a router of a sharded cluster.
    pub is_router: bool,
    /// Whether it accepts writes.
    pub is_writable: bool,
    /// Whether it has sessions, which transactions require.
    pub has_sessions: bool,
    /// Whether the user may log in with SCRAM-SHA-256; absent if the server does not report it.
    pub sha256: Option<bool>,
}

/// The first version of the protocol with transactions: 4.0 in a replica set, 4.2 behind a router.
const TRANSACTIONS: i64 = 7;
const TRANSACTIONS_OF_ROUTER: i64 = 8;

impl Hello {
    /// Parses a server's greeting.
    ///
    /// # Errors
    /// It is malformed, or lacks the protocol version.
    pub fn of(answer: Document<'_>) -> Result<Self, Malformed> {
        let mut hello = Self { longest_document: 16 << 20, longest_message: 48_000_000, ..Self::default() };
        let mut version = None;
        for element in answer.iter() {
            let (name, value) = element?;
            let size = || value.int().and_then(|size| usize::try_from(size).ok());
            match name {
                b"maxWireVersion" => version = value.int(),
                b"maxBsonObjectSize" => hello.longest_document = size().unwrap_or(hello.longest_document),
                b"maxMessageSizeBytes" => hello.longest_message = size().unwrap_or(hello.longest_message),
                b"setName" => hello.in_replica_set = true,
                b"msg" => hello.is_router = value.bytes() == Some(b"isdbgrid"),
                b"isWritablePrimary" | b"ismaster" => hello.is_writable = value.int() == Some(1),
                b"logicalSessionTimeoutMinutes" => hello.has_sessions = value != Value::Null,
                b"saslSupportedMechs" => hello.sha256 = has_sha256(value)?,
                _ => {}
            }
        }
        hello.wire_version = version.ok_or(Malformed("a server that does not name its wire version"))?;
        Ok(hello)
    }

    /// Whether it supports multi-document transactions.
    pub fn has_transactions(&self) -> bool {
        let since = if self.is_router { TRANSACTIONS_OF_ROUTER } else { TRANSACTIONS };
        self.has_sessions && (self.in_replica_set || self.is_router) && self.wire_version >= since
    }
}

fn has_sha256(value: Value<'_>) -> Result<Option<bool>, Malformed> {
    let Value::Array(list) = value else { return Ok(None) };
    for element in list.iter() {
        if element?.1.bytes() == Some(b"SCRAM-SHA-256") {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}

/// The client's greeting, under the command name of servers since 4.4 or of older ones. It describes the client, and
/// requests the login methods of the user `SOURCE.NAME`.
pub fn first(command: &str, user: Option<&str>) -> DocumentBuf {
    DocumentBuf::of(|of| {
        of.small(command, 1);
        if let Some(user) = user {
            of.text("saslSupportedMechs", user);
        }
        of.document("client", |of| {
            of.document("application", |of| of.text("name", "rumba"));
            of.document("driver", |of| {
                of.text("name", "rumba");
                of.text("version", env!("CARGO_PKG_VERSION"));
            });
            of.document("os", |of| of.text("type", std::env::consts::OS));
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(more: impl FnOnce(&mut rumba_engine_api::bson::Writer<'_>)) -> Hello {
        let answer = DocumentBuf::of(|of| {
            of.bool("isWritablePrimary", true);
            of.small("maxBsonObjectSize", 16 << 20);
            of.small("logicalSessionTimeoutMinutes", 30);
            more(of);
            of.double("ok", 1.0);
        });
        Hello::of(answer.get()).unwrap()
    }

    #[test]
    fn transactions_depend_on_the_server() {
        let alone = said(|of| of.small("maxWireVersion", 21));
        assert!(alone.is_writable && !alone.has_transactions());
        let replicated = |version| {
            said(|of| {
                of.text("setName", "rs");
                of.small("maxWireVersion", version);
            })
        };
        assert!(replicated(7).has_transactions() && !replicated(6).has_transactions());
        let router = |version| {
            said(|of| {
                of.text("msg", "isdbgrid");
                of.small("maxWireVersion", version);
            })
        };
        assert!(router(8).has_transactions() && !router(7).has_transactions());
    }

    #[test]
    fn login_method_is_the_one_that_the_server_offers() {
        let offered = |names: &'static [&'static str]| {
            said(move |of| {
                of.array("saslSupportedMechs", |of| names.iter().for_each(|name| of.text(name)));
                of.small("maxWireVersion", 9);
            })
        };
        assert_eq!(offered(&["SCRAM-SHA-1", "SCRAM-SHA-256"]).sha256, Some(true));
        assert_eq!(offered(&["SCRAM-SHA-1"]).sha256, Some(false));
        assert_eq!(said(|of| of.small("maxWireVersion", 6)).sha256, None);
        assert!(Hello::of(Document::EMPTY).is_err());
    }
}
