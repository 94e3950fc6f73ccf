//! The control session: what everything but the clients' operations goes over. Counters, upkeep, taking a schema and
//! giving it back.

use std::io;
use std::time::Duration;

use rumba_core::error::EngineError;
use rumba_protocol_mysql::{Admin, Loss, OnLost, Rows, WireError};

use crate::counters::{Ask, Status};
use crate::existing;

/// How often the server is asked for its start: each time its second may end between two answers.
const START_TRIES: u32 = 3;

/// The control session. With [`OnLost::Reconnect`] it outlives the server's restart, as the clients' sessions do: it
/// connects anew, takes hold of its schema again and asks once more.
pub struct Control {
    admin: Admin,
    on_lost: OnLost,
    /// The schema that it holds other trials off.
    schema: Option<String>,
    /// When the server was started, as it tells.
    started: Option<u64>,
    was_restarted: bool,
    is_lost: bool,
}

impl Control {
    /// Over a connection; `schema` is what it holds other trials off, see [`existing::hold`].
    pub fn new(mut admin: Admin, on_lost: OnLost, schema: Option<String>) -> Self {
        let started = started(&mut admin);
        Self { admin, on_lost, schema, started, was_restarted: false, is_lost: false }
    }

    /// Changes the time that an answer may take; `None` waits for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.admin.set_timeout(timeout);
    }

    /// Whether the server was started again since the session began, as far as the session has noticed: what it
    /// counts is then counted from another start.
    pub fn was_restarted(&self) -> bool {
        self.was_restarted
    }

    /// An error as the clients' sessions tell it where the connection is lost for good: so whoever watches the server
    /// sees that its end may be behind it.
    pub fn told(&self, error: EngineError) -> EngineError {
        match error {
            full @ EngineError::DiskFull(_) => full,
            error if self.is_lost => {
                let (to, on_lost) = (self.admin.address(), self.on_lost);
                EngineError::Lost(Loss { to, error: &error, is_lost: true, on_lost }.to_string())
            }
            other => other,
        }
    }

    fn connect_anew(&mut self) -> Result<(), WireError> {
        self.admin.reconnect()?;
        if let Some(schema) = &self.schema
            && !existing::hold(&mut self.admin, schema, existing::RELEASE)?
        {
            let cause = io::Error::other("another trial has taken it meanwhile");
            return Err(WireError::Io { what: format!("taking the schema {schema} again"), cause });
        }
        let now = started(&mut self.admin);
        // Where the server does not tell, a start is supposed: what it counted before may not be in what it counts now.
        self.was_restarted |= now.is_none() || now != self.started;
        self.started = now;
        Ok(())
    }
}

impl Ask for Control {
    /// What was under way when the connection was lost may have been done or not: whoever asks here asks for what may
    /// be done twice.
    fn ask(&mut self, sql: &str) -> Result<Rows, WireError> {
        let first = self.admin.ask(sql);
        let answered = match first {
            Err(error) if self.on_lost == OnLost::Reconnect && error.is_lost() => {
                self.connect_anew().and_then(|()| self.admin.ask(sql))
            }
            answered => answered,
        };
        self.is_lost = answered.as_ref().is_err_and(WireError::is_lost);
        answered
    }
}

/// When the server was started, in whole seconds of its own clock. It counts its uptime from then to the beginning of the
/// statement that asks for it, and so the difference of the two is the same at any time, also after its clock was set.
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

/// The second at which this statement began, by the server's clock.
fn now_s(admin: &mut Admin) -> Option<u64> {
    let answer = admin.query("SELECT UNIX_TIMESTAMP()").ok()?;
    answer.rows.first()?.first()?.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::tests::server::{Private, run};

    fn id(control: &mut Control) -> String {
        control.ask("SELECT CONNECTION_ID()").expect("an answer").rows[0][0].clone().expect("a number")
    }

    fn holds(admin: &mut Admin) -> bool {
        existing::hold(admin, "lab", Duration::ZERO).expect("an answer")
    }

    #[test]
    #[needs(MariaDb)]
    fn reconnected_session_locks_its_schema_again() {
        let mut private = Private::start(&[]);
        let mut admin = private.connect();
        assert!(holds(&mut admin));
        let mut control = Control::new(admin, OnLost::Reconnect, Some("lab".to_owned()));
        let first = id(&mut control);
        run(&mut private.connect(), &[&format!("KILL CONNECTION {first}")]);
        assert_ne!(id(&mut control), first);
        assert!(!control.was_restarted(), "the server is the same");
        assert!(!holds(&mut private.connect()), "no other trial may");
        // Its start is told in whole seconds.
        std::thread::sleep(Duration::from_secs(1));
        private.restart();
        id(&mut control);
        assert!(control.was_restarted());
        assert!(!holds(&mut private.connect()), "no other trial may");
    }

    #[test]
    #[needs(MariaDb)]
    fn session_without_reconnect_reports_a_lost_connection() {
        let private = Private::start(&[]);
        let mut control = Control::new(private.connect(), OnLost::Fail, None);
        let number = id(&mut control);
        run(&mut private.connect(), &[&format!("KILL CONNECTION {number}")]);
        assert!(control.ask("SELECT 1").is_err_and(|error| error.is_lost()));
        assert!(control.ask("SELECT 1").is_err(), "what is lost stays lost");
    }
}
