//! The clients of a trial on other hosts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rumba_engine_api::error::EngineError;
use rumba_engine_api::workload::{Bound, Ops, SCRIPT_TEXT};
use rumba_results::event::Event;
use rumba_results::fleet::Launcher;
use rumba_results::warning::Warning;

use super::{Job, Trial};
use crate::fleet::{Fleet, FleetMade, Phase, Role, held};
use crate::meter::Reading;
use crate::run::driver::Schedule;
use crate::run::group::ClientGroup;

/// The client hosts of a trial.
pub(super) type Hosts = Arc<Mutex<Fleet>>;

/// Starts clients that are made and wait for it.
pub(super) type Start = Box<dyn FnOnce() -> Box<dyn ClientGroup>>;

/// Waits for the client hosts of a trial, if its clients run on other hosts.
///
/// # Errors
/// Hosts that do not come.
pub(super) fn gather(job: &Job<'_>) -> Result<Option<Hosts>, EngineError> {
    let (Some(plan), Some(door)) = (&job.plan.run.fleet, job.door) else { return Ok(None) };
    let log = if plan.launcher == Launcher::Slurm { "; agents.log in the results has the words of srun" } else { "" };
    let coordinator = door
        .gather(plan, job.program, job.stop)
        .map_err(|error| EngineError::failed("clients on several hosts", format!("{error}{log}")))?;
    Ok(Some(Arc::new(Mutex::new(Fleet::new(coordinator, plan.clone())))))
}

/// Connects the client hosts to the server.
///
/// # Errors
/// A host that cannot reach it.
pub(super) fn join(hosts: &Hosts, job: &Job<'_>, bound: &dyn Bound) -> Result<(), EngineError> {
    let script = bound.conditions().into_iter().find(|(name, _)| name == SCRIPT_TEXT).map(|(_, text)| text);
    held(hosts).join(job.plan, script.as_deref())
}

impl Trial<'_> {
    /// Makes clients with this work, where the plan has them; the result starts them.
    pub(super) fn make_clients(
        &self,
        clients: u32,
        ops: &Ops,
        schedule: Schedule,
        role: Role,
    ) -> Result<Start, EngineError> {
        let Some(hosts) = &self.hosts else {
            let make = move |bound: &dyn Bound, session, at| role.client(bound, session, at);
            let made = self.clients(clients, ops, schedule, make)?;
            return Ok(Box::new(move || -> Box<dyn ClientGroup> { Box::new(made.start()) }));
        };
        let made = FleetMade::new(hosts, Phase { role, clients, kinds: ops.len(), schedule }, self.bound.state())?;
        Ok(Box::new(move || made.start()))
    }

    /// All counters now, with the CPU time of clients on other hosts.
    pub(super) fn read_meters(&mut self) -> Reading {
        let reading = self.meters.read();
        match &self.hosts {
            None => reading,
            Some(hosts) => reading.with_clients_elsewhere(held(hosts).client_cpu_ns()),
        }
    }

    /// The workload's own counters, of all loaders and clients so far.
    pub(super) fn counted(&self) -> BTreeMap<String, u64> {
        let mut all = self.bound.counted();
        if let Some(hosts) = &self.hosts {
            all.extend(held(hosts).counted());
        }
        all
    }

    /// Takes over what clients on other hosts have written: the workload then has their state.
    pub(super) fn adopt_state(&mut self) -> Result<(), EngineError> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let state = held(hosts).state();
        if state.is_empty() {
            return Ok(());
        }
        self.bound = self.bound_over(&self.job.plan.workload_settings, &state)?;
        Ok(())
    }

    /// Reports the hosts, and what limits the trust in their figures.
    pub(super) fn report_hosts(&mut self) {
        let Some(hosts) = self.hosts.clone() else { return };
        let (records, limits) = held(&hosts).records();
        self.emit(Event::Hosts { hosts: records });
        limits.into_iter().for_each(|warning| self.emit(Event::Warning(warning)));
        self.report_losses();
    }

    /// Reports hosts that were lost since the last call, and ends their sessions on the server.
    pub(super) fn report_losses(&mut self) {
        let Some(hosts) = &self.hosts else { return };
        let mut warnings = held(hosts).warnings();
        let lost = held(hosts).newly_lost();
        for names in lost {
            if let Err(error) = self.instance.end_sessions_of(&names) {
                let message = format!("sessions of the lost client host {} may be left: {error}", names[1]);
                warnings.push(Warning::new("host-lost", message, "end them on the server: they may hold locks"));
            }
        }
        warnings.into_iter().for_each(|warning| self.emit(Event::Warning(warning)));
    }

    /// Why the data cannot be verified, if a host was lost.
    pub(super) fn unverifiable(&self) -> Option<Warning> {
        let hosts = self.hosts.as_ref().filter(|hosts| held(hosts).has_lost());
        hosts.map(|_| {
            Warning::new(
                "not-verified",
                "a client host was lost, so its acknowledged writes are unknown",
                "run the trial again with all hosts",
            )
        })
    }
}
