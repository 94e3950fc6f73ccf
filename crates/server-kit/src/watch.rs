//! A running server, watched: when it ends by itself, its clients learn only that
//! their connections are lost. What it said last is told instead.

use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_core::bson::Document;
use rumba_core::document::{self, Command, DocumentSession, Done};
use rumba_core::error::EngineError;
use rumba_core::sql::{Answer, Dialect, Param, ParamType, SqlSession, Statement, Visit};

use crate::failure::{LogWords, last_lines, tells_of_full_device};
use crate::process::{LOOK, Process};

/// How long a server that has closed its connections may take until it has ended.
const ENDING: Duration = Duration::from_secs(5);

/// Lines that are told of a log with nothing about an end.
const LAST_LINES: usize = 5;
/// What to do about a server that ended.
const AGAIN: &str = "where the log tells of no error it was killed from outside, by a user or for lack of memory (dmesg tells); \
                     `rumba run --resume DIR --retry-failed` runs the trial again";

/// Bytes below which a server cannot have gone on writing.
const LEAST_ROOM: u64 = 1 << 20;

/// A server's process, and what is needed to say why it ended.
pub struct Watch {
    process: Mutex<Process>,
    log: PathBuf,
    words: LogWords,
    settings: Vec<(String, String)>,
}

impl Watch {
    /// Over a process that writes to `log`, in these words, and was given `settings`.
    pub fn new(process: Process, log: PathBuf, words: LogWords, settings: Vec<(String, String)>) -> Self {
        Self { process: Mutex::new(process), log, words, settings }
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        // Nothing in a process is half done when somebody panics.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the server's process.
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Asks it to end and waits; see [`Process::stop`].
    ///
    /// # Errors
    /// When it had to be killed, or ended otherwise than well.
    pub fn stop(&self, patience: Duration) -> Result<(), EngineError> {
        self.process().stop(patience)
    }

    /// Ends it at once.
    pub fn kill(&self) {
        self.process().kill();
    }

    /// Kills it without warning, and all processes that it has started; see [`Process::kill_all`].
    ///
    /// # Errors
    /// That it had ended before.
    pub fn kill_all(&self) -> Result<(), EngineError> {
        self.process().kill_all()
    }

    /// What it has written to its log so far, for the words of a failure.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Why it has ended, if it has; `call` is what failed for that.
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
        // Then no setting is to blame, whatever names its last words have.
        if self.is_device_full() || tells_of_full_device(&plain) {
            return EngineError::DiskFull(format!("{call}: {plain}"));
        }
        let told: Vec<_> = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        EngineError::failed(call, words(&told))
    }

    /// Whether the log's device is full, which is the data's: then the log, too,
    /// breaks off before it says so. MyRocks aborts when it cannot write.
    fn is_device_full(&self) -> bool {
        rustix::fs::statvfs(&self.log).is_ok_and(|volume| volume.f_bavail * volume.f_frsize < LEAST_ROOM)
    }

    /// The error that a client met, or the end of the server where that is behind it.
    #[cold]
    fn behind(&self, error: EngineError) -> EngineError {
        if !matches!(error, EngineError::Lost(_)) {
            return error;
        }
        let since = Instant::now();
        while since.elapsed() < ENDING {
            match self.end("connection") {
                // What was under way is in doubt, as after any loss of a connection.
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

    /// The same for what is no part of the load.
    ///
    /// # Errors
    /// Those of the result, explained.
    pub fn explained<T>(&self, result: Result<T, EngineError>) -> Result<T, EngineError> {
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
    fn dialect(&self) -> Dialect {
        self.session.dialect()
    }

    fn table_options(&self) -> &str {
        self.session.table_options()
    }

    fn pipeline(&self) -> usize {
        self.session.pipeline()
    }

    fn survives_errors(&self) -> bool {
        self.session.survives_errors()
    }

    fn group_statements(&mut self) -> bool {
        self.session.group_statements()
    }

    fn rereads(&self, statement: Statement) -> bool {
        self.session.rereads(statement)
    }

    fn reread(&mut self, statement: Statement, raw: &[u8], visit: Visit<'_>) {
        self.session.reread(statement, raw, visit);
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        self.watch.explained(self.session.prepare(sql))
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement, EngineError> {
        self.watch.explained(self.session.prepare_bytes(sql))
    }

    fn prepare_declared(&mut self, sql: &[u8], types: &[ParamType]) -> Result<Statement, EngineError> {
        self.watch.explained(self.session.prepare_declared(sql, types))
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement, EngineError> {
        self.watch.explained(self.session.prepare_rows(table, columns))
    }

    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), EngineError> {
        self.watch.explained(self.session.submit(statement, params))
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<(), EngineError> {
        self.watch.explained(self.session.submit_rows(rows, values))
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), EngineError> {
        self.watch.explained(self.session.submit_text(sql))
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<(), EngineError> {
        self.watch.explained(self.session.submit_bytes(sql))
    }

    fn close(&mut self, statement: Statement) -> Result<(), EngineError> {
        self.watch.explained(self.session.close(statement))
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        self.session.poll_answer(context, visit).map(|answer| self.watch.explained(answer))
    }

    fn run(&mut self, sql: &str) -> Result<(), EngineError> {
        self.watch.explained(self.session.run(sql))
    }
}

impl<S: DocumentSession> DocumentSession for Watched<S> {
    fn has_transactions(&self) -> bool {
        self.session.has_transactions()
    }

    fn submit(&mut self, command: Command<'_>) -> Result<(), EngineError> {
        self.watch.explained(self.session.submit(command))
    }

    fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
        visit: document::Visit<'_>,
    ) -> Poll<Result<Done, EngineError>> {
        self.session.poll_answer(context, visit).map(|answer| self.watch.explained(answer))
    }

    fn run(&mut self, command: Document<'_>) -> Result<(), EngineError> {
        self.watch.explained(self.session.run(command))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::Signals;

    /// A server that has logged this, and runs.
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
        let told = watch.explained::<()>(Err(lost())).expect_err("a loss").to_string();
        let begins = "connection: the connection to /run/s was lost: it was closed; the server runs on (pid ";
        assert!(told.starts_with(begins), "{told}");
        assert!(told.ends_with("error.log) ends with:\nstarted\n[Warning] Aborted connection 7"), "{told}");
        watch.kill();
        let told = watch.explained::<()>(Err(lost())).expect_err("a loss").to_string();
        assert!(told.starts_with("connection: the server ended with signal: 9"), "{told}");
        assert!(told.contains("Aborted connection 7\nwhere the log tells of no error it was killed"), "{told}");
        assert!(told.ends_with("`rumba run --resume DIR --retry-failed` runs the trial again"), "{told}");
    }

    /// Takes declared types, and tells how many; nothing else.
    struct Declares;

    impl SqlSession for Declares {
        fn dialect(&self) -> Dialect {
            Dialect::PostgreSql
        }

        fn survives_errors(&self) -> bool {
            false
        }

        fn prepare(&mut self, _sql: &str) -> Result<Statement, EngineError> {
            Err(lost())
        }

        fn prepare_declared(&mut self, _sql: &[u8], types: &[ParamType]) -> Result<Statement, EngineError> {
            Ok(Statement(types.len()))
        }

        fn prepare_rows(&mut self, _table: &str, _columns: &[&str]) -> Result<Statement, EngineError> {
            Err(lost())
        }

        fn submit(&mut self, _statement: Statement, _params: &[Param<'_>]) -> Result<(), EngineError> {
            Err(lost())
        }

        fn submit_rows(&mut self, _rows: Statement, _values: &[Param<'_>]) -> Result<(), EngineError> {
            Err(lost())
        }

        fn submit_text(&mut self, _sql: &str) -> Result<(), EngineError> {
            Err(lost())
        }

        fn close(&mut self, _statement: Statement) -> Result<(), EngineError> {
            Err(lost())
        }

        fn poll_answer(&mut self, _context: &mut Context<'_>, _visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
            Poll::Ready(Err(lost()))
        }

        fn run(&mut self, _sql: &str) -> Result<(), EngineError> {
            Err(lost())
        }
    }

    /// They were left out on the servers that rumba starts: a script's parameter had the type of its place there.
    #[test]
    fn declared_types_reach_the_session() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut watched = Watched { session: Declares, watch: Arc::new(watch(dir.path(), "")) };
        let statement = watched.prepare_declared(b"SELECT $1, $2", &[ParamType::Int, ParamType::Text]);
        assert_eq!(statement.map(|statement| statement.0), Ok(2));
    }
}
