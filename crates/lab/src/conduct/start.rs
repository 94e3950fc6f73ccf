//! What a trial starts from: nothing, or a copy of what a load has left.

use rumba_core::event::Event;
use rumba_core::record::{PhaseKind, Record, Status, TrialPart, TrialPlan};
use rumba_core::warning::Warning;
use rumba_core::workload::State;

use super::{Attempt, Conduct, ConductError, Watch, io};
use crate::kept::{Contents, CopyError, Found, KeptData, KeptLoads, Origin, name_anew};
use crate::provision::{DataDir, Owner, ProvisionError};
use crate::store::TrialWriter;

/// What a load has left.
pub(super) struct LoadedData {
    /// Where the instance was.
    pub data: DataDir,
    /// What the workload knows of it.
    pub state: State,
    /// When the load began, RFC 3339.
    pub started: String,
}

/// What a trial starts from.
pub(super) enum Start<'a> {
    /// Nothing: it loads its own data.
    Nothing,
    /// Nothing, although it was to start from a copy, and why.
    Again { load: u32, why: String },
    /// A copy of what this load has left.
    Copy { load: u32, data: &'a KeptData },
}

impl Start<'_> {
    /// What the reader must know.
    pub(super) fn told(&self) -> Option<Warning> {
        let Start::Again { load, why } = self else { return None };
        Some(Warning::new(
            "loaded-again",
            format!("this trial loaded its own data: what trial {load} loaded could not be used: {why}"),
            "it is in no figure beside repeats that started from copies; see to the cause and run the experiment anew",
        ))
    }

    /// What the workload knows of the data that is there.
    pub(super) fn state(&self) -> Option<&State> {
        match self {
            Start::Copy { data, .. } => Some(data.state()),
            Start::Nothing | Start::Again { .. } => None,
        }
    }

    /// The condition `data`.
    pub(super) fn words(&self) -> String {
        match self {
            Start::Copy { load, .. } => format!("a copy of what trial {load} loaded, opened by a fresh process"),
            Start::Nothing | Start::Again { .. } => "loaded by this trial".to_owned(),
        }
    }

    /// Whether a trial ended before its copy was open, so that loading again may help.
    pub(super) fn is_unusable(&self, status: &Status) -> bool {
        matches!(self, Start::Copy { .. })
            && matches!(status, Status::Failed { phase: PhaseKind::Provision, cause } if !cause.starts_with(NO_COPY))
    }
}

/// How the cause of a failure begins that another load would not mend.
const NO_COPY: &str = "no copy of the kept data could be made";

/// The cause of a failure.
pub(super) fn cause_of(status: &Status) -> String {
    match status {
        Status::Failed { cause, .. } => cause.clone(),
        Status::Running | Status::Done | Status::Interrupted | Status::Suspended { .. } => String::new(),
    }
}

impl Conduct<'_> {
    /// Runs a trial, loading again where what it was to start from cannot be used.
    pub(super) fn trial(
        &self,
        trial: &TrialPlan,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
    ) -> Result<Record, ConductError> {
        let Some(load) = trial.loaded_by.filter(|_| trial.part == TrialPart::Run) else {
            return self.whole(trial, &Start::Nothing, kept_loads, watch);
        };
        let why = match kept_loads.find(load) {
            Found::Here(data) => match self.over_copy(trial, &Start::Copy { load, data }, watch)? {
                Attempt::Ended(record) => return Ok(*record),
                // No copy of it can be whole: whoever follows need not try, and its room is free.
                Attempt::NoCopy(why) => {
                    kept_loads.lose(load, why.clone());
                    why
                }
                Attempt::NotOpened(why) => why,
            },
            Found::Lost(why) => why.to_owned(),
            Found::Failed(why) => return self.without_data(trial, load, why),
        };
        let whole = TrialPlan { part: TrialPart::Whole, loaded_by: None, ..trial.clone() };
        self.whole(&whole, &Start::Again { load, why }, kept_loads, watch)
    }

    /// Runs a trial over a copy, a second one where the first did not open: what a busy host is slow to start may start
    /// then, and a trial that loads again is no repeat of the others. Nothing is kept by a trial that starts from a copy.
    fn over_copy(&self, trial: &TrialPlan, start: &Start<'_>, watch: &mut dyn Watch) -> Result<Attempt, ConductError> {
        match self.attempt(trial, start, &mut KeptLoads::default(), watch)? {
            Attempt::NotOpened(_) => self.attempt(trial, start, &mut KeptLoads::default(), watch),
            ended => Ok(ended),
        }
    }

    /// Runs a trial that loads.
    fn whole(
        &self,
        trial: &TrialPlan,
        start: &Start<'_>,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
    ) -> Result<Record, ConductError> {
        match self.attempt(trial, start, kept_loads, watch)? {
            Attempt::Ended(record) => {
                if let (TrialPart::Load, Status::Failed { cause, .. }) = (trial.part, &record.status) {
                    kept_loads.fail(trial.number, cause.clone());
                }
                Ok(*record)
            }
            // Only a copy cannot be started from.
            Attempt::NoCopy(why) | Attempt::NotOpened(why) => {
                Err(io(format!("starting {}", trial.engine.name))(std::io::Error::other(why)))
            }
        }
    }

    /// The record of a trial whose load failed: it would fail alike, and take as long.
    fn without_data(&self, trial: &TrialPlan, load: u32, why: &str) -> Result<Record, ConductError> {
        let name = crate::plan::directory(trial);
        let mut writer =
            self.results.trial(trial, self.prepared.build()).map_err(io(format!("making the results of {name}")))?;
        let first = why.lines().next().unwrap_or_default();
        let cause = format!("it was not run: trial {load}, which was to load its data, failed: {first}");
        writer.take(Event::Failed { phase: PhaseKind::Provision, cause });
        writer.finish().map_err(io(format!("writing the results of {name}")))
    }

    /// Brings a copy into the trial's directory, if it starts from one.
    pub(super) fn copy_in(
        &self,
        start: &Start<'_>,
        to: &DataDir,
        trial: &TrialPlan,
        watch: &mut dyn Watch,
    ) -> Result<(), CopyError> {
        let Start::Copy { data, .. } = start else { return Ok(()) };
        watch.copies(trial, data.allocated_bytes());
        data.copy(&to.engine_dir(), self.stops)
    }

    /// Records that a trial had nothing to start from.
    pub(super) fn not_started(&self, cause: &CopyError, writer: &mut TrialWriter) {
        if matches!(cause, CopyError::Interrupted) {
            return writer.interrupted();
        }
        let words = if cause.asks_for_another_load() { cause.to_string() } else { format!("{NO_COPY}: {cause}") };
        writer.take(Event::Failed { phase: PhaseKind::Provision, cause: words });
    }

    /// Keeps what a load has left. What lies on a volume is copied off it, because
    /// the volume goes; anything else stays where it is. Where it cannot be kept,
    /// the trials that were to start from it load for themselves, and say why.
    pub(super) fn keep(
        &self,
        trial: &TrialPlan,
        left: LoadedData,
        is_on_volume: bool,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
    ) -> Result<(), ProvisionError> {
        let directory = crate::plan::directory(trial);
        let results = std::path::absolute(self.results.path()).unwrap_or_else(|_| self.results.path().to_owned());
        let origin = Origin { results, trial: directory.clone(), started: left.started };
        let kept = if is_on_volume {
            let kept = self.home(trial, &directory).and_then(|home| {
                let copied = KeptData::keep_copy(&left.data.engine_dir(), home, origin, left.state, self.stops);
                copied.map_err(|error| error.to_string())
            });
            left.data.remove()?;
            kept
        } else {
            KeptData::keep(left.data, origin, left.state, self.stops).map_err(|error| error.to_string())
        };
        match kept {
            Ok(kept) => {
                watch.copies(trial, kept.allocated_bytes());
                kept_loads.put(trial.number, kept);
            }
            Err(why) => kept_loads.lose(trial.number, why),
        }
        Ok(())
    }

    /// Keeps for the user what a trial has left on its volume, beside the volumes; says so where it cannot.
    pub(super) fn keep_off_volume(
        &self,
        trial: &TrialPlan,
        data: DataDir,
        writer: &mut TrialWriter,
        watch: &mut dyn Watch,
    ) -> Result<(), ProvisionError> {
        let kept = self.home(trial, &crate::plan::directory(trial)).and_then(|mut home| {
            let (from, to) = (data.engine_dir(), home.engine_dir());
            let contents = Contents::of(&from, self.stops).map_err(|error| error.to_string())?;
            contents.copy(&from, &to, self.stops).map_err(|error| error.to_string())?;
            name_anew(&to, &from).map_err(|error| format!("{}: {error}", to.display()))?;
            home.keep().map_err(|error| error.to_string())?;
            Ok(contents.allocated_bytes)
        });
        match kept {
            Ok(bytes) => watch.copies(trial, bytes),
            Err(why) => writer.take(Event::Warning(Warning::new(
                "not-kept",
                format!("the data could not be copied off the trial's volume, and went with it: {why}"),
                "make room in run.data_dir and run the trial again; an interrupt ends the copying",
            ))),
        }
        data.remove()
    }

    /// A place beside the volumes.
    fn home(&self, trial: &TrialPlan, directory: &str) -> Result<DataDir, String> {
        let owner =
            Owner::this_process(&self.prepared.experiment().name, trial.number).map_err(|error| error.to_string())?;
        let home = DataDir::create(&self.prepared.data_base().join(directory), &owner, self.managed);
        home.map_err(|error| error.to_string())
    }
}
