//! The data that a trial starts from: none, or a copy of a load's data.

use rumba_engine_api::workload::State;
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, Record, Status, TrialPart, TrialPlan};
use rumba_results::warning::Warning;

use super::{TrialRunner, TrialRunnerError, Watch, io};
use crate::kept::{Contents, CopyError, KeptData, KeptLoad, KeptLoads, Origin, name_again};
use crate::provision::{DataDir, Owner, ProvisionError};
use crate::store::TrialWriter;

pub(super) struct LoadedData {
    /// The data directory of the instance.
    pub data: DataDir,
    /// The workload's state after the load.
    pub state: State,
    /// When the load began, RFC 3339.
    pub started: String,
}

/// The data that a trial starts from.
pub(super) enum Start<'a> {
    /// No data: the trial loads its own.
    Nothing,
    /// No data, although a copy was planned; the reason.
    Again {
        load: u32,
        why: String,
    },
    Copy {
        load: u32,
        data: &'a KeptData,
    },
}

/// How an attempt to run a trial ended.
pub(super) enum Attempt {
    /// The trial ran, with any status.
    Ended(Box<Record>),
    /// The kept data that it was to start from is unusable; the reason.
    NoCopy(String),
    /// The copy that it was to start from did not open; the reason.
    NotOpened(String),
}

impl Start<'_> {
    /// The warning that the trial loaded again.
    pub(super) fn reported(&self) -> Option<Warning> {
        let Start::Again { load, why } = self else { return None };
        Some(Warning::new(
            "loaded-again",
            format!(
                "this trial loaded its own data, because the data that trial {load} loaded could not be used: {why}"
            ),
            "it is excluded from results with repeats that started from copies; fix the cause and run the experiment \
             again",
        ))
    }

    /// The workload's state, if a copy is present.
    pub(super) fn state(&self) -> Option<&State> {
        match self {
            Start::Copy { data, .. } => Some(data.state()),
            Start::Nothing | Start::Again { .. } => None,
        }
    }

    /// The text of the condition `data`.
    pub(super) fn words(&self) -> String {
        match self {
            Start::Copy { load, .. } => {
                format!("a copy of the data that trial {load} loaded, opened by a fresh process")
            }
            Start::Nothing | Start::Again { .. } => "loaded by this trial".to_owned(),
        }
    }

    /// Whether a trial ended before its copy was open, so that loading again may help.
    pub(super) fn is_unusable(&self, status: &Status) -> bool {
        matches!(self, Start::Copy { .. })
            && matches!(status, Status::Failed { phase: PhaseKind::Provision, cause } if !cause.starts_with(NO_COPY))
    }
}

/// The prefix of a failure's cause that another load would not fix.
const NO_COPY: &str = "no copy of the kept data could be made";

/// The cause of a failed trial.
pub(super) fn cause_of(status: &Status) -> String {
    match status {
        Status::Failed { cause, .. } => cause.clone(),
        Status::Running | Status::Done | Status::Interrupted | Status::Suspended { .. } => String::new(),
    }
}

impl TrialRunner<'_> {
    /// Runs a trial, and loads again if the planned copy is unusable.
    pub(super) fn trial(
        &self,
        trial: &TrialPlan,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
    ) -> Result<Record, TrialRunnerError> {
        let Some(load) = trial.loaded_by.filter(|_| trial.part == TrialPart::Run) else {
            return self.whole(trial, &Start::Nothing, kept_loads, watch);
        };
        let why = match kept_loads.find(load) {
            Some(KeptLoad::Here(data)) => match self.over_copy(trial, &Start::Copy { load, data }, watch)? {
                Attempt::Ended(record) => return Ok(*record),
                // No copy can be complete: later trials need not try, and the space is free.
                Attempt::NoCopy(why) => {
                    kept_loads.lose(load, why.clone());
                    why
                }
                Attempt::NotOpened(why) => why,
            },
            Some(KeptLoad::Lost(why)) => why.clone(),
            None => "it was not kept".to_owned(),
            Some(KeptLoad::Failed(why)) => return self.without_data(trial, load, why),
        };
        let whole = TrialPlan { part: TrialPart::Whole, loaded_by: None, ..trial.clone() };
        self.whole(&whole, &Start::Again { load, why }, kept_loads, watch)
    }

    /// Runs a trial over a copy, and over a second copy if the first did not open. On a busy host a second start may
    /// succeed, and a trial that loads again is no repeat of the others. A trial that starts from a copy keeps nothing.
    fn over_copy(
        &self,
        trial: &TrialPlan,
        start: &Start<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Attempt, TrialRunnerError> {
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
    ) -> Result<Record, TrialRunnerError> {
        match self.attempt(trial, start, kept_loads, watch)? {
            Attempt::Ended(record) => {
                if let (TrialPart::Load, Status::Failed { cause, .. }) = (trial.part, &record.status) {
                    kept_loads.fail(trial.number, cause.clone());
                }
                Ok(*record)
            }
            // Only trials over a copy return these two.
            Attempt::NoCopy(why) | Attempt::NotOpened(why) => {
                Err(io(format!("starting {}", trial.engine.name))(std::io::Error::other(why)))
            }
        }
    }

    /// The record of a trial whose load failed: another attempt would fail in the same way and take as long.
    fn without_data(&self, trial: &TrialPlan, load: u32, why: &str) -> Result<Record, TrialRunnerError> {
        let name = crate::plan::directory(trial);
        let mut writer =
            self.results.trial(trial, self.prepared.build()).map_err(io(format!("making the results of {name}")))?;
        let first = why.lines().next().unwrap_or_default();
        let cause = format!("it was not run: trial {load}, which was to load its data, failed: {first}");
        writer.take(Event::Failed { phase: PhaseKind::Provision, cause });
        writer.finish().map_err(io(format!("writing the results of {name}")))
    }

    /// Copies the data into the trial's directory, if it starts from a copy.
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

    /// Records that a trial had no data to start from.
    pub(super) fn not_started(&self, cause: &CopyError, writer: &mut TrialWriter) {
        if matches!(cause, CopyError::Interrupted) {
            return writer.interrupted();
        }
        let words = if cause.requests_for_another_load() { cause.to_string() } else { format!("{NO_COPY}: {cause}") };
        writer.take(Event::Failed { phase: PhaseKind::Provision, cause: words });
    }

    /// Keeps the data of a load. Data on a volume is copied off it, because the volume is removed; other data stays in
    /// its place. If the data cannot be kept, the trials that were to start from it load again and say why.
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
                let copied = KeptData::keep(home, Some(&left.data.engine_dir()), origin, left.state, self.stops);
                copied.map_err(|error| error.to_string())
            });
            left.data.remove()?;
            kept
        } else {
            KeptData::keep(left.data, None, origin, left.state, self.stops).map_err(|error| error.to_string())
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

    /// Copies a trial's data from its volume to a directory next to the volumes, for the user. Warns if that fails.
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
            name_again(&to, &from).map_err(|error| format!("{}: {error}", to.display()))?;
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

    /// A data directory next to the volumes.
    fn home(&self, trial: &TrialPlan, directory: &str) -> Result<DataDir, String> {
        let owner =
            Owner::this_process(&self.prepared.experiment().name, trial.number).map_err(|error| error.to_string())?;
        let home = DataDir::create(&self.prepared.data_base().join(directory), &owner, self.managed);
        home.map_err(|error| error.to_string())
    }
}
