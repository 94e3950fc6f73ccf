//! The server of a trial, and who runs it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::access::Access;
use rumba_engine_api::engine::{KEPT, ProcessLocation, Session};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::SqlSession;
use rumba_transport::Target;

use crate::failure::last_lines;
use crate::process::LOOK;
use crate::watch::{Watch, Watched};

/// Startup timeout. A server that exits earlier is noticed immediately.
const START: Duration = Duration::from_secs(300);
/// Timeout of a clean shutdown, in which the server writes its dirty data.
const STOP: Duration = Duration::from_secs(300);
/// Names the start in its errors.
pub const CALL: &str = "start of the server";

/// The contents of the data directory at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// It is empty, or has only the system tables.
    New,
    /// Data of an earlier server of rumba's, with its database and users.
    Left,
}

/// The paths of an instance's files.
#[derive(Clone, Debug)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The layout of an instance in a directory.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// A file or directory of the instance that is not part of the data.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.file("data")
    }

    /// The directory whose files are stored with the results.
    pub fn kept(&self) -> PathBuf {
        self.file(KEPT)
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.kept().join("error.log")
    }
}

/// A server that rumba has started.
pub struct Running {
    /// The server's process and log.
    pub watch: Arc<Watch>,
    /// The server's address, and the user to connect as.
    pub target: Target,
    /// How a person can connect to the server.
    pub access: Box<Access>,
    /// Keeps the short path to the socket valid.
    pub socket: Option<OwnedFd>,
}

impl Running {
    /// Connects again and again until the server is ready. `connect` returns an error that ends the start, or else the
    /// connection or why it failed.
    ///
    /// # Errors
    /// The server ended, or is not ready in time; the error of `connect`.
    pub fn wait<T>(&self, connect: impl Fn(&Target) -> Result<Result<T, String>>) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(end) = self.watch.end(CALL) {
                return Err(end);
            }
            let last = match connect(&self.target)? {
                Ok(connected) => return Ok(connected),
                Err(last) => last,
            };
            if begun.elapsed() > START {
                let log = last_lines(&self.watch.log(), 10);
                let words = format!("it is not ready after {} s ({last}); its log has:\n{log}", START.as_secs());
                return Err(EngineError::failed(CALL, words));
            }
            sleep(LOOK);
        }
    }

    /// Stops the server cleanly.
    ///
    /// # Errors
    /// The process had to be killed, or did not end cleanly.
    pub fn stop(&self) -> Result<()> {
        self.watch.stop(STOP)
    }
}

impl AsRef<Running> for Running {
    fn as_ref(&self) -> &Running {
        self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Sessions may still hold the watch, but the server must end with its instance.
        self.watch.kill();
    }
}

/// Who runs a server: rumba, with a value that holds a [`Running`]; or others, of whom a trial has taken a database.
pub enum Host<Own, Taken> {
    /// rumba runs the server.
    Own {
        /// The running server.
        running: Own,
        /// Its data directory.
        data: PathBuf,
    },
    /// An existing server; process and data directory are known only if they can be determined.
    Existing {
        /// The process.
        pid: Option<u32>,
        /// The data directory.
        data: Option<PathBuf>,
        /// The database that the trial has taken.
        taken: Taken,
        /// Whether settle and drain make the server write.
        flushes: bool,
    },
}

impl<Own: AsRef<Running>, Taken> Host<Own, Taken> {
    /// The server, if rumba runs it.
    pub fn running(&self) -> Option<&Running> {
        match self {
            Host::Own { running, .. } => Some(running.as_ref()),
            Host::Existing { .. } => None,
        }
    }

    /// Whether settle and drain make the server write.
    pub fn flushes(&self) -> bool {
        !matches!(self, Host::Existing { flushes: false, .. })
    }

    /// The location of its process and its data.
    pub fn place(&self) -> ProcessLocation {
        let (pid, data_dir) = match self {
            Host::Own { running, data } => (Some(running.as_ref().watch.pid()), Some(data.clone())),
            Host::Existing { pid, data, .. } => (*pid, data.clone()),
        };
        ProcessLocation::Server { pid, data_dir }
    }

    /// How a person can connect to a server that rumba runs.
    pub fn access(&self) -> Option<Access> {
        self.running().map(|running| Access::clone(&running.access))
    }

    /// Kills a server that rumba runs, without warning.
    ///
    /// # Errors
    /// Others run it, or it has ended.
    pub fn kill(&self) -> Result<()> {
        match self.running() {
            Some(running) => running.watch.kill_all(),
            None => Err(EngineError::failed("kill of the server", "it is not rumba's")),
        }
    }

    /// Explains a lost connection by the end of a server that rumba runs.
    pub fn explained<T>(&self, result: Result<T>) -> Result<T> {
        match self.running() {
            Some(running) => running.watch.explained(result),
            None => result,
        }
    }

    /// A client's session, whose lost connection is explained in the same way.
    pub fn sql(&self, connected: Result<impl SqlSession + 'static>) -> Result<Session> {
        let session = self.explained(connected)?;
        Ok(Session::Sql(match self.running() {
            Some(running) => Box::new(Watched { session, watch: running.watch.clone() }),
            None => Box::new(session),
        }))
    }
}
