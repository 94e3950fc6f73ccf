//! Handles a lost connection.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::Answer;
use rumba_transport::{CONNECT, Link, Linked, Loss, Refused, Target, in_statement};

use super::failure::{call_failed, usual};
use super::{PgSession, SessionOptions};
use crate::PgError;
use crate::connection::Connection;
use crate::query::run;

/// Connects and sets the session up.
pub(super) fn enter(target: &Target, options: &SessionOptions) -> Result<Connection, PgError> {
    let deadline = Instant::now() + options.connect_timeout.unwrap_or(CONNECT);
    let mut connection = Connection::open(target, &options.startup, deadline)?;
    for statement in &options.setup {
        run(&mut connection, statement, Some(deadline)).map_err(|error| match error {
            PgError::Server { sqlstate, message, fatal } => {
                PgError::Server { sqlstate, message: message + &in_statement(statement.as_bytes()), fatal }
            }
            other => other,
        })?;
    }
    Ok(connection)
}

impl Linked for PgSession {
    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    fn connect_again(&mut self) -> Result<(), Refused> {
        let deadline = Some(Instant::now() + CONNECT);
        let mut again = || {
            let mut connection = enter(&self.target, &self.options)?;
            for statement in self.statements.iter_mut() {
                statement.prepare_again(&mut connection, deadline)?;
            }
            Ok(connection)
        };
        self.connection =
            again().map_err(|error: PgError| Refused { why: error.to_string(), may_pass: error.may_pass() })?;
        self.options.counts.reconnects.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl PgSession {
    /// Marks the connection as lost.
    #[cold]
    pub(super) fn lose(&mut self, error: &PgError) {
        self.options.counts.connections_lost.fetch_add(1, Relaxed);
        let under_way = self.queue.iter().len();
        let (to, on_lost) = (&self.target.address, self.options.on_lost);
        self.link.lose(&Loss { to, error, is_lost: error.is_lost(), on_lost }, under_way);
        self.queue.clear();
        self.connection.send.clear();
        self.connection.sent = 0;
        self.in_block = false;
        self.skipping = false;
        self.answer = Answer::default();
        self.failure = None;
        self.waited = false;
    }

    /// Handles a failed blocking call; a lost connection is reopened before the next call.
    #[cold]
    pub(super) fn blocked_call_failed(&mut self, call: &'static str, error: PgError, sql: &[u8]) -> EngineError {
        if let PgError::Unable(why) = &error {
            return call_failed(call, why);
        }
        if let PgError::Server { sqlstate, .. } = &error
            && !error.is_lost()
        {
            let named = || error.during(call).followed_by(&in_statement(sql));
            return usual(*sqlstate, &self.options.counts).unwrap_or_else(named);
        }
        self.lose(&error);
        self.cut_off()
    }
}
