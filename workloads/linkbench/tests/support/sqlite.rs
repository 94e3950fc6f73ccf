//! SQL sessions over SQLite, in the simplest way.

use std::path::PathBuf;
use std::task::{Context, Poll};

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, Row, SqlSession, Statement, Visit};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode};

/// A database file and the sessions to it.
pub struct Sqlite {
    dir: tempfile::TempDir,
}

impl Sqlite {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("linkbench.db")
    }

    pub fn session(&self) -> Session {
        self.session_that_misses(0)
    }

    /// A session whose first `misses` lookups of a link find none. Another client writes the link only after the
    /// lookup, as on engines without a lock on absent rows.
    pub fn session_that_misses(&self, misses: u32) -> Session {
        let connection = Connection::open(self.path()).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;").unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        connection.set_prepared_statement_cache_capacity(64);
        Session::Sql(Box::new(SqliteSession { connection, statements: Vec::new(), submitted: None, misses }))
    }
}

struct SqliteSession {
    connection: Connection,
    statements: Vec<String>,
    submitted: Option<(usize, Vec<Value>)>,
    misses: u32,
}

struct SqliteRow<'a>(&'a rusqlite::Row<'a>);

impl Row for SqliteRow<'_> {
    fn columns(&self) -> usize {
        self.0.as_ref().column_count()
    }

    fn value(&self, column: usize) -> Param<'_> {
        Param::Int(self.int(column))
    }

    fn int(&self, column: usize) -> i64 {
        self.0.get(column).unwrap()
    }

    fn bytes(&self, column: usize) -> &[u8] {
        match self.0.get_ref(column).unwrap() {
            ValueRef::Blob(bytes) => bytes,
            other => panic!("{other:?} where bytes should be"),
        }
    }
}

fn wrong(error: rusqlite::Error) -> EngineError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => EngineError::conflict("busy"),
        _ => EngineError::failed("sqlite", error.to_string()),
    }
}

impl SqliteSession {
    fn answer(&mut self, visit: Visit<'_>) -> Result<Answer> {
        let (statement, params) = self.submitted.take().unwrap();
        if self.misses > 0 && self.statements[statement].starts_with("SELECT visibility") {
            self.misses -= 1;
            return Ok(Answer::default());
        }
        let mut statement = self.connection.prepare_cached(&self.statements[statement]).map_err(wrong)?;
        let before = self.connection.total_changes();
        let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(wrong)?;
        let mut visited = 0;
        while let Some(row) = rows.next().map_err(wrong)? {
            visit(&SqliteRow(row));
            visited += 1;
        }
        let affected = self.connection.total_changes() - before;
        let last_insert_id = self.connection.last_insert_rowid();
        Ok(Answer { rows: visited, affected, matched: affected, last_insert_id, ..Answer::default() })
    }
}

impl SqlSession for SqliteSession {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn survives_errors(&self) -> bool {
        true
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.connection.prepare_cached(sql).map_err(wrong)?;
        self.statements.push(sql.to_owned());
        Ok(Statement(self.statements.len() - 1))
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        let places = vec!["?"; columns.len()].join(",");
        self.prepare(&format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(",")))
    }

    fn submit_text(&mut self, _: &str) -> Result<()> {
        Err(EngineError::failed("submit_text", "LinkBench prepares its statements"))
    }

    fn close(&mut self, _: Statement) -> Result<()> {
        Ok(())
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        let width = self.statements[rows.0].matches('?').count();
        let mut last = None;
        for row in values.chunks(width) {
            if last.replace(row).is_some() {
                self.answer(&mut |_| {})?;
            }
            self.submit(rows, row)?;
        }
        Ok(())
    }

    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        let owned = params.iter().map(|param| match param {
            Param::Null => Value::Null,
            Param::Int(number) => Value::Integer(*number),
            Param::Bytes(bytes) => Value::Blob(bytes.to_vec()),
            other => panic!("{other:?} is no value of LinkBench's"),
        });
        self.submitted = Some((statement.0, owned.collect()));
        Ok(())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        Poll::Ready(self.answer(visit))
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(wrong)
    }
}
