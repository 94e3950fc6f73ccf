//! Transactions over an SQL session.

use std::sync::Arc;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, Row, SqlSession, Statement, Visit};
use rumba_engine_api::worker::StatementCounts;

use crate::counted::{CountedSql, Counts};

/// The part of a transaction that statements sent together form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It begins with them.
    First,
    /// Others come before and after.
    Middle,
    /// It is committed with them, if none of them fails.
    Last,
}

/// Statements that were started together, whose answers are not received yet.
#[must_use]
pub struct Together {
    part: Part,
    owed: usize,
    submitted: Result<()>,
}

/// A session with the statements that begin and end its transactions.
pub struct Transactions {
    /// The session, whose statements are counted.
    pub session: Box<dyn SqlSession>,
    /// The statements that begin a writing transaction and a read-only one.
    begin: [Statement; 2],
    commit: Statement,
    rollback: Statement,
    /// The next one only reads.
    only_reads: bool,
    /// Its last statements have committed it.
    is_committed: bool,
    counts: Arc<Counts>,
}

impl Transactions {
    /// Prepares the statements that begin and end transactions.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>) -> Result<Self> {
        let (mut session, counts) = CountedSql::over(session);
        // In SQLite, a transaction that reads first and writes later fails if another connection wrote in between. A
        // transaction that only reads need not wait for the writer.
        let begin = session.prepare("BEGIN")?;
        let begin_writing = match session.dialect() {
            Dialect::Sqlite => session.prepare("BEGIN IMMEDIATE")?,
            _ => begin,
        };
        Ok(Self {
            begin: [begin_writing, begin],
            commit: session.prepare("COMMIT")?,
            rollback: session.prepare("ROLLBACK")?,
            only_reads: false,
            is_committed: false,
            session,
            counts,
        })
    }

    /// The statements started since the last call, including those that begin and end transactions.
    pub fn take_statements(&self) -> StatementCounts {
        self.counts.take()
    }

    /// Marks the next transaction as read-only.
    pub fn next_only_reads(&mut self) {
        self.only_reads = true;
    }

    /// The statement that begins the transaction.
    fn beginning(&self) -> Statement {
        self.begin[usize::from(self.only_reads)]
    }

    /// Begins a transaction with the statement that `first` starts, in one round trip if the session can.
    ///
    /// That statement is executed even if BEGIN fails, and only here is that harmless. BEGIN takes no lock and ends no
    /// transaction, because none is open, so it fails only if the connection or the server does. The error then ends
    /// the operation, whose outcome is in doubt.
    ///
    /// All other statements of a transaction wait for the one before them. After a deadlock the server has ended the
    /// transaction, and later statements would be applied alone.
    pub async fn begin_with(
        &mut self,
        first: impl FnOnce(&mut dyn SqlSession) -> Result<()>,
        visit: Visit<'_>,
    ) -> Result<Answer> {
        if self.session.pipeline() < 2 {
            self.session.execute(self.beginning(), &[], &mut |_| {}).await?;
            first(&mut *self.session)?;
            return self.session.answer(visit).await;
        }
        self.session.submit(self.beginning(), &[])?;
        let submitted = first(&mut *self.session);
        let begun = self.session.answer(&mut |_| {}).await;
        submitted?;
        if let Err(error @ EngineError::CutOff(_)) = begun {
            return Err(error);
        }
        let answer = self.session.answer(visit).await;
        begun.and(answer)
    }

    /// Starts statements of a transaction that do not need each other's answers, as one request. If there are several, the
    /// session groups statements ([`SqlSession::group_statements`]).
    pub fn start_together(&mut self, part: Part, statements: &[(Statement, &[Param<'_>])]) -> Together {
        let begin = (part == Part::First).then_some((self.beginning(), &[][..]));
        let commit = (part == Part::Last).then_some((self.commit, &[][..]));
        let mut owed = 0;
        let submitted = begin.iter().chain(statements).chain(&commit).try_for_each(|&(statement, values)| {
            self.session.submit(statement, values)?;
            owed += 1;
            Ok(())
        });
        Together { part, owed, submitted }
    }

    /// Receives all answers, and returns that of the first statement. Rows come with the number of their statement.
    ///
    /// # Errors
    /// The error of the first statement that failed. Later statements had no effect.
    pub async fn end_together(
        &mut self,
        Together { part, owed, submitted }: Together,
        visit: &mut dyn FnMut(usize, &dyn Row),
    ) -> Result<Answer> {
        let (mut reported, mut failure) = (Answer::default(), None);
        for place in 0..owed {
            let nth = if part == Part::First { place.saturating_sub(1) } else { place };
            match self.session.answer(&mut |row| visit(nth, row)).await {
                Ok(answer) if nth == 0 => reported = answer,
                Ok(_) => {}
                // The others are void.
                Err(error @ (EngineError::CutOff(_) | EngineError::Lost(_))) => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) => Err(error),
            None => {
                submitted?;
                self.is_committed = part == Part::Last;
                Ok(reported)
            }
        }
    }

    /// Ends a transaction: commits it if it succeeded and wrote, and otherwise rolls it back. After some conflicts the
    /// server has ended it; another rollback is harmless.
    ///
    /// # Errors
    /// The transaction's own error, or the engine's error at its end.
    pub async fn end<T>(&mut self, result: Result<T>, wrote: bool) -> Result<T> {
        self.only_reads = false;
        let result = match result {
            Ok(answer) if std::mem::take(&mut self.is_committed) => return Ok(answer),
            Ok(answer) => {
                let end = if wrote { self.commit } else { self.rollback };
                self.session.execute(end, &[], &mut |_| {}).await.map(|_| answer)
            }
            Err(error) => Err(error),
        };
        self.is_committed = false;
        // A failed commit may or may not have ended the transaction. A lost connection has ended it, and the new one
        // has none.
        if !matches!(result, Ok(_) | Err(EngineError::CutOff(_))) {
            // A failure here follows from the error that is reported.
            let _ = self.session.execute(self.rollback, &[], &mut |_| {}).await;
        }
        result
    }
}

/// A statement with the dialect's parameter marks: PostgreSQL has `$1` for the first `?`.
pub fn marked(text: &str, dialect: Dialect) -> String {
    if dialect != Dialect::PostgreSql {
        return text.to_owned();
    }
    let mut parts = text.split('?');
    let mut marked = parts.next().unwrap_or_default().to_owned();
    for (part, number) in parts.zip(1..) {
        marked += &format!("${number}{part}");
    }
    marked
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::task::{Context, Poll};

    use rumba_engine_api::worker::block_on;

    use super::*;

    type Log = Arc<Mutex<Vec<String>>>;

    /// A session of SQLite's dialect that records the executed statements, and fails those that a test marks.
    #[derive(Default)]
    struct Recording {
        prepared: Vec<String>,
        submitted: usize,
        executed: Log,
    }

    impl SqlSession for Recording {
        fn dialect(&self) -> Dialect {
            Dialect::Sqlite
        }

        fn survives_errors(&self) -> bool {
            true
        }

        fn prepare(&mut self, sql: &str) -> Result<Statement> {
            self.prepared.push(sql.to_owned());
            Ok(Statement(self.prepared.len() - 1))
        }

        fn prepare_rows(&mut self, table: &str, _: &[&str]) -> Result<Statement> {
            self.prepare(table)
        }

        fn submit(&mut self, statement: Statement, _: &[Param<'_>]) -> Result<()> {
            self.submitted = statement.0;
            Ok(())
        }

        fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
            self.submit(rows, values)
        }

        fn submit_text(&mut self, sql: &str) -> Result<()> {
            self.prepare(sql).and_then(|statement| self.submit(statement, &[]))
        }

        fn close(&mut self, _: Statement) -> Result<()> {
            Ok(())
        }

        fn poll_answer(&mut self, _: &mut Context<'_>, _: Visit<'_>) -> Poll<Result<Answer>> {
            let sql = self.prepared[self.submitted].clone();
            self.executed.lock().unwrap_or_else(PoisonError::into_inner).push(sql.clone());
            Poll::Ready(if sql == "fail" { Err(EngineError::conflict("requested")) } else { Ok(Answer::default()) })
        }

        fn run(&mut self, _: &str) -> Result<()> {
            Ok(())
        }
    }

    /// Runs a transaction of one statement to its end; returns the executed statements.
    fn executed(transactions: &mut Transactions, log: &Log, sql: &str) -> Vec<String> {
        let statement = transactions.session.prepare(sql).unwrap();
        let begun = block_on(transactions.begin_with(|session| session.submit(statement, &[]), &mut |_| {}));
        let _ = block_on(transactions.end(begun, true));
        std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[test]
    fn read_only_begin_applies_to_one_transaction_only() {
        let log = Log::default();
        let session = Recording { executed: log.clone(), ..Recording::default() };
        let mut transactions = Transactions::new(Box::new(session)).unwrap();
        for (sql, end) in [("read", "COMMIT"), ("fail", "ROLLBACK")] {
            transactions.next_only_reads();
            assert_eq!(executed(&mut transactions, &log, sql), ["BEGIN", sql, end]);
            assert_eq!(executed(&mut transactions, &log, "write"), ["BEGIN IMMEDIATE", "write", "COMMIT"]);
        }
    }
}
