//! Handles a lost connection.

use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::Answer;
use rumba_transport::{Address, CONNECT, Channel, Link, LinkCounts, Linked, OnLost, in_statement};

use super::failure::{call_failed, usual};
use super::{SessionOptions, Stage, WireSession};
use crate::codec::answer::Refusal;
use crate::connection::Connection;
use crate::query::query;
use crate::{Target, WireError};

/// All sessions together have as many prepared statements as the server allows.
const TOO_MANY_PREPARED: u16 = 1461;

/// Connects and sets the session up.
pub(super) fn enter(target: &Target, options: &SessionOptions) -> Result<Connection, WireError> {
    let deadline = Instant::now() + options.connect_timeout.unwrap_or(CONNECT);
    let mut connection = Connection::enter(target, deadline)?;
    for statement in &options.setup {
        query(&mut connection, statement, Some(deadline)).map_err(|error| match error {
            WireError::Server { code, sqlstate, message } => {
                WireError::Server { code, sqlstate, message: message + &in_statement(statement.as_bytes()) }
            }
            other => other,
        })?;
    }
    Ok(connection)
}

impl Linked for WireSession {
    type Error = WireError;

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

    fn is_lost(error: &WireError) -> bool {
        error.is_lost()
    }

    fn may_pass(error: &WireError) -> bool {
        error.may_pass()
    }

    fn reconnect(&mut self) -> Result<(), WireError> {
        let deadline = Some(Instant::now() + CONNECT);
        let mut connection = enter(&self.target, &self.options)?;
        for statement in self.statements.iter_mut() {
            statement.prepare_again(&mut connection, deadline)?;
        }
        self.connection = connection;
        Ok(())
    }

    fn forget(&mut self) -> usize {
        let under_way = self.queue.iter().filter(|pending| pending.last).count();
        self.queue.clear();
        self.outbox.reset();
        self.skipping = false;
        self.stage = Stage::Head;
        self.answer = Answer::default();
        self.failure = None;
        under_way
    }

    /// If a completely sent request is unanswered, the session waits for that answer and not for space, because the
    /// server may be unable to continue before the client reads.
    #[inline]
    fn flush(&mut self) -> bool {
        let channel = &mut self.connection.channel;
        self.outbox.flush(channel, &self.queue) && {
            // A group's request ends with its last statement.
            let first = self.queue.iter().find(|pending| !pending.grouped);
            first.is_some_and(|first| !self.outbox.is_sent(channel, first))
        }
    }
}

impl WireSession {
    /// Handles a failed blocking call; a lost connection is reopened before the next call.
    #[cold]
    pub(super) fn blocked_call_failed(&mut self, call: &'static str, error: WireError, sql: &[u8]) -> EngineError {
        if let WireError::Unable(why) = &error {
            return call_failed(call, why);
        }
        if let WireError::Server { code, sqlstate, message } = &error
            && !error.is_lost()
        {
            let refusal = Refusal { code: *code, state: sqlstate.0, message: message.as_bytes() };
            if let Some(usual) = usual(&refusal, &self.options) {
                return usual;
            }
            let mut more = String::new();
            if *code == TOO_MANY_PREPARED {
                more = format!("; this client alone needs {} or more", self.statements.iter_mut().count() + 1);
            }
            return error.during(call).followed_by(&(more + &in_statement(sql)));
        }
        self.cut_off(&error)
    }
}
