//! Handles a lost connection.

use std::time::Instant;

use rumba_engine_api::bson::Document;
use rumba_engine_api::document::Done;
use rumba_engine_api::error::EngineError;
use rumba_transport::{Address, CONNECT, Channel, Link, LinkCounts, Linked, OnLost, Target, call_failed};

use super::failure::usual;
use super::{MongoSession, Transaction};
use crate::MongoError;
use crate::codec::reply::Labels;
use crate::connection::Connection;

/// Connects.
pub(super) fn enter(target: &Target) -> Result<Connection, MongoError> {
    Connection::open(target, Instant::now() + CONNECT)
}

impl Linked for MongoSession {
    type Error = MongoError;

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

    fn is_lost(error: &MongoError) -> bool {
        error.is_lost()
    }

    fn may_pass(error: &MongoError) -> bool {
        error.is_lost()
    }

    fn reconnect(&mut self) -> Result<(), MongoError> {
        self.connection = self.connection.again(&self.target, Instant::now() + CONNECT)?;
        // After a lost connection a server keeps the transaction and its locks for a minute.
        if std::mem::replace(&mut self.transaction, Transaction::None) != Transaction::None {
            self.write_ending("abortTransaction");
            let deadline = Some(Instant::now() + CONNECT);
            self.connection.write(deadline)?;
            // The server's answer to the abort does not matter.
            self.connection.read(deadline)?;
            self.connection.channel.incoming.answered();
        }
        Ok(())
    }

    fn forget(&mut self) -> usize {
        self.done = Done::default();
        usize::from(self.pending.take().is_some())
    }
}

impl MongoSession {
    /// Handles a failed blocking call; a lost connection is reopened before the next call.
    #[cold]
    pub(super) fn blocked_call_failed(
        &mut self,
        call: &'static str,
        error: &MongoError,
        command: Document<'_>,
    ) -> EngineError {
        match error {
            MongoError::Unable(why) => call_failed(call, why),
            MongoError::Server { code, .. } if !error.is_lost() => {
                let named = || error.during(call).followed_by(&format!(", in: {command:?}"));
                usual(*code, Labels::default(), &self.options.counts).unwrap_or_else(named)
            }
            _ => self.cut_off(error),
        }
    }
}
