//! A session: one client's connection on the load path.
//!
//! Every prepared statement is sent as Bind, Execute and Sync. Within a transaction, a statement submitted before the
//! previous one was sent removes that one's Sync. The server then answers the whole group at once, and skips statements
//! after a failed one. The end of a transaction is always a separate group.

mod answers;
mod failure;
mod literal;
mod load;
mod lost;
mod plan;
mod queue;
mod statement;
mod template;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, ParamType, SqlSession, Statement, Statements, Visit};
use rumba_transport::{
    Link, LinkCounts, Linked, OnLost, TableObserver, Target, Templates, TransportError, announce, call_failed,
};

use crate::PgError;
use crate::codec::message::Transaction;
use crate::codec::row::{self, Column, PgRow};
use crate::connection::Connection;
use crate::query::{put_query, run};

use plan::Plan;
use queue::{Kind, Pending, Queue};
use statement::{Control, SYNC};

/// The number of a statement that was not prepared.
const UNPREPARED: Statement = Statement(usize::MAX);
/// The pipeline depth: how many statements may be in progress.
const PIPELINE: usize = 8;
/// The most statements in a group that a workload requests: a delivery's has eleven.
const GROUP: usize = 64;
/// A statement longer than this ends the group before it. The part of a group that is sent without waiting for answers
/// must fit into the kernel's buffers.
const LONG: usize = 16 << 10;
/// Counters shared by all sessions of an instance. A session only updates them for rare events.
#[derive(Debug, Default)]
pub struct PgCounts {
    /// Transactions that the server rolled back because of a deadlock.
    pub deadlocks: AtomicU64,
    /// Transactions that could not be serialized.
    pub serialization_failures: AtomicU64,
    /// Statements that waited too long for a lock.
    pub lock_timeouts: AtomicU64,
    /// Lost connections.
    pub link: LinkCounts,
}

/// The options of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Options at the end of each table definition.
    pub table_options: String,
    /// Parameters of the startup message that libpq sends too: `options`, `client_encoding`, `application_name`.
    pub startup: Vec<(&'static str, String)>,
    /// Statements to run on every new connection: isolation level, names.
    pub setup: Vec<String>,
    /// The reaction to a lost connection.
    pub on_lost: OnLost,
    /// How long a connection attempt may take; ten seconds if absent.
    pub connect_timeout: Option<Duration>,
    /// Whether statements are sent as text with literal parameters instead of prepared (the simple protocol).
    pub text: bool,
    /// The shared counters.
    pub counts: Arc<PgCounts>,
    /// The shared texts of statements that are not prepared.
    pub templates: Arc<Templates>,
    /// Receives the names of the tables that the session creates.
    pub observer: Option<TableObserver>,
}

/// A session.
pub struct PgSession {
    target: Target,
    options: SessionOptions,
    connection: Connection,
    link: Link,
    statements: Statements<Plan>,
    queue: Queue,
    /// The most statements in one group.
    group: usize,
    /// Whether the next submitted statement will run within a transaction.
    in_block: bool,
    /// Whether a statement of the current group failed, so that the server skips its rest.
    skipping: bool,
    /// The result of the current answer so far.
    answer: Answer,
    failure: Option<EngineError>,
    /// The columns of the current answer to a statement that was sent as text.
    text_columns: Vec<Column>,
}

impl PgSession {
    /// Connects.
    pub fn connect(target: &Target, options: &SessionOptions) -> Result<Self> {
        Self::open(target, options).map_err(|error| error.at_login())
    }

    /// Connects as libpq does with several hosts. It tries each host in turn, and each of a host's targets, which
    /// differ in encryption.
    ///
    /// # Errors
    /// The first error, if all attempts fail.
    pub fn connect_any(hosts: &[Vec<Target>], options: &SessionOptions) -> Result<Self> {
        let mut first = None;
        for targets in hosts {
            for target in targets {
                match Self::open(target, options) {
                    Ok(session) => return Ok(session),
                    Err(error) => {
                        // Other encryption does not help if the host does not answer.
                        let is_absent = matches!(error, PgError::Transport(TransportError::Io { .. }));
                        first.get_or_insert(error);
                        if is_absent {
                            break;
                        }
                    }
                }
            }
        }
        Err(first.map_or_else(|| call_failed("connect", "no host is named"), |error| error.at_login()))
    }

    fn open(target: &Target, options: &SessionOptions) -> Result<Self, PgError> {
        let connection = lost::enter(target, options)?;
        Ok(Self {
            target: target.clone(),
            options: options.clone(),
            connection,
            link: Link::Up,
            statements: Statements::default(),
            queue: Queue::with_capacity(PIPELINE),
            group: PIPELINE,
            in_block: false,
            skipping: false,
            answer: Answer::default(),
            failure: None,
            text_columns: Vec::new(),
        })
    }

    /// The version that the server reports.
    pub fn server_version(&self) -> &str {
        &self.connection.version
    }

    /// The transaction state that the server last reported. After an error a transaction is failed, and only ROLLBACK
    /// is possible.
    pub fn transaction(&self) -> Transaction {
        self.connection.transaction
    }

    /// Ensures that the connection is open and no statement is in progress.
    fn idle(&mut self, call: &'static str) -> Result<()> {
        self.link_up()?;
        if self.queue.front().is_none() {
            return Ok(());
        }
        Err(call_failed(call, "answers to earlier statements have not been taken yet"))
    }

    /// Reports the tables that a statement is about to create, if there is an observer.
    #[inline]
    fn announce(&self, sql: &[u8]) -> Result<()> {
        announce(self.options.observer.as_ref(), sql, Dialect::PostgreSql)
    }

    /// Submits an unprepared statement, or one while there is no connection or with the wrong number of parameters.
    #[cold]
    fn submit_other(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        self.link_up()?;
        match self.statements.get(statement.0) {
            Some(Plan::Binary(binary)) if binary.params() == params.len() => {
                binary.write(&mut self.connection.channel.send, params);
                self.submitted(statement, Kind::Binary, binary.control);
                Ok(())
            }
            Some(Plan::Text(text)) if text.params() == params.len() => {
                if !text.takes(params) {
                    return Err(call_failed("submit", "a zero byte in a value that is not bytea"));
                }
                text.write(&mut self.connection.channel.send, params);
                self.submitted(statement, Kind::Text, text.control);
                Ok(())
            }
            Some(Plan::Rows(_)) => Err(call_failed("submit", "this is for rows: submit_rows")),
            Some(_) => Err(call_failed("submit", "not as many parameters as the statement has")),
            None => Err(call_failed("submit", self.statements.why_none(statement.0))),
        }
    }

    /// Records a statement whose messages end the send buffer.
    #[inline]
    fn submitted(&mut self, statement: Statement, kind: Kind, control: Control) {
        let end = self.connection.channel.end();
        self.queue.push(Pending { statement: statement.0, kind, last: true, end });
        match control {
            Control::Nothing => {}
            Control::Begin => self.in_block = true,
            Control::Commit | Control::Rollback => self.in_block = false,
        }
    }

    /// Removes the Sync of the statement before the one that begins at `at`, if both belong to one transaction and none
    /// of their bytes are sent.
    #[inline]
    fn join_group(&mut self, at: usize) {
        let channel = &mut self.connection.channel;
        let unsent = at >= SYNC.len() && channel.sent() <= at - SYNC.len();
        let (whole, one) = (channel.send.len() - channel.sent(), channel.send.len() - at);
        let full = self.queue.iter().len() >= self.group || whole > PIPELINE * LONG || one > LONG;
        if !self.in_block || !unsent || full {
            return;
        }
        if let Some(before) = self.queue.back_mut()
            && before.kind == Kind::Binary
        {
            before.last = false;
            before.end -= SYNC.len() as u64;
            channel.send.drain(at - SYNC.len()..at);
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
        // Prepared statements of a transaction are always grouped; this only raises the limit.
        self.group = GROUP;
        !self.options.text
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.prepare_bytes(sql.as_bytes())
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement> {
        self.prepare_declared(sql, &[])
    }

    fn prepare_declared(&mut self, sql: &[u8], types: &[ParamType]) -> Result<Statement> {
        self.idle("prepare")?;
        self.announce(sql)?;
        let number = self.statements.next_number();
        match Plan::prepare(&mut self.connection, number, sql, types, &self.options) {
            Ok(plan) => Ok(Statement(self.statements.keep(plan))),
            Err(error) => Err(self.blocked_call_failed("prepare", error, sql)),
        }
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        self.idle("prepare_rows")?;
        match load::Rows::prepare(&mut self.connection, table, columns) {
            Ok(rows) => Ok(Statement(self.statements.keep(Plan::Rows(rows)))),
            Err(error) => Err(self.blocked_call_failed("prepare_rows", error, table.as_bytes())),
        }
    }

    #[inline]
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        match self.statements.get(statement.0) {
            Some(Plan::Binary(binary)) if self.link.is_up() && binary.params() == params.len() => {
                let (at, control) = (self.connection.channel.send.len(), binary.control);
                binary.write(&mut self.connection.channel.send, params);
                // The end of a transaction is a separate group, because it must be executed even if earlier statements
                // fail.
                if at > 0 && !matches!(control, Control::Commit | Control::Rollback) {
                    self.join_group(at);
                }
                self.submitted(statement, Kind::Binary, control);
                Ok(())
            }
            _ => self.submit_other(statement, params),
        }
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.link_up()?;
        let Some(Plan::Rows(plan)) = self.statements.get(rows.0) else {
            return Err(call_failed("submit_rows", "this statement is not for rows: submit"));
        };
        let kind = if plan.write(&mut self.connection.channel.send, values)? { Kind::Text } else { Kind::Nothing };
        self.submitted(rows, kind, Control::Nothing);
        Ok(())
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.submit_bytes(sql.as_bytes())
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<()> {
        self.link_up()?;
        if sql.contains(&0) {
            return Err(call_failed("submit_text", "a zero byte in a statement"));
        }
        self.announce(sql)?;
        put_query(&mut self.connection.channel.send, sql);
        self.submitted(UNPREPARED, Kind::Text, Control::of(sql));
        Ok(())
    }

    fn close(&mut self, statement: Statement) -> Result<()> {
        let is_binary = match self.statements.get(statement.0) {
            Some(plan) => matches!(plan, Plan::Binary(_)),
            None => return Err(call_failed("close", self.statements.why_none(statement.0))),
        };
        let reports_server = self.link.is_up() && is_binary;
        if reports_server {
            self.idle("close")?;
        }
        // From here on its number and its name on the server may be reused.
        if let Some(plan) = self.statements.close(statement.0).filter(|_| reports_server) {
            plan.write_close(&mut self.connection.channel.send);
        }
        Ok(())
    }

    #[inline]
    fn poll_answer(&mut self, _context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        self.advance(visit)
    }

    fn rereads(&self, statement: Statement) -> bool {
        matches!(self.statements.get(statement.0), Some(Plan::Binary(_)))
    }

    fn reread(&mut self, statement: Statement, raw: &[u8], visit: Visit<'_>) {
        let Some(Plan::Binary(binary)) = self.statements.get_mut(statement.0) else { return };
        // It was found before, and the columns are those of the last answer.
        if row::find(raw, &mut binary.columns).is_ok() {
            visit(&PgRow { body: raw, columns: &binary.columns });
        }
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.idle("run")?;
        self.announce(sql.as_bytes())?;
        let ran = run(&mut self.connection, sql, None);
        self.in_block = self.connection.transaction != Transaction::None;
        match ran {
            Ok(()) => Ok(()),
            Err(error) => Err(self.blocked_call_failed("run", error, sql.as_bytes())),
        }
    }
}
