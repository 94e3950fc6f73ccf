//! The only file that calls SQLite's own interface: a connection with its prepared statements and their bound bytes.

use std::ffi::{CStr, c_int, c_void};
use std::io::ErrorKind;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, ErrorCode, Result};
use rumba_engine_api::sql::{Answer, Param, Row, Statements, Visit};
use rumba_engine_api::value::SqlValue;
use rusqlite::{Connection, OpenFlags, ffi};

use crate::busy::pause;
use crate::status::CacheStatus;

/// Disables SQLite's counting of allocations, which takes one process-wide lock in every malloc of every session
/// (sqlite.org/malloc.html). Returns false if SQLite was in use already, because it then refuses.
pub(crate) fn allocations_uncounted() -> bool {
    static OFF: OnceLock<bool> = OnceLock::new();
    *OFF.get_or_init(|| {
        // SAFETY: sqlite3_config itself refuses if SQLite is initialized; this option takes one int. Every connection
        // of this crate is opened after this call.
        let code = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, c_int::from(false)) };
        code == ffi::SQLITE_OK
    })
}

/// Bytes that a cached page takes in addition to its content.
fn page_header_bytes() -> u64 {
    let mut bytes: c_int = 0;
    // SAFETY: this option may be read at any time and writes one int.
    unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_PCACHE_HDRSZ, &raw mut bytes) };
    u64::try_from(bytes).unwrap_or_default()
}

const PREPARE: &str = "sqlite3_prepare_v3";

/// A connection and its prepared statements. One thread uses it at a time.
pub(crate) struct Handle {
    // Fields drop in this order: statements are finalized before the connection is closed.
    statements: Statements<Prepared>,
    /// The bytes of the submitted statement's bound parameters, and where each of them ends.
    arguments: Vec<u8>,
    ends: Vec<usize>,
    connection: Connection,
}

struct Prepared {
    raw: NonNull<ffi::sqlite3_stmt>,
    parameters: usize,
    is_read_only: bool,
    is_rollback: bool,
    /// The number of columns, if the statement returns rows.
    columns: Option<u32>,
}

// SAFETY: a statement belongs to its connection, which may move between threads
// (SQLite is built with SQLITE_THREADSAFE=1), and moves with it in `Handle`.
unsafe impl Send for Prepared {}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statement was prepared and is not used again; its connection is still open.
        unsafe { ffi::sqlite3_finalize(self.raw.as_ptr()) };
    }
}

impl Handle {
    /// Opens a database file, which is created if it is not there.
    pub fn open(file: &Path) -> Result<Self> {
        allocations_uncounted();
        // No mutex per connection, because `&mut` restricts it to one thread at a time.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)
            .map_err(|error| EngineError::failed("sqlite3_open_v2", error.to_string()))?;
        Ok(Self { statements: Statements::default(), arguments: Vec::new(), ends: Vec::new(), connection })
    }

    /// Waits for other writers in short pauses, for about `timeout_ms`, instead of with SQLite's own handler. `PRAGMA
    /// busy_timeout` then returns 0.
    pub fn pause_shortly(&self, timeout_ms: u32) -> Result<()> {
        let argument = std::ptr::without_provenance_mut(timeout_ms as usize);
        // SAFETY: the connection is open; the handler takes its argument for a number.
        let code = unsafe { ffi::sqlite3_busy_handler(self.db(), Some(on_busy), argument) };
        self.check("sqlite3_busy_handler", code)
    }

    fn db(&self) -> *mut ffi::sqlite3 {
        // SAFETY: the handle is used only while `self.connection` is open, and never closed.
        unsafe { self.connection.handle() }
    }

    /// Runs statements without parameters. A rollback without a transaction does nothing.
    pub fn run(&self, sql: &str) -> Result<()> {
        if is_rollback(sql) && !self.is_in_transaction() {
            return Ok(());
        }
        self.connection.execute_batch(sql).map_err(|error| self.failure_of("sqlite3_exec", &error))
    }

    /// The value of a pragma, as text.
    pub fn pragma(&self, name: &str) -> Result<String> {
        self.first_row(&format!("PRAGMA {name}")).map(|row| row.into_iter().next().unwrap_or_default())
    }

    /// The first row of a result, as text; empty if there is none.
    pub fn first_row(&self, sql: &str) -> Result<Vec<String>> {
        let failure = |error: rusqlite::Error| self.failure_of("sqlite3_step", &error);
        let mut statement = self.connection.prepare(sql).map_err(failure)?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(failure)?;
        let Some(row) = rows.next().map_err(failure)? else { return Ok(Vec::new()) };
        let text = |column| match row.get_ref(column) {
            Ok(rusqlite::types::ValueRef::Integer(value)) => Ok(value.to_string()),
            Ok(rusqlite::types::ValueRef::Text(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
            Ok(other) => Ok(format!("{other:?}")),
            Err(error) => Err(failure(error)),
        };
        (0..columns).map(text).collect()
    }

    /// Sets the size of the page cache; pages beyond it are freed immediately. The pragma's size in KiB excludes page
    /// headers (3% at 4 KiB), so this sets a number of pages.
    pub fn resize_cache(&self, bytes: u64) -> Result<()> {
        let page_size = match self.pragma("page_size")?.parse::<u64>() {
            Ok(size) => size,
            Err(error) => return Err(EngineError::failed("PRAGMA page_size", error.to_string())),
        };
        let pages = bytes / (page_size + page_header_bytes());
        self.run(&format!("PRAGMA cache_size = {}", pages.min(i32::MAX as u64)))
    }

    /// Whether a transaction is open, considering SQLite's own rollbacks.
    pub fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Syncs the database file through SQLite's own descriptor, because closing another one would drop the process's
    /// locks on the file (POSIX).
    pub fn sync_file(&self) -> Result<()> {
        let mut file: *mut ffi::sqlite3_file = null_mut();
        // SAFETY: the connection is open; SQLITE_FCNTL_FILE_POINTER writes a pointer to `file`.
        let code = unsafe {
            ffi::sqlite3_file_control(
                self.db(),
                c"main".as_ptr(),
                ffi::SQLITE_FCNTL_FILE_POINTER,
                (&raw mut file).cast(),
            )
        };
        self.check("sqlite3_file_control", code)?;
        // SAFETY: the file is open as long as its connection; an unopened one has no methods.
        let code = unsafe {
            match file.as_ref().and_then(|file| file.pMethods.as_ref()).and_then(|methods| methods.xSync) {
                Some(sync) => sync(file, ffi::SQLITE_SYNC_FULL),
                None => ffi::SQLITE_OK,
            }
        };
        self.check("sqlite3_io_methods.xSync", code)
    }

    /// The counters of this connection's page cache.
    pub fn cache_status(&self) -> CacheStatus {
        let figure = |which| {
            let (mut now, mut highest) = (0, 0);
            // SAFETY: the connection is open; both numbers are written before the call returns.
            unsafe { ffi::sqlite3_db_status64(self.db(), which, &raw mut now, &raw mut highest, 0) };
            u64::try_from(now).unwrap_or_default()
        };
        CacheStatus {
            hit: figure(ffi::SQLITE_DBSTATUS_CACHE_HIT),
            miss: figure(ffi::SQLITE_DBSTATUS_CACHE_MISS),
            write: figure(ffi::SQLITE_DBSTATUS_CACHE_WRITE),
            spill: figure(ffi::SQLITE_DBSTATUS_CACHE_SPILL),
            used_bytes: figure(ffi::SQLITE_DBSTATUS_CACHE_USED),
        }
    }

    /// Prepares a statement until it is closed, or for the life of the handle. Returns its position, which may be
    /// reused from a closed one.
    pub fn prepare(&mut self, sql: &str) -> Result<usize> {
        let (prepared, rest) = self.prepare_first(sql, ffi::SQLITE_PREPARE_PERSISTENT)?;
        let prepared = prepared.ok_or_else(|| EngineError::failed(PREPARE, "the text has no statement"))?;
        if !is_nothing(rest) {
            return Err(EngineError::failed(PREPARE, format!("one statement at a time; unexpected `{rest}`")));
        }
        Ok(self.statements.keep(prepared))
    }

    /// Closes a statement.
    ///
    /// # Errors
    /// No statement has this number.
    pub fn close(&mut self, position: usize) -> Result<()> {
        match self.statements.close(position) {
            Some(_) => Ok(()),
            None => Err(EngineError::failed("sqlite3_finalize", self.statements.why_none(position))),
        }
    }

    fn prepared(&self, position: usize) -> Result<&Prepared> {
        let none = || EngineError::failed("sqlite3_step", self.statements.why_none(position));
        self.statements.get(position).ok_or_else(none)
    }

    /// Prepares the first statement of a text, if there is one, and returns the rest of the text.
    fn prepare_first<'s>(&self, sql: &'s str, flags: u32) -> Result<(Option<Prepared>, &'s str)> {
        const CALL: &str = PREPARE;
        let length =
            c_int::try_from(sql.len()).map_err(|_| EngineError::failed(CALL, "a statement of more than 2 GiB"))?;
        let (mut raw, mut tail) = (null_mut(), std::ptr::null());
        // SAFETY: the connection is open; SQLite copies the text, of which `tail` is a part.
        let (code, parsed) = unsafe {
            let code =
                ffi::sqlite3_prepare_v3(self.db(), sql.as_ptr().cast(), length, flags, &raw mut raw, &raw mut tail);
            (code, if tail.is_null() { 0 } else { tail.offset_from(sql.as_ptr().cast()) })
        };
        self.check(CALL, code).map_err(|error| error.followed_by(&format!(" in `{sql}`")))?;
        let rest = usize::try_from(parsed).ok().and_then(|parsed| sql.get(parsed..)).unwrap_or_default();
        let Some(raw) = NonNull::new(raw) else { return Ok((None, rest)) };
        // SAFETY: the statement has just been prepared.
        let (parameters, is_read_only, columns) = unsafe {
            let raw = raw.as_ptr();
            let is_read_only = ffi::sqlite3_stmt_readonly(raw) != 0;
            (ffi::sqlite3_bind_parameter_count(raw), is_read_only, ffi::sqlite3_column_count(raw))
        };
        let prepared = Prepared {
            raw,
            parameters: usize::try_from(parameters).unwrap_or_default(),
            is_read_only,
            is_rollback: is_rollback(sql),
            columns: u32::try_from(columns).ok().filter(|&columns| columns > 0),
        };
        Ok((Some(prepared), rest))
    }

    /// How many parameters a statement has.
    pub fn parameters(&self, position: usize) -> Result<usize> {
        Ok(self.prepared(position)?.parameters)
    }

    /// Binds all parameters of a statement. Their bytes are copied into a reused buffer, so SQLite need not allocate
    /// memory for them.
    pub fn bind(&mut self, position: usize, params: &[Param<'_>]) -> Result<()> {
        let statement = self.prepared(position)?;
        if params.len() != statement.parameters {
            let message = format!("{} parameters for a statement that has {}", params.len(), statement.parameters);
            return Err(EngineError::failed("sqlite3_bind", message));
        }
        let raw = statement.raw.as_ptr();
        self.arguments.clear();
        self.ends.clear();
        for param in params {
            if !matches!(param, Param::Null | Param::Int(_) | Param::Double(_)) {
                param.write_text(&mut self.arguments);
            }
            self.ends.push(self.arguments.len());
        }
        let (copied, mut end) = (self.arguments.as_ptr(), 0);
        for (index, (param, &next_end)) in (1..).zip(params.iter().zip(&self.ends)) {
            let start = std::mem::replace(&mut end, next_end);
            let bytes = (next_end - start) as u64;
            // SAFETY: the statement is reset: `execute` always leaves it so. `start` and `next_end` lie in `arguments`,
            // whose pointer is never null, so that an empty string is not taken for NULL. The next change of the buffer
            // is the next `bind`. This statement runs before that, or else must be bound again, parameter by parameter,
            // before it runs. Therefore the pointers are valid whenever SQLite reads them.
            let code = unsafe {
                match param {
                    Param::Null => ffi::sqlite3_bind_null(raw, index),
                    Param::Int(value) => ffi::sqlite3_bind_int64(raw, index, *value),
                    Param::Double(value) => ffi::sqlite3_bind_double(raw, index, *value),
                    Param::Bytes(_) => {
                        ffi::sqlite3_bind_blob64(raw, index, copied.add(start).cast(), bytes, ffi::SQLITE_STATIC())
                    }
                    _ => {
                        let (text, utf8) = (copied.add(start).cast(), ffi::SQLITE_UTF8 as u8);
                        ffi::sqlite3_bind_text64(raw, index, text, bytes, ffi::SQLITE_STATIC(), utf8)
                    }
                }
            };
            self.check("sqlite3_bind", code)?;
        }
        Ok(())
    }

    /// Runs the statements of a text one after the other, and visits the rows of all, with values as text.
    pub fn execute_text(&mut self, sql: &str, visit: Visit<'_>) -> Result<Answer> {
        let (mut answer, mut rest) = (Answer::default(), sql);
        while !is_nothing(rest) {
            let (prepared, after) = self.prepare_first(rest, 0)?;
            rest = after;
            if let Some(prepared) = prepared {
                let one = self.run_to_end(&prepared, &mut |row| visit(&AsText(row)))?;
                answer.rows += one.rows;
                answer.affected += one.affected;
                answer.matched += one.matched;
                answer.last_insert_id = one.last_insert_id;
                answer.columns = one.columns.or(answer.columns);
            }
        }
        Ok(answer)
    }

    /// Runs a bound statement to its end.
    pub fn execute(&mut self, position: usize, visit: Visit<'_>) -> Result<Answer> {
        self.run_to_end(self.prepared(position)?, &mut |row| visit(row))
    }

    #[inline]
    fn run_to_end(&self, statement: &Prepared, visit: Each<'_>) -> Result<Answer> {
        if statement.is_rollback && !self.is_in_transaction() {
            return Ok(Answer::default());
        }
        let running = Running(statement);
        if statement.is_read_only {
            let rows = self.step_through(&running, visit)?;
            return Ok(Answer { rows, columns: statement.columns, ..Answer::default() });
        }
        let db = self.db();
        // SAFETY: the connection is open. The count and the id keep their values after statements that do not set them.
        // Therefore the count is computed from the total, and the id is cleared first.
        unsafe {
            let total = ffi::sqlite3_total_changes64(db);
            ffi::sqlite3_set_last_insert_rowid(db, 0);
            let rows = self.step_through(&running, visit)?;
            let has_changed = ffi::sqlite3_total_changes64(db) != total;
            let affected = if has_changed { ffi::sqlite3_changes64(db) } else { 0 };
            let affected = u64::try_from(affected).unwrap_or_default();
            let last_insert_id = ffi::sqlite3_last_insert_rowid(db);
            Ok(Answer { rows, affected, matched: affected, last_insert_id, columns: statement.columns })
        }
    }

    fn step_through(&self, running: &Running<'_>, visit: Each<'_>) -> Result<u64> {
        let mut rows = 0;
        loop {
            // SAFETY: the statement is prepared and bound.
            match unsafe { ffi::sqlite3_step(running.0.raw.as_ptr()) } {
                ffi::SQLITE_ROW => {
                    rows += 1;
                    visit(running);
                }
                ffi::SQLITE_DONE => return Ok(rows),
                code => return Err(self.failure("sqlite3_step", code)),
            }
        }
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.failure(call, code)) }
    }

    /// Turns a return code into an error; called before the connection's message can change.
    #[cold]
    fn failure(&self, call: &'static str, code: c_int) -> EngineError {
        if let Some(conflict) = conflict(code) {
            return conflict;
        }
        // SAFETY: the connection is open; the message is copied before the next call.
        let words = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(self.db())) }.to_string_lossy();
        self.classify(call, code, &words)
    }

    #[cold]
    fn failure_of(&self, call: &'static str, error: &rusqlite::Error) -> EngineError {
        let rusqlite::Error::SqliteFailure(code, _) = error else {
            return EngineError::failed(call, error.to_string());
        };
        match conflict(code.extended_code) {
            Some(conflict) => conflict,
            None => self.classify(call, code.extended_code, &error.to_string()),
        }
    }

    fn classify(&self, call: &'static str, code: c_int, words: &str) -> EngineError {
        // SAFETY: the connection is open.
        let errno = unsafe { ffi::sqlite3_system_errno(self.db()) };
        let kind = std::io::Error::from_raw_os_error(errno).kind();
        let is_full_device = matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        match code & 0xff {
            ffi::SQLITE_FULL => EngineError::DiskFull(format!("{call}: {}: {words}", reported(code))),
            // If SQLite cannot extend the log's shared memory on a full device, it reports an I/O error.
            ffi::SQLITE_IOERR if is_full_device => {
                EngineError::DiskFull(format!("{call}: {}: {words}", reported(code)))
            }
            _ => EngineError::refused(call, reported(code), words),
        }
    }
}

/// SQLite calls this before it retries to lock; 0 stops the retries.
unsafe extern "C" fn on_busy(timeout_ms: *mut c_void, count: c_int) -> c_int {
    let timeout = Duration::from_millis(timeout_ms.addr() as u64);
    match pause(usize::try_from(count).unwrap_or_default(), timeout) {
        Some(pause) => {
            std::thread::sleep(pause);
            1
        }
        None => 0,
    }
}

/// SQLite's extended error code.
fn reported(code: c_int) -> ErrorCode {
    ErrorCode::of_vendor(code.unsigned_abs())
}

/// The conflict for a code that means "retry the transaction".
fn conflict(code: c_int) -> Option<EngineError> {
    let why = match (code, code & 0xff) {
        (ffi::SQLITE_BUSY_SNAPSHOT, _) => "SQLITE_BUSY_SNAPSHOT: another transaction wrote since this one read",
        (_, ffi::SQLITE_BUSY) => "SQLITE_BUSY: another transaction is writing",
        (_, ffi::SQLITE_LOCKED) => "SQLITE_LOCKED: a table is in use",
        _ => return None,
    };
    Some(EngineError::Conflict { why, code: reported(code) })
}

/// Whether a statement rolls back a whole transaction (and not a savepoint).
fn is_rollback(sql: &str) -> bool {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    ["rollback", "rollback transaction"].iter().any(|word| sql.eq_ignore_ascii_case(word))
}

/// Callback for each row of a statement.
type Each<'a> = &'a mut dyn FnMut(&Running<'_>);

/// Whether a text contains no further statement.
fn is_nothing(sql: &str) -> bool {
    sql.trim_matches([' ', '\n', '\t', '\r', ';']).is_empty()
}

/// A statement between its first step and its reset; also its current row.
struct Running<'h>(&'h Prepared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: the statement is prepared; a reset repeats the last step's error, which was handled.
        unsafe { ffi::sqlite3_reset(self.0.raw.as_ptr()) };
    }
}

impl Row for Running<'_> {
    fn columns(&self) -> usize {
        // SAFETY: the statement is on a row.
        usize::try_from(unsafe { ffi::sqlite3_column_count(self.0.raw.as_ptr()) }).unwrap_or_default()
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        // SAFETY: as below.
        match unsafe { ffi::sqlite3_column_type(self.0.raw.as_ptr(), column as c_int) } {
            ffi::SQLITE_INTEGER => SqlValue::Int(self.int(column)),
            // SAFETY: as below.
            ffi::SQLITE_FLOAT => {
                SqlValue::Double(unsafe { ffi::sqlite3_column_double(self.0.raw.as_ptr(), column as c_int) })
            }
            ffi::SQLITE_TEXT => SqlValue::Text(self.bytes(column)),
            ffi::SQLITE_BLOB => SqlValue::Bytes(self.bytes(column)),
            _ => SqlValue::Null,
        }
    }

    fn int(&self, column: usize) -> i64 {
        // SAFETY: the statement is on a row; SQLite returns NULL for a column out of range.
        unsafe { ffi::sqlite3_column_int64(self.0.raw.as_ptr(), column as c_int) }
    }

    fn bytes(&self, column: usize) -> &[u8] {
        // SAFETY: as above. The bytes live until the next step or reset, both of which come after `visit` has returned;
        // reading the same column again does not move them. The pointer is read first, because that may convert a
        // number to text and so change the length.
        unsafe {
            let start = ffi::sqlite3_column_blob(self.0.raw.as_ptr(), column as c_int);
            let length = ffi::sqlite3_column_bytes(self.0.raw.as_ptr(), column as c_int);
            match usize::try_from(length) {
                Ok(length) if length > 0 && !start.is_null() => std::slice::from_raw_parts(start.cast(), length),
                _ => &[],
            }
        }
    }
}

/// A row with its values as text, in SQLite's format.
struct AsText<'r, 'h>(&'r Running<'h>);

impl Row for AsText<'_, '_> {
    fn columns(&self) -> usize {
        self.0.columns()
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        match self.0.value(column) {
            SqlValue::Int(_) | SqlValue::Double(_) => SqlValue::Text(self.0.bytes(column)),
            other => other,
        }
    }
}
