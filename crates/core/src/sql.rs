//! The SQL session family: prepared statements with parameters.
//!
//! The calls are in poll form so that one trait serves embedded engines, which
//! answer at once, and servers over a wire, which make the client wait; and so
//! that it needs no allocation per statement.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::value::SqlValue;

/// Whose SQL a session speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dialect {
    /// SQLite 3.
    Sqlite,
    /// MySQL, MariaDB and what speaks like them.
    MySql,
    /// PostgreSQL and what speaks like it.
    PostgreSql,
}

/// As it is written by those whose it is: `PostgreSQL`.
impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Dialect::Sqlite => "SQLite",
            Dialect::MySql => "MySQL",
            Dialect::PostgreSql => "PostgreSQL",
        })
    }
}

/// A statement's parameter.
pub type Param<'a> = SqlValue<'a>;

/// What a parameter takes, said by a client before it has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// Whole numbers of 64 bits.
    Int,
    /// Floating-point numbers of 64 bits.
    Double,
    /// Characters.
    Text,
}

/// One row of an answer, borrowed from the session.
pub trait Row {
    /// How many columns it has; they are asked for from 0 on.
    fn columns(&self) -> usize;
    /// What column `column` holds; NULL beyond the last.
    fn value(&self, column: usize) -> SqlValue<'_>;
    /// Column `column` as an integer; 0 for NULL.
    fn int(&self, column: usize) -> i64 {
        self.value(column).int()
    }
    /// Column `column` as bytes, numbers and times in the form in which they came (`value` reads
    /// them); empty for NULL.
    fn bytes(&self, column: usize) -> &[u8] {
        self.value(column).bytes()
    }
    /// The whole row as it came, where [`SqlSession::rereads`] says that it can be read once more; else nothing.
    fn raw(&self) -> &[u8] {
        &[]
    }
}

/// A prepared statement of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub usize);

/// What a session keeps of its prepared statements, each by its number. That of one that was closed is given again.
#[derive(Debug)]
pub struct Statements<P>(Vec<Option<P>>);

impl<P> Default for Statements<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> Statements<P> {
    /// The number of the next that is kept.
    pub fn next_number(&self) -> usize {
        self.0.iter().position(Option::is_none).unwrap_or(self.0.len())
    }

    /// Keeps one, and gives its number.
    pub fn keep(&mut self, prepared: P) -> usize {
        let number = self.next_number();
        match self.0.get_mut(number) {
            Some(closed) => *closed = Some(prepared),
            None => self.0.push(Some(prepared)),
        }
        number
    }

    /// One that is kept.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&P> {
        self.0.get(number)?.as_ref()
    }

    /// One that is kept.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut P> {
        self.0.get_mut(number)?.as_mut()
    }

    /// All that are kept.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.0.iter_mut().flatten()
    }

    /// Keeps it no longer: from here on its number may be another's.
    pub fn close(&mut self, number: usize) -> Option<P> {
        self.0.get_mut(number)?.take()
    }

    /// Why none is kept under a number.
    pub fn why_none(&self, number: usize) -> &'static str {
        if number < self.0.len() { "the statement was closed" } else { "a statement of another session" }
    }
}

/// What a statement did, in numbers; its rows were visited as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows that it returned and that were visited.
    pub rows: u64,
    /// Rows inserted, updated or deleted. Where a row is written over with what
    /// it holds already, MySQL does not count it; an upsert that changes a row counts two there.
    pub affected: u64,
    /// Rows that an update found, changed or not.
    pub matched: u64,
    /// The last automatically assigned id, 0 if none.
    pub last_insert_id: i64,
    /// How many columns the rows have, of a statement that answers with rows, if only with none.
    pub columns: Option<u32>,
}

/// What is called with each row of an answer.
pub type Visit<'a> = &'a mut dyn FnMut(&dyn Row);

/// A statement's text, for who takes only UTF-8.
fn utf8<'a>(call: &'static str, sql: &'a [u8]) -> Result<&'a str, EngineError> {
    std::str::from_utf8(sql).map_err(|error| {
        let at = error.valid_up_to();
        EngineError::failed(call, format!("the statement is not UTF-8 from its byte {at} on, and here it has to be"))
    })
}

/// One client's session.
pub trait SqlSession: Send {
    /// Whose SQL it speaks: a workload chooses its texts by it.
    fn dialect(&self) -> Dialect;

    /// What a table's definition ends with after its last parenthesis:
    /// `ENGINE=InnoDB ROW_FORMAT=COMPRESSED DEFAULT CHARSET=latin1`.
    fn table_options(&self) -> &str {
        ""
    }

    /// How many statements may be submitted before the first answer is taken. What becomes of those behind one that
    /// fails is told by [`SqlSession::survives_errors`].
    fn pipeline(&self) -> usize {
        1
    }

    /// Whether a transaction goes on after a statement of it has failed with anything but a conflict or a full device:
    /// the statement did nothing, those that were submitted behind it are carried out, and what the transaction did
    /// before can be committed. Where it does not, all that follows fails as well, what was submitted already among it, until
    /// the transaction is rolled back; it cannot be committed any more.
    ///
    /// Without a transaction around them, statements that were submitted one behind the other stand each for itself.
    /// A conflict may have ended the transaction whatever is said here: it is rolled back in any case.
    fn survives_errors(&self) -> bool;

    /// Has statements travel in groups from here on, where the session can: whether it can. Those of a transaction that are
    /// submitted before the first of their answers is taken are then one request, and the first that fails is the last that
    /// is carried out. Those behind it are answered as well, by an error that says so.
    ///
    /// Where it cannot, each statement of a transaction has to wait for the one before it: a conflict may have ended the
    /// transaction, and what follows would stand for itself.
    fn group_statements(&mut self) -> bool {
        false
    }

    /// Prepares a statement for the life of the session.
    ///
    /// # Errors
    /// The engine's words about the statement.
    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError>;

    /// As [`SqlSession::prepare`], of a text that need not be UTF-8: servers take it in the connection's character set.
    ///
    /// # Errors
    /// The engine's words about the statement, or that this session takes only UTF-8: all do but those of servers.
    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement, EngineError> {
        self.prepare(utf8("prepare", sql)?)
    }

    /// As [`SqlSession::prepare_bytes`], with its parameters declared to be of these types where the engine takes such a
    /// declaration: else it makes of each what the place has in which it stands.
    ///
    /// # Errors
    /// As of [`SqlSession::prepare_bytes`].
    fn prepare_declared(&mut self, sql: &[u8], _types: &[ParamType]) -> Result<Statement, EngineError> {
        self.prepare_bytes(sql)
    }

    /// Prepares the loading of rows into a table in the session's best way; for [`SqlSession::submit_rows`].
    ///
    /// # Errors
    /// The engine's words about the statement.
    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement, EngineError>;

    /// Starts a prepared statement. After [`EngineError::CutOff`], the answers that are still owed are void once
    /// something is submitted.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), EngineError>;

    /// Starts the loading of rows, whose values follow each other row by row.
    /// All or none are loaded, given a transaction around it.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<(), EngineError>;

    /// Starts a statement without parameters that was not prepared. Its rows hold what the engine makes of their
    /// values where it is asked for text: text, bytes and NULL, and of some truth values as whole numbers.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn submit_text(&mut self, sql: &str) -> Result<(), EngineError>;

    /// As [`SqlSession::submit_text`], of a text that need not be UTF-8.
    ///
    /// # Errors
    /// Whatever the engine said, or that this session takes only UTF-8: all do but those of servers.
    fn submit_bytes(&mut self, sql: &[u8]) -> Result<(), EngineError> {
        self.submit_text(utf8("submit_text", sql)?)
    }

    /// Forgets a prepared statement, here and in the engine; it is not used again, for its number may become another's.
    /// Nothing is under way of it.
    ///
    /// # Errors
    /// Whatever the engine said; that it was closed before, or is another session's.
    fn close(&mut self, statement: Statement) -> Result<(), EngineError>;

    /// Takes the answer to the first submitted statement, calling `visit` with each row.
    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer, EngineError>>;

    /// Whether [`SqlSession::reread`] reads this statement's rows.
    fn rereads(&self, _statement: Statement) -> bool {
        false
    }

    /// Reads a row of the statement's last answer once more, from what [`Row::raw`] gave of it: for whom keeps rows that are
    /// seldom looked at.
    fn reread(&mut self, _statement: Statement, _raw: &[u8], _visit: Visit<'_>) {}

    /// Runs statements without parameters or rows, such as the schema.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn run(&mut self, sql: &str) -> Result<(), EngineError>;
}

impl dyn SqlSession + '_ {
    /// Runs a prepared statement to its end.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] for deadlocks, lock waits and busy databases.
    pub fn execute(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
        visit: Visit<'_>,
    ) -> impl Future<Output = Result<Answer, EngineError>> {
        // One future instead of three within each other: this runs once per statement.
        let mut submitted = false;
        poll_fn(move |context| {
            if !submitted {
                self.submit(statement, params)?;
                submitted = true;
            }
            self.poll_answer(context, visit)
        })
    }

    /// Loads rows, whose values follow each other row by row.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] for deadlocks, lock waits and busy databases.
    pub async fn load_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<Answer, EngineError> {
        self.submit_rows(rows, values)?;
        self.answer(&mut |_| {}).await
    }

    /// Waits for the answer to the first submitted statement.
    ///
    /// # Errors
    /// Whatever the engine said.
    pub fn answer(&mut self, visit: Visit<'_>) -> impl Future<Output = Result<Answer, EngineError>> {
        poll_fn(|context| self.poll_answer(context, visit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_again_only_after_its_statement_was_closed() {
        let mut statements = Statements::default();
        assert_eq!(["a", "b", "c"].map(|text| statements.keep(text)), [0, 1, 2]);
        assert_eq!((statements.close(1), statements.close(1), statements.close(3)), (Some("b"), None, None));
        assert_eq!((statements.get(0), statements.get(1), statements.get(3)), (Some(&"a"), None, None));
        assert_eq!(statements.why_none(1), "the statement was closed");
        assert_eq!(statements.why_none(3), "a statement of another session");
        assert_eq!(statements.iter_mut().count(), 2);
        assert_eq!((statements.next_number(), statements.keep("d"), statements.keep("e")), (1, 1, 3));
        assert_eq!(statements.get_mut(1), Some(&mut "d"));
    }
}
