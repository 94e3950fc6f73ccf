//! Commands and transactions over a session of documents.

use rumba_engine_api::bson::Documents;
use rumba_engine_api::document::{Command, DocumentSession, Done, Visit};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::worker::StatementCounts;

/// A number of documents as sessions count.
pub fn limited(documents: u64) -> u32 {
    u32::try_from(documents).unwrap_or(u32::MAX)
}

/// A document session that counts its commands, including those that begin and end transactions.
pub struct CountedDocuments {
    session: Box<dyn DocumentSession>,
    statements: StatementCounts,
}

impl CountedDocuments {
    /// Counts the requests to `session`.
    pub fn new(session: Box<dyn DocumentSession>) -> Self {
        Self { session, statements: StatementCounts::NONE }
    }

    /// The requests since the last call, including those that begin and end transactions.
    #[inline]
    pub fn take_statements(&mut self) -> StatementCounts {
        std::mem::take(&mut self.statements)
    }

    /// Runs a command of the server that is not part of the measured load.
    pub fn run(&mut self, command: rumba_engine_api::bson::Document<'_>) -> Result<()> {
        self.session.run(command)
    }

    /// Runs a command to its end.
    #[inline]
    pub fn execute(&mut self, command: Command<'_>, visit: Visit<'_>) -> impl Future<Output = Result<Done>> {
        match command {
            Command::Find { .. } | Command::Count { .. } => self.statements.reads += 1,
            Command::Begin | Command::Commit | Command::Abort => self.statements.others += 1,
            _ => self.statements.writes += 1,
        }
        self.session.execute(command, visit)
    }

    /// Runs a command that returns no documents.
    pub async fn change(&mut self, command: Command<'_>) -> Result<Done> {
        self.execute(command, &mut |_| {}).await
    }

    /// Adds documents to a collection.
    ///
    /// # Errors
    /// The engine added fewer.
    pub async fn add(&mut self, into: &str, documents: &Documents) -> Result<()> {
        let added = self.change(Command::Insert { into, documents }).await?.matched;
        if added == documents.len() as u64 {
            return Ok(());
        }
        let words = format!("{added} of {} documents were added to {into}", documents.len());
        Err(EngineError::failed("insert", words))
    }

    /// Whether it has transactions; without them, each command takes effect alone.
    pub fn has_transactions(&self) -> bool {
        self.session.has_transactions()
    }

    /// Begins a transaction if the server has transactions; without them, each command takes effect alone.
    pub async fn begin(&mut self) -> Result<()> {
        if self.session.has_transactions() { self.change(Command::Begin).await.map(drop) } else { Ok(()) }
    }

    /// Ends a transaction: commits it if it succeeded, and otherwise aborts it.
    ///
    /// # Errors
    /// The transaction's own error, or the engine's error at its end.
    pub async fn end<T>(&mut self, result: Result<T>) -> Result<T> {
        if !self.session.has_transactions() {
            return result;
        }
        let result = match result {
            Ok(answer) => self.change(Command::Commit).await.map(|_| answer),
            Err(error) => Err(error),
        };
        // A lost connection has ended the transaction, and the new one has none.
        if !matches!(result, Ok(_) | Err(EngineError::CutOff(_))) {
            // A failure here follows from the error that is reported.
            let _ = self.change(Command::Abort).await;
        }
        result
    }
}
