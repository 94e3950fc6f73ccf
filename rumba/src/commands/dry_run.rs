//! `--dry-run`: the trials that would run, and the resources they need.

use std::time::Duration;

use rumba_engine_api::cpus::CpuSet;
use rumba_engine_api::limits::Backing;
use rumba_engine_api::units::{counted, show_bytes, show_duration};
use rumba_lab::plan;
use rumba_lab::prepare::{Cpus, Forecast, Storage};
use rumba_lab::spec::Experiment;
use rumba_results::pair::with_side;
use rumba_results::record::{TrialPart, TrialPlan};
use serde_json::json;

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

/// Prints the resources that a run needs.
pub fn show_forecast(forecast: &Forecast) {
    say!("data      {} rows, {} of keys and payloads", forecast.rows, show_bytes(forecast.data_bytes as f64));
    say!("disk      {}", on_disk(forecast));
    for Storage { engine, size_bytes, backing } in &forecast.storage {
        let place = match backing {
            Backing::File => "a file on that disk",
            Backing::Tmpfs => "in memory",
        };
        let (engine, size) = (with_side(engine), show_bytes(*size_bytes as f64));
        say!("storage   {engine}: a volume of {size}, {place}, while a trial has it");
    }
    for memory in &forecast.memory {
        let limit = memory.limit_bytes.map(|limit| format!(", limited to {}", show_bytes(limit as f64)));
        let limit = limit.unwrap_or_else(|| ", no limit".to_owned());
        say!("memory    {}: cache {}{limit}", with_side(&memory.engine), memory.cache);
    }
    let most = match forecast.measured_most_s > forecast.measured_s {
        true => format!(", at most {}", show(forecast.measured_most_s)),
        false => String::new(),
    };
    for Cpus { engine, cpus, client_cpus } in &forecast.cpus {
        let shown = |cpus: &Option<CpuSet>| cpus.as_ref().map_or("all".to_owned(), ToString::to_string);
        let clients = client_cpus.as_ref().map(|_| format!("; clients {}", shown(client_cpus))).unwrap_or_default();
        say!("CPUs      {}: {}{clients}", with_side(engine), shown(cpus));
    }
    let loads = counted(forecast.loads, "load");
    say!(
        "duration  {} of warmups and loops{most}; {loads}; settling, draining and verification add to it",
        show(forecast.measured_s)
    );
}

/// The trials and their forecast as JSON.
pub fn json(experiment: &Experiment, trials: &[TrialPlan], forecast: &Forecast) -> serde_json::Value {
    let planned = trials.iter().map(|trial| json!({ "directory": plan::directory(trial), "plan": trial }));
    let pairs = experiment.pairs.iter().map(|pair| json!({ "base": pair.base, "other": pair.other }));
    json!({
        "experiment": experiment.name,
        "workload": experiment.workload,
        "forecast": forecast,
        "memory_needs": experiment.memory_needs.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "compared": pairs.collect::<Vec<_>>(),
        "trials": planned.collect::<Vec<_>>(),
    })
}

/// Prints the trials that would run.
pub fn show_plan(experiment: &Experiment, trials: &[TrialPlan]) {
    let most = if experiment.run.until_decided { " at most: it ends once every headline is decided" } else { "" };
    say!("{}: {}{most}", experiment.name, counted(trials.len(), "trial"));
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
        say!("  {:<32} {what}", plan::directory(trial));
    }
    for pair in &experiment.pairs {
        say!("  {} is compared with {}", with_side(&pair.other), with_side(&pair.base));
    }
    for (name, need) in &experiment.memory_needs {
        say!("  {}: {need}", with_side(name));
    }
}
