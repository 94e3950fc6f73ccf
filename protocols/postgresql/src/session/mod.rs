//! A session: one client's connection on the load path.
//!
//! Every prepared statement goes as Bind, Execute and Sync. Within a
//! transaction, a statement that is submitted before the one before it was sent
//! takes that one's Sync away: the server answers the whole group at once, and
//! what follows a failure in it is left out. What ends the transaction has a
//! group of its own.

mod answers;
mod failure;
mod literal;
mod load;
mod lost;
mod queue;
mod statement;
mod template;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};

use rumba_core::error::EngineError;
use rumba_core::sql::{Answer, Dialect, Param, ParamType, SqlSession, Statement, Statements, Visit};
use rumba_transport::{Link, Linked, OnLost, Target};

use crate::codec::message::Transaction;
use crate::codec::row::{self, Column, PgRow};
use crate::connection::Connection;
use crate::query::{put_query, query};

use failure::call_failed;
use queue::{Kind, Pending, Queue};
use statement::{Control, Plan, SYNC};

/// In the place of a statement's number: one that was not prepared.
const UNPREPARED: Statement = Statement(usize::MAX);
/// How many statements may be under way.
const PIPELINE: usize = 8;
/// How many statements a group may have that a workload has asked for: a delivery's has eleven.
const GROUP: usize = 64;
/// A statement longer than this ends the group before it: what is sent of a
/// group without waiting for its answers must fit into the kernel's buffers.
const LONG: usize = 16 << 10;
/// A send buffer that grew beyond this is given back when it is not needed any more.
const AMPLE: usize = 16 << 10;
/// So many flushes in a row did not need it.
const PATIENCE: u32 = 64;

/// What all sessions of an instance count together; each adds only when the
/// rare thing happens.
#[derive(Debug, Default)]
pub struct PgCounts {
    /// Transactions that the server ended to break a deadlock.
    pub deadlocks: AtomicU64,
    /// Transactions that could not be serialised.
    pub serialization_failures: AtomicU64,
    /// Statements that waited too long for a lock.
    pub lock_timeouts: AtomicU64,
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
    /// Whether statements are sent as text with their parameters written out, and not prepared (the simple protocol).
    pub text: bool,
    /// What is counted.
    pub counts: Arc<PgCounts>,
}

/// A session.
pub struct PgSession {
    target: Target,
    options: SessionOptions,
    connection: Connection,
    link: Link,
    statements: Statements<Plan>,
    queue: Queue,
    /// The position in the stream of the send buffer's first byte.
    base: u64,
    /// Flushes in a row that an ample buffer had been enough for.
    modest: u32,
    /// How many statements may travel in one group.
    group: usize,
    /// Whether what is submitted next is carried out within a transaction.
    in_block: bool,
    /// Whether a statement of the group at hand failed, and the rest of it is left out by the server.
    skipping: bool,
    /// What the answer at hand came to so far.
    answer: Answer,
    failure: Option<EngineError>,
    /// The columns of the answer at hand to a statement that was sent as text.
    text_columns: Vec<Column>,
    /// The socket was waited for since bytes were last taken from it.
    waited: bool,
}

impl PgSession {
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
            base: 0,
            modest: 0,
            group: PIPELINE,
            in_block: false,
            skipping: false,
            answer: Answer::default(),
            failure: None,
            text_columns: Vec::new(),
            waited: false,
        })
    }

    /// The version that the server says it is.
    pub fn server_version(&self) -> &str {
        &self.connection.version
    }

    /// Whether the session was in a transaction when the server last told, and
    /// whether that failed: an error ends everything but ROLLBACK here.
    pub fn transaction(&self) -> Transaction {
        self.connection.transaction
    }

    /// Makes sure that the connection is there and nothing is under way on it.
    fn idle(&mut self, call: &'static str) -> Result<(), EngineError> {
        self.link_up()?;
        if self.queue.front().is_none() {
            return Ok(());
        }
        Err(call_failed(call, "answers to earlier statements have not been taken yet"))
    }

    /// Submits what is not prepared, or while the connection is not there, or with the wrong parameters.
    #[cold]
    fn submit_other(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), EngineError> {
        self.link_up()?;
        match self.statements.get(statement.0) {
            Some(Plan::Binary(binary)) if binary.params() == params.len() => {
                binary.write(&mut self.connection.send, params);
                self.submitted(statement, Kind::Binary, binary.control);
                Ok(())
            }
            Some(Plan::Text(template, control)) if template.params() == params.len() => {
                if !template.takes(params) {
                    return Err(call_failed("submit", "a zero byte in a value that is not bytea"));
                }
                template.write(&mut self.connection.send, params);
                self.submitted(statement, Kind::Text, *control);
                Ok(())
            }
            Some(Plan::Rows(_)) => Err(call_failed("submit", "this is for rows: submit_rows")),
            Some(_) => Err(call_failed("submit", "not as many parameters as the statement has")),
            None => Err(call_failed("submit", self.statements.why_none(statement.0))),
        }
    }

    /// Notes a statement whose messages end the send buffer.
    #[inline]
    fn submitted(&mut self, statement: Statement, kind: Kind, control: Control) {
        let end = self.base + self.connection.send.len() as u64;
        self.queue.push(Pending { statement: statement.0, kind, last: true, end });
        match control {
            Control::Nothing => {}
            Control::Begin => self.in_block = true,
            Control::Commit | Control::Rollback => self.in_block = false,
        }
    }

    /// Takes the Sync away that ends the statement before the one that begins at `at`, if both are of one transaction
    /// and nothing of them is sent.
    #[inline]
    fn join_group(&mut self, at: usize) {
        let unsent = at >= SYNC.len() && self.connection.sent <= at - SYNC.len();
        let (whole, one) = (self.connection.send.len() - self.connection.sent, self.connection.send.len() - at);
        let full = self.queue.iter().len() >= self.group || whole > PIPELINE * LONG || one > LONG;
        if !self.in_block || !unsent || full {
            return;
        }
        if let Some(before) = self.queue.back_mut()
            && before.kind == Kind::Binary
        {
            before.last = false;
            before.end -= SYNC.len() as u64;
            self.connection.send.drain(at - SYNC.len()..at);
        }
    }
}

impl SqlSession for PgSession {
    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn table_options(&self) -> &str {
        &self.options.table_options
    }

    fn pipeline(&self) -> usize {
        PIPELINE
    }

    fn survives_errors(&self) -> bool {
        false
    }

    fn group_statements(&mut self) -> bool {
        // Those of a transaction always do, if they are prepared; but so many of them.
        self.group = GROUP;
        !self.options.text
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        self.prepare_bytes(sql.as_bytes())
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement, EngineError> {
        self.prepare_declared(sql, &[])
    }

    fn prepare_declared(&mut self, sql: &[u8], types: &[ParamType]) -> Result<Statement, EngineError> {
        self.idle("prepare")?;
        let number = self.statements.next_number();
        match Plan::prepare(&mut self.connection, number, sql, types, self.options.text) {
            Ok(plan) => Ok(Statement(self.statements.keep(plan))),
            Err(error) => Err(self.blocked_call_failed("prepare", error, sql)),
        }
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement, EngineError> {
        self.idle("prepare_rows")?;
        match load::Rows::prepare(&mut self.connection, table, columns) {
            Ok(rows) => Ok(Statement(self.statements.keep(Plan::Rows(rows)))),
            Err(error) => Err(self.blocked_call_failed("prepare_rows", error, table.as_bytes())),
        }
    }

    #[inline]
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), EngineError> {
        match self.statements.get(statement.0) {
            Some(Plan::Binary(binary)) if self.link.is_up() && binary.params() == params.len() => {
                let (at, control) = (self.connection.send.len(), binary.control);
                binary.write(&mut self.connection.send, params);
                // What ends a transaction stands alone: it must be carried out whatever came of the statements before.
                if at > 0 && !matches!(control, Control::Commit | Control::Rollback) {
                    self.join_group(at);
                }
                self.submitted(statement, Kind::Binary, control);
                Ok(())
            }
            _ => self.submit_other(statement, params),
        }
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<(), EngineError> {
        self.link_up()?;
        let Some(Plan::Rows(plan)) = self.statements.get(rows.0) else {
            return Err(call_failed("submit_rows", "this statement is not for rows: submit"));
        };
        let kind = if plan.write(&mut self.connection.send, values)? { Kind::Text } else { Kind::Nothing };
        self.submitted(rows, kind, Control::Nothing);
        Ok(())
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), EngineError> {
        self.submit_bytes(sql.as_bytes())
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<(), EngineError> {
        self.link_up()?;
        if sql.contains(&0) {
            return Err(call_failed("submit_text", "a zero byte in a statement"));
        }
        put_query(&mut self.connection.send, sql);
        self.submitted(UNPREPARED, Kind::Text, Control::of(sql));
        Ok(())
    }

    fn close(&mut self, statement: Statement) -> Result<(), EngineError> {
        let is_binary = match self.statements.get(statement.0) {
            Some(plan) => matches!(plan, Plan::Binary(_)),
            None => return Err(call_failed("close", self.statements.why_none(statement.0))),
        };
        let tells_server = self.link.is_up() && is_binary;
        if tells_server {
            self.idle("close")?;
        }
        // From here on its number, and the name that the server knows it by, can be another's.
        if let Some(plan) = self.statements.close(statement.0).filter(|_| tells_server) {
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
        if row::find(raw, &mut binary.columns).is_ok() {
            visit(&PgRow { body: raw, columns: &binary.columns });
        }
    }

    fn run(&mut self, sql: &str) -> Result<(), EngineError> {
        self.idle("run")?;
        let ran = query(&mut self.connection, sql, None);
        self.in_block = self.connection.transaction != Transaction::None;
        match ran {
            Ok(_) => Ok(()),
            Err(error) => Err(self.blocked_call_failed("run", error, sql.as_bytes())),
        }
    }
}
