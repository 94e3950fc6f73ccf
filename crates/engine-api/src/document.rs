//! The document session family: documents in collections, in poll form for the same reasons as [`crate::sql`].
//!
//! The set of commands is small on purpose and covers published document workloads. For everything else, such as
//! indexes and options of collections, use [`DocumentSession::run`] with the server's own commands.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

use crate::bson::{Document, Documents};
use crate::error::Result;

/// A query for documents.
#[derive(Clone, Copy, Debug)]
pub struct Find<'a> {
    /// The match condition: `{ "_id": 7 }`.
    pub filter: Document<'a>,
    /// The sort order; empty leaves it to the engine.
    pub sort: Document<'a>,
    /// The fields to return; empty for all.
    pub projection: Document<'a>,
    /// The number of documents to skip at the start.
    pub skip: u32,
    /// The most documents to return; 0 for no limit.
    pub limit: u32,
    /// The index to use; empty leaves the choice to the engine.
    pub index: &'a str,
}

impl<'a> Find<'a> {
    /// Finds all matching documents, in any order.
    pub fn by(filter: Document<'a>) -> Self {
        Self { filter, sort: Document::EMPTY, projection: Document::EMPTY, skip: 0, limit: 0, index: "" }
    }
}

/// A change of one document.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// The match condition; the first match is used.
    pub filter: Document<'a>,
    /// Update operators (`{ "$set": … }`), or a replacement document.
    pub update: Document<'a>,
    /// Whether to insert a document if none matches.
    pub upsert: bool,
}

/// A command for a session.
#[derive(Clone, Copy, Debug)]
pub enum Command<'a> {
    /// Inserts documents in order; the first failure ends it.
    Insert {
        /// The collection.
        into: &'a str,
        /// The documents.
        documents: &'a Documents,
    },
    /// Finds documents.
    Find {
        /// The collection.
        of: &'a str,
        /// The query.
        find: Find<'a>,
    },
    /// Updates one document.
    Update {
        /// The collection.
        of: &'a str,
        /// The update.
        update: Update<'a>,
    },
    /// Changes one document, and returns it as it was before or after.
    FindAndModify {
        /// The collection.
        of: &'a str,
        /// The update.
        update: Update<'a>,
        /// The fields to show; empty for all.
        projection: Document<'a>,
        /// Whether to return the changed document.
        new: bool,
    },
    /// Removes documents.
    Delete {
        /// The collection.
        from: &'a str,
        /// The match condition.
        filter: Document<'a>,
        /// Whether to remove all matching documents, or the first.
        all: bool,
    },
    /// Counts documents one by one.
    Count {
        /// The collection.
        of: &'a str,
        /// The match condition.
        filter: Document<'a>,
    },
    /// Begins a transaction. The session sends no request, so the answer is available at once.
    Begin,
    /// Commits the transaction.
    Commit,
    /// Aborts the transaction.
    Abort,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Documents visited.
    pub documents: u64,
    /// The number of documents inserted, matched by an update, removed, or counted.
    pub matched: u64,
    /// Documents that an update changed, without those that already had the new content.
    pub modified: u64,
    /// Documents that an update inserted.
    pub upserted: u64,
}

/// A callback for each document of an answer.
pub type Visit<'a> = &'a mut dyn FnMut(Document<'_>);

/// One client's session. One command is in progress at a time.
///
/// Between [`Command::Begin`] and [`Command::Commit`] or [`Command::Abort`], commands belong to one transaction, which
/// sees its own writes. Any error ends the transaction: it can only be aborted.
pub trait DocumentSession: Send {
    /// Whether it supports transactions. If not, [`Command::Begin`] is an error.
    fn has_transactions(&self) -> bool;

    /// Starts a command. After `EngineError::CutOff` nothing is under way.
    fn submit(&mut self, command: Command<'_>) -> Result<()>;

    /// Takes the answer to the command in progress, calling `visit` with each document. A document with an intact
    /// envelope may still be malformed inside, which is found when it is read.
    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Done>>;

    /// Runs a command in the words of the server, such as one that makes an index, and blocks until it is done.
    fn run(&mut self, command: Document<'_>) -> Result<()>;
}

impl dyn DocumentSession + '_ {
    /// Runs a command to its end.
    ///
    /// # Errors
    /// `EngineError::Conflict` when another transaction was in the way, `EngineError::Duplicate` when a document
    /// with this key exists already.
    pub fn execute(&mut self, command: Command<'_>, visit: Visit<'_>) -> impl Future<Output = Result<Done>> {
        let mut submitted = false;
        poll_fn(move |context| {
            if !submitted {
                self.submit(command)?;
                submitted = true;
            }
            self.poll_answer(context, visit)
        })
    }
}
