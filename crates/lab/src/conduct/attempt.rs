//! One attempt to run a trial: provision, execute, retain, record.

use std::path::Path;
use std::time::Instant;

use rumba_engine_api::workload::State;
use rumba_results::condition;
use rumba_results::event::Event;
use rumba_results::record::{Status, TrialPart, TrialPlan};
use rumba_results::warning::Warning;

use super::profile::{self, Sampler};
use super::start::{self, Attempt, LoadedData, Start};
use super::{LOG, TrialRunner, TrialRunnerError, Watch, io};
use crate::engine_files::EngineFiles;
use crate::kept::{CopyError, KeptLoads};
use crate::leftovers;
use crate::limits::Enforcement;
use crate::provision::{DataDir, Owner, ProvisionError};
use crate::store::TrialWriter;
use crate::trial::Act;
use crate::trial::child::Order;

/// Everything that is made for a trial before its process starts.
struct Provisioned {
    writer: TrialWriter,
    /// All processes of the trial count their seconds from here.
    began: Instant,
    limited: Enforcement,
    data: DataDir,
    /// Whether the data that the trial starts from is complete.
    copied: Result<(), CopyError>,
    sampler: Option<Sampler>,
}

impl TrialRunner<'_> {
    /// Runs a trial's process on its own data, empty or copied, and removes everything that was made for it.
    pub(super) fn attempt(
        &self,
        trial: &TrialPlan,
        start: &Start<'_>,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
    ) -> Result<Attempt, TrialRunnerError> {
        let mut provisioned = self.provision(trial, start, watch)?;
        let left = self.execute(trial, start, &mut provisioned, watch);
        let Provisioned { mut writer, mut limited, data, copied, sampler, .. } = provisioned;
        // On every path: a server that still writes would disturb the next trial, and its log is not complete yet.
        let vacated = data.vacate();
        if start.is_unusable(writer.status()) {
            vacated?;
            data.remove()?;
            limited.end()?;
            let why = start::cause_of(writer.status());
            return Ok(if copied.is_ok() { Attempt::NotOpened(why) } else { Attempt::NoCopy(why) });
        }
        self.give_back(trial, writer.status())?;
        writer.condition(condition::DATA, start.words());
        if let Some((words, warnings)) = sampler.and_then(|sampler| sampler.finish(self.stops)) {
            writer.condition(profile::CONDITION, words);
            warnings.into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
        }
        let mut engine_files = EngineFiles::of(&data.engine_dir());
        let retained = self.retain(trial, (data, left), &mut limited, &mut writer, kept_loads, watch);
        engine_files.write(writer.directory());
        if let Some(warning) = not_kept(&engine_files.problems) {
            writer.take(Event::Warning(warning));
        }
        remove_if_empty(&writer.directory().join(LOG));
        let name = crate::plan::directory(trial);
        let record = writer.finish().map_err(io(format!("writing the results of {name}")))?;
        vacated?;
        retained?;
        limited.end()?;
        Ok(Attempt::Ended(Box::new(record)))
    }

    /// Removes what the trial has left on an existing server. If that fails, the ledger lists it.
    fn give_back(&self, trial: &TrialPlan, status: &Status) -> Result<(), ProvisionError> {
        let Some(server) = leftovers::existing_server(&trial.engine) else { return Ok(()) };
        // After its normal end, the trial has closed the instance.
        let is_given_back = matches!(status, Status::Done | Status::Suspended { .. });
        if is_given_back || leftovers::clean_server(&server, self.registry).is_ok() {
            self.managed.forget(&leftovers::EXISTING_SERVER, &server)?;
        }
        Ok(())
    }

    /// Makes the trial's directory of results, its limits, and its data directory, with a copy of the data that it
    /// starts from.
    fn provision(
        &self,
        trial: &TrialPlan,
        start: &Start<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Provisioned, TrialRunnerError> {
        let name = crate::plan::directory(trial);
        let mut writer =
            self.results.trial(trial, self.prepared.build()).map_err(io(format!("making the results of {name}")))?;
        let began = Instant::now();
        writer.harness(self.harness);
        start.reported().into_iter().for_each(|warning| {
            watch.event(trial, &Event::Warning(warning.clone()));
            writer.take(Event::Warning(warning));
        });
        let owner = Owner::this_process(&self.prepared.experiment().name, trial.number)
            .map_err(io("looking at this process"))?;
        if let Some(server) = leftovers::existing_server(&trial.engine) {
            self.managed.register(&leftovers::EXISTING_SERVER, &server, &owner)?;
        }
        let volume = self.prepared.data_base().join(crate::plan::volume_name(trial));
        let mut limited =
            Enforcement::prepare(&trial.engine.limits, &volume, &owner, self.managed, self.registry.process)?;
        let base = limited.storage_dir().unwrap_or(self.prepared.data_base());
        let data = DataDir::create(&base.join(&name), &owner, self.managed)?;
        let copied = self.copy_in(start, &data, trial, watch);
        limited.throttle()?;
        let sampler = self.profiles.then(|| Sampler::new(writer.directory()));
        Ok(Provisioned { writer, began, limited, data, copied, sampler })
    }

    /// Runs the trial's processes. Returns the workload's state if the trial has loaded data.
    fn execute(
        &self,
        trial: &TrialPlan,
        start: &Start<'_>,
        provisioned: &mut Provisioned,
        watch: &mut dyn Watch,
    ) -> Option<State> {
        let Provisioned { writer, began, limited, data, copied, sampler } = provisioned;
        if let Err(cause) = copied {
            self.not_started(cause, writer);
            return None;
        }
        let order = Order {
            plan: trial.clone(),
            data_dir: data.engine_dir(),
            limits: limited.enforced().to_vec(),
            parent: std::process::id(),
            delayer: limited.delayer(),
            state: start.state().cloned(),
            act: Act::Measure,
            journal: data.journal(),
            begun_s: began.elapsed().as_secs_f64(),
            door: self.gate.and_then(|gate| gate.door()),
        };
        let left = self.follow(&order, &data.mark(), limited, writer, sampler, watch);
        self.kill_and_look((&order, *began), left.as_ref(), data, limited, writer, watch);
        left
    }

    /// Keeps the trial's data for the trials that start from it, or for the user; otherwise removes it.
    fn retain(
        &self,
        trial: &TrialPlan,
        (mut data, left): (DataDir, Option<State>),
        limited: &mut Enforcement,
        writer: &mut TrialWriter,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
    ) -> Result<(), ProvisionError> {
        // Copying data off a volume is not measured, so it need not be throttled.
        let mut unthrottle = |writer: &mut TrialWriter| {
            limited.lift_throttle().into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
            limited.storage_dir().is_some()
        };
        // An interrupted trial keeps nothing, because the resumed run makes the trial's data again.
        let keeps = trial.run.keep_data && trial.part != TrialPart::Load && *writer.status() != Status::Interrupted;
        match (trial.part, writer.status().clone(), left) {
            // A load that was suspended still has complete data.
            (TrialPart::Load, Status::Done | Status::Suspended { .. }, Some(state)) => {
                let is_on_volume = unthrottle(writer);
                let left = LoadedData { data, state, started: writer.started() };
                self.keep(trial, left, is_on_volume, kept_loads, watch)
            }
            _ if keeps && unthrottle(writer) => self.keep_off_volume(trial, data, writer, watch),
            _ if keeps => data.keep(),
            // Remove the data before the last write, because the data may have filled the disk.
            _ => data.remove(),
        }
    }
}

fn not_kept(problems: &[String]) -> Option<Warning> {
    (!problems.is_empty()).then(|| {
        Warning::new(
            "not-kept",
            format!("files of the engine could not be kept with the results: {}", problems.join("; ")),
            "set keep_data = true and copy them from the data directory yourself",
        )
    })
}

fn remove_if_empty(log: &Path) {
    if std::fs::metadata(log).is_ok_and(|meta| meta.len() == 0) {
        // An empty log says nothing; if it cannot be removed, it does no harm.
        let _ = std::fs::remove_file(log);
    }
}
