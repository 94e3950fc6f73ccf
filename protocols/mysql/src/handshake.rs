//! The handshake and authentication, as functions over packets, without I/O.
//!
//! The greeting is parsed here and not by `mysql_common`, whose arithmetic overflows for some lengths that a broken
//! server can send.

use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::packets::AuthPlugin;
use rumba_transport::server_text;

use crate::codec::Reader;
use crate::codec::answer::{self, Capabilities};
use crate::{WireError, public_key};

/// The request of caching_sha2_password for the server's RSA key.
const KEY_REQUEST: &[u8] = &[2];
/// A MariaDB user may have several methods, which the server tries one after the other.
const MOST_SWITCHES: u32 = 16;

/// The server's greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The server's version as it prints it.
    pub version: String,
    /// The connection's number, for KILL.
    pub connection_id: u32,
    /// The server's capabilities.
    pub capabilities: CapabilityFlags,
    /// The server's capabilities beyond MySQL's protocol.
    pub mariadb: MariadbCapabilities,
    /// The challenge for the authentication.
    pub nonce: Vec<u8>,
    /// The server's preferred authentication method.
    pub plugin: Vec<u8>,
}

/// Parses the server's first packet.
///
/// # Errors
/// The server refuses, uses another protocol, or is older than MySQL 4.1.
pub fn greeting(packet: &[u8]) -> Result<Greeting, WireError> {
    const WHAT: &str = "greeting";
    if packet.first() == Some(&0xff) {
        return Err(WireError::refused(&answer::refusal(packet)?));
    }
    let mut reader = Reader::new(packet);
    let protocol = reader.u8(WHAT)?;
    if protocol != 10 {
        return Err(WireError::Protocol(format!(
            "the server greets with version {protocol} where MySQL's protocol has 10; is another service listening there?"
        )));
    }
    let version = server_text(reader.until_zero());
    let connection_id = reader.u32(WHAT)?;
    let mut nonce = reader.take(8, WHAT)?.to_vec();
    reader.u8(WHAT)?;
    let low = reader.u16(WHAT)?;
    let _character_set = reader.u8(WHAT)?;
    let _status = reader.u16(WHAT)?;
    let high = reader.u16(WHAT)?;
    let nonce_length = usize::from(reader.u8(WHAT)?);
    reader.take(6, WHAT)?;
    let beyond = reader.u32(WHAT)?;
    let capabilities = CapabilityFlags::from_bits_truncate(u32::from(low) | u32::from(high) << 16);
    if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION) {
        return Err(WireError::Protocol(format!("server {version} speaks a protocol older than that of MySQL 4.1")));
    }
    // MariaDB sends its own capabilities where MySQL, which sets this flag, sends zeros.
    let mariadb = if capabilities.contains(CapabilityFlags::CLIENT_LONG_PASSWORD) { 0 } else { beyond };
    let second = reader.take(nonce_length.saturating_sub(8).max(13).min(reader.len()), WHAT)?;
    nonce.extend_from_slice(second.strip_suffix(&[0]).unwrap_or(second));
    let plugin = reader.until_zero();
    let plugin = if plugin.is_empty() { &b"mysql_native_password"[..] } else { plugin }.to_vec();
    Ok(Greeting {
        version,
        connection_id,
        capabilities,
        mariadb: MariadbCapabilities::from_bits_truncate(mariadb),
        nonce,
        plugin,
    })
}

/// The agreed capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The client's capabilities.
    pub capabilities: CapabilityFlags,
    /// The client's capabilities beyond MySQL's protocol.
    pub mariadb: MariadbCapabilities,
}

impl Agreed {
    /// All useful capabilities that the server offers.
    pub fn with(greeting: &Greeting, tls: bool, database: bool) -> Self {
        let mut wanted = CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_PLUGIN_AUTH
            | CapabilityFlags::CLIENT_TRANSACTIONS
            | CapabilityFlags::CLIENT_MULTI_STATEMENTS
            | CapabilityFlags::CLIENT_MULTI_RESULTS
            | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
            | CapabilityFlags::CLIENT_LOCAL_FILES
            | CapabilityFlags::CLIENT_DEPRECATE_EOF;
        wanted.set(CapabilityFlags::CLIENT_SSL, tls);
        wanted.set(CapabilityFlags::CLIENT_CONNECT_WITH_DB, database);
        let capabilities = wanted & greeting.capabilities;
        let mut mariadb = MariadbCapabilities::MARIADB_CLIENT_STMT_BULK_OPERATIONS;
        mariadb.set(
            MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA,
            capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        );
        Self { capabilities, mariadb: mariadb & greeting.mariadb }
    }

    /// The format of the server's answers.
    pub fn wording(&self) -> Capabilities {
        Capabilities {
            deprecate_eof: self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            cache_metadata: self.mariadb.contains(MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA),
        }
    }

    /// The start of the answer to a greeting; sent alone, it requests TLS.
    pub fn opening(&self, collation: u8) -> Vec<u8> {
        // The protocol's limit; the server enforces its own.
        const LONGEST_PACKET: u32 = 1 << 30;
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(&self.capabilities.bits().to_le_bytes());
        out.extend_from_slice(&LONGEST_PACKET.to_le_bytes());
        out.push(collation);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&self.mariadb.bits().to_le_bytes());
        out
    }
}

/// The user to log in, and the privacy of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The user.
    pub user: &'a str,
    /// The user's password.
    pub password: &'a str,
    /// The schema to use.
    pub database: Option<&'a str>,
    /// The number of the connection's collation.
    pub collation: u8,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Whether the connection never leaves the host.
    pub local: bool,
}

/// The next step of the login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this.
    Send(Vec<u8>),
    /// Wait for the next packet.
    Wait,
    /// The login is complete.
    In {
        /// The session's status flags.
        status: u16,
    },
}

/// The authentication, with as many steps as the server requires.
#[derive(Debug)]
pub struct Login<'a> {
    caller: Caller<'a>,
    nonce: Vec<u8>,
    method: AuthProc,
    /// Whether the server's next challenge is its RSA key.
    awaits_key: bool,
    switches: u32,
}

struct Proof<'a> {
    caller: Caller<'a>,
    nonce: &'a [u8],
}

impl Context for Proof<'_> {
    fn pass(&self) -> &[u8] {
        self.caller.password.as_bytes()
    }

    fn is_ipc_transport(&self) -> bool {
        self.caller.local
    }

    fn is_tls_transport(&self) -> bool {
        self.caller.tls
    }

    fn scramble(&self) -> &[u8] {
        self.nonce
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

impl<'a> Login<'a> {
    /// Answers the greeting; returns the packet to send as well.
    ///
    /// # Errors
    /// The server requires something that no other method can replace.
    pub fn start(caller: Caller<'a>, greeting: &Greeting, agreed: Agreed) -> Result<(Self, Vec<u8>), WireError> {
        let nonce = greeting.nonce.clone();
        // The server names its default method; if the user has another one, the server requests a switch. Until then,
        // nothing is sent that would reveal the password.
        let plugin = match &greeting.plugin[..] {
            b"caching_sha2_password" => AuthPlugin::CachingSha2Password,
            _ => AuthPlugin::MysqlNativePassword,
        };
        let method = AuthProc::init(&plugin).map_err(|error| WireError::Protocol(error.to_string()))?;
        let mut login = Self { caller, nonce, method, awaits_key: false, switches: 0 };
        let first = login.prove(&login.nonce.clone())?.unwrap_or_default();
        let mut out = agreed.opening(caller.collation);
        put_text(&mut out, caller.user.as_bytes())?;
        out.push(u8::try_from(first.len()).map_err(|_| WireError::Protocol("the proof is too long".into()))?);
        out.extend_from_slice(&first);
        if agreed.capabilities.contains(CapabilityFlags::CLIENT_CONNECT_WITH_DB) {
            put_text(&mut out, caller.database.unwrap_or_default().as_bytes())?;
        }
        if agreed.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            put_text(&mut out, plugin.as_bytes())?;
        }
        Ok((login, out))
    }

    /// Handles a packet of the server.
    ///
    /// # Errors
    /// The server refuses, or requires something that this client does not support.
    pub fn step(&mut self, packet: &[u8]) -> Result<Step, WireError> {
        match packet.first() {
            Some(0x00) => Ok(Step::In { status: answer::done(packet)?.status }),
            Some(0xff) => Err(WireError::refused(&answer::refusal(packet)?)),
            Some(0x01) => Ok(self.prove(&packet[1..])?.map_or(Step::Wait, Step::Send)),
            Some(0xfe) => self.switch(&packet[1..]),
            _ => Err(WireError::Protocol("an unknown packet during authentication".into())),
        }
    }

    fn switch(&mut self, request: &[u8]) -> Result<Step, WireError> {
        self.switches += 1;
        if self.switches > MOST_SWITCHES {
            return Err(WireError::Protocol("the server keeps changing the authentication method".into()));
        }
        let mut reader = Reader::new(request);
        let name = reader.until_zero();
        let data = reader.rest();
        let Some(plugin) = known(name) else {
            return Err(WireError::Protocol(format!(
                "the server wants authentication method {:?}; give the user one of mysql_native_password, \
                 caching_sha2_password, ed25519",
                String::from_utf8_lossy(name),
            )));
        };
        let private = self.caller.tls || self.caller.local;
        if plugin == AuthPlugin::MysqlClearPassword && !private {
            return Err(WireError::Tls(
                "the server wants the password in clear, and the connection is not encrypted: turn TLS on".into(),
            ));
        }
        self.nonce = match plugin {
            AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password => data.strip_suffix(&[0]),
            _ => None,
        }
        .unwrap_or(data)
        .to_vec();
        self.method = AuthProc::init(&plugin).map_err(|error| WireError::Protocol(error.to_string()))?;
        self.awaits_key = false;
        let nonce = self.nonce.clone();
        Ok(Step::Send(self.prove(&nonce)?.unwrap_or_default()))
    }

    fn prove(&mut self, challenge: &[u8]) -> Result<Option<Vec<u8>>, WireError> {
        if self.nonce.is_empty() && !matches!(self.method, AuthProc::MysqlClearPassword(_)) {
            return Err(WireError::Protocol("the server sent no challenge for the login".into()));
        }
        if self.awaits_key {
            public_key::check(challenge, self.caller.password)?;
        }
        let proof = Proof { caller: self.caller, nonce: &self.nonce };
        match self.method.run(proof, challenge) {
            Ok(Response::Next { packet } | Response::Last { packet }) => {
                let is_sha2 = matches!(self.method, AuthProc::CachingSha2Password(_));
                self.awaits_key = is_sha2 && packet.as_deref() == Some(KEY_REQUEST);
                Ok(packet)
            }
            Err(error) => Err(WireError::Protocol(format!("authentication: {error}"))),
        }
    }
}

/// The supported methods. The method of MySQL before 4.1 is not supported, because it can be reversed easily.
fn known(name: &[u8]) -> Option<AuthPlugin<'static>> {
    match name {
        b"mysql_native_password" => Some(AuthPlugin::MysqlNativePassword),
        b"caching_sha2_password" => Some(AuthPlugin::CachingSha2Password),
        b"client_ed25519" => Some(AuthPlugin::Ed25519),
        b"mysql_clear_password" => Some(AuthPlugin::MysqlClearPassword),
        _ => None,
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) -> Result<(), WireError> {
    if text.contains(&0) {
        return Err(WireError::Protocol("a user, schema or method name with a zero byte in it".into()));
    }
    out.extend_from_slice(text);
    out.push(0);
    Ok(())
}
