//! Commands and transactions over a session of documents.

use rumba_core::document::{Command, DocumentSession, Done, Visit};
use rumba_core::error::EngineError;
use rumba_core::worker::StatementCounts;

/// A session of documents that counts its commands, with what begins and ends its transactions.
pub struct CountedDocuments {
    session: Box<dyn DocumentSession>,
    statements: StatementCounts,
}

impl CountedDocuments {
    /// Counts what is asked of `session`.
    pub fn new(session: Box<dyn DocumentSession>) -> Self {
        Self { session, statements: StatementCounts::NONE }
    }

    /// What was asked since this was last called, what begins and ends transactions among it.
    #[inline]
    pub fn take_statements(&mut self) -> StatementCounts {
        std::mem::take(&mut self.statements)
    }

    /// What is not part of the load, in the words of the server.
    ///
    /// # Errors
    /// Whatever the engine said.
    pub fn run(&mut self, command: rumba_core::bson::Document<'_>) -> Result<(), EngineError> {
        self.session.run(command)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// Whatever the engine said.
    #[inline]
    pub fn execute(
        &mut self,
        command: Command<'_>,
        visit: Visit<'_>,
    ) -> impl Future<Output = Result<Done, EngineError>> {
        match command {
            Command::Find { .. } | Command::Count { .. } => self.statements.reads += 1,
            Command::Begin | Command::Commit | Command::Abort => self.statements.others += 1,
            _ => self.statements.writes += 1,
        }
        self.session.execute(command, visit)
    }

    /// Runs a command that shows no documents.
    ///
    /// # Errors
    /// Whatever the engine said.
    pub async fn change(&mut self, command: Command<'_>) -> Result<Done, EngineError> {
        self.execute(command, &mut |_| {}).await
    }

    /// Whether it has transactions; without them, each command stands for itself.
    pub fn has_transactions(&self) -> bool {
        self.session.has_transactions()
    }

    /// Begins a transaction, where there are any: without them, each command stands for itself.
    ///
    /// # Errors
    /// Whatever the engine said.
    pub async fn begin(&mut self) -> Result<(), EngineError> {
        if self.session.has_transactions() { self.change(Command::Begin).await.map(drop) } else { Ok(()) }
    }

    /// Ends a transaction: commits what succeeded, undoes the rest.
    ///
    /// # Errors
    /// The transaction's own, or what the engine said of its end.
    pub async fn end<T>(&mut self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        if !self.session.has_transactions() {
            return result;
        }
        let result = match result {
            Ok(answer) => self.change(Command::Commit).await.map(|_| answer),
            Err(error) => Err(error),
        };
        // A connection that was lost has ended it, and the new one has none.
        if !matches!(result, Ok(_) | Err(EngineError::CutOff(_))) {
            // Its failure follows from the one that is told.
            let _ = self.change(Command::Abort).await;
        }
        result
    }
}
