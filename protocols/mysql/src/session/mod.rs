//! A session: one client's connection on the load path.

mod answers;
mod failure;
mod literal;
mod load;
mod lost;
mod outbox;
mod statement;
mod template;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};

use rumba_core::error::EngineError;
use rumba_core::sql::{Answer, Dialect, Param, SqlSession, Statement, Statements, Visit};
use rumba_transport::{Link, Linked, OnLost, Target, give_back, lent};

use crate::codec::answer::NO_BACKSLASH_ESCAPES;
use crate::codec::frame;
use crate::codec::row::{BinaryRow, ValueRange, find_binary};
use crate::connection::Connection;
use crate::query::{QUERY, query};

use answers::Stage;
use failure::call_failed;
use outbox::{Kind, Outbox, Pending, Queue};
use statement::Plan;
pub use template::Templates;

/// latin1_swedish_ci: what goes in and out of latin1 columns stays as it is.
const COLLATION: u8 = 8;
/// In the place of a statement's number: one that was not prepared.
const UNPREPARED: Statement = Statement(usize::MAX);
/// How many statements may be under way.
const PIPELINE: usize = 8;

/// How rows are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadWay {
    /// The fastest that the server has.
    #[default]
    Auto,
    /// MariaDB's COM_STMT_BULK_EXECUTE.
    BulkExecute,
    /// LOAD DATA LOCAL, from memory.
    LoadData,
    /// INSERT statements of many rows, as text.
    Insert,
}

/// What all sessions of an instance count together; each adds only when the
/// rare thing happens.
#[derive(Debug, Default)]
pub struct WireCounts {
    /// Transactions that the server ended to break a deadlock.
    pub deadlocks: AtomicU64,
    /// Statements that waited too long for a lock.
    pub lock_wait_timeouts: AtomicU64,
    /// Connections lost.
    pub connections_lost: AtomicU64,
    /// Connections made anew.
    pub reconnects: AtomicU64,
}

/// What a session is told.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// What a table's definition ends with.
    pub table_options: String,
    /// Statements to run on every new connection: isolation level, names.
    pub setup: Vec<String>,
    /// What happens when the connection is lost.
    pub on_lost: OnLost,
    /// How rows are loaded.
    pub load: LoadWay,
    /// Whether statements are sent as text with their parameters written out,
    /// and not prepared. A character set of `setup` must then be UTF-8 or have
    /// one byte per character.
    pub text: bool,
    /// What is counted.
    pub counts: Arc<WireCounts>,
    /// The texts of statements that are not prepared.
    pub templates: Arc<Templates>,
}

/// A session. A value goes to the server and comes back byte for byte where
/// the character sets of connection and column agree; a new connection has latin1.
pub struct WireSession {
    target: Target,
    options: SessionOptions,
    connection: Connection,
    link: Link,
    statements: Statements<Plan>,
    /// Statements sent or about to be, in the order of their answers.
    queue: Queue,
    outbox: Outbox,
    /// Whether statements that are sent as text travel in groups.
    groups: bool,
    /// The position in the stream where the last statement's request begins, if that is text.
    request: u64,
    /// Whether a statement of the group at hand has failed, and the rest of it was left out by the server.
    skipping: bool,
    /// Where in its answer the first statement of the queue is.
    stage: Stage,
    /// What that answer came to so far.
    answer: Answer,
    failure: Option<EngineError>,
    /// Where the columns of the current row lie, where it is text.
    places: Vec<ValueRange>,
    /// The socket was waited for since bytes were last taken from it.
    waited: bool,
}

impl WireSession {
    /// Connects.
    ///
    /// # Errors
    /// The server's or the system's words.
    pub fn connect(target: &Target, options: &SessionOptions) -> Result<Self, EngineError> {
        let connection = lost::enter(target, options).map_err(|error| {
            // A server that is not there, or ended meanwhile, is told as where a connection is lost.
            if error.is_lost() { EngineError::Lost(error.to_string()) } else { error.during("connect") }
        })?;
        Ok(Self {
            target: target.clone(),
            options: options.clone(),
            connection,
            link: Link::Up,
            statements: Statements::default(),
            queue: Queue::with_capacity(PIPELINE),
            outbox: Outbox::default(),
            groups: false,
            request: 0,
            skipping: false,
            stage: Stage::Head,
            answer: Answer::default(),
            failure: None,
            places: Vec::new(),
            waited: false,
        })
    }

    /// The version that the server greeted with.
    pub fn server_version(&self) -> &str {
        &self.connection.version
    }

    /// Makes sure that the connection is there and nothing is under way on it.
    fn idle(&mut self, call: &'static str) -> Result<(), EngineError> {
        self.link_up()?;
        if self.queue.front().is_none() {
            return Ok(());
        }
        Err(call_failed(call, "answers to earlier statements have not been taken yet"))
    }

    fn backslashes(&self) -> bool {
        self.connection.status & NO_BACKSLASH_ESCAPES == 0
    }

    /// Submits what is not prepared, or while the connection is not there.
    fn submit_other(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), EngineError> {
        self.link_up()?;
        let (backslashes, group) = (self.backslashes(), self.open_group());
        let out = &mut self.connection.send;
        if self.groups && out.capacity() == 0 {
            *out = lent();
        }
        let kind = match self.statements.get_mut(statement.0) {
            Some(Plan::Binary(binary)) if binary.params() == params.len() => {
                binary.write(out, params);
                Kind::Binary
            }
            Some(Plan::Text(template)) if template.params() == params.len() => {
                match group {
                    Some(at) => template.add(out, at, params, backslashes),
                    None => {
                        self.request = self.outbox.end(out);
                        template.write(out, params, backslashes);
                    }
                }
                if let (Some(_), Some(before)) = (group, self.queue.back_mut()) {
                    before.grouped = true;
                }
                Kind::Text
            }
            Some(Plan::Rows(_)) => return Err(call_failed("submit", "this is for rows: submit_rows")),
            Some(_) => return Err(call_failed("submit", "not as many parameters as the statement has")),
            None => return Err(call_failed("submit", self.statements.why_none(statement.0))),
        };
        self.submitted(statement, kind);
        Ok(())
    }

    /// Where in the send buffer the request begins that another statement may be added to: that of the statement before it,
    /// if nothing of it is sent.
    fn open_group(&mut self) -> Option<usize> {
        let before = self.queue.back_mut().filter(|_| self.groups)?;
        match self.statements.get(before.statement) {
            Some(Plan::Text(_)) => self.outbox.unsent(&self.connection, self.request),
            _ => None,
        }
    }

    /// Has other sessions use the buffers while nothing is under way: groups are long, and whoever sends them is often one of
    /// thousands that think.
    fn lend_buffers(&mut self) {
        if self.queue.front().is_none() && self.connection.send.is_empty() {
            self.connection.receive.lend();
            give_back(std::mem::take(&mut self.connection.send));
        }
    }

    #[inline]
    fn submitted(&mut self, statement: Statement, kind: Kind) {
        let end = self.outbox.end(&self.connection.send);
        self.queue.push(Pending { statement: statement.0, end, kind, last: true, grouped: false });
    }
}

impl SqlSession for WireSession {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn table_options(&self) -> &str {
        &self.options.table_options
    }

    fn pipeline(&self) -> usize {
        PIPELINE
    }

    fn survives_errors(&self) -> bool {
        true
    }

    fn group_statements(&mut self) -> bool {
        // The server takes several statements as one text, and none that it has prepared.
        self.groups = self.options.text;
        self.groups
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        self.prepare_bytes(sql.as_bytes())
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement, EngineError> {
        self.idle("prepare")?;
        match Plan::prepare(&mut self.connection, sql, &self.options) {
            Ok(plan) => Ok(Statement(self.statements.keep(plan))),
            Err(error) => Err(self.blocked_call_failed("prepare", error, sql)),
        }
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement, EngineError> {
        self.idle("prepare_rows")?;
        match load::Rows::prepare(&mut self.connection, &self.options, table, columns) {
            Ok(rows) => Ok(Statement(self.statements.keep(Plan::Rows(Box::new(rows))))),
            Err(error) => Err(self.blocked_call_failed("prepare_rows", error, table.as_bytes())),
        }
    }

    #[inline]
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), EngineError> {
        match self.statements.get_mut(statement.0) {
            Some(Plan::Binary(binary)) if self.link.is_up() && binary.params() == params.len() => {
                binary.write(&mut self.connection.send, params);
                self.submitted(statement, Kind::Binary);
                Ok(())
            }
            _ => self.submit_other(statement, params),
        }
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<(), EngineError> {
        self.link_up()?;
        let backslashes = self.backslashes();
        let Some(Plan::Rows(plan)) = self.statements.get_mut(rows.0) else {
            return Err(call_failed("submit_rows", "this statement is not for rows: submit"));
        };
        let before = self.queue.iter().len();
        let connection = &mut self.connection;
        let mut sink = load::Sink { out: &mut connection.send, outbox: &mut self.outbox, queue: &mut self.queue };
        plan.write(&mut sink, rows.0, values, backslashes)?;
        if let Some(last) = self.queue.back_mut() {
            last.last = true;
        }
        self.outbox.barriers += self.queue.iter().skip(before).filter(|pending| pending.is_barrier()).count();
        Ok(())
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), EngineError> {
        self.submit_bytes(sql.as_bytes())
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<(), EngineError> {
        self.link_up()?;
        let out = &mut self.connection.send;
        let at = frame::start(out);
        out.push(QUERY);
        out.extend_from_slice(sql);
        frame::finish(out, at, 0);
        self.submitted(UNPREPARED, Kind::Text);
        Ok(())
    }

    fn close(&mut self, statement: Statement) -> Result<(), EngineError> {
        let Some(plan) = self.statements.close(statement.0) else {
            return Err(call_failed("close", self.statements.why_none(statement.0)));
        };
        if self.link.is_up() {
            plan.write_close(&mut self.connection.send);
        }
        Ok(())
    }

    #[inline]
    fn poll_answer(&mut self, _context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        self.advance(visit)
    }

    fn rereads(&self, statement: Statement) -> bool {
        matches!(self.statements.get(statement.0), Some(Plan::Binary(_)))
    }

    fn reread(&mut self, statement: Statement, raw: &[u8], visit: Visit<'_>) {
        let Some(Plan::Binary(binary)) = self.statements.get_mut(statement.0) else { return };
        // It was found once, and the columns are those of the last answer.
        if find_binary(raw, &mut binary.columns).is_ok() {
            visit(&BinaryRow { packet: raw, columns: &binary.columns });
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), EngineError> {
        self.idle("run")?;
        match query(&mut self.connection, sql, None) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.blocked_call_failed("run", error, sql.as_bytes())),
        }
    }
}
