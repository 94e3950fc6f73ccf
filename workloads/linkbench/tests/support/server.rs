//! A session like that of a MySQL server, which answers at once and records the statements.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, ErrorCode, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, Row, SqlSession, Statement, Visit};

/// The state of a server with one link, and the statements it received.
#[derive(Debug, Default)]
pub struct Server {
    /// Whether the link of every statement is there.
    pub has_link: bool,
    /// How many lookups with a lock miss the link that is there.
    pub misses: u32,
    /// The statements that conflict, by how they begin.
    pub conflicts: Option<&'static str>,
    /// Statements by their beginning, in order of arrival; a `+` before one means that another answer was still
    /// pending.
    pub reported: Vec<String>,
    /// Leaves [`Server::reported`] unchanged, because counted code must not allocate.
    pub is_quiet: bool,
}

impl Server {
    pub fn session(server: &Arc<Mutex<Self>>, pipeline: usize) -> Session {
        let pending = VecDeque::with_capacity(8);
        Session::Sql(Box::new(ServerSession { server: server.clone(), pipeline, pending, texts: Vec::new() }))
    }
}

struct ServerSession {
    server: Arc<Mutex<Server>>,
    pipeline: usize,
    pending: VecDeque<usize>,
    texts: Vec<String>,
}

struct Ones;

impl Row for Ones {
    fn columns(&self) -> usize {
        1
    }

    fn value(&self, _: usize) -> Param<'_> {
        Param::Int(1)
    }

    fn int(&self, _: usize) -> i64 {
        1
    }

    fn bytes(&self, _: usize) -> &[u8] {
        &[7; 100]
    }
}

/// The beginning of a statement: its verb, and its table if it has one.
fn beginning(text: &str) -> String {
    let table = text.split_whitespace().find(|word| word.ends_with("table"));
    let verb = text.split_whitespace().next().unwrap();
    let upsert = if text.contains("ON DUPLICATE") { " (upsert)" } else { "" };
    let lock = if text.contains("FOR UPDATE") { " (lock)" } else { "" };
    table.map_or(verb.to_owned(), |table| format!("{verb} {table}{upsert}{lock}"))
}

impl SqlSession for ServerSession {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn table_options(&self) -> &str {
        "ENGINE=InnoDB"
    }

    fn pipeline(&self) -> usize {
        self.pipeline
    }

    fn survives_errors(&self) -> bool {
        true
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.texts.push(beginning(sql));
        Ok(Statement(self.texts.len() - 1))
    }

    fn prepare_rows(&mut self, table: &str, _: &[&str]) -> Result<Statement> {
        self.texts.push(format!("ROWS {table}"));
        Ok(Statement(self.texts.len() - 1))
    }

    fn submit(&mut self, statement: Statement, _: &[Param<'_>]) -> Result<()> {
        assert!(self.pending.len() < self.pipeline, "more at once than the session takes");
        let mut server = self.server.lock().unwrap();
        if !server.is_quiet {
            let ahead = if self.pending.is_empty() { "" } else { "+" };
            server.reported.push(format!("{ahead}{}", self.texts[statement.0]));
        }
        self.pending.push_back(statement.0);
        Ok(())
    }

    fn submit_rows(&mut self, rows: Statement, _: &[Param<'_>]) -> Result<()> {
        self.submit(rows, &[])
    }

    fn submit_text(&mut self, _: &str) -> Result<()> {
        Err(EngineError::failed("submit_text", "LinkBench prepares its statements"))
    }

    fn close(&mut self, _: Statement) -> Result<()> {
        Ok(())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        let text = &self.texts[self.pending.pop_front().unwrap()];
        let mut server = self.server.lock().unwrap();
        let is_there = server.has_link;
        let misses = text == "SELECT linktable (lock)" && server.misses > 0;
        server.misses -= u32::from(misses);
        Poll::Ready(match text.as_str() {
            _ if server.conflicts.is_some_and(|conflicts| text.starts_with(conflicts)) => {
                Err(EngineError::conflict("deadlock"))
            }
            "INSERT linktable" if is_there => Err(EngineError::Duplicate(ErrorCode::NONE)),
            "INSERT linktable (upsert)" if is_there => Ok(Answer::default()),
            "SELECT linktable (lock)" if misses || !is_there => Ok(Answer::default()),
            _ if text.starts_with("SELECT") => {
                visit(&Ones);
                Ok(Answer { rows: 1, ..Answer::default() })
            }
            _ => Ok(Answer { affected: 1, matched: 1, last_insert_id: 1, ..Answer::default() }),
        })
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.server.lock().unwrap().reported.push(sql.to_owned());
        Ok(())
    }
}
