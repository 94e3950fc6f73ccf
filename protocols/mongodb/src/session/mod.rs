//! A session: one client's connection on the load path.
//!
//! One command is in progress at a time, as with every driver of this protocol. If an answer is incomplete, the session
//! requests more until it is complete. A transaction exists on the server from its first command on; the begin is only
//! recorded.

mod answers;
mod command;
mod failure;
mod lost;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};

use rumba_engine_api::bson::{Document, DocumentBuf};
use rumba_engine_api::document::{Command, DocumentSession, Done, Visit};
use rumba_engine_api::error::{EngineError, Result};
use rumba_transport::{Link, LinkCounts, Linked, OnLost, Target, call_failed};

use crate::Hello;
use crate::connection::Connection;

/// Counters shared by all sessions of an instance. A session only updates them for rare events.
#[derive(Debug, Default)]
pub struct MongoCounts {
    /// Transactions that conflicted with another one.
    pub write_conflicts: AtomicU64,
    /// Transactions that waited too long for a lock.
    pub lock_timeouts: AtomicU64,
    /// Transactions that the server ended for another reason, and that may succeed when retried.
    pub transient_errors: AtomicU64,
    /// Commits that were sent again, because the first answer left their outcome unknown.
    pub commits_repeated: AtomicU64,
    /// Lost connections.
    pub link: LinkCounts,
}

/// The options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The database of its collections.
    pub database: String,
    /// The write concern: `{ "w": 1, "j": true }`; the server's default if absent.
    pub write_concern: Option<DocumentBuf>,
    /// The read concern of transactions: `snapshot`; the server's default if absent.
    pub read_concern: Option<String>,
    /// Whether to use transactions if the server's greeting announces them. The greeting does not consider the storage
    /// engine, which may refuse them.
    pub transactions: bool,
    /// The reaction to a lost connection.
    pub on_lost: OnLost,
    /// The shared counters.
    pub counts: Arc<MongoCounts>,
}

impl SessionOptions {
    /// Options for this database, with the server's defaults.
    pub fn to(database: impl Into<String>) -> Self {
        Self {
            database: database.into(),
            write_concern: None,
            read_concern: None,
            transactions: true,
            on_lost: OnLost::default(),
            counts: Arc::default(),
        }
    }
}

/// The kind of the pending answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// Documents.
    Find,
    /// One document.
    FindAndModify,
    Count,
    Write,
    /// The end of a transaction.
    Commit {
        /// Whether it was sent before.
        again: bool,
    },
    /// An abort; it succeeds even if the server reports an error.
    Abort,
    /// No message was sent, because the request needs no server.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    /// There is no transaction.
    None,
    /// It has begun, but the server does not know it yet.
    Begun,
    Open,
    /// A command in it has failed, so it must be aborted.
    Failed,
}

/// A session.
pub struct MongoSession {
    target: Target,
    options: SessionOptions,
    connection: Connection,
    link: Link,
    /// The kind of the pending answer, if any.
    pending: Option<Pending>,
    /// The command's collection, which a request for more documents needs.
    collection: String,
    transaction: Transaction,
    /// Cached finds of one document.
    finds: Vec<command::FindOne>,
    /// The session's id on a server with transactions, and their numbers.
    id: [u8; 16],
    number: i64,
    /// The result of the current answer so far.
    done: Done,
}

impl MongoSession {
    /// Connects.
    pub fn connect(target: &Target, options: &SessionOptions) -> Result<Self> {
        let connection = lost::enter(target).map_err(|error| {
            // A server that is absent or has ended is reported as a lost connection.
            if error.is_lost() { EngineError::Lost(error.to_string()) } else { error.during("connect") }
        })?;
        let mut session = Self {
            target: target.clone(),
            options: options.clone(),
            connection,
            link: Link::Up,
            pending: None,
            collection: String::new(),
            transaction: Transaction::None,
            finds: Vec::new(),
            id: [0; 16],
            number: 0,
            done: Done::default(),
        };
        if session.has_transactions() {
            session.id = command::session_id().map_err(|error| call_failed("getrandom", &error.to_string()))?;
        }
        Ok(session)
    }

    /// The server's greeting on this connection.
    pub fn hello(&self) -> &Hello {
        &self.connection.hello
    }

    /// Ensures that no command is in progress.
    fn idle(&mut self, call: &'static str) -> Result<()> {
        self.link_up()?;
        if self.pending.is_none() {
            return Ok(());
        }
        Err(call_failed(call, "the answer to the command before has not been taken yet"))
    }
}

impl DocumentSession for MongoSession {
    fn has_transactions(&self) -> bool {
        self.options.transactions && self.connection.hello.has_transactions()
    }

    #[inline]
    fn submit(&mut self, command: Command<'_>) -> Result<()> {
        if self.pending.is_some() || !self.link.is_up() {
            self.idle("submit")?;
        }
        self.write(command)
    }

    #[inline]
    fn poll_answer(&mut self, _context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Done>> {
        self.advance(visit)
    }

    fn run(&mut self, command: Document<'_>) -> Result<()> {
        self.idle("run")?;
        match self.connection.fetch(&self.options.database, |of| of.values_of(command), None) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.blocked_call_failed("run", &error, command)),
        }
    }
}

impl Drop for MongoSession {
    /// Makes the server drop the session, and an open transaction, without waiting for the answer.
    fn drop(&mut self) {
        if self.number > 0 && self.link.is_up() && self.pending.is_none() {
            self.write_end();
        }
    }
}
