//! The trial's own process: it takes an [`Order`] on standard input and tells
//! [`Event`]s on standard output, a JSON line each.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rumba_core::event::Event;
use rumba_core::record::{PhaseKind, TrialPlan};
use rumba_core::workload::State;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Job;
use crate::registry::Registry;

/// What a trial's process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The plan.
    pub plan: TrialPlan,
    /// An existing directory for the instance: empty, or with a copy of the data of another.
    pub data_dir: PathBuf,
    /// The limits in force, in words.
    pub limits: Vec<String>,
    /// The process that gives the order and takes the events.
    pub parent: u32,
    /// What the workload knows of the data that is in the directory already; it is empty otherwise.
    #[serde(default)]
    pub state: Option<State>,
}

/// Reads an order, runs its trial, tells its events.
///
/// # Errors
/// When the order cannot be read or the events cannot be told.
pub fn serve(registry: &Registry) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let mut events = take_stdout()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let order: Order = serde_json::from_reader(std::io::stdin().lock())?;
    // It may have gone before the kernel was asked to kill this process with it:
    // then nobody takes the events, and the data directory has lost its owner.
    if rustix::process::getppid().map(|pid| pid.as_raw_pid() as u32) != Some(order.parent) {
        return Err(std::io::Error::other("the process that gave the order is gone"));
    }
    let mut emit = |event: Event| {
        // If nobody reads any more, the trial has lost its purpose and ends.
        if tell(&mut events, &event).is_err() {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let (engine, workload) = (registry.engine(&order.plan.engine.engine), registry.workload(&order.plan.workload));
    let (Some(engine), Some(workload)) = (engine, workload) else {
        let cause = format!("this binary has no {} or no {}", order.plan.engine.engine, order.plan.workload);
        emit(Event::Failed { phase: PhaseKind::Provision, cause });
        return Ok(());
    };
    let Order { plan, data_dir, limits, state, .. } = &order;
    let state = state.as_ref();
    super::run(Job { plan, engine, workload, data_dir, limits, state, stop: &stop, emit: &mut emit });
    // Not a return, nor an exit that runs what libraries have registered for it: a client may hang inside an engine.
    // SAFETY: it ends the process; the events are flushed with every event.
    unsafe { libc::_exit(0) }
}

fn tell(events: &mut BufWriter<File>, event: &Event) -> std::io::Result<()> {
    serde_json::to_writer(&mut *events, event)?;
    events.write_all(b"\n")?;
    events.flush()
}

/// Keeps standard output for the events and sends what libraries print to standard error.
fn take_stdout() -> std::io::Result<BufWriter<File>> {
    let events: OwnedFd = std::io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(BufWriter::new(File::from(events)))
}

/// The signals that ask a run to stop. SIGHUP is one unless whoever started it
/// has it ignored, as `nohup` does.
pub fn stop_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = crate::host::parse::field(&status, "SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let hangs_up = ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) == 0);
    [SIGINT, SIGTERM].into_iter().chain(hangs_up.then_some(SIGHUP)).collect()
}
