//! The holder: it opens an instance within the limits of its process, and closes it on request.

use std::io::{self, Write};
use std::path::PathBuf;

use rumba_engine_api::access::Access;
use rumba_engine_api::engine::{EngineConfig, Instance, ProcessLocation, Schema};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::limits;
use crate::provision::ProcessId;
use crate::registry::{Registry, end_with};

/// The holder's input, on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub engine: EngineConfig,
    pub directory: PathBuf,
    /// Whether the directory already holds data.
    pub is_left: bool,
    /// The pid of the keeper.
    pub parent: u32,
}

/// The holder's answer, a line on its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Opened {
    Up { version: Option<String>, access: Option<Access>, pid: Option<u32> },
    Failed(String),
}

/// Opens the instance of its task, and holds it until a signal requests the end.
///
/// # Errors
/// A task that cannot be read; an instance that cannot be closed.
pub fn hold(registry: &Registry) -> io::Result<()> {
    // Register signals before anything is opened, so that no signal is lost.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGCHLD])?;
    let task: Task = serde_json::from_reader(io::stdin().lock())?;
    end_with(task.parent)?;
    match open(&task, registry) {
        Ok(instance) => {
            let pid = match instance.place() {
                ProcessLocation::Server { pid, .. } => pid,
                ProcessLocation::Embedded => None,
            };
            notify(&Opened::Up { version: instance.version(), access: instance.access(), pid })?;
            for signal in signals.forever() {
                // Stop waiting when the server has ended; other children come and go.
                if signal != SIGCHLD || pid.is_some_and(|pid| ProcessId::of(pid).is_err()) {
                    break;
                }
            }
            instance.close().map_err(io::Error::other)
        }
        Err(why) => notify(&Opened::Failed(why)),
    }
}

fn open(task: &Task, registry: &Registry) -> Result<Box<dyn Instance>, String> {
    let Task { engine: config, directory, .. } = task;
    let engine =
        registry.engine(&config.engine).ok_or_else(|| format!("this binary has no engine {}", config.engine))?;
    let open = || {
        let others = limits::take_engine_cpus(&config.limits, engine.info().form)?;
        let instance = match task.is_left {
            true => engine.reopen(directory, config, Schema::BySession)?,
            false => engine.open(directory, config, Schema::BySession)?,
        };
        others.take().map(|()| instance)
    };
    open().map_err(|error| error.to_string())
}

fn notify(answer: &Opened) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    out.flush()
}
