//! A dry run: the trials that would run, and the resources they need.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use rumba_engine_api::cpus::CpuSet;
use rumba_engine_api::limits::Backing;
use rumba_engine_api::units::{counted, show_bytes, show_duration};
use rumba_results::pair::with_side;
use rumba_results::record::{TrialPart, TrialPlan};
use serde_json::json;

use super::{Options, RunError, admit, profile_if};
use crate::fleet::job_line;
use crate::plan;
use crate::prepare::{Cpus, Forecast, Storage};
use crate::registry::Registry;
use crate::spec::Experiment;
use crate::store::Claim;

/// The plan of a run that is not started. Its text shows the trials, and then the resources.
pub struct DryRun {
    experiment: Experiment,
    trials: Vec<TrialPlan>,
    forecast: Forecast,
}

impl DryRun {
    /// Plans a run and changes nothing. `say` shows a line to the user.
    ///
    /// # Errors
    /// Each error of the run that is known before its first trial.
    pub fn new(
        experiment: Experiment,
        options: &Options,
        registry: &Registry,
        say: &dyn Fn(&str),
    ) -> Result<Self, RunError> {
        profile_if(options)?;
        // Check whether the run could claim the directory, then release the claim and all that it created.
        if let Some(out) = &options.out {
            drop(Claim::new(out)?);
        }
        let out = options.out.clone().unwrap_or_else(|| Path::new("results").join(&experiment.name));
        let admitted = admit(experiment, &out, options.allowed, say)?;
        let trials = admitted.plan(registry);
        admitted.check(&trials, registry)?;
        let forecast = admitted.forecast(&trials, registry);
        Ok(Self { experiment: admitted.experiment().clone(), trials, forecast })
    }

    /// The trials and their forecast as JSON.
    pub fn json(&self) -> serde_json::Value {
        let Self { experiment, trials, forecast } = self;
        let planned = trials.iter().map(|trial| json!({ "directory": plan::directory(trial), "plan": trial }));
        let pairs = experiment.pairs.iter().map(|pair| json!({ "base": pair.base, "other": pair.other }));
        json!({
            "experiment": experiment.name,
            "workload": experiment.workload,
            "forecast": forecast,
            "memory_needs": experiment.memory_needs.iter().cloned().collect::<BTreeMap<_, _>>(),
            "compared": pairs.collect::<Vec<_>>(),
            "trials": planned.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_plan(f, &self.experiment, &self.trials)?;
        write_forecast(f, &self.forecast)
    }
}

fn show(seconds: f64) -> String {
    show_duration(Duration::from_secs_f64(seconds))
}

/// The disk space needed at once, and the free space.
fn on_disk(forecast: &Forecast) -> String {
    let Forecast { databases, volume_bytes, disk_bytes, .. } = *forecast;
    let databases = (databases > 0).then(|| counted(databases as usize, "database"));
    let volume = (volume_bytes > 0).then(|| format!("a volume of {}", show_bytes(volume_bytes as f64)));
    let what: Vec<String> = databases.into_iter().chain(volume).collect();
    let most = match what.is_empty() {
        true => "no database lies there".to_owned(),
        false => format!("up to {} for {} at once", show_bytes(disk_bytes as f64), what.join(" and ")),
    };
    let free = forecast.disk_free_bytes.map(|free| format!("; {} are free there", show_bytes(free as f64)));
    most + &free.unwrap_or_default()
}

/// Without a line feed at its end.
fn write_forecast(f: &mut fmt::Formatter<'_>, forecast: &Forecast) -> fmt::Result {
    writeln!(f, "data      {} rows, {} of keys and payloads", forecast.rows, show_bytes(forecast.data_bytes as f64))?;
    writeln!(f, "disk      {}", on_disk(forecast))?;
    for Storage { engine, size_bytes, backing } in &forecast.storage {
        let place = match backing {
            Backing::File => "a file on that disk",
            Backing::Tmpfs => "in memory",
        };
        writeln!(
            f,
            "storage   {}: a volume of {}, {place}, while a trial has it",
            with_side(engine),
            show_bytes(*size_bytes as f64)
        )?;
    }
    for memory in &forecast.memory {
        let limit = memory.limit_bytes.map(|limit| format!(", limited to {}", show_bytes(limit as f64)));
        let limit = limit.unwrap_or_else(|| ", no limit".to_owned());
        writeln!(f, "memory    {}: cache {}{limit}", with_side(&memory.engine), memory.cache)?;
    }
    let most = match forecast.measured_most_s > forecast.measured_s {
        true => format!(", at most {}", show(forecast.measured_most_s)),
        false => String::new(),
    };
    for Cpus { engine, cpus, client_cpus } in &forecast.cpus {
        let shown = |cpus: &Option<CpuSet>| cpus.as_ref().map_or("all".to_owned(), ToString::to_string);
        let clients = client_cpus.as_ref().map(|_| format!("; clients {}", shown(client_cpus))).unwrap_or_default();
        writeln!(f, "CPUs      {}: {}{clients}", with_side(engine), shown(cpus))?;
    }
    let loads = counted(forecast.loads, "load");
    write!(
        f,
        "duration  {} of warmups and loops{most}; {loads}; settling, draining and verification add to it",
        show(forecast.measured_s)
    )
}

fn write_plan(f: &mut fmt::Formatter<'_>, experiment: &Experiment, trials: &[TrialPlan]) -> fmt::Result {
    let most = if experiment.run.until_decided { " at most: it ends once every headline is decided" } else { "" };
    writeln!(f, "{}: {}{most}", experiment.name, counted(trials.len(), "trial"))?;
    for trial in trials {
        let run = &trial.run;
        let loaders = counted(run.load_clients as usize, "loader");
        let most = run.warmup_most_s.map(|most_s| format!(" to {}", show(most_s))).unwrap_or_default();
        let loops = format!(
            "warmup {}{most}, {} of {}",
            show(run.warmup_s),
            counted(run.loops as usize, "loop"),
            show(run.loop_s)
        );
        let loops = match (&run.search, &run.arrivals) {
            (Some(search), _) => format!("{search}: several probes, each {loops}"),
            (None, Some(_)) => format!("{loops}, arrivals {}", run.pace()),
            (None, None) if run.client_steps.is_some() => format!("{loops}, {}", run.pace()),
            (None, None) => loops,
        };
        let started = trials.iter().filter(|other| other.loaded_by == Some(trial.number)).count();
        let aged = run.age_s.map(|most_s| format!(", aged for at most {}", show(most_s))).unwrap_or_default();
        let loaders = format!("{loaders}{aged}");
        let what = match (trial.part, trial.loaded_by) {
            (TrialPart::Load, _) => match started {
                1 => format!("{loaders}, kept for the trial that starts from a copy"),
                _ => format!("{loaders}, kept for the {started} trials that start from a copy"),
            },
            (_, Some(load)) => format!("a copy of the data of trial {load}, {loops}"),
            (_, None) => format!("{loaders}, {loops}"),
        };
        writeln!(f, "  {:<32} {what}", plan::directory(trial))?;
    }
    if let Some(fleet) = &experiment.run.fleet {
        let how = job_line(fleet).unwrap_or_else(|| "start `rumba agent` on each host".to_owned());
        writeln!(f, "  clients on {}: {how}", counted(fleet.hosts as usize, "host"))?;
    }
    for pair in &experiment.pairs {
        writeln!(f, "  {} is compared with {}", with_side(&pair.other), with_side(&pair.base))?;
    }
    for (name, need) in &experiment.memory_needs {
        writeln!(f, "  {}: {need}", with_side(name))?;
    }
    Ok(())
}
