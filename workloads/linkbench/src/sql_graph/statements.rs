//! A session with LinkBench's statements prepared.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Param, SqlSession, Statement, Visit};
use rumba_workload_kit::Transactions;

use crate::sql_text::{self, REORDERED_MOST, Sql, Text};

pub struct Statements {
    pub transactions: Transactions,
    pub text: &'static Text,
    prepared: [Option<Statement>; sql_text::COUNT],
}

impl Statements {
    /// Prepares these statements.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>, statements: &[Sql]) -> Result<Self> {
        let text = sql_text::text(session.dialect())?;
        let mut transactions = Transactions::new(session)?;
        let mut prepared = [None; sql_text::COUNT];
        for &statement in statements {
            prepared[statement as usize] = Some(transactions.session.prepare(&text.statement(statement).sql)?);
        }
        Ok(Self { transactions, text, prepared })
    }

    /// A prepared statement, and the order in which its text uses [`Sql::values`], if it differs.
    #[inline]
    fn prepared(&self, which: Sql) -> Result<(Statement, Option<&'static [u8]>)> {
        let text = self.text;
        match self.prepared[which as usize] {
            Some(statement) => Ok((statement, text.statement(which).order.as_deref())),
            None => Err(EngineError::failed("submit", format!("{which:?} was not prepared for this session"))),
        }
    }

    /// Starts a statement; the values are in the order of [`Sql::values`].
    #[inline]
    pub fn submit(&mut self, which: Sql, values: &[Param<'_>]) -> Result<()> {
        let (statement, order) = self.prepared(which)?;
        start(&mut *self.transactions.session, statement, order, values)
    }

    /// Runs a statement to its end.
    pub async fn execute(&mut self, which: Sql, values: &[Param<'_>], visit: Visit<'_>) -> Result<Answer> {
        self.submit(which, values)?;
        self.transactions.session.answer(visit).await
    }

    /// Runs a statement that answers no rows.
    pub async fn change(&mut self, which: Sql, values: &[Param<'_>]) -> Result<Answer> {
        self.execute(which, values, &mut |_| {}).await
    }

    /// Begins a transaction with a statement, in one round trip if the session can.
    pub async fn begin(&mut self, which: Sql, values: &[Param<'_>], visit: Visit<'_>) -> Result<Answer> {
        let (statement, order) = self.prepared(which)?;
        self.transactions.begin_with(|session| start(session, statement, order, values), visit).await
    }

    /// Ends a transaction: commits it if it succeeded and wrote, and otherwise rolls it back.
    pub async fn end<T>(&mut self, result: Result<T>, wrote: bool) -> Result<T> {
        self.transactions.end(result, wrote).await
    }
}

/// Starts a statement whose parameters appear in this order in its text.
#[inline]
fn start(session: &mut dyn SqlSession, statement: Statement, order: Option<&[u8]>, values: &[Param<'_>]) -> Result<()> {
    let Some(order) = order else { return session.submit(statement, values) };
    let mut ordered = [Param::Null; REORDERED_MOST];
    for (place, &value) in ordered.iter_mut().zip(order) {
        *place = values[usize::from(value)];
    }
    session.submit(statement, &ordered[..order.len().min(REORDERED_MOST)])
}
