//! Watches a running server. When a server ends unexpectedly, its clients only see lost connections, so rumba reports
//! the end of the server's log instead.

use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::bson::Document;
use rumba_engine_api::document::{self, Command, DocumentSession, Done};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Param, ParamType, SqlSession, Statement, Visit};

use crate::failure::{LogWords, last_lines, reports_of_full_device};
use crate::process::{LOOK, Process};

/// How long a server may take to end after it has closed its connections.
const ENDING: Duration = Duration::from_secs(5);

/// The number of log lines to report if the log says nothing about an end.
const LAST_LINES: usize = 5;
/// The advice about a server that ended.
const AGAIN: &str = "if its log has no error, it was killed from outside, by a user or for lack of memory (see \
                     dmesg); `rumba run --resume DIR --retry-failed` runs the trial again";

/// With less free space than this, a server cannot have continued to write.
const LEAST_ROOM: u64 = 1 << 20;

/// A server's process, and the data to explain why it ended.
pub struct Watch {
    process: Mutex<Process>,
    log: PathBuf,
    words: LogWords,
    settings: Vec<(String, String)>,
}

impl Watch {
    /// A watch on a process that writes to `log`, in the format `words`, and was started with `settings`.
    pub fn new(process: Process, log: PathBuf, words: LogWords, settings: Vec<(String, String)>) -> Self {
        Self { process: Mutex::new(process), log, words, settings }
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        // A panic cannot leave a process in an inconsistent state.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the server's process.
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Stops the process cleanly, see [`Process::stop`].
    ///
    /// # Errors
    /// The process had to be killed, or did not end cleanly.
    pub fn stop(&self, patience: Duration) -> Result<()> {
        self.process().stop(patience)
    }

    /// Ends the process immediately.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Kills the process without warning, with all its children, see [`Process::kill_all`].
    ///
    /// # Errors
    /// The process had ended before.
    pub fn kill_all(&self) -> Result<()> {
        self.process().kill_all()
    }

    /// The contents of its log so far, to explain a failure.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Why the server has ended, if it has; `call` is the call that failed as a result.
    pub fn end(&self, call: &'static str) -> Option<EngineError> {
        let status = self.process().ended()?;
        Some(self.ended(call, status))
    }

    fn ended(&self, call: &'static str, status: ExitStatus) -> EngineError {
        let log = self.log();
        let words = |settings: &[(&str, &str)]| {
            format!("the server ended with {status}; {}", self.words.explain(&log, settings))
        };
        let plain = words(&[]);
        // A full device is the cause, even if the last messages contain names of settings.
        if self.is_device_full() || reports_of_full_device(&plain) {
            return EngineError::DiskFull(format!("{call}: {plain}"));
        }
        let reported: Vec<_> = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        EngineError::failed(call, words(&reported))
    }

    /// Whether the device of the log, and so of the data, is full. The log is then incomplete as well. MyRocks aborts
    /// when it cannot write.
    fn is_device_full(&self) -> bool {
        rustix::fs::statvfs(&self.log).is_ok_and(|volume| volume.f_bavail * volume.f_frsize < LEAST_ROOM)
    }

    /// Returns the client's error, or the server's end if that caused it.
    #[cold]
    fn behind(&self, error: EngineError) -> EngineError {
        if !matches!(error, EngineError::Lost(_)) {
            return error;
        }
        let since = Instant::now();
        while since.elapsed() < ENDING {
            match self.end("connection") {
                // The outcome of the operation is unknown, as after any lost connection.
                Some(EngineError::Failed { message, .. }) => return EngineError::Lost(format!("{message}\n{AGAIN}")),
                Some(end) => return end,
                None => {}
            }
            sleep(LOOK);
        }
        let log = self.log.display();
        let last = last_lines(&self.log(), LAST_LINES);
        error.followed_by(&format!("; the server runs on (pid {}), and its log ({log}) ends with:\n{last}", self.pid()))
    }

    /// Explains an error of an operation that is not part of the load.
    ///
    /// # Errors
    /// The result's error, explained.
    pub fn explained<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| self.behind(error))
    }
}

/// A session on a watched server.
pub struct Watched<S> {
    /// The session.
    pub session: S,
    /// The server.
    pub watch: Arc<Watch>,
}

impl<S: SqlSession> SqlSession for Watched<S> {
    rumba_engine_api::forward_sql_properties!(session);

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.watch.explained(self.session.prepare(sql))
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement> {
        self.watch.explained(self.session.prepare_bytes(sql))
    }

    fn prepare_declared(&mut self, sql: &[u8], types: &[ParamType]) -> Result<Statement> {
        self.watch.explained(self.session.prepare_declared(sql, types))
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        self.watch.explained(self.session.prepare_rows(table, columns))
    }

    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        self.watch.explained(self.session.submit(statement, params))
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.watch.explained(self.session.submit_rows(rows, values))
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.watch.explained(self.session.submit_text(sql))
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<()> {
        self.watch.explained(self.session.submit_bytes(sql))
    }

    fn close(&mut self, statement: Statement) -> Result<()> {
        self.watch.explained(self.session.close(statement))
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        self.session.poll_answer(context, visit).map(|answer| self.watch.explained(answer))
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.watch.explained(self.session.run(sql))
    }
}

impl<S: DocumentSession> DocumentSession for Watched<S> {
    fn has_transactions(&self) -> bool {
        self.session.has_transactions()
    }

    fn submit(&mut self, command: Command<'_>) -> Result<()> {
        self.watch.explained(self.session.submit(command))
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, visit: document::Visit<'_>) -> Poll<Result<Done>> {
        self.session.poll_answer(context, visit).map(|answer| self.watch.explained(answer))
    }

    fn run(&mut self, command: Document<'_>) -> Result<()> {
        self.watch.explained(self.session.run(command))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rumba_engine_api::sql::Dialect;

    use super::*;
    use crate::process::Signals;

    /// A running server with this log.
    fn watch(dir: &std::path::Path, log: &str) -> Watch {
        let file = dir.join("error.log");
        fs::write(&file, log).expect("a log");
        let process = Process::start(Command::new("sleep").arg("600"), Signals::ONE_PROCESS).expect("a process");
        let words = LogWords { is_error: |line| line.contains("ERROR"), never_meant: &[], aliases: &[] };
        Watch::new(process, file, words, Vec::new())
    }

    fn lost() -> EngineError {
        EngineError::Lost("the connection to /run/s was lost: it was closed".to_owned())
    }

    #[test]
    fn lost_connection_reports_server_state_and_its_last_log_lines() {
        let dir = tempfile::tempdir().expect("a directory");
        let watch = watch(dir.path(), "started\n[Warning] Aborted connection 7\n");
        let reported = watch.explained::<()>(Err(lost())).expect_err("a loss").to_string();
        let begins = "connection: the connection to /run/s was lost: it was closed; the server runs on (pid ";
        assert!(reported.starts_with(begins), "{reported}");
        assert!(reported.ends_with("error.log) ends with:\nstarted\n[Warning] Aborted connection 7"), "{reported}");
        watch.kill();
        let reported = watch.explained::<()>(Err(lost())).expect_err("a loss").to_string();
        assert!(reported.starts_with("connection: the server ended with signal: 9"), "{reported}");
        assert!(reported.contains("Aborted connection 7\nif its log has no error, it was killed"), "{reported}");
        assert!(reported.ends_with("`rumba run --resume DIR --retry-failed` runs the trial again"), "{reported}");
    }

    #[test]
    fn full_device_is_reported_despite_a_long_backtrace() {
        let dir = tempfile::tempdir().expect("a directory");
        let backtrace = "ERROR in a frame\n".repeat(30);
        let watch = watch(dir.path(), &format!("ERROR write failed: No space left on device\n{backtrace}"));
        watch.kill();
        let reported = watch.explained::<()>(Err(lost())).expect_err("a loss");
        let EngineError::DiskFull(message) = reported else { panic!("{reported}") };
        assert!(message.ends_with("its log says:\nERROR write failed: No space left on device"), "{message}");
    }

    /// A session that only accepts declared types, and returns their number.
    struct Declares;

    impl SqlSession for Declares {
        fn dialect(&self) -> Dialect {
            Dialect::PostgreSql
        }

        fn survives_errors(&self) -> bool {
            false
        }

        fn prepare(&mut self, _sql: &str) -> Result<Statement> {
            Err(lost())
        }

        fn prepare_declared(&mut self, _sql: &[u8], types: &[ParamType]) -> Result<Statement> {
            Ok(Statement(types.len()))
        }

        fn prepare_rows(&mut self, _table: &str, _columns: &[&str]) -> Result<Statement> {
            Err(lost())
        }

        fn submit(&mut self, _statement: Statement, _params: &[Param<'_>]) -> Result<()> {
            Err(lost())
        }

        fn submit_rows(&mut self, _rows: Statement, _values: &[Param<'_>]) -> Result<()> {
            Err(lost())
        }

        fn submit_text(&mut self, _sql: &str) -> Result<()> {
            Err(lost())
        }

        fn close(&mut self, _statement: Statement) -> Result<()> {
            Err(lost())
        }

        fn poll_answer(&mut self, _context: &mut Context<'_>, _visit: Visit<'_>) -> Poll<Result<Answer>> {
            Poll::Ready(Err(lost()))
        }

        fn run(&mut self, _sql: &str) -> Result<()> {
            Err(lost())
        }
    }

    /// The types were dropped on servers that rumba starts, so a script's parameter got its type from its place in the
    /// statement.
    #[test]
    fn declared_types_reach_the_session() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut watched = Watched { session: Declares, watch: Arc::new(watch(dir.path(), "")) };
        let statement = watched.prepare_declared(b"SELECT $1, $2", &[ParamType::Int, ParamType::Text]);
        assert_eq!(statement.map(|statement| statement.0), Ok(2));
    }
}
