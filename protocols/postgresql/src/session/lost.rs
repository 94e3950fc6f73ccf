//! Handles a lost connection.

use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::Answer;
use rumba_transport::{Address, CONNECT, Channel, Link, LinkCounts, Linked, OnLost, Target, call_failed, in_statement};

use super::failure::usual;
use super::queue::group_end;
use super::{PgSession, SessionOptions};
use crate::PgError;
use crate::connection::Connection;
use crate::query::run;

/// Connects and sets the session up.
pub(super) fn enter(target: &Target, options: &SessionOptions) -> Result<Connection, PgError> {
    let deadline = Instant::now() + options.connect_timeout.unwrap_or(CONNECT);
    let mut connection = Connection::enter(target, &options.startup, deadline)?;
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
    type Error = PgError;

    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    #[inline]
    fn channel(&mut self) -> &mut Channel {
        &mut self.connection.channel
    }

    fn settings(&self) -> (&Address, OnLost, &LinkCounts) {
        (&self.target.address, self.options.on_lost, &self.options.counts.link)
    }

    fn is_lost(error: &PgError) -> bool {
        error.is_lost()
    }

    fn may_pass(error: &PgError) -> bool {
        error.may_pass()
    }

    fn reconnect(&mut self) -> Result<(), PgError> {
        let deadline = Some(Instant::now() + CONNECT);
        let mut connection = enter(&self.target, &self.options)?;
        for statement in self.statements.iter_mut() {
            statement.prepare_again(&mut connection, deadline)?;
        }
        self.connection = connection;
        Ok(())
    }

    fn forget(&mut self) -> usize {
        let under_way = self.queue.iter().len();
        self.queue.clear();
        self.in_block = false;
        self.skipping = false;
        self.answer = Answer::default();
        self.failure = None;
        under_way
    }

    /// If a completely sent group is unanswered, the session waits for those answers and not for space, because the
    /// server may be unable to continue before the client reads. A partly sent group has only small statements and
    /// rows, so the kernel can buffer its answers.
    #[inline]
    fn flush(&mut self) -> bool {
        let channel = &mut self.connection.channel;
        channel.flush() && channel.sent_to() < group_end(&self.queue)
    }
}

impl PgSession {
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
        self.cut_off(&error)
    }
}
