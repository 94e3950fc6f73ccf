//! `rumba history`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rumba_core::history::Axis;
use rumba_statistics::Run;

use crate::cli::{Format, HistoryArgs, OrderBy};
use crate::problem::{Problem, REFUTED};

/// Shows what became of each figure from run to run.
pub fn run(args: &HistoryArgs) -> super::Result {
    let gates = super::compare::gates(&args.fail_if)?;
    let runs = directories(&args.directories).into_iter().map(|directory| {
        let results = super::report::read(&directory)?;
        Ok(Run { directory: directory.display().to_string(), results })
    });
    let runs = runs.collect::<Result<Vec<Run>, Problem>>()?;
    let by = args.by.map(|by| match by {
        OrderBy::Version => Axis::Version,
        OrderBy::Commit => Axis::Commit,
        OrderBy::Started => Axis::Started,
    });
    let history = rumba_statistics::history(&runs, by);
    let gated = match rumba_statistics::last_step(&runs, by) {
        Some(last) => super::compare::judge(&gates, &last)?,
        // Of a first run nothing can be worse than before.
        None => Vec::new(),
    };
    match args.format() {
        Format::Json => super::print_json(&rumba_report::history_json(&history, &gated))?,
        Format::Csv => super::print(rumba_report::history_csv(&history).trim_end())?,
        Format::Markdown => super::print(rumba_report::history_markdown(&history, &gated).trim_end())?,
        Format::Table => {
            let table = super::print(rumba_report::history_table(&history).trim_end());
            gated.iter().for_each(|gated| say!("{}", gated.line()));
            table?
        }
    };
    let closed = gated.iter().any(|gated| gated.verdict.closes());
    Ok(if closed { ExitCode::from(REFUTED) } else { ExitCode::SUCCESS })
}

/// What is named, and of a directory without results of its own those right below it that have some.
fn directories(named: &[PathBuf]) -> Vec<PathBuf> {
    let has_results = |path: &Path| path.join("experiment.json").is_file();
    let mut all = Vec::new();
    for directory in named {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut below: Vec<PathBuf> =
            if has_results(directory) { Vec::new() } else { entries.filter(|path| has_results(path)).collect() };
        below.sort();
        // What has nothing below it is read for itself, which says what is wrong with it.
        all.extend(if below.is_empty() { vec![directory.clone()] } else { below });
    }
    all
}
