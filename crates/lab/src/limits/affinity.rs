//! CPU limits: the affinity of an engine's processes, and of the clients next to them.
//!
//! Children and threads inherit the affinity of the thread that starts them. A trial therefore takes the engine's CPUs
//! before it opens the engine, and the clients' CPUs afterwards.

use std::io;

use rumba_engine_api::cpus::CpuSet;
use rumba_engine_api::engine::Form;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::limits::Limits;
use rustix::io::Errno;
use rustix::thread::{Pid, sched_setaffinity};

use super::error::{CLIENT_CPUS, CPUS};
use crate::host::{allowed_cpus, threads};

/// The CPUs that the clients take once the engine is open.
#[must_use = "the clients would stay on the engine's CPUs"]
#[derive(Debug)]
pub struct ClientCpus(Option<(&'static str, CpuSet)>);

/// Gives this process the engine's CPUs, for the engine to be opened next.
///
/// # Errors
/// A CPU that this process may not use.
pub fn take_engine_cpus(limits: &Limits, form: Form) -> Result<ClientCpus> {
    let clients = match (&limits.client_cpus, &limits.cpus) {
        _ if form != Form::Server => None,
        (Some(own), _) => Some((CLIENT_CPUS, own.clone())),
        (None, Some(_)) => Some((CPUS, allowed_cpus().map_err(|error| failed(CPUS, &error))?)),
        (None, None) => None,
    };
    if let Some(cpus) = &limits.cpus {
        move_to(CPUS, cpus)?;
    }
    Ok(ClientCpus(clients))
}

impl ClientCpus {
    /// Gives this process the clients' CPUs; its children keep theirs.
    ///
    /// # Errors
    /// A CPU that this process may not use.
    pub fn take(self) -> Result<()> {
        self.0.map_or(Ok(()), |(limit, cpus)| move_to(limit, &cpus))
    }
}

/// The CPU limits in force, as text.
pub fn in_words(limits: &Limits) -> impl Iterator<Item = String> {
    let engine =
        limits.cpus.as_ref().map(|cpus| format!("{CPUS} = {cpus}: CPU affinity, set before the engine is opened"));
    let clients = limits.client_cpus.as_ref();
    let clients = clients.map(|cpus| format!("{CLIENT_CPUS} = {cpus}: CPU affinity of rumba's loaders and clients"));
    engine.into_iter().chain(clients)
}

/// Moves all threads of this process to these CPUs. The kernel leaves out a CPU that the control group withholds, so the
/// result is read again.
fn move_to(limit: &'static str, cpus: &CpuSet) -> Result<()> {
    let refused = |error: &io::Error| failed(limit, error);
    let mut mask = rustix::thread::CpuSet::new();
    cpus.iter().for_each(|cpu| mask.set(cpu as usize));
    for thread in threads("self").into_iter().filter_map(|id| Pid::from_raw(id.cast_signed())) {
        match sched_setaffinity(Some(thread), &mask) {
            // It has ended meanwhile.
            Ok(()) | Err(Errno::SRCH) => {}
            // No CPU of them is allowed.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(refused(&error.into())),
        }
    }
    let allowed = allowed_cpus().map_err(|error| refused(&error))?;
    if allowed == *cpus {
        return Ok(());
    }
    let words =
        format!("rumba may run on the CPUs {allowed} only; name some of them, or start it where it may use {cpus}");
    Err(EngineError::failed("CPU affinity", format!("{limit} = {cpus}: {words}")))
}

fn failed(limit: &'static str, error: &io::Error) -> EngineError {
    EngineError::failed("CPU affinity", format!("{limit}: {error}"))
}
