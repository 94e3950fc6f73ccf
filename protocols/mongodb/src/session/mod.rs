//! A session: one client's connection on the load path.
//!
//! One command is under way at a time, as with every driver of this protocol. What its answer has no room for is asked
//! for until all of it has come. A transaction is the server's from its first command on; its beginning is only noted.

mod answers;
mod command;
mod failure;
mod lost;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};

use rumba_core::bson::{Document, DocumentBuf};
use rumba_core::document::{Command, DocumentSession, Done, Visit};
use rumba_core::error::EngineError;
use rumba_transport::{Link, Linked, OnLost, Target};

use crate::Hello;
use crate::connection::Connection;

use failure::call_failed;

/// A send buffer that grew beyond this is given back when it is not needed any more.
const AMPLE: usize = 16 << 10;
/// So many flushes in a row did not need it.
const PATIENCE: u32 = 64;

/// What all sessions of an instance count together; each adds only when the
/// rare thing happens.
#[derive(Debug, Default)]
pub struct MongoCounts {
    /// Transactions in whose way another stood.
    pub write_conflicts: AtomicU64,
    /// Transactions that waited too long for a lock.
    pub lock_timeouts: AtomicU64,
    /// Transactions that the server ended for another reason, and that may do better the next time.
    pub transient_errors: AtomicU64,
    /// Commits that were asked for once more, because the first answer left open what became of them.
    pub commits_repeated: AtomicU64,
    /// Connections lost.
    pub connections_lost: AtomicU64,
    /// Connections made anew.
    pub reconnects: AtomicU64,
}

/// What a session is told.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The database that its collections are in.
    pub database: String,
    /// What a write is to be sure of: `{ "w": 1, "j": true }`; the server's own choice if absent.
    pub write_concern: Option<DocumentBuf>,
    /// What a transaction reads: `snapshot`; the server's own choice if absent.
    pub read_concern: Option<String>,
    /// Whether there may be transactions where the server's greeting says so. It tells nothing of the storage engine,
    /// which may refuse them.
    pub transactions: bool,
    /// What happens when the connection is lost.
    pub on_lost: OnLost,
    /// What is counted.
    pub counts: Arc<MongoCounts>,
}

impl SessionOptions {
    /// A session to this database, for which the server chooses everything else.
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

/// What an answer is awaited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// Documents.
    Find,
    /// One document.
    FindAndModify,
    /// The number that a pipeline has counted.
    Count,
    /// A write.
    Write,
    /// The end of a transaction.
    Commit {
        /// Whether it was asked for before.
        again: bool,
    },
    /// Another end of it, whatever the server says.
    Abort,
    /// Nothing was sent: what was asked for needs no server.
    Nothing,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    /// There is none.
    None,
    /// It has begun, and the server does not know of it.
    Begun,
    /// The server has it.
    Open,
    /// Something in it has failed, and so has it.
    Failed,
}

/// A session.
pub struct MongoSession {
    target: Target,
    options: SessionOptions,
    connection: Connection,
    link: Link,
    /// What is under way.
    pending: Option<Pending>,
    /// Of which collection: for whoever asks for more of it.
    collection: String,
    transaction: Transaction,
    /// The finds of one document that were asked for.
    finds: Vec<command::FindOne>,
    /// What the server knows the session by, where it has transactions; their numbers.
    id: [u8; 16],
    number: i64,
    /// Flushes in a row that an ample buffer had been enough for.
    modest: u32,
    /// What the answer at hand came to so far.
    done: Done,
    /// The socket was waited for since bytes were last taken from it.
    waited: bool,
}

impl MongoSession {
    /// Connects.
    ///
    /// # Errors
    /// The server's or the system's words.
    pub fn connect(target: &Target, options: &SessionOptions) -> Result<Self, EngineError> {
        let connection = lost::enter(target).map_err(|error| {
            // A server that is not there, or ended meanwhile, is told as where a connection is lost.
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
            modest: 0,
            done: Done::default(),
            waited: false,
        };
        if session.has_transactions() {
            session.id = command::session_id().map_err(|error| call_failed("getrandom", &error.to_string()))?;
        }
        Ok(session)
    }

    /// What the server said of itself when it was connected to.
    pub fn hello(&self) -> &Hello {
        &self.connection.hello
    }

    /// Makes sure that nothing is under way.
    fn idle(&mut self, call: &'static str) -> Result<(), EngineError> {
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
    fn submit(&mut self, command: Command<'_>) -> Result<(), EngineError> {
        if self.pending.is_some() || !self.link.is_up() {
            self.idle("submit")?;
        }
        self.write(command)
    }

    #[inline]
    fn poll_answer(&mut self, _context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Done, EngineError>> {
        self.advance(visit)
    }

    fn run(&mut self, command: Document<'_>) -> Result<(), EngineError> {
        self.idle("run")?;
        match self.connection.ask(&self.options.database, |of| of.values_of(command), None) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.blocked_call_failed("run", &error, command)),
        }
    }
}

impl Drop for MongoSession {
    /// Has the server forget the session, and a transaction that is still open, without waiting until it has.
    fn drop(&mut self) {
        if self.number > 0 && self.link.is_up() && self.pending.is_none() {
            self.write_end();
        }
    }
}
