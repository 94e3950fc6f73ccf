//! The control session, which carries everything except the clients' operations: counters, upkeep, taking a database
//! and releasing it.

use std::time::{Duration, Instant};

use rumba_engine_api::bson::{Document, DocumentBuf, Value};
use rumba_engine_api::error::EngineError;
use rumba_protocol_mongodb::{Admin, MongoError, OnLost};

/// The database for administrative commands.
pub const ADMIN: &str = "admin";

/// The control session. With [`OnLost::Reconnect`] it survives a server restart, as the clients' sessions do: it
/// reconnects and repeats the request.
pub struct Control {
    admin: Admin,
    on_lost: OnLost,
    /// When the session began.
    since: Instant,
    was_restarted: bool,
    /// Whether the last answer was not read to its end or not understood. The next read would then return the rest of
    /// it.
    is_behind: bool,
}

impl Control {
    /// A control session over a connection.
    pub fn new(admin: Admin, on_lost: OnLost) -> Self {
        Self { admin, on_lost, since: Instant::now(), was_restarted: false, is_behind: false }
    }

    /// Changes the timeout of an answer; `None` waits forever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.admin.set_timeout(timeout);
    }

    /// Whether the server takes writes.
    pub fn is_writable(&self) -> bool {
        self.admin.hello().is_writable
    }

    /// Whether the server's greeting reports transactions. The greeting does not consider the storage engine.
    pub fn greets_with_transactions(&self) -> bool {
        self.admin.hello().has_transactions()
    }

    /// Whether the session has noticed a server restart since it began. The server's counters then count from the
    /// restart.
    pub fn was_restarted(&self) -> bool {
        self.was_restarted
    }

    fn connect_again(&mut self) -> Result<(), MongoError> {
        self.is_behind = true;
        self.admin.reconnect()?;
        let time = self.since.elapsed();
        let status = match self.admin.run(ADMIN, DocumentBuf::of(|of| of.small("serverStatus", 1)).get()) {
            Err(error) if error.is_lost() || matches!(error, MongoError::Protocol(_)) => return Err(error),
            reported => reported.ok(),
        };
        self.is_behind = false;
        self.was_restarted |= !status.is_some_and(|status| has_run_for(status.get(), time));
        Ok(())
    }

    fn again<T>(&mut self, mut fetch: impl FnMut(&mut Admin) -> Result<T, MongoError>) -> Result<T, MongoError> {
        if self.is_behind {
            self.connect_again()?;
        }
        let answered = match fetch(&mut self.admin) {
            Err(error) if self.on_lost == OnLost::Reconnect && error.is_lost() => {
                self.connect_again()?;
                fetch(&mut self.admin)
            }
            answered => answered,
        };
        self.is_behind = matches!(answered, Err(MongoError::Transport(_) | MongoError::Protocol(_)));
        answered
    }

    /// Runs an idempotent command.
    pub fn fetch(&mut self, database: &str, command: Document<'_>) -> Result<DocumentBuf, MongoError> {
        self.again(|admin| admin.run(database, command))
    }

    /// Runs an idempotent command that answers with a cursor, and returns all of its documents.
    pub fn all(&mut self, database: &str, command: Document<'_>) -> Result<Vec<DocumentBuf>, MongoError> {
        self.again(|admin| admin.all(database, command))
    }

    /// Runs an administrative command without arguments.
    pub fn reported(&mut self, command: &str) -> Result<DocumentBuf, MongoError> {
        self.fetch(ADMIN, DocumentBuf::of(|of| of.small(command, 1)).get())
    }

    /// The names of a database's collections.
    pub fn collections(&mut self, database: &str) -> Result<Vec<String>, MongoError> {
        let command = DocumentBuf::of(|of| {
            of.small("listCollections", 1);
            of.bool("nameOnly", true);
        });
        let all = self.all(database, command.get())?;
        let mut names = Vec::with_capacity(all.len());
        for document in &all {
            names.push(String::from_utf8_lossy(document.get().blob("name")?).into_owned());
        }
        names.retain(|name| !name.starts_with("system."));
        Ok(names)
    }

    /// The version that the server reports.
    pub fn version(&mut self) -> Option<String> {
        self.again(Admin::server_version).ok()
    }
}

/// Whether the server reports that it has been up for at least this time. Without a report rumba assumes a restart,
/// because the counters may have been reset.
fn has_run_for(status: Document<'_>, time: Duration) -> bool {
    let reported = within(status, &["uptimeMillis"]).and_then(|value| u64::try_from(value.int()?).ok());
    reported.is_some_and(|uptime_ms| Duration::from_millis(uptime_ms) >= time)
}

/// Returns a nested value of a document: `["wiredTiger", "cache", "bytes read into cache"]`.
pub fn within<'a>(document: Document<'a>, path: &[&str]) -> Option<Value<'a>> {
    let (name, deeper) = path.split_first()?;
    match (document.get(name).ok()??, deeper) {
        (value, []) => Some(value),
        (Value::Document(inner), deeper) => within(inner, deeper),
        _ => None,
    }
}

/// Returns a nested text of a document.
pub fn text_within(document: Document<'_>, path: &[&str]) -> Option<String> {
    Some(String::from_utf8_lossy(within(document, path)?.bytes()?).into_owned())
}

/// Maps a command's error to an engine error; `call` names the purpose.
pub fn failed(call: &'static str) -> impl Fn(MongoError) -> EngineError {
    move |error| error.during(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::existing;
    use crate::tests::scripted::{Server, ok};

    #[test]
    fn server_uptime_below_session_age_means_a_restart() {
        let reported = DocumentBuf::of(|of| of.int("uptimeMillis", 5000));
        let ran = [4999, 5000, 5001].map(|ms| has_run_for(reported.get(), Duration::from_millis(ms)));
        assert_eq!(ran, [true, true, false]);
        assert!(!has_run_for(Document::EMPTY, Duration::ZERO), "it does not report it");
    }

    #[test]
    fn reconnected_session_detects_a_restarted_server() {
        for (uptime_ms, is_another) in [(3_600_000, false), (0, true)] {
            let mut connections = 0;
            let server = Server::new(move |name, _| match name {
                "serverStatus" => Some(ok(|of| of.int("uptimeMillis", uptime_ms))),
                _ => {
                    connections += 1;
                    (connections > 1).then(|| ok(|_| {}))
                }
            });
            let mut control = Control::new(existing::connect(&server.target()).unwrap(), OnLost::Reconnect);
            control.reported("serverStatus").unwrap();
            assert!(!control.was_restarted());
            control.reported("ping").unwrap();
            assert_eq!(control.was_restarted(), is_another);
        }
    }
}
