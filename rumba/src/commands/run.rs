//! `rumba run`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rumba_engine_api::printable::shown;
use rumba_engine_api::units::counted;
use rumba_lab::conduct::{Outcome, Watch};
use rumba_lab::prepare::Allowed;
use rumba_lab::registry::Registry;
use rumba_lab::runner::{DryRun, Options, Runner};
use rumba_lab::spec::{self, Experiment, Overrides};
use rumba_lab::store::{self, ResultsDir};
use rumba_report::TableOptions;
use rumba_results::engine_name::split_list;
use rumba_results::event::Event;
use rumba_results::record::{Record, TrialPlan};
use rumba_results::warning::Warning;
use signal_hook::consts::SIGQUIT;

use super::Output;
use super::live::LivePage;
use crate::cli::{RunArgs, RunOptions};
use crate::problem::Problem;
use crate::progress::{Progress, notify};

/// The exit code of an interrupted run.
pub const INTERRUPTED: u8 = 130;

/// Reads the experiment, runs its trials, shows the results.
pub fn run(args: &RunArgs, registry: &Registry) -> super::Result {
    if let Some(directory) = &args.resume {
        let (results, outcome) = observe(&args.options, |options| {
            let options = Options { retry_failed: args.retry_failed, ..options };
            Ok(Runner::resume(directory, &options, registry, &notify)?)
        })?;
        return show(&args.options, &results, outcome);
    }
    let experiment = read_with(args, &[], registry)?;
    run_experiment(experiment, &args.options, registry)
}

/// Splits lists of engine names at commas, except for commas inside a name's brackets.
fn names(lists: &[String]) -> Vec<String> {
    lists.iter().flat_map(|list| split_list(list)).collect()
}

/// The changes that the command line makes to an experiment.
pub fn overrides(options: &RunOptions) -> Overrides {
    let verify = options.verify.iter().map(|what| format!("verify={what}"));
    let at_most = options.until_decided.then(|| format!("repeats={}", options.at_most));
    let until_decided = at_most.into_iter().flat_map(|at_most| [at_most, "until_decided=true".to_owned()]);
    Overrides {
        engines: names(&options.engine),
        against: Vec::new(),
        set: options.set.iter().cloned().chain(verify).chain(until_decided).collect(),
    }
}

pub fn run_experiment(experiment: Experiment, args: &RunOptions, registry: &Registry) -> super::Result {
    if args.check && experiment.claims.is_empty() {
        return Err(Problem::mistake("no claim to check", "add a [[claim]] to the experiment, or leave out --check"));
    }
    let is_seen_enough = args.accept_single_run && experiment.run.repeats == 1;
    if let Some(mistake) = experiment.never_decided.as_ref().filter(|_| args.check && !is_seen_enough) {
        return Err(mistake.clone().into());
    }
    if experiment.run.until_decided && experiment.engines.len() < 2 {
        return Err(Problem::mistake(
            "until_decided needs two engines to compare",
            "name another with --engine or --against, or leave out --until-decided",
        ));
    }
    if !args.dry_run {
        let (results, outcome) = measure(experiment, args, registry)?;
        return show(args, &results, outcome);
    }
    let dry_run = DryRun::new(experiment, &options(args), registry, &notify)?;
    Ok(if args.json { Output::json(&dry_run.json()) } else { Output::text(dry_run) })
}

/// Runs the trials of an experiment into a new directory of results.
pub fn measure(
    experiment: Experiment,
    args: &RunOptions,
    registry: &Registry,
) -> Result<(ResultsDir, Outcome), Problem> {
    observe(args, |options| Ok(Runner::new(experiment, &options, registry, &notify)?))
}

fn options(args: &RunOptions) -> Options {
    let allowed = Allowed { unlimited: args.allow_unlimited, tight_memory: args.allow_tight_memory };
    Options { out: args.out.clone(), allowed, profile: args.profile, retry_failed: false }
}

/// Prepares trials, runs them, and shows their progress.
fn observe<'a>(
    args: &RunOptions,
    prepare: impl FnOnce(Options) -> Result<Runner<'a>, Problem>,
) -> Result<(ResultsDir, Outcome), Problem> {
    // Refuse the run for an unavailable port before anything is created.
    let listener = super::live::listen(args)?;
    let mut runner = prepare(options(args))?;
    let stops = count_stops()?;
    let forecast = runner.forecast();
    let live = |listener| LivePage::start(listener, runner.results().path(), runner.planned(), forecast.clone());
    let live = listener.map(live).transpose()?;
    let mut watching = Watching { progress: Progress::new(args.quiet, forecast), live: live.as_ref() };
    let outcome = runner.run(&stops, &mut watching);
    watching.progress.finish();
    if let Some(live) = live {
        live.end(outcome.as_ref().map_err(ToString::to_string));
    }
    Ok((runner.into_results(), outcome?))
}

/// Reads the experiment that the command line names, with these changes in addition to the command line's.
pub fn read_with(args: &RunArgs, set: &[String], registry: &Registry) -> Result<Experiment, Problem> {
    let mut overrides = Overrides { against: names(&args.against), ..overrides(&args.options) };
    overrides.set.extend_from_slice(set);
    // The name is missing only with --resume, because the command line requires it otherwise.
    let name = args.experiment.as_deref().unwrap_or_default();
    let path = Path::new(name);
    let is_workload = registry.workload(name).is_some();
    if is_workload && !path.is_file() {
        return Ok(spec::of_workload(name, &overrides, registry)?);
    }
    if let (false, Some(text)) = (path.exists(), crate::experiments::recipe(name)) {
        return Ok(spec::read_text(&format!("experiments/{name}.toml"), text, &overrides, registry)?);
    }
    if path.extension().is_none() && !path.exists() && !spec::is_standard_input(path) {
        return Err(Problem::mistake(
            format!("no workload, recipe or file is called `{name}`"),
            Registry::suggest(name, &registry.workload_names()),
        ));
    }
    Ok(spec::read_file(path, &overrides, registry)?)
}

/// The observers of a run: the terminal, and the live page if there is one.
struct Watching<'a> {
    progress: Progress,
    live: Option<&'a LivePage>,
}

impl Watch for Watching<'_> {
    fn begins(&mut self, trial: &TrialPlan, of: usize) {
        self.live.into_iter().for_each(|live| live.watch().begins(trial, of));
        self.progress.begins(trial, of);
    }

    fn copies(&mut self, trial: &TrialPlan, bytes: u64) {
        self.live.into_iter().for_each(|live| live.watch().copies(trial, bytes));
        self.progress.copies(trial, bytes);
    }

    fn event(&mut self, trial: &TrialPlan, event: &Event) {
        self.live.into_iter().for_each(|live| live.watch().event(trial, event));
        self.progress.event(trial, event);
    }

    fn ended(&mut self, record: &Record) {
        self.live.into_iter().for_each(|live| live.watch().ended(record));
        self.progress.ended(record);
    }
}

/// Counts interrupts. The first lets the trial save its data; the second ends it. A quit (Ctrl-\) counts as two.
fn count_stops() -> Result<Arc<AtomicUsize>, Problem> {
    let stops = Arc::new(AtomicUsize::new(0));
    let counted = stops.clone();
    let mut signals = super::signals()?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let (steps, words) = match signal {
                SIGQUIT => (2, "stopping at once; all measurements so far are kept"),
                _ => (1, "stopping; all measurements so far are kept (press again to stop at once)"),
            };
            if counted.fetch_add(steps, Relaxed) == 0 {
                notify(words);
            }
        }
    });
    Ok(stops)
}

pub fn show(args: &RunOptions, results: &ResultsDir, outcome: Outcome) -> super::Result {
    let out = results.path();
    let read = store::read(out)?;
    let summary = rumba_statistics::summarise(&read);
    let page = rumba_report::html_with(&read, &summary, &store::profiles(out, None));
    let page = results.summarise("report.html", &page);
    let comparison = super::report::sides(&read);
    let text = if args.json {
        format!("{:#}", rumba_report::json(&read, &summary, comparison.as_ref()))
    } else {
        let options = TableOptions::default().with_directories([shown(out)]);
        let mut parts = vec![rumba_report::tables(&read, &summary, &options)];
        parts.extend(comparison.map(|comparison| rumba_report::comparison_table(&comparison, false)));
        parts.push(format!("results: {}", shown(out)));
        parts.extend(page.as_ref().ok().map(|page| format!("page:    {}", shown(page))));
        parts.join("\n")
    };
    let elsewhere = "`rumba report DIR --html FILE` writes it elsewhere";
    let not_written = page.err().map(|error| super::page::not_written(&out.join("report.html"), &error, elsewhere));
    let without_rate = summary.searches.iter().filter(|search| search.highest.value().is_none()).map(|search| {
        let why = search.highest.reason().unwrap_or("the search did not end");
        let clients = counted(search.clients as usize, "client");
        format!("{} with {clients}: no rate found: {why}", search.engine)
    });
    let end = match exit_code(outcome) {
        Some(code) => code.into(),
        // After a resume, the trials of earlier starts count as well.
        None if super::report::holds_failures(&summary) => ExitCode::from(crate::problem::FAILURE).into(),
        None if args.check => super::report::claims_exit(&summary, args.accept_single_run),
        None => Output::default(),
    };
    let notes = without_rate.chain(missing(results, outcome)).chain(end.notes).collect();
    Ok(Output { text, notes, problem: not_written.or(end.problem), exit_code: end.exit_code })
}

/// Which parts of a run are missing, and how to continue it.
pub fn missing(results: &ResultsDir, outcome: Outcome) -> Vec<String> {
    let out = results.path();
    let mut missing = Vec::new();
    if let Some(Warning { message, remedy, .. }) = results.trouble() {
        let left = match outcome.not_begun {
            0 => String::new(),
            trials => format!("; {} not run", counted(trials, "trial")),
        };
        missing.push(format!("{message}{left} ({remedy})"));
    }
    if outcome.suspended > 0 {
        let trials = counted(outcome.suspended, "trial");
        let again = format!("rumba run --resume {} runs again all but loads that others have started from", shown(out));
        missing.push(format!("{trials} suspended while measured; {again}"));
    }
    if outcome.interrupted {
        missing.push(format!("rumba run --resume {} continues it", shown(out)));
    }
    missing
}

/// The exit code of a run that did not complete.
pub fn exit_code(outcome: Outcome) -> Option<ExitCode> {
    match outcome {
        Outcome { interrupted: true, .. } => Some(ExitCode::from(INTERRUPTED)),
        Outcome { failed: 1.., .. } | Outcome { suspended: 1.., .. } | Outcome { not_begun: 1.., .. } => {
            Some(ExitCode::from(crate::problem::FAILURE))
        }
        _ => None,
    }
}
