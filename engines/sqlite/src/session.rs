//! A client's session: a separate connection whose answers are always ready.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, SqlSession, Statement, Visit};

use crate::busy::SHORTEST;
use crate::cache::Share;
use crate::raw::Handle;
use crate::status::{CacheStatus, Published};

/// Statements between two publications of the connection's counters.
const PUBLISH_EVERY: u32 = 256;

/// The statement that begins a write transaction; it waits for other writers.
const BEGIN: &str = "BEGIN IMMEDIATE";

/// A submitted statement that is not executed yet.
enum Submitted {
    Prepared(usize),
    Text,
}

pub(crate) struct SqliteSession {
    // Fields drop in this order: the cache is freed before its share is returned.
    handle: Handle,
    /// Absent if the experiment sets `cache_size` itself.
    share: Option<Share>,
    published: Arc<Published>,
    statements_run: u32,
    /// The prepared [`BEGIN`], if there is one.
    begin: Option<usize>,
    submitted: Option<Submitted>,
    /// The text of a statement that was not prepared.
    text: String,
    loaded: Option<Answer>,
}

impl SqliteSession {
    /// A session over an open connection.
    pub fn new(handle: Handle, share: Option<Share>, published: Arc<Published>) -> Self {
        let text = String::new();
        Self { handle, share, published, statements_run: 0, begin: None, submitted: None, text, loaded: None }
    }

    fn is_free(&self) -> Result<()> {
        if self.submitted.is_some() || self.loaded.is_some() {
            return Err(EngineError::failed("submit", "a statement was submitted already; take its answer first"));
        }
        Ok(())
    }

    /// Runs before each statement: adjusts the cache to its share, and periodically publishes the counters.
    fn tend(&mut self) -> Result<()> {
        self.statements_run = self.statements_run.wrapping_add(1);
        let is_tick = self.statements_run.is_multiple_of(PUBLISH_EVERY);
        if is_tick {
            self.published.set(self.handle.cache_status());
        }
        match &mut self.share {
            Some(share) if share.is_stale() || (is_tick && share.is_short()) => {
                share.settle(|bytes| self.handle.resize_cache(bytes))
            }
            _ => Ok(()),
        }
    }
}

impl SqliteSession {
    /// Executes a prepared statement. For the begin of a write transaction it also counts the wait for other writers.
    fn execute(&mut self, statement: usize, visit: Visit<'_>) -> Result<Answer> {
        if self.begin != Some(statement) {
            return self.handle.execute(statement, visit);
        }
        let begun = Instant::now();
        let answer = self.handle.execute(statement, visit);
        let took = begun.elapsed();
        if took >= SHORTEST {
            self.published.waited(took);
        }
        answer
    }
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        self.published.set(CacheStatus { used_bytes: 0, ..self.handle.cache_status() });
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
        let statement = self.handle.prepare(sql)?;
        if sql == BEGIN {
            self.begin = Some(statement);
        }
        Ok(Statement(statement))
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        let places = vec!["?"; columns.len()].join(",");
        self.prepare(&format!("INSERT INTO {table} ({}) VALUES ({places})", columns.join(",")))
    }

    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        self.is_free()?;
        self.tend()?;
        self.handle.bind(statement.0, params)?;
        self.submitted = Some(Submitted::Prepared(statement.0));
        Ok(())
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.is_free()?;
        self.tend()?;
        let width = self.handle.parameters(rows.0)?;
        let mut loaded = Answer::default();
        for row in values.chunks(width.max(1)) {
            self.handle.bind(rows.0, row)?;
            let answer = self.handle.execute(rows.0, &mut |_| {})?;
            loaded.affected += answer.affected;
            loaded.matched += answer.matched;
        }
        self.loaded = Some(loaded);
        Ok(())
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.is_free()?;
        self.tend()?;
        self.text.clear();
        self.text.push_str(sql);
        self.submitted = Some(Submitted::Text);
        Ok(())
    }

    fn close(&mut self, statement: Statement) -> Result<()> {
        self.is_free()?;
        self.handle.close(statement.0)?;
        self.begin = self.begin.filter(|begin| *begin != statement.0);
        Ok(())
    }

    fn poll_answer(&mut self, _context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        if let Some(loaded) = self.loaded.take() {
            return Poll::Ready(Ok(loaded));
        }
        Poll::Ready(match self.submitted.take() {
            Some(Submitted::Prepared(statement)) => self.execute(statement, visit),
            Some(Submitted::Text) => self.handle.execute_text(&self.text, visit),
            None => Err(EngineError::failed("poll_answer", "no statement was submitted")),
        })
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.tend()?;
        self.handle.run(sql)
    }
}
