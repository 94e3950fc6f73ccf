//! A script's connection: a session, its statements, and the answer to the last of them.

use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Param, SqlSession, Statement};

use crate::bulk::Bulk;
use crate::context::ClientContext;
use crate::counters::Counter;
use crate::host::{Rank, Remedy};
pub(crate) use crate::outcome::Outcome;
use crate::places::Places;
use crate::row_load::RowLoad;
use crate::rows::{RawRows, RowRoom, Rows};
use crate::script_error;
use crate::stable_c_string::StableCString;
use crate::statement::{self, ParamHead};

pub(crate) type BoundStatement = statement::BoundStatement<Connection>;

/// `sql_error_t` of api.lua.
const NONE: c_int = 0;
const IGNORABLE: c_int = 1;
const FATAL: c_int = 2;

/// A driver as scripts hold it: `sql_driver` of api.lua.
#[repr(C)]
pub(crate) struct DriverHead {
    pub(crate) sname: *const c_char,
    pub(crate) lname: *const c_char,
}

/// The current answer: `sql_result` of api.lua.
#[repr(C)]
pub(crate) struct ResultHead {
    counter: c_int,
    nrows: u32,
    nfields: u32,
    connection: *mut Connection,
}

/// A connection; its head is `sql_connection` of api.lua. It is closed once the script has released it and its
/// statements. Its place is not freed before the client ends, because a script may hold its address elsewhere, and
/// results refer to it. Only a connection that has given no result is therefore reused.
#[repr(C)]
pub(crate) struct Connection {
    error: c_int,
    sql_errno: c_int,
    sql_state: *const c_char,
    sql_errmsg: *const c_char,
    driver: *const DriverHead,
    result: ResultHead,
    /// The number of failed calls so far. A reader of an error's details sees by it whether another error came between.
    failures: u32,
    /// The kind of the last failure; `error` is the outcome of the last call.
    failed_as: c_int,
    // The fields below are hidden from scripts.
    client: *const ClientContext,
    driver_number: usize,
    /// The number of connections that the client had made before it.
    turn: u32,
    /// Whether the script still holds it.
    is_held: bool,
    /// Whether it is unused and waits to be opened again.
    is_spare: bool,
    /// Whether it has just become so, and is not kept for reuse yet.
    has_become_spare: bool,
    has_given_rows: bool,
    session: Option<Box<dyn SqlSession>>,
    /// The session while the next call must fail. Only a call that finds no session looks here.
    withheld: Option<Box<dyn SqlSession>>,
    statements: Places<BoundStatement>,
    /// Closed statements that the script has released.
    spare: Vec<*mut BoundStatement>,
    state: StableCString,
    message: StableCString,
    rows: Rows,
    raw_rows: RawRows,
    params: Vec<Param<'static>>,
    bulk: Option<Bulk>,
    /// Whether the current statement has rows of `bulk`, which are counted as they are added.
    sends_bulk: bool,
    load: Option<RowLoad>,
}

impl Connection {
    /// Makes the place of a connection.
    pub(crate) fn put(places: &mut Places<Self>, client: *const ClientContext) -> *mut Self {
        let place = places.put(Self::unmade(client));
        // SAFETY: the place exists, and has no other user yet.
        let made = unsafe { &mut *place };
        made.result.connection = place;
        (made.sql_state, made.sql_errmsg) = (made.state.as_ptr(), made.message.as_ptr());
        place
    }

    /// A connection that is not opened yet.
    fn unmade(client: *const ClientContext) -> Self {
        Self {
            error: NONE,
            sql_errno: 0,
            sql_state: null(),
            sql_errmsg: null(),
            driver: null(),
            result: ResultHead { counter: 0, nrows: 0, nfields: 0, connection: null_mut() },
            failures: 0,
            failed_as: NONE,
            client,
            driver_number: 0,
            turn: 0,
            is_held: false,
            is_spare: false,
            has_become_spare: false,
            has_given_rows: false,
            session: None,
            withheld: None,
            statements: Places::default(),
            spare: Vec::new(),
            state: StableCString::default(),
            message: StableCString::default(),
            rows: Rows::default(),
            raw_rows: RawRows::default(),
            params: Vec::new(),
            bulk: None,
            sends_bulk: false,
            load: None,
        }
    }

    /// The address that scripts use.
    fn address(&self) -> *mut Self {
        self.result.connection
    }

    fn statements(&mut self) -> impl Iterator<Item = &mut BoundStatement> {
        // SAFETY: the statements exist as long as this connection, and no holder of a statement's address uses it
        // meanwhile.
        self.statements.addresses().map(|statement| unsafe { &mut *statement })
    }

    /// Whether it has become free since the last call, so that it may be opened again.
    pub(crate) fn takes_leave(&mut self) -> bool {
        std::mem::take(&mut self.has_become_spare)
    }

    /// Makes it for the script, by a driver.
    pub(crate) fn open(&mut self, driver: *const DriverHead, number: usize, turn: u32) -> Outcome {
        (self.driver, self.driver_number, self.turn) = (driver, number, turn);
        (self.is_held, self.is_spare) = (true, false);
        self.connect()
    }

    /// The script has released the connection. It is closed at once, or with the last statement that the script still
    /// holds. Returns whether it was closed, so that the bound parameters are no longer needed.
    pub(crate) fn let_go(&mut self) -> bool {
        self.is_held = false;
        self.end_unless_needed()
    }

    /// The script has released its handle of a statement. As in sysbench, a statement that was not closed stays as long
    /// as the connection, because a script may hold its address in an array. Returns whether the connection was closed
    /// with it.
    pub(crate) fn let_go_statement(&mut self, statement: *mut BoundStatement) -> bool {
        // SAFETY: statements live as long as their connection's place.
        let closed = unsafe { &mut *statement }.let_go();
        if closed {
            self.spare.push(statement);
        }
        self.end_unless_needed()
    }

    /// Called while the interpreter collects, and when it is closed, so it must not wait.
    fn end_unless_needed(&mut self) -> bool {
        if self.is_held || self.is_spare || self.statements().any(|statement| statement.is_held) {
            return false;
        }
        self.shut();
        self.statements().for_each(|statement| {
            statement.forget();
        });
        // Otherwise, a holder of one of its results still reads it.
        if !self.has_given_rows {
            (self.is_spare, self.has_become_spare) = (true, true);
            self.spare = self.statements.addresses().collect();
        }
        true
    }

    /// Closes the connection in the middle of any operation.
    pub(crate) fn shut(&mut self) {
        (self.session, self.withheld, self.load, self.bulk) = (None, None, None, None);
    }

    fn driver_name(&self) -> &'static str {
        self.client().host().drivers().get(self.driver_number).map_or("", |driver| driver.name)
    }

    fn client(&self) -> &'static ClientContext {
        // SAFETY: a client outlives its connections, which are its own, and its interpreter.
        unsafe { &*self.client }
    }

    /// Connects or reconnects.
    pub(crate) fn connect(&mut self) -> Outcome {
        (self.session, self.withheld, self.load) = (None, None, None);
        self.statements().for_each(|statement| statement.statement = None);
        self.forget_rows();
        match self.client().host().connect(self.driver_number, self.client().number, self.turn) {
            Ok(session) => {
                self.session = Some(session);
                self.error = NONE;
                Outcome::Done
            }
            Err(error) => self.failed(&error, "connect", b""),
        }
    }

    /// Reconnects, and prepares the statements again.
    pub(crate) fn reconnect(&mut self) -> Outcome {
        if self.is_spare {
            return self.refused("reconnect");
        }
        let connected = self.connect();
        if connected != Outcome::Done {
            return connected;
        }
        self.client().count(Counter::Reconnect);
        let Some(mut session) = self.session.take() else { return Outcome::Failed };
        let mut failure = None;
        for statement in self.statements().filter(|statement| statement.is_ready()) {
            if let Err(error) = statement.prepare(&mut *session) {
                failure = Some((error, statement.sql.clone()));
            }
        }
        self.session = Some(session);
        match failure {
            Some((error, sql)) => self.failed(&error, "prepare", &sql),
            None => Outcome::Done,
        }
    }

    /// Closes the connection. If it is closed already, this is logged without further effect, as in sysbench.
    pub(crate) fn disconnect(&mut self) {
        self.forget_rows();
        (self.rows, self.raw_rows, self.load) = (Rows::default(), RawRows::default(), None);
        if self.session.take().or(self.withheld.take()).is_none() {
            self.client().host().log(Rank::Alert, "attempt to close an already closed connection");
        }
    }

    /// Runs a statement as text.
    pub(crate) fn query(&mut self, sql: &[u8]) -> Outcome {
        self.forget_rows();
        let begun = self.client().statement_begins();
        let Some(session) = &mut self.session else { return self.refused("query") };
        let submitted = begun.and_then(|()| session.submit_bytes(sql));
        self.answered(submitted, "query", sql)
    }

    /// Prepares a statement; null if that fails.
    pub(crate) fn prepare(&mut self, sql: &[u8]) -> *mut BoundStatement {
        self.forget_rows();
        let Some(session) = &mut self.session else {
            self.refused("prepare");
            return null_mut();
        };
        let opened = match statement::prepare(&mut **session, sql) {
            Ok(opened) => opened,
            Err(error) => {
                self.failed(&error, "prepare", sql);
                return null_mut();
            }
        };
        self.error = NONE;
        let connection = self.address();
        let place = self.spare.pop().unwrap_or_else(|| self.statements.put(BoundStatement::new(connection)));
        // SAFETY: statements live as long as their connection's place, and this one has no other user.
        unsafe { &mut *place }.open(opened, sql);
        place
    }

    /// Prepares a statement whose types are now known.
    pub(crate) fn prepare_bound(&mut self, statement: &mut BoundStatement) -> Outcome {
        let Some(session) = &mut self.session else { return self.refused("bind_param") };
        match statement.prepare(&mut **session) {
            Ok(()) => {
                self.error = NONE;
                Outcome::Done
            }
            Err(error) => self.failed(&error, "prepare", &statement.sql),
        }
    }

    pub(crate) fn close(&mut self, statement: Statement) -> Outcome {
        self.forget_rows();
        let session = self.session.as_mut().or(self.withheld.as_mut());
        match session.map(|session| session.close(statement)) {
            Some(Err(_)) => Outcome::Failed,
            _ => Outcome::Done,
        }
    }

    /// Runs a prepared statement with the values of its parameters.
    ///
    /// # Safety
    /// The statement is one of this connection's, its parameters those of the same client.
    #[inline]
    pub(crate) unsafe fn execute(&mut self, statement: &BoundStatement) -> Outcome {
        self.forget_rows();
        let (Some(session), Some(prepared)) = (&mut self.session, statement.statement) else {
            if self.session.is_some() && statement.awaits_types {
                return self.failed(&statement::unbound(), "execute", &statement.sql);
            }
            return self.refused("execute");
        };
        for &param in &statement.params {
            // SAFETY: parameters live as long as they are bound, and do not change before the session has copied them.
            self.params.push(unsafe { ParamHead::value(param) });
        }
        let submitted = session.submit(prepared, &self.params);
        self.params.clear();
        if statement.rereads {
            self.raw_rows.begin(prepared);
        }
        self.answered(submitted, "execute", &statement.sql)
    }

    /// Waits for the answer to the submitted statement.
    #[inline]
    fn answered(&mut self, submitted: Result<()>, call: &'static str, sql: &[u8]) -> Outcome {
        let client = self.client();
        let Some(session) = &mut self.session else { return Outcome::Failed };
        let (rows, raw_rows) = (&mut self.rows, &mut self.raw_rows);
        let answered = submitted.and_then(|()| {
            if raw_rows.are_kept() {
                client.wait(|context| session.poll_answer(context, &mut |row| raw_rows.keep(row)))
            } else {
                client.wait(|context| session.poll_answer(context, &mut |row| rows.keep(row)))
            }
        });
        match answered {
            Ok(answer) => {
                client.statement_answered(&answer, sql, self.sends_bulk);
                self.took(&answer)
            }
            Err(error) => self.failed(&error, call, sql),
        }
    }

    #[inline]
    fn took(&mut self, answer: &Answer) -> Outcome {
        self.error = NONE;
        let (counter, outcome, rows) = match answer {
            Answer { columns: Some(_), rows, .. } => (Counter::Read, Outcome::Rows, *rows),
            Answer { affected: 0, .. } => (Counter::Other, Outcome::Done, 0),
            Answer { affected, .. } => (Counter::Write, Outcome::Done, *affected),
        };
        self.client().count(counter);
        self.has_given_rows |= outcome == Outcome::Rows;
        self.result.counter = counter as c_int;
        self.result.nrows = u32::try_from(rows).unwrap_or(u32::MAX);
        self.result.nfields = answer.columns.unwrap_or(0);
        outcome
    }

    /// Makes the next call fail like the last failure. That failure occurred in a `__gc`, in the middle of an event
    /// that does not know of it and must be restarted.
    pub(crate) fn fail_again(&mut self) {
        if !self.client().is_in_event() {
            return;
        }
        self.forget_rows();
        if let Some(session) = self.session.take() {
            self.withheld = Some(session);
        }
    }

    #[cold]
    fn refused(&mut self, call: &'static str) -> Outcome {
        if let Some(session) = self.withheld.take() {
            self.session = Some(session);
            self.error = self.failed_as;
            self.failures = self.failures.wrapping_add(1);
            return Outcome::Failed;
        }
        let error = EngineError::failed(call, "the connection or the statement was closed");
        self.client().host().log(Rank::Alert, "attempt to use an already closed connection");
        self.notify(&error, FATAL);
        Outcome::Failed
    }

    /// Records the error of a statement, and applies its remedy.
    #[cold]
    fn failed(&mut self, error: &EngineError, call: &'static str, sql: &[u8]) -> Outcome {
        let client = self.client();
        self.forget_rows();
        let remedy = client.host().remedy(self.driver_number, error);
        // As in sysbench, a reconnect is not also counted as an ignored error.
        let is_again = matches!(error, EngineError::CutOff(_)) && remedy != Remedy::Fatal;
        let counter = if is_again { Counter::Reconnect } else { Counter::Error };
        client.count(counter);
        if !is_again {
            client.failed(error);
        }
        self.result.counter = counter as c_int;
        match remedy {
            Remedy::Fatal => {
                let words = script_error::fatal(self.driver_name(), error, call, sql);
                client.host().statement_failed(client.number, &words);
            }
            Remedy::Restart => {}
            Remedy::RollBackAndRestart => self.roll_back(),
        }
        self.notify(error, if remedy == Remedy::Fatal { FATAL } else { IGNORABLE });
        Outcome::Failed
    }

    /// Rolls back, because the rest of a failed transaction would disturb the next BEGIN. If the rollback fails, so
    /// does that BEGIN.
    fn roll_back(&mut self) {
        let client = self.client();
        let Some(session) = &mut self.session else { return };
        if session.submit_text("ROLLBACK").is_ok() {
            let _ = client.wait(|context| session.poll_answer(context, &mut |_| {}));
        }
    }

    fn notify(&mut self, error: &EngineError, kind: c_int) {
        let (number, state) = script_error::numbers(self.driver_name(), error);
        (self.error, self.failed_as, self.sql_errno) = (kind, kind, number);
        self.failures = self.failures.wrapping_add(1);
        (self.sql_state, self.sql_errmsg) =
            (self.state.notify(&state), self.message.notify(&script_error::words(error)));
    }

    #[inline]
    pub(crate) fn forget_rows(&mut self) {
        self.rows.clear();
        self.raw_rows.clear();
        (self.result.nrows, self.result.nfields) = (0, 0);
    }

    /// Copies the next row of the last answer, if the room is large enough. Returns the number of columns, or 0 after
    /// the last row.
    ///
    /// # Safety
    /// The room is as large as it says, and has no other user.
    pub(crate) unsafe fn fetch(&mut self, room: *mut RowRoom) -> u32 {
        // A row that did not fit is still there.
        if let Some(session) = self.session.as_mut().filter(|_| !self.rows.has_next()) {
            self.raw_rows.read_next(&mut **session, &mut self.rows);
        }
        // SAFETY: as above.
        unsafe { self.rows.fetch(room) }
    }

    /// Begins to insert rows together.
    pub(crate) fn bulk_begin(&mut self, sql: &[u8]) -> Outcome {
        self.bulk = Some(Bulk::new(sql));
        Outcome::Done
    }

    pub(crate) fn bulk_add(&mut self, row: &[u8]) -> Outcome {
        self.bulk_add_by("bulk_insert_next", |bulk| (row.len(), bulk.add(row)))
    }

    /// Adds a row of two whole numbers.
    pub(crate) fn bulk_add_numbers(&mut self, numbers: [i64; 2]) -> Outcome {
        self.bulk_add_by("bulk_insert_numbers", |bulk| bulk.add_numbers(numbers))
    }

    fn bulk_add_by(&mut self, call: &'static str, add: impl FnOnce(&mut Bulk) -> (usize, Option<Vec<u8>>)) -> Outcome {
        let Some(bulk) = &mut self.bulk else {
            return self.failed(&EngineError::failed(call, format!("{call} before bulk_insert_init")), call, b"");
        };
        let (bytes, full) = add(bulk);
        self.client().loaded(bytes as u64);
        match full {
            Some(full) => self.send_bulk(&full),
            None => Outcome::Done,
        }
    }

    fn send_bulk(&mut self, sql: &[u8]) -> Outcome {
        self.sends_bulk = true;
        let outcome = self.query(sql);
        self.sends_bulk = false;
        outcome
    }

    /// Sends the rows that are left.
    pub(crate) fn bulk_end(&mut self) -> Outcome {
        match self.bulk.take().and_then(Bulk::rest) {
            Some(rest) => self.send_bulk(&rest),
            None => Outcome::Done,
        }
    }
}

/// Rows value by value.
impl Connection {
    /// Begins to load rows into a table's columns, whose names are separated by commas.
    pub(crate) fn load_begin(&mut self, table: &[u8], columns: &[u8]) -> Outcome {
        const CALL: &str = "load_rows_init";
        self.forget_rows();
        let (Ok(table), Ok(columns)) = (std::str::from_utf8(table), std::str::from_utf8(columns)) else {
            return self.failed(&EngineError::failed(CALL, "the table's or a column's name is not UTF-8"), CALL, b"");
        };
        let Some(session) = self.session.take() else { return self.refused(CALL) };
        let columns: Vec<&str> = columns.split(',').map(str::trim).collect();
        match RowLoad::begin(session, table, &columns) {
            Ok(load) => {
                self.load = Some(load);
                self.error = NONE;
                Outcome::Done
            }
            Err((session, error)) => {
                self.session = Some(session);
                self.failed(&error, CALL, table.as_bytes())
            }
        }
    }

    /// The next value, a whole number.
    #[inline]
    pub(crate) fn load_int(&mut self, value: i64) -> Outcome {
        let Some(load) = &mut self.load else { return self.refused("load_rows_int") };
        load.int(value);
        if load.is_full() { self.load_send() } else { Outcome::Done }
    }

    /// The next value, a text.
    pub(crate) fn load_text(&mut self, text: &[u8]) -> Outcome {
        let Some(load) = &mut self.load else { return self.refused("load_rows_text") };
        load.text(text.len(), |room| room.copy_from_slice(text));
        if load.is_full() { self.load_send() } else { Outcome::Done }
    }

    /// The next value, a text drawn from a format.
    #[inline]
    pub(crate) fn load_string(&mut self, format: &[u8]) -> Outcome {
        let client = self.client();
        let Some(load) = &mut self.load else { return self.refused("load_rows_string") };
        // SAFETY: a call of the interpreter's, and the only one at a time.
        load.text(format.len(), |room| unsafe { client.random() }.string(format, room));
        if load.is_full() { self.load_send() } else { Outcome::Done }
    }

    fn load_send(&mut self) -> Outcome {
        let client = self.client();
        let Some(load) = &mut self.load else { return Outcome::Failed };
        match load.send(client) {
            Ok(answer) => answer.map_or(Outcome::Done, |answer| self.took(&answer)),
            Err(error) => {
                load.give_up(client);
                self.session = self.load.take().map(RowLoad::into_session);
                self.failed(&error, "load_rows", b"")
            }
        }
    }

    /// Loads the rows that are left.
    pub(crate) fn load_end(&mut self) -> Outcome {
        let client = self.client();
        let Some(load) = &mut self.load else { return self.refused("load_rows_done") };
        let ended = load.finish(client);
        self.session = self.load.take().map(RowLoad::into_session);
        match ended {
            Ok(answer) => answer.map_or(Outcome::Done, |answer| self.took(&answer)),
            Err(error) => self.failed(&error, "load_rows_done", b""),
        }
    }
}
