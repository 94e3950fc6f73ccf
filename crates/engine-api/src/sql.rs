//! The SQL session family: prepared statements with parameters.
//!
//! The calls are in poll form so that one trait serves embedded engines, which answer at once, and servers over a wire,
//! which make the client wait. This form also needs no allocation per statement.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};
use crate::value::SqlValue;

/// The SQL dialect of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dialect {
    /// SQLite 3.
    Sqlite,
    /// MySQL, MariaDB and compatible servers.
    MySql,
    /// PostgreSQL and compatible servers.
    PostgreSql,
}

/// Its name as its makers write it: `PostgreSQL`.
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

/// The type of a parameter, which a client declares before it has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// 64-bit whole numbers.
    Int,
    /// 64-bit floating-point numbers.
    Double,
    /// Characters.
    Text,
}

/// One row of an answer, borrowed from the session.
pub trait Row {
    /// The number of columns; their indexes start at 0.
    fn columns(&self) -> usize;
    /// The value of column `column`; NULL beyond the last.
    fn value(&self, column: usize) -> SqlValue<'_>;
    /// Column `column` as an integer; 0 for NULL.
    fn int(&self, column: usize) -> i64 {
        self.value(column).int()
    }
    /// Column `column` as bytes, with numbers and times in the form in which they came (`value` parses them); empty for
    /// NULL.
    fn bytes(&self, column: usize) -> &[u8] {
        self.value(column).bytes()
    }
    /// The raw row, if [`SqlSession::rereads`] reports that it can be read again; otherwise empty.
    fn raw(&self) -> &[u8] {
        &[]
    }
}

/// A prepared statement of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub usize);

/// A session's prepared statements, each by its number. The number of a closed statement is reused.
#[derive(Debug)]
pub struct Statements<P>(Vec<Option<P>>);

impl<P> Default for Statements<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> Statements<P> {
    /// The number of the next statement.
    pub fn next_number(&self) -> usize {
        self.0.iter().position(Option::is_none).unwrap_or(self.0.len())
    }

    /// Stores one, and returns its number.
    pub fn keep(&mut self, prepared: P) -> usize {
        let number = self.next_number();
        match self.0.get_mut(number) {
            Some(closed) => *closed = Some(prepared),
            None => self.0.push(Some(prepared)),
        }
        number
    }

    /// A stored statement.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&P> {
        self.0.get(number)?.as_ref()
    }

    /// A stored statement.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut P> {
        self.0.get_mut(number)?.as_mut()
    }

    /// All stored statements.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.0.iter_mut().flatten()
    }

    /// Removes it; its number may be reused.
    pub fn close(&mut self, number: usize) -> Option<P> {
        self.0.get_mut(number)?.take()
    }

    /// The reason why there is none with this number.
    pub fn why_none(&self, number: usize) -> &'static str {
        if number < self.0.len() { "the statement was closed" } else { "a statement of another session" }
    }
}

/// The result of a statement, in numbers; its rows were visited as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows that it returned and that were visited.
    pub rows: u64,
    /// Rows inserted, updated or deleted. MySQL does not count a row that is overwritten with its present content, and
    /// counts two for an upsert that changes a row.
    pub affected: u64,
    /// Rows that an update found, changed or not.
    pub matched: u64,
    /// The last automatically assigned id, 0 if none.
    pub last_insert_id: i64,
    /// The number of columns of a statement that returns rows, even if it returned none.
    pub columns: Option<u32>,
}

/// A callback for each row of an answer.
pub type Visit<'a> = &'a mut dyn FnMut(&dyn Row);

/// A statement's text, for sessions that accept only UTF-8.
fn utf8<'a>(call: &'static str, sql: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(sql).map_err(|error| {
        let at = error.valid_up_to();
        EngineError::failed(call, format!("the statement is not UTF-8 from its byte {at} on, and here it has to be"))
    })
}

/// One client's session.
pub trait SqlSession: Send {
    /// Its SQL dialect, by which a workload chooses its statements.
    fn dialect(&self) -> Dialect;

    /// The options after the last parenthesis of a table's definition: `ENGINE=InnoDB ROW_FORMAT=COMPRESSED DEFAULT
    /// CHARSET=latin1`.
    fn table_options(&self) -> &str {
        ""
    }

    /// The number of statements that may be submitted before the first answer is taken. [`SqlSession::survives_errors`]
    /// reports what happens to the statements behind one that fails.
    fn pipeline(&self) -> usize {
        1
    }

    /// Whether a transaction goes on after one of its statements has failed with anything but a conflict or a full
    /// device. If true, the failed statement did nothing, the statements submitted behind it are executed, and the
    /// transaction can be committed. If false, all later statements fail too, including those submitted already. The
    /// transaction then can only be rolled back.
    ///
    /// Without a transaction around them, submitted statements are independent of each other. In both cases a conflict
    /// may have ended the transaction, and the caller must roll it back.
    fn survives_errors(&self) -> bool;

    /// Requests that the session sends statements in groups from here on, and returns whether it can. A transaction's
    /// statements that are submitted before their first answer is taken are then one request. The first that fails is
    /// the last that is executed; each of those behind it is answered with an error that says so.
    ///
    /// Without groups, each statement of a transaction must wait for the one before it. Otherwise a conflict could end
    /// the transaction, and the next statement would run outside of it.
    fn group_statements(&mut self) -> bool {
        false
    }

    /// Prepares a statement for the life of the session.
    ///
    /// # Errors
    /// The engine's message about the statement.
    fn prepare(&mut self, sql: &str) -> Result<Statement>;

    /// As [`SqlSession::prepare`], for a text that need not be UTF-8: servers read it in the connection's character
    /// set.
    ///
    /// # Errors
    /// The engine's message about the statement, or that this session takes only UTF-8, as all sessions except those of
    /// servers do.
    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement> {
        self.prepare(utf8("prepare", sql)?)
    }

    /// As [`SqlSession::prepare_bytes`], with these declared types of parameters if the engine supports such a
    /// declaration. Otherwise the engine derives each type from the context.
    ///
    /// # Errors
    /// As of [`SqlSession::prepare_bytes`].
    fn prepare_declared(&mut self, sql: &[u8], _types: &[ParamType]) -> Result<Statement> {
        self.prepare_bytes(sql)
    }

    /// Prepares the loading of rows into a table in the session's best way; for [`SqlSession::submit_rows`].
    ///
    /// # Errors
    /// The engine's message about the statement.
    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement>;

    /// Starts a prepared statement. After [`EngineError::CutOff`], the answers that are still owed are void once
    /// something is submitted.
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()>;

    /// Starts the loading of rows, whose values follow each other row by row.
    /// All or none are loaded, given a transaction around it.
    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()>;

    /// Starts a statement without parameters that was not prepared. Its rows hold the engine's text form of their
    /// values: text, bytes and NULL. Some engines return truth values as whole numbers.
    fn submit_text(&mut self, sql: &str) -> Result<()>;

    /// As [`SqlSession::submit_text`], of a text that need not be UTF-8.
    ///
    /// # Errors
    /// Any error from the engine, or that this session takes only UTF-8: all do but those of servers.
    fn submit_bytes(&mut self, sql: &[u8]) -> Result<()> {
        self.submit_text(utf8("submit_text", sql)?)
    }

    /// Closes a prepared statement, here and in the engine. Do not use it again, because another statement may get its
    /// number. It must not be in execution.
    ///
    /// # Errors
    /// Any error from the engine, or that it was closed before or belongs to another session.
    fn close(&mut self, statement: Statement) -> Result<()>;

    /// Takes the answer to the first submitted statement, calling `visit` with each row.
    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>>;

    /// Whether [`SqlSession::reread`] reads this statement's rows.
    fn rereads(&self, _statement: Statement) -> bool {
        false
    }

    /// Reads a row of the statement's last answer again, from its [`Row::raw`], for callers that store rows and seldom
    /// read them.
    fn reread(&mut self, _statement: Statement, _raw: &[u8], _visit: Visit<'_>) {}

    /// Runs statements without parameters or rows, such as the schema.
    fn run(&mut self, sql: &str) -> Result<()>;
}

/// Forwards everything that an [`SqlSession`] says of itself to the session in a field, for a session around another.
/// The trait's defaults would hide what the inner session can do.
#[macro_export]
macro_rules! forward_sql_properties {
    ($session:ident) => {
        fn dialect(&self) -> $crate::sql::Dialect {
            self.$session.dialect()
        }

        fn table_options(&self) -> &str {
            self.$session.table_options()
        }

        fn pipeline(&self) -> usize {
            self.$session.pipeline()
        }

        fn survives_errors(&self) -> bool {
            self.$session.survives_errors()
        }

        fn group_statements(&mut self) -> bool {
            self.$session.group_statements()
        }

        fn rereads(&self, statement: $crate::sql::Statement) -> bool {
            self.$session.rereads(statement)
        }

        fn reread(&mut self, statement: $crate::sql::Statement, raw: &[u8], visit: $crate::sql::Visit<'_>) {
            self.$session.reread(statement, raw, visit);
        }
    };
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
    ) -> impl Future<Output = Result<Answer>> {
        // One future instead of three nested ones, because this runs once per statement.
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
    pub async fn load_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<Answer> {
        self.submit_rows(rows, values)?;
        self.answer(&mut |_| {}).await
    }

    /// Waits for the answer to the first submitted statement.
    pub fn answer(&mut self, visit: Visit<'_>) -> impl Future<Output = Result<Answer>> {
        poll_fn(|context| self.poll_answer(context, visit))
    }
}

#[cfg(test)]
mod tests {
    use super::Statements;

    /// Guards against running a closed statement, and against a session that runs out of numbers.
    #[test]
    fn number_of_a_closed_statement_is_reused() {
        let mut statements = Statements::default();
        let [first, second] = ["a", "b"].map(|prepared| statements.keep(prepared));
        assert_eq!(statements.close(first), Some("a"));
        assert_eq!(statements.close(first), None);
        assert_eq!(statements.get(first), None);
        assert_eq!(statements.why_none(first), "the statement was closed");
        assert_eq!(statements.keep("c"), first);
        assert_eq!((statements.get(first), statements.get(second)), (Some(&"c"), Some(&"b")));
        assert_eq!(statements.why_none(second + 1), "a statement of another session");
    }
}
