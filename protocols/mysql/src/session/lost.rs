//! Handles a lost connection.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::Answer;
use rumba_transport::{CONNECT, Link, Linked, Loss, Refused, in_statement};

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
    let mut connection = Connection::open(target, deadline)?;
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
            again().map_err(|error: WireError| Refused { why: error.to_string(), may_pass: error.may_pass() })?;
        self.options.counts.reconnects.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl WireSession {
    /// Marks the connection as lost.
    #[cold]
    pub(super) fn lose(&mut self, error: &WireError) {
        self.options.counts.connections_lost.fetch_add(1, Relaxed);
        let under_way = self.queue.iter().filter(|pending| pending.last).count();
        let (to, on_lost) = (&self.target.address, self.options.on_lost);
        self.link.lose(&Loss { to, error, is_lost: error.is_lost(), on_lost }, under_way);
        self.queue.clear();
        self.outbox.reset();
        self.connection.send.clear();
        self.connection.sent = 0;
        self.skipping = false;
        self.stage = Stage::Head;
        self.answer = Answer::default();
        self.failure = None;
        self.waited = false;
    }

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
        self.lose(&error);
        self.cut_off()
    }
}
