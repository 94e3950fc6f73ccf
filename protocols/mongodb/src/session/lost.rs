//! Handles a lost connection.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rumba_engine_api::bson::Document;
use rumba_engine_api::document::Done;
use rumba_engine_api::error::EngineError;
use rumba_transport::{CONNECT, Link, Linked, Loss, Refused, Target};

use super::failure::{call_failed, usual};
use super::{MongoSession, Transaction};
use crate::MongoError;
use crate::codec::reply::Labels;
use crate::connection::Connection;

/// Connects.
pub(super) fn enter(target: &Target) -> Result<Connection, MongoError> {
    Connection::open(target, Instant::now() + CONNECT)
}

impl Linked for MongoSession {
    #[inline]
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    fn connect_again(&mut self) -> Result<(), Refused> {
        let refused = |error: MongoError| Refused { why: error.to_string(), may_pass: error.is_lost() };
        self.connection = self.connection.again(&self.target, Instant::now() + CONNECT).map_err(refused)?;
        // After a lost connection a server keeps the transaction and its locks for a minute.
        if std::mem::replace(&mut self.transaction, Transaction::None) != Transaction::None {
            self.write_ending("abortTransaction");
            let deadline = Some(Instant::now() + CONNECT);
            let received = self.connection.write(deadline).and_then(|()| self.connection.read(deadline));
            // The server's answer to the abort does not matter.
            received.map_err(refused)?;
            self.connection.incoming.answered();
        }
        self.options.counts.reconnects.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl MongoSession {
    /// Marks the connection as lost.
    #[cold]
    pub(super) fn lose(&mut self, error: &MongoError) {
        self.options.counts.connections_lost.fetch_add(1, Relaxed);
        let under_way = usize::from(self.pending.take().is_some());
        let (to, on_lost) = (&self.target.address, self.options.on_lost);
        self.link.lose(&Loss { to, error, is_lost: error.is_lost(), on_lost }, under_way);
        self.connection.send.clear();
        self.connection.sent = 0;
        self.done = Done::default();
        self.waited = false;
    }

    /// Handles a failed blocking call; a lost connection is reopened before the next call.
    #[cold]
    pub(super) fn blocked_call_failed(
        &mut self,
        call: &'static str,
        error: &MongoError,
        command: Document<'_>,
    ) -> EngineError {
        match error {
            MongoError::Unable(why) => return call_failed(call, why),
            MongoError::Server { code, .. } if !error.is_lost() => {
                let named = || error.during(call).followed_by(&format!(", in: {command:?}"));
                return usual(*code, Labels::default(), &self.options.counts).unwrap_or_else(named);
            }
            _ => self.lose(error),
        }
        self.cut_off()
    }
}
