//! The known engines and workloads, by name. The binary fills it.

use std::io;
use std::process::Command;

use rumba_engine_api::engine::{Engine, EngineConfig, EngineFacts};
use rumba_engine_api::server::Catalogue;
use rumba_engine_api::workload::Workload;
use rumba_results::build::Build;

/// Makes the command that runs a part of the lab in another process, named by its argument: `trial` runs
/// [`crate::trial::child::serve`], `probe` [`crate::probe::serve`], `harness` [`crate::harness::serve`], `hold`
/// [`crate::keeper::hold`], `delay` [`crate::limits::delay_requests`].
pub type Process = fn(&str) -> io::Result<Command>;

/// The known engines and workloads.
#[derive(Default)]
pub struct Registry {
    /// The engines, in the order they are listed.
    pub engines: Vec<Box<dyn Engine>>,
    /// The workloads, in the order they are listed.
    pub workloads: Vec<Box<dyn Workload>>,
    /// The servers that can be installed.
    pub catalogues: Vec<Box<dyn Catalogue>>,
    /// Without it every engine is checked in this process, and no trial can be run.
    pub process: Option<Process>,
    /// The build of the binary.
    pub build: Build,
}

/// Makes the kernel kill this process when its parent ends. The parent sends its pid, because it may have ended before
/// this call.
///
/// # Errors
/// The parent is gone, or the system's error.
pub(crate) fn end_with(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match rustix::process::getppid() {
        Some(found) if found.as_raw_pid() as u32 == parent => Ok(()),
        _ => Err(io::Error::other("the process that started this one is gone")),
    }
}

impl Registry {
    /// An engine by its registered name, `rocksdb`, not by its name in an experiment.
    pub fn engine(&self, name: &str) -> Option<&dyn Engine> {
        self.engines.iter().map(AsRef::as_ref).find(|engine| engine.info().name == name)
    }

    /// The facts about an engine as an experiment configures it, if it is known.
    pub fn facts(&self, config: &EngineConfig) -> Option<EngineFacts> {
        self.engine(&config.engine).map(|engine| engine.facts(config))
    }

    pub fn workload(&self, name: &str) -> Option<&dyn Workload> {
        self.workloads.iter().map(AsRef::as_ref).find(|workload| workload.name() == name)
    }

    pub fn engine_names(&self) -> Vec<&'static str> {
        self.engines.iter().map(|engine| engine.info().name).collect()
    }

    pub fn workload_names(&self) -> Vec<&'static str> {
        self.workloads.iter().map(|workload| workload.name()).collect()
    }

    /// A suggestion for an unknown name.
    pub fn suggest(wrong: &str, known: &[&str]) -> String {
        rumba_engine_api::instead(wrong, known.iter().copied())
    }
}
