//! A session: one client's connection on the load path.

mod answers;
mod failure;
mod literal;
mod load;
mod lost;
mod outbox;
mod plan;
mod statement;
mod template;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, SqlSession, Statement, Statements, Visit};
use rumba_transport::{Link, LinkCounts, Linked, OnLost, TableObserver, Target, Templates, announce};

use crate::WireError;
use crate::codec::answer::NO_BACKSLASH_ESCAPES;
use crate::codec::frame;
use crate::codec::row::{BinaryRow, ValueRange, find_binary};
use crate::connection::Connection;
use crate::query::{QUERY, query};

use answers::Stage;
use failure::call_failed;
use outbox::{Kind, Outbox, Pending, Queue};
use plan::Plan;

/// The number of a statement that was not prepared.
const UNPREPARED: Statement = Statement(usize::MAX);
/// The pipeline depth: how many statements may be in progress.
const PIPELINE: usize = 8;

/// The way to load rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadWay {
    /// The fastest way that the server supports.
    #[default]
    Auto,
    /// MariaDB's COM_STMT_BULK_EXECUTE.
    BulkExecute,
    /// LOAD DATA LOCAL, from memory.
    LoadData,
    /// INSERT statements of many rows, as text.
    Insert,
}

/// Counters shared by all sessions of an instance. A session only updates them for rare events.
#[derive(Debug, Default)]
pub struct WireCounts {
    /// Transactions that the server rolled back because of a deadlock.
    pub deadlocks: AtomicU64,
    /// Statements that waited too long for a lock.
    pub lock_wait_timeouts: AtomicU64,
    /// Lost connections.
    pub link: LinkCounts,
}

/// The options of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Options at the end of each table definition.
    pub table_options: String,
    /// Statements to run on every new connection: isolation level, names.
    pub setup: Vec<String>,
    /// The reaction to a lost connection.
    pub on_lost: OnLost,
    /// How long a connection attempt may take; ten seconds if absent.
    pub connect_timeout: Option<Duration>,
    /// The way to load rows.
    pub load: LoadWay,
    /// Whether statements are sent as text with literal parameters instead of prepared. A character set in `setup` must
    /// then be UTF-8 or have one byte per character.
    pub text: bool,
    /// Whether a deadlock, a lock wait timeout or a duplicate key is [`EngineError::Conflict`] or
    /// [`EngineError::Duplicate`]. They are part of the load, so these errors have no server's text and take no memory.
    /// Otherwise it is [`EngineError::Refused`] with the server's text, as scripts expect it.
    pub terse_conflicts: bool,
    /// The shared counters.
    pub counts: Arc<WireCounts>,
    /// The shared texts of statements that are not prepared.
    pub templates: Arc<Templates>,
    /// Receives the names of the tables that the session creates.
    pub observer: Option<TableObserver>,
}

/// A session. A value is stored and returned byte for byte if the character sets of connection and column are equal; a
/// new connection uses utf8mb4, as sysbench's does.
pub struct WireSession {
    target: Target,
    options: SessionOptions,
    connection: Connection,
    link: Link,
    statements: Statements<Plan>,
    /// Statements sent or queued, in the order of their answers.
    queue: Queue,
    outbox: Outbox,
    /// Whether statements sent as text are sent in groups.
    groups: bool,
    /// The stream position at which the last statement's request begins, if that is text.
    request: u64,
    /// Whether a statement of the current group has failed, so that the server skipped its rest.
    skipping: bool,
    /// The parse position in the answer of the queue's first statement.
    stage: Stage,
    /// The result of that answer so far.
    answer: Answer,
    failure: Option<EngineError>,
    /// The positions of the current row's columns, if it is text.
    places: Vec<ValueRange>,
}

impl WireSession {
    /// Connects.
    ///
    /// # Errors
    /// The server's or the system's error. One of [`UNREACHABLE`](crate::UNREACHABLE) means that there is no server.
    pub fn connect(target: &Target, options: &SessionOptions) -> Result<Self> {
        let connection = lost::enter(target, options).map_err(|error| match error {
            // It has a number, as a client library reports it.
            WireError::Unreachable { .. } => error.during("connect"),
            // A server that ends meanwhile is reported as a lost connection.
            error if error.is_lost() => EngineError::Lost(error.to_string()),
            error => error.during("connect"),
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
        })
    }

    /// The version in the server's greeting.
    pub fn server_version(&self) -> &str {
        &self.connection.version
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
        announce(self.options.observer.as_ref(), sql, Dialect::MySql)
    }

    fn backslashes(&self) -> bool {
        self.connection.status & NO_BACKSLASH_ESCAPES == 0
    }

    /// Submits an unprepared statement, or any statement while there is no connection.
    fn submit_other(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        self.link_up()?;
        let (backslashes, group) = (self.backslashes(), self.open_group());
        let channel = &mut self.connection.channel;
        if self.groups {
            channel.take_back();
        }
        let end = channel.end();
        let out = &mut channel.send;
        let kind = match self.statements.get_mut(statement.0) {
            Some(Plan::Binary(binary)) if binary.params() == params.len() => {
                binary.write(out, params);
                Kind::Binary
            }
            Some(Plan::Text(template)) if template.places() == params.len() => {
                match group {
                    Some(at) => template::add(template, out, at, params, backslashes),
                    None => {
                        self.request = end;
                        template::write(template, out, params, backslashes);
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

    /// The position in the send buffer of a request to which another statement can be added. That is the previous
    /// statement's, if none of it is sent.
    fn open_group(&mut self) -> Option<usize> {
        let before = self.queue.back_mut().filter(|_| self.groups)?;
        match self.statements.get(before.statement) {
            Some(Plan::Text(_)) => self.connection.channel.unsent(self.request),
            _ => None,
        }
    }

    /// Returns the buffers to the pool while no statement is in progress. Groups are long, and their senders are often
    /// among thousands of clients in think time.
    fn lend_buffers(&mut self) {
        if self.queue.front().is_none() {
            self.connection.channel.lend();
        }
    }

    #[inline]
    fn submitted(&mut self, statement: Statement, kind: Kind) {
        let end = self.connection.channel.end();
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
        // The server accepts several statements in one text, but not several prepared ones.
        self.groups = self.options.text;
        self.groups
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.prepare_bytes(sql.as_bytes())
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement> {
        self.idle("prepare")?;
        self.announce(sql)?;
        match Plan::prepare(&mut self.connection, sql, &self.options) {
            Ok(plan) => Ok(Statement(self.statements.keep(plan))),
            Err(error) => Err(self.blocked_call_failed("prepare", error, sql)),
        }
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        self.idle("prepare_rows")?;
        match load::Rows::prepare(&mut self.connection, &self.options, table, columns) {
            Ok(rows) => Ok(Statement(self.statements.keep(Plan::Rows(Box::new(rows))))),
            Err(error) => Err(self.blocked_call_failed("prepare_rows", error, table.as_bytes())),
        }
    }

    #[inline]
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        match self.statements.get_mut(statement.0) {
            Some(Plan::Binary(binary)) if self.link.is_up() && binary.params() == params.len() => {
                binary.write(&mut self.connection.channel.send, params);
                self.submitted(statement, Kind::Binary);
                Ok(())
            }
            _ => self.submit_other(statement, params),
        }
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.link_up()?;
        let backslashes = self.backslashes();
        let Some(Plan::Rows(plan)) = self.statements.get_mut(rows.0) else {
            return Err(call_failed("submit_rows", "this statement is not for rows: submit"));
        };
        let before = self.queue.iter().len();
        let channel = &mut self.connection.channel;
        let mut sink = load::Sink { channel, outbox: &mut self.outbox, queue: &mut self.queue };
        plan.write(&mut sink, rows.0, values, backslashes)?;
        if let Some(last) = self.queue.back_mut() {
            last.last = true;
        }
        self.outbox.barriers += self.queue.iter().skip(before).filter(|pending| pending.is_barrier()).count();
        Ok(())
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.submit_bytes(sql.as_bytes())
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<()> {
        self.link_up()?;
        self.announce(sql)?;
        let out = &mut self.connection.channel.send;
        let at = frame::start(out);
        out.push(QUERY);
        out.extend_from_slice(sql);
        frame::finish(out, at, 0);
        self.submitted(UNPREPARED, Kind::Text);
        Ok(())
    }

    fn close(&mut self, statement: Statement) -> Result<()> {
        let Some(plan) = self.statements.close(statement.0) else {
            return Err(call_failed("close", self.statements.why_none(statement.0)));
        };
        if self.link.is_up() {
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
        if find_binary(raw, &mut binary.columns).is_ok() {
            visit(&BinaryRow { packet: raw, columns: &binary.columns });
        }
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.idle("run")?;
        self.announce(sql.as_bytes())?;
        match query(&mut self.connection, sql, None) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.blocked_call_failed("run", error, sql.as_bytes())),
        }
    }
}
