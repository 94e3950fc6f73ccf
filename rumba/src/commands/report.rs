//! `rumba report`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rumba_engine_api::printable::shown;
use rumba_engine_api::units::counted;
use rumba_lab::{spec, store};
use rumba_report::{TableOptions, tables};
use rumba_results::claim::{Claim, Judgement, Verdict};
use rumba_results::comparison::{Comparison, Proof, Summary};
use rumba_results::record::Status;
use rumba_results::results::Results;

use super::Output;
use crate::cli::{Format, ReportArgs};
use crate::problem::Problem;

/// Shows results as tables, a page, or JSON.
pub fn run(args: &ReportArgs) -> super::Result {
    if let [directory] = &args.directories[..]
        && !store::has_results(directory)
        && list(directory)? > 0
    {
        return Ok(Output::default());
    }
    let mut results = merge(names(&args.directories), &args.directories)?;
    if let Some(file) = &args.prices {
        let prices = spec::read_prices(file)?;
        results.trials.iter_mut().for_each(|trial| trial.record.plan.run.prices = Some(prices.clone()));
    }
    let mut summary = rumba_statistics::summarise(&results);
    let requested = claims_of(&args.claim, &summary)?;
    summary.claims.extend(rumba_statistics::claims::judge(&requested, &summary.rows));
    let baseline = args.baseline.as_deref();
    if args.output.writes_page() {
        let html = rumba_report::html_with(&results, &summary, &profiles(&args.directories));
        super::page::write(&args.output, &html)?;
    }
    let verdict = if args.check { check(&summary, args.accept_single_run) } else { Output::default() };
    let directories = args.directories.iter().map(|path| shown(path));
    let options =
        TableOptions::default().with_all_warnings(args.warnings).with_legend(args.legend).with_directories(directories);
    let text = match args.output.format() {
        Some(Format::Json) => format!("{:#}", rumba_report::json(&results, &summary, sides(&results).as_ref())),
        Some(Format::Csv) => rumba_report::report_csv(&results, &summary),
        Some(Format::Markdown) => {
            rumba_report::markdown(&results, &summary, &relative_to(options, baseline, &summary)?)
        }
        Some(Format::Table) => tables(&results, &summary, &relative_to(options, baseline, &summary)?),
        None => String::new(),
    };
    Ok(Output { text, ..verdict })
}

/// Lists the runs in this directory, the newest first, and returns their number.
fn list(directory: &Path) -> Result<usize, Problem> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let runs = entries.map(|entry| entry.path()).filter(|path| store::has_results(path));
    let mut runs: Vec<(PathBuf, Results)> =
        runs.filter_map(|path| store::read_records(&path).ok().map(|results| (path, results))).collect();
    runs.sort_by(|(_, one), (_, other)| other.started.cmp(&one.started));
    for (path, results) in &runs {
        let failed = results.trials.iter().filter(|trial| trial.record.status != Status::Done).count();
        let failed = if failed > 0 { format!(", {failed} not done") } else { String::new() };
        let trials = counted(results.trials.len(), "trial");
        say!("{}  {}  {}, {trials}{failed}", results.started, shown(path), results.name);
    }
    if !runs.is_empty() {
        say!(
            "\n`rumba report DIR` shows one of these runs. `rumba serve {}` shows all in a browser.",
            shown(directory)
        );
    }
    Ok(runs.len())
}

/// Parses the claims of the command line, each its own sentence.
fn claims_of(expressions: &[String], summary: &Summary) -> Result<Vec<Claim>, Problem> {
    let scope = rumba_statistics::claims::scope(&summary.rows);
    let claim = |text: &String| {
        rumba_statistics::claims::check(text, true, &scope)
            .map_err(|mistake| Problem::in_text("--claim", text, mistake.offset, mistake.problem, mistake.remedy))?;
        Ok(Claim { text: text.clone(), source: None, holds: text.clone(), measure: None, published: None })
    };
    expressions.iter().map(claim).collect()
}

/// The result of `--check`: whether every trial and its data are sound, and every claim holds.
fn check(summary: &Summary, accept_single_run: bool) -> Output {
    let failed = failed(summary);
    let unsound = || summary.rows.iter().flat_map(|row| &row.unsound);
    let of = |proof: Proof| unsound().filter(|unsound| unsound.proof == proof).count();
    let (broken, cut_off) = (of(Proof::Failed), of(Proof::CutOff));
    // A load that rows share is one.
    let of_rows = summary.rows.iter().flat_map(|row| &row.suspended);
    let suspended: BTreeSet<u32> = of_rows.map(|suspended| suspended.trial).collect();
    if failed > 0 || unsound().count() > 0 || !suspended.is_empty() {
        let note = format!(
            "--check: {failed} trials failed, {} were suspended, the data of {broken} failed its verification, that of \
             {cut_off} did not come through it",
            suspended.len()
        );
        return Output { notes: vec![note], ..ExitCode::from(crate::problem::FAILURE).into() };
    }
    claims_exit(summary, accept_single_run)
}

/// Whether a trial failed, or is excluded in part because it was suspended.
pub fn holds_failures(summary: &Summary) -> bool {
    let found_no_rate = summary.searches.iter().any(|search| search.highest.value().is_none());
    failed(summary) > 0 || found_no_rate || summary.rows.iter().any(|row| !row.suspended.is_empty())
}

fn failed(summary: &Summary) -> usize {
    summary.unfinished.iter().filter(|trial| matches!(trial.status, Status::Failed { .. })).count()
}

/// The result of `--check`: whether every claim holds.
pub fn claims_exit(summary: &Summary, accept_single_run: bool) -> Output {
    let claims = &summary.claims;
    if claims.is_empty() {
        let problem = Problem::mistake("no claim to check", "add a [[claim]] to the experiment, or leave out --check");
        return Output { problem: Some(problem), ..Output::default() };
    }
    let good = |judged: &&Judgement| match judged.verdict {
        Verdict::Holds => true,
        Verdict::SingleRun => accept_single_run && judged.seen == Some(true),
        Verdict::Fails | Verdict::Undecided | Verdict::Void => false,
        Verdict::TrueForThisLoad | Verdict::FalseForThisLoad => false,
    };
    let good = claims.iter().filter(good).count();
    if good == claims.len() {
        return Output::default();
    }
    let once = claims.iter().filter(|judged| judged.verdict == Verdict::SingleRun && judged.seen == Some(true)).count();
    let remedy = match once {
        0 => String::new(),
        _ if accept_single_run => String::new(),
        once => format!("; {once} true in one repeat, which --accept-single-run would let pass"),
    };
    let of_one_load = claims.iter().filter(|judged| judged.verdict == Verdict::TrueForThisLoad).count();
    let this_load = match of_one_load {
        0 => String::new(),
        count => format!("; {count} true for this load only: run the experiment with repeats_from = \"load\""),
    };
    let note = format!("--check: {good} of {} claims hold{remedy}{this_load}", claims.len());
    Output { notes: vec![note], ..ExitCode::from(crate::problem::REFUTED).into() }
}

/// Reads one results directory.
pub fn read(directory: &Path) -> Result<Results, Problem> {
    Ok(store::read(directory)?)
}

/// The comparison of a run's own sides, if it has any.
pub fn sides(results: &Results) -> Option<Comparison> {
    rumba_statistics::compare_sides(results, &spec::pairs_of(&results.experiment))
}

/// Names that distinguish the directories: their last components, or the whole paths if those repeat.
fn names(directories: &[PathBuf]) -> Vec<String> {
    let last = |path: &PathBuf| shown(path.file_name().map_or(path.as_path(), Path::new));
    let short: Vec<String> = directories.iter().map(last).collect();
    let repeats = short.iter().any(|name| short.iter().filter(|other| *other == name).count() > 1);
    if repeats { directories.iter().map(|path| shown(path)).collect() } else { short }
}

/// Several runs as one: engines and conditions that differ carry the run's name.
fn merge(names: Vec<String>, directories: &[PathBuf]) -> Result<Results, Problem> {
    let runs = names.into_iter().zip(directories).map(|(name, directory)| Ok((name, read(directory)?)));
    // clap requires at least one directory.
    store::merge(runs.collect::<Result<_, Problem>>()?)
        .ok_or_else(|| Problem::mistake("no directory is named", "name one"))
}

/// The CPU profiles of these runs.
fn profiles(directories: &[PathBuf]) -> Vec<store::Profile> {
    let is_several = directories.len() > 1;
    let runs = names(directories).into_iter().zip(directories);
    runs.flat_map(|(name, directory)| store::profiles(directory, is_several.then_some(name.as_str()))).collect()
}

fn relative_to(options: TableOptions, baseline: Option<&str>, summary: &Summary) -> Result<TableOptions, Problem> {
    let Some(baseline) = baseline else { return Ok(options) };
    let known = options.with_baseline(baseline, summary);
    known.map_err(|error| Problem::mistake(error.to_string(), "name an engine of these results"))
}
