//! The control session, which carries everything except the clients' operations: counters, upkeep, taking a database
//! and releasing it.

use std::io;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};
use rumba_protocol_postgresql::{Admin, Loss, OnLost, PgError, Rows, TransportError};

use crate::failure::failed;

/// Key of the advisory lock that a trial holds in its database: "rumba" in letters.
const LOCK: u64 = 0x0072_756d_6261;
/// How long a lost connection or a killed trial may still hold the database. A server notices a closed connection only
/// when it next reads, for example after a long statement.
pub const RELEASE: Duration = Duration::from_secs(10);
/// Pause between two attempts to take the database.
const NAP: Duration = Duration::from_millis(100);

/// The control session. With [`OnLost::Reconnect`] it survives a server restart, as the clients' sessions do: it
/// reconnects, locks its database again and repeats the request.
pub struct Control {
    admin: Admin,
    on_lost: OnLost,
    /// Whether this session locks the database against other trials.
    holds: bool,
    /// The start time that the server reports.
    started: Option<String>,
    was_restarted: bool,
    is_lost: bool,
}

impl Control {
    /// A control session over a connection. `holds` says whether it locks the database, see [`hold`].
    pub fn new(mut admin: Admin, on_lost: OnLost, holds: bool) -> Self {
        let started = started(&mut admin);
        Self { admin, on_lost, holds, started, was_restarted: false, is_lost: false }
    }

    /// Changes the timeout of an answer; `None` waits forever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.admin.set_timeout(timeout);
    }

    /// Whether the session has noticed a server restart since it began. The server's counters may then count from the
    /// restart.
    pub fn was_restarted(&self) -> bool {
        self.was_restarted
    }

    /// The version as the server prints it.
    pub fn server_version(&self) -> &str {
        self.admin.server_version()
    }

    /// Runs one idempotent statement and returns its rows. After a lost connection it is unknown whether the statement
    /// was executed, so it may run twice.
    pub fn fetch(&mut self, sql: &str) -> Result<Rows, PgError> {
        let first = self.admin.query(sql);
        let answered = match first {
            Err(error) if self.on_lost == OnLost::Reconnect && error.is_lost() => {
                self.connect_again().and_then(|()| self.admin.query(sql))
            }
            answered => answered,
        };
        self.is_lost = answered.as_ref().is_err_and(PgError::is_lost);
        answered
    }

    /// The first column of each row.
    pub fn firsts(&mut self, sql: &str) -> Result<Vec<String>, PgError> {
        Ok(self.fetch(sql)?.rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
    }

    /// Runs one statement; `call` names it in an error.
    pub fn run(&mut self, call: &'static str, sql: &str) -> Result<Rows> {
        self.fetch(sql).map_err(|error| failed(call, &error))
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

    fn connect_again(&mut self) -> Result<(), PgError> {
        self.admin.reconnect()?;
        if self.holds && !hold(&mut self.admin, RELEASE)? {
            let cause = io::Error::other("another trial has taken it meanwhile");
            return Err(TransportError::io("taking the database again", cause).into());
        }
        let now = started(&mut self.admin);
        // Without a reported start time rumba assumes a restart, because the counters may have been reset.
        self.was_restarted |= now.is_none() || now != self.started;
        self.started = now;
        Ok(())
    }
}

fn started(admin: &mut Admin) -> Option<String> {
    let answer = admin.query("SELECT pg_postmaster_start_time()").ok()?;
    answer.rows.into_iter().next()?.into_iter().next()?
}

/// Locks the database against other trials while this connection lives. Returns false if another trial holds the lock
/// and keeps it for `patience`.
pub fn hold(admin: &mut Admin, patience: Duration) -> Result<bool, PgError> {
    let since = std::time::Instant::now();
    loop {
        let got = admin.query(&format!("SELECT pg_try_advisory_lock({LOCK})"))?;
        if got.rows.first().and_then(|row| row.first()?.as_deref()) == Some("t") {
            return Ok(true);
        }
        if since.elapsed() > patience {
            return Ok(false);
        }
        std::thread::sleep(NAP);
    }
}
