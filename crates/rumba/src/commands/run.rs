//! `rumba run`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rumba_core::engine::EngineConfig;
use rumba_core::record::TrialPlan;
use rumba_core::units::{show_bytes, show_duration};
use rumba_core::warning::Warning;
use rumba_lab::conduct::{Conduct, Outcome, volume_name};
use rumba_lab::registry::Registry;
use rumba_lab::spec::{self, Experiment, Overrides};
use rumba_lab::store::{self, ResultsDir};
use rumba_lab::trial::child::stop_signals;
use rumba_lab::{host, limits, plan, provision};

use crate::cli::{RunArgs, RunOptions};
use crate::problem::Problem;
use crate::progress::{Progress, tell};

/// The exit code of what was interrupted.
pub const INTERRUPTED: u8 = 130;
/// How much larger a database may get than its logical bytes before a run that
/// fits only its logical bytes would fill the device: B-trees after random
/// inserts, with their log, stay below three.
const ROOM: u64 = 3;

/// Reads the experiment, runs its trials, shows the results.
pub fn run(args: &RunArgs, registry: &Registry) -> super::Result {
    run_experiment(read(args, registry)?, &args.options, registry)
}

/// What the command line adds to an experiment.
pub fn overrides(options: &RunOptions) -> Overrides {
    Overrides { engines: options.engine.clone(), set: options.set.clone() }
}

/// Runs the trials of an experiment, shows the results.
pub fn run_experiment(mut experiment: Experiment, args: &RunOptions, registry: &Registry) -> super::Result {
    if args.check && experiment.claims.is_empty() {
        return Err(Problem::mistake(
            "there is no claim to check",
            "add a [[claim]] to the experiment, or leave out --check",
        ));
    }
    say_left_out(&experiment);
    if args.dry_run {
        return dry_run(&experiment, &plan::plan(&experiment));
    }
    let out = match &args.out {
        Some(out) => out.clone(),
        None => Path::new("results").join(store::directory_name(&experiment.name)),
    };
    refuse_used(&out)?;
    let data_base = experiment.run.data_dir.clone().unwrap_or_else(|| out.join("data"));
    let unlimited = enforce(&mut experiment, &data_base, args.allow_unlimited)?;
    let trials = plan::plan(&experiment);
    refuse_unmanaged(&data_base, &trials)?;
    let managed = provision::Ledger::of_user()?;
    clean_leftovers(&managed);
    let results = prepare(&experiment, &trials, &out, &data_base, registry, unlimited)?;
    let outcome = conduct(args, &experiment, &trials, &results, &data_base, &managed)?;
    show(args, &out, outcome)
}

fn read(args: &RunArgs, registry: &Registry) -> Result<Experiment, Problem> {
    let overrides = overrides(&args.options);
    let path = Path::new(&args.experiment);
    let is_workload = registry.workload(&args.experiment).is_some();
    if is_workload && !path.is_file() {
        return Ok(spec::of_workload(&args.experiment, &overrides, registry)?);
    }
    if path.extension().is_none() && !path.exists() {
        return Err(Problem::mistake(
            format!("there is no workload and no file called `{}`", args.experiment),
            Registry::suggest(&args.experiment, &registry.workload_names()),
        ));
    }
    Ok(spec::read_file(path, &overrides, registry)?)
}

/// Says before the first trial which optional engines will be missing.
fn say_left_out(experiment: &Experiment) {
    for Warning { message, remedy, .. } in &experiment.left_out {
        tell(&format!("{message}; {remedy}"));
    }
}

fn refuse_used(out: &Path) -> Result<(), Problem> {
    match std::fs::read_dir(out) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Problem::mistake(
                format!("{} is not empty; results are never overwritten", out.display()),
                "choose another --out, or remove it yourself",
            )),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Problem::mistake(format!("{}: {error}", out.display()), "choose another --out")),
    }
}

/// Refuses limits that this host cannot enforce; or, where the user allows it,
/// takes them out of the experiment and returns what to warn of.
fn enforce(experiment: &mut Experiment, data_base: &Path, allow_unlimited: bool) -> Result<Vec<Warning>, Problem> {
    let mut unlimited = Vec::new();
    for engine in &mut experiment.engines {
        let (enforced, warnings) = limits::enforceable(&engine.limits, data_base)?;
        if let Some(warning) = warnings.first().filter(|_| !allow_unlimited) {
            let remedy = format!("{}; or add --allow-unlimited to run without this limit", warning.remedy);
            return Err(Problem::mistake(format!("{}: {}", engine.name, warning.message), remedy));
        }
        limits::check(&enforced, data_base)?;
        engine.limits = enforced;
        for warning in warnings {
            if !unlimited.contains(&warning) {
                unlimited.push(warning);
            }
        }
    }
    Ok(unlimited)
}

/// Refuses data directories that hold something that rumba did not create, before anything is created.
fn refuse_unmanaged(base: &Path, trials: &[TrialPlan]) -> Result<(), Problem> {
    for trial in trials {
        let directory = plan::directory(trial);
        provision::DataDir::check(&base.join(&directory))?;
        provision::VolumeDir::check(&base.join(volume_name(&directory)))?;
    }
    Ok(())
}

/// Removes what killed runs have left behind; their gigabytes may be needed now.
fn clean_leftovers(managed: &provision::Ledger) {
    for leftover in managed.leftovers().unwrap_or_default() {
        match managed.clean(&leftover) {
            Ok(()) => tell(&format!("removed what a killed run left behind: {leftover}")),
            Err(error) => tell(&format!("left behind by a killed run: {leftover}, and it stays: {error}")),
        }
    }
}

fn prepare(
    experiment: &Experiment,
    trials: &[TrialPlan],
    out: &Path,
    data_base: &Path,
    registry: &Registry,
    unlimited: Vec<Warning>,
) -> Result<ResultsDir, Problem> {
    let bound = registry
        .workload(&experiment.workload)
        .ok_or_else(|| Problem::failure("the workload is gone", "report this"))?
        .bind(&experiment.workload_settings)
        .map_err(|error| Problem::mistake(error.to_string(), error.remedy))?;
    refuse_too_small(experiment, trials.len() as u64, bound.expected_logical_bytes(), data_base, registry)?;
    let facts = host::Facts::gather(data_base);
    let mut conditions = facts.conditions();
    conditions.insert("data, logical".to_owned(), show_bytes(bound.expected_logical_bytes() as f64));
    let mut warnings = facts.warnings();
    warnings.extend(experiment.left_out.clone());
    warnings.extend(unlimited);
    warnings.extend(plan::warnings(experiment, bound.as_ref(), facts.machine.usable_memory_bytes(), registry));
    conditions.extend(plan::data_over_cache(experiment, bound.as_ref(), facts.machine.usable_memory_bytes(), registry));
    ResultsDir::create(out, experiment, trials, conditions, warnings).map_err(|error| {
        Problem::failure(format!("{} cannot be written: {error}", out.display()), "choose another --out")
    })
}

/// Refuses data that would not fit where it is to be.
fn refuse_too_small(
    experiment: &Experiment,
    trials: u64,
    logical: u64,
    data_base: &Path,
    registry: &Registry,
) -> Result<(), Problem> {
    let keeps_data = |engine: &&EngineConfig| registry.engine(&engine.engine).is_some_and(|known| known.keeps_data());
    let keeping: Vec<&EngineConfig> = experiment.engines.iter().filter(keeps_data).collect();
    for engine in &keeping {
        let Some(storage) = &engine.limits.storage else { continue };
        if storage.size_bytes < logical.saturating_mul(ROOM) {
            return Err(Problem::mistake(
                format!(
                    "{}: limits.storage.size is {}; this data set may need {} ({} of rows, and engines take up to {ROOM} times that)",
                    engine.name,
                    show_bytes(storage.size_bytes as f64),
                    show_bytes(logical.saturating_mul(ROOM) as f64),
                    show_bytes(logical as f64)
                ),
                "set limits.storage.size to \"data*4\", or lower maxid1",
            ));
        }
    }
    if keeping.iter().any(|engine| engine.limits.storage.is_none()) {
        let kept_at_once = if experiment.run.keep_data { trials } else { 1 };
        refuse_full(data_base, logical.saturating_mul(kept_at_once))?;
    }
    Ok(())
}

fn refuse_full(data_base: &Path, logical: u64) -> Result<(), Problem> {
    let needed = logical.saturating_mul(ROOM);
    match provision::free_bytes(data_base) {
        Ok(free) if free < needed => Err(Problem::mistake(
            format!(
                "the volume of {} has {} free; this data set may need {} ({} of rows, and engines take up to {ROOM} times that)",
                data_base.display(),
                show_bytes(free as f64),
                show_bytes(needed as f64),
                show_bytes(logical as f64)
            ),
            "lower maxid1, or set run.data_dir to a larger volume",
        )),
        // Unknown free space is no reason to refuse: the engine will say when it is full.
        _ => Ok(()),
    }
}

fn conduct(
    args: &RunOptions,
    experiment: &Experiment,
    trials: &[TrialPlan],
    results: &ResultsDir,
    data_base: &Path,
    managed: &provision::Ledger,
) -> Result<Outcome, Problem> {
    let stops = count_stops()?;
    let mut progress = Progress::new(args.quiet);
    let conduct = Conduct {
        experiment: &experiment.name,
        trials,
        results,
        data_base,
        managed,
        child: &|| super::own("trial"),
        harness: &|| super::own("harness"),
        stops: &stops,
    };
    let outcome = conduct.run(&mut progress);
    progress.finish();
    outcome.map_err(|error| {
        let kept = results.path().display();
        Problem::failure(error.to_string(), format!("what was measured until then is in {kept}"))
    })
}

/// Counts interrupts: the first lets the trial save what it has, the second ends it.
fn count_stops() -> Result<Arc<AtomicUsize>, Problem> {
    let stops = Arc::new(AtomicUsize::new(0));
    let counted = stops.clone();
    let mut signals = signal_hook::iterator::Signals::new(stop_signals())
        .map_err(|error| Problem::failure(format!("signals cannot be caught: {error}"), "report this"))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if counted.fetch_add(1, Relaxed) == 0 {
                tell("stopping; what was measured is kept (once more: stop at once)");
            }
        }
    });
    Ok(stops)
}

fn show(args: &RunOptions, out: &Path, outcome: Outcome) -> super::Result {
    let results = super::report::read(out)?;
    let summary = rumba_statistics::summarise(&results);
    let page = out.join("report.html");
    super::report::write_page(&results, &summary, &page)?;
    if args.json {
        super::print_json(&rumba_report::json(&results, &summary))?;
    } else {
        say!("{}", super::report::as_tables(&results, &summary, None)?);
        say!("results: {}\npage:    {}", out.display(), page.display());
    }
    Ok(match outcome {
        Outcome { interrupted: true, .. } => ExitCode::from(INTERRUPTED),
        Outcome { failed: 1.., .. } => ExitCode::from(crate::problem::FAILURE),
        _ if args.check => super::report::claims_exit(&summary)?,
        _ => ExitCode::SUCCESS,
    })
}

fn dry_run(experiment: &Experiment, trials: &[TrialPlan]) -> super::Result {
    let show = |seconds| show_duration(std::time::Duration::from_secs_f64(seconds));
    let plural = if trials.len() == 1 { "trial" } else { "trials" };
    say!("{}: {} {plural}", experiment.name, trials.len());
    for trial in trials {
        let run = &trial.run;
        say!(
            "  {:<32} {} loaders, warmup {}, {} loops of {}",
            plan::directory(trial),
            run.load_clients,
            show(run.warmup_s),
            run.loops,
            show(run.loop_s)
        );
    }
    Ok(ExitCode::SUCCESS)
}
