//! The document session family: documents in collections, in poll form as [`crate::sql`] is, and for the same reasons.
//!
//! The vocabulary is small on purpose: what published workloads over documents ask for. What else a server can do, such as
//! indexes and options of collections, is asked for by [`DocumentSession::run`], in the words of the server.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

use crate::bson::{Document, Documents};
use crate::error::EngineError;

/// Documents that are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Find<'a> {
    /// What they hold: `{ "_id": 7 }`.
    pub filter: Document<'a>,
    /// In which order they come; empty leaves it to the engine.
    pub sort: Document<'a>,
    /// Which of their values come; empty asks for all.
    pub projection: Document<'a>,
    /// How many of the first are passed over.
    pub skip: u32,
    /// How many at most; 0 asks for all.
    pub limit: u32,
    /// By which index they are looked for; empty leaves it to the engine.
    pub index: &'a str,
}

impl<'a> Find<'a> {
    /// All that hold this, in any order.
    pub fn by(filter: Document<'a>) -> Self {
        Self { filter, sort: Document::EMPTY, projection: Document::EMPTY, skip: 0, limit: 0, index: "" }
    }
}

/// A change of one document.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// Which: the first that holds this.
    pub filter: Document<'a>,
    /// What becomes of it, by operators (`{ "$set": … }`), or what stands in its place.
    pub update: Document<'a>,
    /// Whether it is made where there is none.
    pub upsert: bool,
}

/// What a session is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Command<'a> {
    /// Documents are added, in their order: the first that cannot be ends it.
    Insert {
        /// To this collection.
        into: &'a str,
        /// These.
        documents: &'a Documents,
    },
    /// Documents are shown.
    Find {
        /// Of this collection.
        of: &'a str,
        /// Which.
        find: Find<'a>,
    },
    /// One document is changed.
    Update {
        /// Of this collection.
        of: &'a str,
        /// How.
        update: Update<'a>,
    },
    /// One document is changed, and shown as it was before; or as it is then.
    FindAndModify {
        /// Of this collection.
        of: &'a str,
        /// How.
        update: Update<'a>,
        /// Which of its values are shown; empty asks for all.
        projection: Document<'a>,
        /// Whether it is shown as it is then.
        new: bool,
    },
    /// Documents are removed.
    Delete {
        /// From this collection.
        from: &'a str,
        /// Those that hold this.
        filter: Document<'a>,
        /// Whether all of them, or the first.
        all: bool,
    },
    /// Documents are counted, one by one.
    Count {
        /// Of this collection.
        of: &'a str,
        /// Those that hold this.
        filter: Document<'a>,
    },
    /// A transaction begins. Nothing is sent: the answer is there at once.
    Begin,
    /// What was done since it began is done.
    Commit,
    /// Nothing of it is.
    Abort,
}

/// What a command did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Documents visited.
    pub documents: u64,
    /// Documents added, matched by an update, removed, or counted.
    pub matched: u64,
    /// Documents that an update changed; one that holds already what is set is none.
    pub modified: u64,
    /// Documents that an update made.
    pub upserted: u64,
}

/// What is called with each document of an answer.
pub type Visit<'a> = &'a mut dyn FnMut(Document<'_>);

/// One client's session. One command is under way at a time.
///
/// Between [`Command::Begin`] and [`Command::Commit`] or [`Command::Abort`], commands belong to one transaction, which sees
/// its own writes. Whatever fails in it ends it: it cannot be committed any more, and is aborted in any case.
pub trait DocumentSession: Send {
    /// Whether there are transactions. Without them [`Command::Begin`] is an error.
    fn has_transactions(&self) -> bool;

    /// Starts a command. After [`EngineError::CutOff`] nothing is under way.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn submit(&mut self, command: Command<'_>) -> Result<(), EngineError>;

    /// Takes the answer to the command under way, calling `visit` with each document. A document whose envelope is whole
    /// may still be malformed within, which shows when it is read.
    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Done, EngineError>>;

    /// Runs a command in the words of the server, such as one that makes an index, and blocks until it is done.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn run(&mut self, command: Document<'_>) -> Result<(), EngineError>;
}

impl dyn DocumentSession + '_ {
    /// Runs a command to its end.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] where another transaction stood in the way, [`EngineError::Duplicate`] where a document
    /// with this key is there already.
    pub fn execute(
        &mut self,
        command: Command<'_>,
        visit: Visit<'_>,
    ) -> impl Future<Output = Result<Done, EngineError>> {
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
