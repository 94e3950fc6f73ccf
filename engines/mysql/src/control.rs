//! The control session, which carries everything except the clients' operations: counters, upkeep, taking a schema and
//! releasing it.

use std::io;
use std::time::Duration;

use rumba_engine_api::error::EngineError;
use rumba_protocol_mysql::{Admin, Loss, OnLost, Rows, WireError};

use crate::counters::{Request, Status};
use crate::sql::{firsts, text};

/// How often to query the server's start time. The clock's second may end between the two readings of each query.
const START_TRIES: u32 = 3;
/// How long a lost connection or a killed trial may still hold the schema. A server notices a closed connection only
/// when it next reads, for example after a long statement.
pub const RELEASE: Duration = Duration::from_secs(10);

/// The control session. With [`OnLost::Reconnect`] it survives a server restart, as the clients' sessions do: it
/// reconnects, locks its schema again and repeats the request.
pub struct Control {
    admin: Admin,
    on_lost: OnLost,
    /// The schema that this session locks against other trials.
    schema: Option<String>,
    /// The start time that the server reports.
    started: Option<u64>,
    was_restarted: bool,
    is_lost: bool,
}

impl Control {
    /// A control session over a connection. It locks `schema` against other trials, see [`hold`].
    pub fn new(mut admin: Admin, on_lost: OnLost, schema: Option<String>) -> Self {
        let started = started(&mut admin);
        Self { admin, on_lost, schema, started, was_restarted: false, is_lost: false }
    }

    /// Changes the timeout of an answer; `None` waits forever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.admin.set_timeout(timeout);
    }

    /// Whether the session has noticed a server restart since it began. The server's counters then count from the
    /// restart.
    pub fn was_restarted(&self) -> bool {
        self.was_restarted
    }

    /// Converts an error to the clients' error for a lost connection, so that the code watching the server can check
    /// whether the server ended.
    pub fn reported(&self, error: EngineError) -> EngineError {
        match error {
            full @ EngineError::DiskFull(_) => full,
            error if self.is_lost => {
                let (to, on_lost) = (self.admin.address(), self.on_lost);
                EngineError::Lost(Loss { to, error: &error, is_lost: true, on_lost }.to_string())
            }
            other => other,
        }
    }

    fn connect_again(&mut self) -> Result<(), WireError> {
        self.admin.reconnect()?;
        if let Some(schema) = &self.schema
            && !hold(&mut self.admin, schema, RELEASE)?
        {
            let cause = io::Error::other("another trial has taken it meanwhile");
            return Err(WireError::Io { what: format!("taking the schema {schema} again"), cause });
        }
        let now = started(&mut self.admin);
        // Without a reported start time rumba assumes a restart, because the counters may have been reset.
        self.was_restarted |= now.is_none() || now != self.started;
        self.started = now;
        Ok(())
    }
}

/// Locks a schema against other trials while this connection lives. Returns false if another trial holds the lock and
/// keeps it for `patience`.
pub fn hold(admin: &mut dyn Request, schema: &str, patience: Duration) -> Result<bool, WireError> {
    // Servers hash or truncate longer lock names.
    let name = text(&format!("rumba:{:016x}", rumba_server_kit::cache::number_of(schema)));
    let got = firsts(admin, &format!("SELECT GET_LOCK({name}, {})", patience.as_secs()))?;
    Ok(got == ["1"])
}

impl Request for Control {
    /// Runs an idempotent statement. After a lost connection it is unknown whether the statement was executed, so it
    /// may run twice.
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
        let first = self.admin.fetch(sql);
        let answered = match first {
            Err(error) if self.on_lost == OnLost::Reconnect && error.is_lost() => {
                self.connect_again().and_then(|()| self.admin.fetch(sql))
            }
            answered => answered,
        };
        self.is_lost = answered.as_ref().is_err_and(WireError::is_lost);
        answered
    }
}

/// The server's start time in whole seconds of the server's clock. Its uptime counts from the start to the begin of the
/// statement. The difference is therefore constant, even after the clock was set.
fn started(admin: &mut Admin) -> Option<u64> {
    for _ in 0..START_TRIES {
        let before_s = now_s(admin)?;
        let uptime_s = Status::read_some(admin, &["Uptime"]).ok()?.get("Uptime")?;
        if now_s(admin)? == before_s {
            return before_s.checked_sub(uptime_s as u64);
        }
    }
    None
}

/// The second at which this statement began, on the server's clock.
fn now_s(admin: &mut Admin) -> Option<u64> {
    let answer = admin.query("SELECT UNIX_TIMESTAMP()").ok()?;
    answer.rows.first()?.first()?.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::tests::server::{Private, run};

    fn id(control: &mut Control) -> String {
        control.fetch("SELECT CONNECTION_ID()").expect("an answer").rows[0][0].clone().expect("a number")
    }

    fn holds(admin: &mut Admin) -> bool {
        hold(admin, "lab", Duration::ZERO).expect("an answer")
    }

    #[test]
    #[needs(MariaDb)]
    fn lost_session_fails_or_reconnects_and_locks_its_schema() {
        let mut private = Private::start(&[]);
        let mut fails = Control::new(private.connect(), OnLost::Fail, None);
        let number = id(&mut fails);
        run(&mut private.connect(), &[&format!("KILL CONNECTION {number}")]);
        assert!(fails.fetch("SELECT 1").is_err_and(|error| error.is_lost()));
        assert!(fails.fetch("SELECT 1").is_err(), "what is lost stays lost");
        let mut admin = private.connect();
        assert!(holds(&mut admin));
        let mut control = Control::new(admin, OnLost::Reconnect, Some("lab".to_owned()));
        let first = id(&mut control);
        run(&mut private.connect(), &[&format!("KILL CONNECTION {first}")]);
        assert_ne!(id(&mut control), first);
        assert!(!control.was_restarted(), "the server is the same");
        assert!(!holds(&mut private.connect()), "no other trial may");
        // The server reports its start time in whole seconds.
        std::thread::sleep(Duration::from_secs(1));
        private.restart();
        id(&mut control);
        assert!(control.was_restarted());
        assert!(!holds(&mut private.connect()), "no other trial may");
    }
}
