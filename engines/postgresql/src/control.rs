//! The control session: what everything but the clients' operations goes over. Counters, upkeep, taking a database and
//! giving it back.

use std::io;
use std::time::Duration;

use rumba_core::error::EngineError;
use rumba_protocol_postgresql::{Admin, Loss, OnLost, PgError, Rows, TransportError};

use crate::existing;
use crate::failure::failed;

/// The control session. With [`OnLost::Reconnect`] it outlives the server's restart, as the clients' sessions do: it
/// connects anew, takes hold of its database again and asks once more.
pub struct Control {
    admin: Admin,
    on_lost: OnLost,
    /// Whether it holds other trials off the database.
    holds: bool,
    /// When the server was started, as it tells.
    started: Option<String>,
    was_restarted: bool,
    is_lost: bool,
}

impl Control {
    /// Over a connection; `holds` says whether it holds other trials off, see [`existing::hold`].
    pub fn new(mut admin: Admin, on_lost: OnLost, holds: bool) -> Self {
        let started = started(&mut admin);
        Self { admin, on_lost, holds, started, was_restarted: false, is_lost: false }
    }

    /// Changes the time that an answer may take; `None` waits for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.admin.set_timeout(timeout);
    }

    /// Whether the server was started again since the session began, as far as the session has noticed: what it
    /// counts may then be counted from another start.
    pub fn was_restarted(&self) -> bool {
        self.was_restarted
    }

    /// The version in the server's own words.
    pub fn server_version(&self) -> &str {
        self.admin.server_version()
    }

    /// Runs one statement and takes its rows. What was under way when the connection was lost may have been done or
    /// not: whoever asks here asks for what may be done twice.
    ///
    /// # Errors
    /// See [`PgError`].
    pub fn ask(&mut self, sql: &str) -> Result<Rows, PgError> {
        let first = self.admin.query(sql);
        let answered = match first {
            Err(error) if self.on_lost == OnLost::Reconnect && error.is_lost() => {
                self.connect_anew().and_then(|()| self.admin.query(sql))
            }
            answered => answered,
        };
        self.is_lost = answered.as_ref().is_err_and(PgError::is_lost);
        answered
    }

    /// Runs one statement; `call` names it in an error.
    ///
    /// # Errors
    /// The server's words.
    pub fn run(&mut self, call: &'static str, sql: &str) -> Result<Rows, EngineError> {
        self.ask(sql).map_err(|error| failed(call, &error))
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

    fn connect_anew(&mut self) -> Result<(), PgError> {
        self.admin.reconnect()?;
        if self.holds && !existing::hold(&mut self.admin, existing::RELEASE)? {
            let cause = io::Error::other("another trial has taken it meanwhile");
            return Err(TransportError::io("taking the database again", cause).into());
        }
        let now = started(&mut self.admin);
        // Where the server does not tell, a start is supposed: what it counted before may not be in what it counts now.
        self.was_restarted |= now.is_none() || now != self.started;
        self.started = now;
        Ok(())
    }
}

fn started(admin: &mut Admin) -> Option<String> {
    let answer = admin.query("SELECT pg_postmaster_start_time()").ok()?;
    answer.rows.into_iter().next()?.into_iter().next()?
}
