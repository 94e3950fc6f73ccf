//! Tests the durability of commits when their process is killed. A separate process commits row after row, reports each
//! acknowledged row, and is killed; then its data is opened.
//!
//! The process runs an ignored test of the same binary:
//!
//! ```no_run
//! use rumba_engine_api::engine::{Engine, EngineConfig};
//! use rumba_testkit::crash;
//!
//! // #[test]
//! fn a_killed_process_loses_no_commit(engine: &dyn Engine, config: &EngineConfig) {
//!     crash::loses_no_commit(engine, config, "commit_until_killed");
//! }
//!
//! // #[test] #[ignore = "run by the test above in a separate process"]
//! fn commit_until_killed(engine: &dyn Engine) {
//!     crash::commit_until_killed(engine);
//! }
//! ```

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rumba_engine_api::engine::{Engine, EngineConfig, Instance, Schema};
use rustix::process::{Signal, getpid, kill_process};

use crate::key_value::{SPACES, get, put, scan, session};
use crate::process;

const DIRECTORY: &str = "RUMBA_TEST_CRASH_DIRECTORY";
const CONFIG: &str = "RUMBA_TEST_CRASH_CONFIG";
const LAST: &str = "RUMBA_TEST_CRASH_LAST";

/// Rows 1 to this are acknowledged before the kill.
pub const ROWS: u64 = 500;

/// How a writer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It continues after the last of [`ROWS`], and is killed in the middle of a later commit.
    InTheMidst,
    /// It kills itself once the last row is acknowledged, so that deferred work is not done.
    AfterTheLast,
}

/// Makes the ignored test `writer` of this binary write to a directory until it is killed.
///
/// # Panics
/// It ends in another way, or before it has acknowledged all of [`ROWS`].
pub fn kill(writer: &str, dir: &Path, config: &EngineConfig, death: Death) {
    let mut command = process::with_test(writer);
    command.env(DIRECTORY, dir).env(CONFIG, serde_json::to_string(config).expect("a configuration in JSON"));
    if death == Death::AfterTheLast {
        command.env(LAST, ROWS.to_string());
    }
    let mut child = command.stdout(Stdio::piped()).spawn().expect("this program once more");
    // Kept open until the child is dead, because it must die of the kill and not of a closed pipe.
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let rows = lines.by_ref().map_while(Result::ok).filter_map(|line| line.strip_prefix("row ")?.parse::<u64>().ok());
    let acknowledged = rows.take(ROWS as usize).count() as u64;
    if death == Death::InTheMidst {
        child.kill().expect("to kill it");
    }
    let status = child.wait().expect("its end");
    let killed = Some(Signal::KILL.as_raw());
    assert_eq!((acknowledged, status.signal()), (ROWS, killed), "{}, {status}", config.durability.name());
}

/// A request to a writer.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The directory to write to.
    pub dir: PathBuf,
    /// The configuration of its engine.
    pub config: EngineConfig,
    last: Option<u64>,
}

impl Writer {
    /// `None` if there is no request.
    ///
    /// # Panics
    /// The request is not a configuration.
    pub fn requested() -> Option<Self> {
        let dir = std::env::var_os(DIRECTORY)?.into();
        let config = serde_json::from_str(&std::env::var(CONFIG).ok()?).expect("a configuration in JSON");
        Some(Self { dir, config, last: std::env::var(LAST).ok().and_then(|last| last.parse().ok()) })
    }

    /// Commits row after row, from 1 on, and never returns.
    ///
    /// # Panics
    /// The output cannot be written.
    pub fn write(&self, mut commit: impl FnMut(u64)) -> ! {
        let mut out = std::io::stdout().lock();
        // End the line that the runner has begun to print.
        writeln!(out).expect("the pipe is open");
        for row in 1.. {
            commit(row);
            writeln!(out, "row {row}").expect("the pipe is open");
            if self.last == Some(row) {
                kill_process(getpid(), Signal::KILL).expect("to end");
            }
        }
        unreachable!("rows do not end");
    }
}

/// The writer of a key-value engine: it commits each row to the first key space and to the last. Does nothing without a
/// request.
pub fn commit_until_killed(engine: &dyn Engine) {
    let Some(writer) = Writer::requested() else { return };
    let instance = engine.open(&writer.dir, &writer.config, Schema::KeyValue(&SPACES)).expect("to open");
    let mut session = session(&*instance);
    writer.write(|row| {
        session.begin().expect("to begin");
        for space in WRITTEN {
            session.put(space, &row.to_be_bytes(), COMMITTED).expect("to put");
        }
        session.commit().expect("to commit");
    })
}

const WRITTEN: [usize; 2] = [0, SPACES.len() - 1];
const COMMITTED: &[u8] = b"committed";

/// The number of the acknowledged [`ROWS`] that a key-value engine still has when it opens the data of a killed
/// process.
///
/// # Panics
/// A row that is in one key space is missing in the other; the data cannot be written any more.
pub fn survivors(engine: &dyn Engine, config: &EngineConfig, writer: &str, death: Death) -> u64 {
    let dir = tempfile::tempdir().expect("a directory");
    kill(writer, dir.path(), config, death);
    let instance = engine.reopen(dir.path(), config, Schema::KeyValue(&SPACES)).expect("to open again");
    let survivors = count(&*instance);
    instance.close().expect("to close");
    survivors
}

fn count(instance: &dyn Instance) -> u64 {
    let mut session = session(instance);
    let all = WRITTEN.map(|space| scan(&mut *session, space, &[], &[0xff; 9], usize::MAX));
    // An unfinished transaction is gone completely.
    assert_eq!(all[0], all[1], "the key spaces have other rows");
    let committed = |row: &u64| get(&mut *session, WRITTEN[0], &row.to_be_bytes()).as_deref() == Some(COMMITTED);
    let survivors = (1..=ROWS).filter(committed).count() as u64;
    // A lock that the dead process has held is free.
    put(&mut *session, WRITTEN[0], b"afterwards", b"");
    survivors
}

/// Kills a writer of a key-value engine in the middle of its commits.
///
/// # Panics
/// An acknowledged commit is lost; see [`survivors`].
pub fn loses_no_commit(engine: &dyn Engine, config: &EngineConfig, writer: &str) {
    let survivors = survivors(engine, config, writer, Death::InTheMidst);
    assert_eq!(survivors, ROWS, "acknowledged rows that are there, with durability {}", config.durability.name());
}
