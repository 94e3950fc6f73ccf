//! `rumba history`.

use std::path::{Path, PathBuf};

use rumba_lab::store;
use rumba_report::HistoryNotes;
use rumba_results::history::Axis;
use rumba_statistics::Run;

use super::Output;
use crate::cli::{Format, HistoryArgs, OrderBy};
use crate::problem::Problem;
use crate::progress::notify;

/// Shows how each metric changed from run to run.
pub fn run(args: &HistoryArgs) -> super::Result {
    let gates = super::compare::gates(&args.fail_if, args.allow_drift)?;
    let (runs, left_out) = read(&args.directories, !gates.is_empty())?;
    let by = args.by.map(|by| match by {
        OrderBy::Version => Axis::Version,
        OrderBy::Commit => Axis::Commit,
        OrderBy::Started => Axis::Started,
    });
    let history = rumba_statistics::history(&runs, by);
    let gated = match rumba_statistics::last_step(&runs, by) {
        Some(last) => super::compare::judge(&gates, &last)?,
        // The first run has no earlier run to compare with.
        None => Vec::new(),
    };
    if args.output.writes_page() {
        let notes = HistoryNotes { gated: &gated, left_out: &left_out, library: None };
        super::page::write(&args.output, &rumba_report::history_html(&history, &notes))?;
    }
    let text = match args.output.format() {
        Some(Format::Json) => format!("{:#}", rumba_report::history_json(&history, &gated)),
        Some(Format::Csv) => rumba_report::history_csv(&history),
        Some(Format::Markdown) => rumba_report::history_markdown(&history, &gated),
        Some(Format::Table) => super::compare::table(&rumba_report::history_table(&history), &gated),
        None => String::new(),
    };
    Ok(Output { text, ..super::compare::exit(&gated, args.fail_if_undecided).into() })
}

/// Reads the named directories. If a directory has no results itself, it reads the results directories right below it.
/// An unreadable one of these is reported and skipped, unless a gate judges `all`, because the skipped run could fail
/// the gate. Returns the reasons for skipped runs too.
fn read(named: &[PathBuf], all: bool) -> Result<(Vec<Run>, Vec<String>), Problem> {
    let run = |directory: &Path| {
        let results = super::report::read(directory)?;
        Ok(Run { directory: directory.display().to_string(), results })
    };
    let (mut runs, mut reasons) = (Vec::new(), Vec::new());
    for directory in named {
        let below = if store::has_results(directory) { Vec::new() } else { below(directory) };
        if below.is_empty() {
            // Reading a directory without results below it gives the error to report.
            runs.push(run(directory)?);
        }
        let (read, left_out): (Vec<_>, Vec<_>) = below.iter().map(|directory| run(directory)).partition(Result::is_ok);
        let (is_none_read, mut left_out) = (read.is_empty(), left_out.into_iter().filter_map(Result::err).peekable());
        if let Some(problem) = left_out.next_if(|_| is_none_read || all) {
            return Err(problem);
        }
        reasons.extend(left_out.map(|problem| problem.to_string()));
        runs.extend(read.into_iter().flatten());
    }
    reasons.iter().for_each(|reason| notify(&format!("left out: {reason}")));
    Ok((runs, reasons))
}

/// The directories right below one that have results.
fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut below: Vec<PathBuf> = entries.filter(|path| store::has_results(path)).collect();
    below.sort();
    below
}
