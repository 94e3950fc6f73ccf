//! A session with LinkBench's statements prepared, and its transactions.

use rumba_core::error::EngineError;
use rumba_core::sql::{Answer, Param, SqlSession, Statement, Visit};

use crate::sql_text::{self, REORDERED_MOST, Sql, Text};

/// A session and its statements.
pub struct Statements {
    pub session: Box<dyn SqlSession>,
    pub text: &'static Text,
    prepared: [Option<Statement>; sql_text::COUNT],
}

impl Statements {
    /// Prepares these statements.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(mut session: Box<dyn SqlSession>, statements: &[Sql]) -> Result<Self, EngineError> {
        let text = sql_text::text(session.dialect())?;
        let mut prepared = [None; sql_text::COUNT];
        for &statement in statements {
            prepared[statement as usize] = Some(session.prepare(&text.statement(statement).sql)?);
        }
        Ok(Self { session, text, prepared })
    }

    /// Starts a statement; the values are in the order of [`Sql::values`].
    #[inline]
    pub fn submit(&mut self, which: Sql, values: &[Param<'_>]) -> Result<(), EngineError> {
        let Some(statement) = self.prepared[which as usize] else {
            return Err(EngineError::failed("submit", format!("{which:?} was not prepared for this session")));
        };
        let Some(order) = &self.text.statement(which).order else {
            return self.session.submit(statement, values);
        };
        let mut ordered = [Param::Null; REORDERED_MOST];
        for (place, &value) in ordered.iter_mut().zip(order) {
            *place = values[usize::from(value)];
        }
        self.session.submit(statement, &ordered[..order.len().min(REORDERED_MOST)])
    }

    /// Runs a statement to its end.
    pub async fn execute(&mut self, which: Sql, values: &[Param<'_>], visit: Visit<'_>) -> Result<Answer, EngineError> {
        self.submit(which, values)?;
        self.session.answer(visit).await
    }

    /// Runs a statement that answers no rows.
    pub async fn change(&mut self, which: Sql, values: &[Param<'_>]) -> Result<Answer, EngineError> {
        self.execute(which, values, &mut |_| {}).await
    }

    /// Begins a transaction with the statement that `first` starts, in one round
    /// trip where the session can.
    ///
    /// That statement is executed even if BEGIN fails, which is the one place
    /// where that does no harm: BEGIN takes no lock and ends no transaction, for
    /// none is open, and so fails only when the connection or the server does.
    /// It is then an error that ends the operation, whose outcome is in doubt.
    /// All other statements of a transaction wait for the one before them: after
    /// a deadlock the server has ended the transaction, and what followed would
    /// be applied alone.
    pub async fn begin_with(
        &mut self,
        first: impl FnOnce(&mut Self) -> Result<(), EngineError>,
        visit: Visit<'_>,
    ) -> Result<Answer, EngineError> {
        if self.session.pipeline() < 2 {
            self.change(Sql::Begin, &[]).await?;
            first(self)?;
            return self.session.answer(visit).await;
        }
        self.submit(Sql::Begin, &[])?;
        let submitted = first(self);
        let begun = self.session.answer(&mut |_| {}).await;
        submitted?;
        if let Err(error @ EngineError::CutOff(_)) = begun {
            return Err(error);
        }
        let answer = self.session.answer(visit).await;
        begun.and(answer)
    }

    /// Ends a transaction: commits what succeeded and wrote, undoes the rest.
    /// After some conflicts the server has ended it; undoing it again does no harm.
    pub async fn end<T>(&mut self, result: Result<T, EngineError>, wrote: bool) -> Result<T, EngineError> {
        let result = match result {
            Ok(answer) if wrote => self.change(Sql::Commit, &[]).await.map(|_| answer),
            Ok(answer) => return self.change(Sql::Rollback, &[]).await.map(|_| answer),
            Err(error) => Err(error),
        };
        // A failed commit may or may not have ended the transaction; a connection
        // that was lost has, and the new one has none.
        if !matches!(result, Ok(_) | Err(EngineError::CutOff(_))) {
            let _ = self.change(Sql::Rollback, &[]).await;
        }
        result
    }
}
