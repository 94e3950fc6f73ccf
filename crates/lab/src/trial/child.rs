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
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Job;
use crate::registry::Registry;

/// What a trial's process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The plan.
    pub plan: TrialPlan,
    /// An existing, empty directory for the instance.
    pub data_dir: PathBuf,
}

/// Reads an order, runs its trial, tells its events.
///
/// # Errors
/// When the order cannot be read or the events cannot be told.
pub fn serve(registry: &Registry) -> std::io::Result<()> {
    die_with_parent()?;
    let mut events = take_stdout()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let order: Order = serde_json::from_reader(std::io::stdin().lock())?;
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
    let (plan, data_dir) = (&order.plan, order.data_dir.as_path());
    super::run(Job { plan, engine, workload, data_dir, stop: &stop, emit: &mut emit });
    // Not a return: a client that hangs inside an engine must not keep the process.
    std::process::exit(0);
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

/// Has the kernel kill this process when the one that started it is gone: then
/// nobody takes the events any more, and the data directory has lost its owner.
fn die_with_parent() -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // It may have gone before the signal was set; its heir is not who gave the order.
    let orphaned = rustix::process::getppid().is_none_or(rustix::process::Pid::is_init);
    if orphaned { Err(std::io::Error::other("the process that gave the order is gone")) } else { Ok(()) }
}
