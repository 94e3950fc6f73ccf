//! `rumba run`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rumba_core::engine::EngineConfig;
use rumba_core::record::{TrialPart, TrialPlan};
use rumba_core::units::{counted, show_bytes, show_duration};
use rumba_core::warning::Warning;
use rumba_core::workload::Bound;
use rumba_lab::conduct::{Conduct, Outcome, volume_name};
use rumba_lab::harness::Harness;
use rumba_lab::prepare::Stock;
use rumba_lab::registry::Registry;
use rumba_lab::spec::{self, Experiment, Overrides, Shortage};
use rumba_lab::store::{Claim, ResultsDir, Resume};
use rumba_lab::trial::child::stop_signals;
use rumba_lab::{host, limits, plan, provision};
use rumba_report::TableOptions;
use signal_hook::consts::SIGQUIT;

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
    if let Some(directory) = &args.resume {
        return super::resume::resume(directory, args, registry);
    }
    run_experiment(read(args, registry)?, &args.options, registry)
}

/// What the command line adds to an experiment.
pub fn overrides(options: &RunOptions) -> Overrides {
    Overrides { engines: options.engine.clone(), against: Vec::new(), set: options.set.clone() }
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
    if let Some(Warning { message, remedy, .. }) = plan::few_repeats(&experiment) {
        tell(&format!("warning: {message} ({remedy})"));
    }
    let tight = refuse_short_of_memory(&experiment, args.allow_tight_memory)?;
    if args.dry_run {
        return dry_run(&experiment, &plan::plan(&experiment, registry), logical_bytes(&experiment, registry)?);
    }
    let claim = match &args.out {
        Some(out) => Claim::new(out)?,
        None => Claim::named(Path::new("results"), &experiment.name)?,
    };
    let out = claim.path().to_owned();
    let data_base = experiment.run.data_dir.clone().unwrap_or_else(|| out.join("data"));
    let mut warnings = enforce(&mut experiment, &data_base, args.allow_unlimited)?;
    warnings.extend(tight);
    let plans = plan::plan(&experiment, registry);
    refuse_unmanaged(&data_base, &plans)?;
    let managed = provision::Ledger::of_user()?;
    clean_leftovers(&managed);
    let results = prepare(&experiment, &plans, claim, &data_base, registry, warnings)?;
    let resume = Resume {
        planned: plans.len(),
        data_base: std::path::absolute(&data_base).unwrap_or_else(|_| data_base.clone()),
        versions: versions(&experiment, registry),
        allow_unlimited: args.allow_unlimited,
        plans,
    };
    let noted = results.note(&resume);
    noted.map_err(|error| Problem::failure(format!("{}: {error}", out.display()), "choose another --out"))?;
    let run = Run { experiment: &experiment.name, trials: &resume.plans, resume: &resume, results: &results };
    let outcome = conduct(args, &run, Stock::default(), &managed)?;
    show(args, &results, outcome)
}

/// The engines' versions, as far as they are known before they run.
pub fn versions(experiment: &Experiment, registry: &Registry) -> BTreeMap<String, String> {
    let version = |engine: &EngineConfig| registry.engine(&engine.engine)?.availability(engine.into()).version;
    experiment.engines.iter().filter_map(|engine| Some((engine.name.clone(), version(engine)?))).collect()
}

fn read(args: &RunArgs, registry: &Registry) -> Result<Experiment, Problem> {
    let overrides = Overrides { against: args.against.clone(), ..overrides(&args.options) };
    // The command line asks for it where there is nothing to resume.
    let name = args.experiment.as_deref().unwrap_or_default();
    let path = Path::new(name);
    let is_workload = registry.workload(name).is_some();
    if is_workload && !path.is_file() {
        return Ok(spec::of_workload(name, &overrides, registry)?);
    }
    if path.extension().is_none() && !path.exists() && !spec::is_standard_input(path) {
        return Err(Problem::mistake(
            format!("there is no workload and no file called `{name}`"),
            Registry::suggest(name, &registry.workload_names()),
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

/// Refuses a limit of memory that an engine was measured not to run in, unless the user allows it; says at once what
/// is tight, and returns it for the results.
fn refuse_short_of_memory(experiment: &Experiment, allowed: bool) -> Result<Vec<Warning>, Problem> {
    let mut tight = Vec::new();
    for Shortage { mistake, is_impossible } in &experiment.shortages {
        if *is_impossible && !allowed {
            let remedy = format!("{}; or add --allow-tight-memory to run nevertheless", mistake.remedy);
            return Err(spec::SpecError { remedy, ..mistake.clone() }.into());
        }
        let place = mistake.place().map(|place| format!("{place}: ")).unwrap_or_default();
        tell(&format!("warning: {place}{} ({})", mistake.problem, mistake.remedy));
        tight.push(Warning::new("memory-tight", &mistake.problem, &mistake.remedy));
    }
    Ok(tight)
}

/// Refuses limits that this host cannot enforce; or, where the user allows it,
/// takes them out of the experiment and returns what to warn of.
pub fn enforce(experiment: &mut Experiment, data_base: &Path, allow_unlimited: bool) -> Result<Vec<Warning>, Problem> {
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
pub fn refuse_unmanaged(base: &Path, trials: &[TrialPlan]) -> Result<(), Problem> {
    for trial in trials {
        let directory = plan::directory(trial);
        provision::DataDir::check(&base.join(&directory))?;
        provision::VolumeDir::check(&base.join(volume_name(&directory)))?;
    }
    Ok(())
}

/// Removes what killed runs have left behind; their gigabytes may be needed now.
pub fn clean_leftovers(managed: &provision::Ledger) {
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
    claim: Claim,
    data_base: &Path,
    registry: &Registry,
    known: Vec<Warning>,
) -> Result<ResultsDir, Problem> {
    let bound = bound(experiment, registry)?;
    refuse_too_small(experiment, trials, bound.expected_logical_bytes(), data_base, registry)?;
    let facts = host::Facts::gather(data_base);
    let mut conditions = facts.conditions();
    conditions.extend(experiment.memory_needs.iter().cloned());
    conditions.insert("data, logical".to_owned(), show_bytes(bound.expected_logical_bytes() as f64));
    let mut warnings = facts.warnings();
    warnings.extend(experiment.left_out.clone());
    warnings.extend(known);
    warnings.extend(plan::warnings(experiment, bound.as_ref(), facts.machine.usable_memory_bytes(), registry));
    conditions.extend(plan::data_over_cache(experiment, bound.as_ref(), facts.machine.usable_memory_bytes(), registry));
    Ok(ResultsDir::create(claim, experiment, trials, conditions, warnings)?)
}

/// The experiment's workload with its settings taken.
fn bound(experiment: &Experiment, registry: &Registry) -> Result<Box<dyn Bound>, Problem> {
    let workload = registry.workload(&experiment.workload);
    let workload = workload.ok_or_else(|| Problem::failure("the workload is gone", "report this"))?;
    let bound = workload.bind(&experiment.workload_settings);
    bound.map_err(|error| Problem::mistake(error.to_string(), error.remedy))
}

/// About how many bytes of rows the experiment's data has.
pub fn logical_bytes(experiment: &Experiment, registry: &Registry) -> Result<u64, Problem> {
    Ok(bound(experiment, registry)?.expected_logical_bytes())
}

/// Refuses data that would not fit where it is to be.
pub fn refuse_too_small(
    experiment: &Experiment,
    trials: &[TrialPlan],
    logical: u64,
    data_base: &Path,
    registry: &Registry,
) -> Result<(), Problem> {
    let keeps_data =
        |engine: &&EngineConfig| registry.engine(&engine.engine).is_some_and(|known| known.info().keeps_data);
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
    // What was loaded, or is kept for the user, is kept outside the volumes; with repeats interleaved, all of it at once.
    let loads = trials.iter().filter(|trial| trial.part == TrialPart::Load).count() as u64;
    let working = match keeping.iter().any(|engine| engine.limits.storage.is_none()) {
        _ if experiment.run.keep_data && !keeping.is_empty() => trials.len() as u64 - loads,
        true => 1,
        false => 0,
    };
    if loads + working > 0 {
        refuse_full(data_base, logical, loads, working)?;
    }
    Ok(())
}

/// Refuses a volume that has no room for so many databases that are kept and that are at work.
fn refuse_full(data_base: &Path, logical: u64, kept: u64, working: u64) -> Result<(), Problem> {
    let needed = logical.saturating_mul(kept + working).saturating_mul(ROOM);
    let of_each = match kept {
        0 => String::new(),
        _ => format!("; {kept} kept for the repeats and {working} at work"),
    };
    match provision::free_bytes(data_base) {
        Ok(free) if free < needed => Err(Problem::mistake(
            format!(
                "the volume of {} has {} free; this data set may need {} ({} of rows, and engines take up to {ROOM} times that{of_each})",
                data_base.display(),
                show_bytes(free as f64),
                show_bytes(needed as f64),
                show_bytes(logical as f64)
            ),
            if kept > 0 {
                "lower maxid1, set run.data_dir to a larger volume, or repeats_from = \"load\", which keeps nothing"
            } else {
                "lower maxid1, or set run.data_dir to a larger volume"
            },
        )),
        // Unknown free space is no reason to refuse: the engine will say when it is full.
        _ => Ok(()),
    }
}

/// What is to be conducted.
pub struct Run<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The trials to run.
    pub trials: &'a [TrialPlan],
    /// All there are, and where their data goes.
    pub resume: &'a Resume,
    /// Where results go.
    pub results: &'a ResultsDir,
}

/// Runs trials; `stock` is the data of earlier loads that they start from.
pub fn conduct(
    args: &RunOptions,
    run: &Run<'_>,
    stock: Stock,
    managed: &provision::Ledger,
) -> Result<Outcome, Problem> {
    let stops = count_stops()?;
    let harness = run.trials.first().map(|first| Harness::measure(&|| super::own("harness"), first));
    let mut progress = Progress::new(args.quiet);
    let conduct = Conduct {
        experiment: run.experiment,
        trials: run.trials,
        planned: run.resume.plans.len(),
        results: run.results,
        data_base: &run.resume.data_base,
        managed,
        child: &|| super::own("trial"),
        harness: &harness.unwrap_or_default(),
        stops: &stops,
    };
    let outcome = conduct.run(stock, &mut progress);
    progress.finish();
    outcome.map_err(|error| {
        let kept = run.results.path().display();
        let go_on = format!("what was measured until then is in {kept}; `rumba run --resume {kept}` goes on");
        Problem::failure(error.to_string(), go_on)
    })
}

/// Counts interrupts: the first lets the trial save what it has, the second ends it. A quit (Ctrl-\) is two.
fn count_stops() -> Result<Arc<AtomicUsize>, Problem> {
    let stops = Arc::new(AtomicUsize::new(0));
    let counted = stops.clone();
    let mut signals = signal_hook::iterator::Signals::new(stop_signals())
        .map_err(|error| Problem::failure(format!("signals cannot be caught: {error}"), "report this"))?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let (steps, words) = match signal {
                SIGQUIT => (2, "stopping at once; what was measured is kept"),
                _ => (1, "stopping; what was measured is kept (once more: stop at once)"),
            };
            if counted.fetch_add(steps, Relaxed) == 0 {
                tell(words);
            }
        }
    });
    Ok(stops)
}

/// Writes the page and prints the results.
pub fn show(args: &RunOptions, results: &ResultsDir, outcome: Outcome) -> super::Result {
    let out = results.path();
    let read = super::report::read(out)?;
    let summary = rumba_statistics::summarise(&read);
    // Told last: a page that cannot be written keeps nobody from the tables.
    let page = results.summarise("report.html", &rumba_report::html(&read, &summary));
    let comparison = super::ab::comparison(&read);
    if args.json {
        super::print_json(&rumba_report::json(&read, &summary, comparison.as_ref()))?;
    } else {
        let options = TableOptions::default().with_directories([out.display().to_string()]);
        super::print(super::report::as_tables(&read, &summary, options, None)?)?;
        if let Some(comparison) = &comparison {
            super::print(rumba_report::comparison_table(comparison, false))?;
        }
        super::print(format_args!("results: {}", out.display()))?;
        if let Ok(page) = &page {
            super::print(format_args!("page:    {}", page.display()))?;
        }
    }
    if let Some(Warning { message, remedy, .. }) = results.trouble() {
        let left = match outcome.not_begun {
            0 => String::new(),
            trials => format!("; {} not run", counted(trials, "trial")),
        };
        tell(&format!("{message}{left} ({remedy})"));
    }
    page.map_err(|error| super::report::no_page(&out.join("report.html"), &error))?;
    if outcome.suspended > 0 {
        let trials = counted(outcome.suspended, "trial");
        let again =
            format!("rumba run --resume {} runs again all but loads that others have started from", out.display());
        tell(&format!("{trials} suspended while measured; {again}"));
    }
    if outcome.interrupted {
        tell(&format!("rumba run --resume {} goes on where it was interrupted", out.display()));
    }
    Ok(match outcome {
        Outcome { interrupted: true, .. } => ExitCode::from(INTERRUPTED),
        Outcome { failed: 1.., .. } | Outcome { suspended: 1.., .. } | Outcome { not_begun: 1.., .. } => {
            ExitCode::from(crate::problem::FAILURE)
        }
        _ if args.check => super::report::claims_exit(&summary, args.accept_seen_once)?,
        _ => ExitCode::SUCCESS,
    })
}

fn dry_run(experiment: &Experiment, trials: &[TrialPlan], logical: u64) -> super::Result {
    let show = |seconds| show_duration(std::time::Duration::from_secs_f64(seconds));
    say!("{}: {}", experiment.name, counted(trials.len(), "trial"));
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
        let started = trials.iter().filter(|other| other.loaded_by == Some(trial.number)).count();
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
        say!("  {} is compared with {}", pair.other, pair.base);
    }
    for (name, need) in &experiment.memory_needs {
        say!("  {name}: {need}");
    }
    let loads = trials.iter().filter(|trial| trial.part == TrialPart::Load).count();
    if loads > 0 {
        let databases = if loads == 1 { "database is" } else { "databases are" };
        let rows = show_bytes(logical as f64);
        say!(
            "{loads} {databases} kept beside the one at work, each of {rows} of rows (engines take up to {ROOM} times that)"
        );
    }
    Ok(ExitCode::SUCCESS)
}
