//! The trial's own process: it reads an [`Order`] from standard input and writes [`Event`]s to standard output, one
//! JSON line each.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rumba_engine_api::workload::State;
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, TrialPlan};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};

use super::outbox::Outbox;
use super::{Act, Job};
use crate::fleet::Door;
use crate::registry::{Registry, end_with};

/// The input of a trial's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub plan: TrialPlan,
    /// An existing directory for the instance: empty, or with a copy of another instance's data.
    pub data_dir: PathBuf,
    /// The limits in force, as text.
    pub limits: Vec<String>,
    /// The process that sends the order and reads the events.
    pub parent: u32,
    /// The process that delays the requests of the data's volume, if there is one.
    #[serde(default)]
    pub delayer: Option<u32>,
    /// The workload's state, if the directory already has data; otherwise it is empty.
    #[serde(default)]
    pub state: Option<State>,
    /// The task.
    #[serde(default)]
    pub act: Act,
    /// The file where clients note acknowledged commits before the database is killed.
    pub journal: PathBuf,
    /// Seconds since the trial's first process began.
    #[serde(default)]
    pub begun_s: f64,
    /// The inherited listener for client hosts, if the clients run on several.
    #[serde(default)]
    pub door: Option<Door>,
}

/// Reads an order, runs its trial, and writes its events.
///
/// # Errors
/// When the order cannot be read or the events cannot be written.
pub fn serve(registry: &Registry) -> std::io::Result<()> {
    let began = Instant::now();
    let mut events = take_stdout()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let order: Order = serde_json::from_reader(std::io::stdin().lock())?;
    end_with(order.parent)?;
    let mut emit = |event: Event| {
        // Without a reader the trial is useless and ends.
        if events.notify(&event).is_err() {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let (engine, workload) = (registry.engine(&order.plan.engine.engine), registry.workload(&order.plan.workload));
    let (Some(engine), Some(workload)) = (engine, workload) else {
        let cause = format!("this binary has no {} or no {}", order.plan.engine.engine, order.plan.workload);
        emit(Event::Failed { phase: PhaseKind::Provision, cause });
        return events.finish();
    };
    super::run(Job {
        plan: &order.plan,
        engine,
        workload,
        data_dir: &order.data_dir,
        limits: &order.limits,
        delayer: order.delayer,
        state: order.state.as_ref(),
        act: order.act,
        journal: &order.journal,
        epoch: began - Duration::from_secs_f64(order.begun_s),
        door: order.door,
        program: &registry.build.to_string(),
        stop: &stop,
        emit: &mut emit,
    });
    // A reader that has ended meanwhile needs no more events.
    let _ = events.finish();
    // End without the libraries' exit handlers, because a client may hang inside an engine.
    // SAFETY: it ends the process; all events are written.
    unsafe { libc::_exit(0) }
}

/// Reserves standard output for the events and redirects libraries' output to standard error.
fn take_stdout() -> std::io::Result<Outbox> {
    let events = std::io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Outbox::new(events)
}

/// The signals that stop a run: people, terminals and batch systems send them, and each would end it without its
/// clean-up. SIGHUP and SIGQUIT are left out if the parent process has them ignored, as `nohup` and a shell's `&` do.
pub fn stop_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = crate::host::parse::field(&status, "SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let is_heeded = |signal: &i32| ignored.is_some_and(|mask| mask & (1 << (signal - 1)) == 0);
    let always = [SIGINT, SIGTERM, SIGXCPU, SIGUSR1, SIGUSR2];
    always.into_iter().chain([SIGHUP, SIGQUIT].into_iter().filter(is_heeded)).collect()
}
