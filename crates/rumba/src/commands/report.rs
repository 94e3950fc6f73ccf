//! `rumba report`.

use std::path::Path;
use std::process::ExitCode;

use rumba_core::results::Results;
use rumba_lab::{compare, store};
use rumba_report::{TableOptions, tables};

use crate::cli::ReportArgs;
use crate::problem::Problem;

/// Shows results as tables, a page, or JSON.
pub fn run(args: &ReportArgs) -> super::Result {
    let mut all = Vec::new();
    for directory in &args.directories {
        let name = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy().into_owned();
        all.push((name, read(directory)?));
    }
    let results = merge(all);
    let baseline = args.baseline.as_deref();
    if let Some(page) = &args.html {
        write_page(&results, page)?;
        eprintln!("page: {}", page.display());
    }
    if args.json {
        return super::print_json(&as_json(&results));
    }
    if args.html.is_none() {
        println!("{}", as_tables(&results, baseline)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads one results directory.
pub fn read(directory: &Path) -> Result<Results, Problem> {
    store::read(directory)
        .map_err(|error| Problem::mistake(error.to_string(), "name a directory that `rumba run` has written"))
}

/// Several runs as one: engines that occur in more than one are told apart by
/// the directory's name.
fn merge(all: Vec<(String, Results)>) -> Results {
    let several = all.len() > 1;
    let mut merged: Option<Results> = None;
    for (directory, mut results) in all {
        if several {
            for trial in &mut results.trials {
                trial.record.plan.engine.name = format!("{}@{directory}", trial.record.plan.engine.name);
            }
        }
        merged = Some(match merged {
            None => results,
            Some(mut first) => {
                first.name = format!("{} + {}", first.name, results.name);
                first.trials.extend(results.trials);
                first.warnings.extend(results.warnings);
                first.missing.extend(results.missing);
                first
            }
        });
    }
    // clap requires at least one directory.
    merged.unwrap_or_else(|| unreachable!("`report` takes at least one directory"))
}

/// The tables.
pub fn as_tables(results: &Results, baseline: Option<&str>) -> Result<String, Problem> {
    let summary = compare::summarise(results);
    let mut options = TableOptions::default();
    if let Some(baseline) = baseline {
        options = options
            .with_baseline(baseline, &summary)
            .map_err(|error| Problem::mistake(error.to_string(), "name an engine of these results"))?;
    }
    Ok(tables(results, &summary, &options))
}

/// The JSON.
pub fn as_json(results: &Results) -> serde_json::Value {
    rumba_report::json(results, &compare::summarise(results))
}

/// Writes the page.
pub fn write_page(results: &Results, page: &Path) -> Result<(), Problem> {
    let html = rumba_report::html(results, &compare::summarise(results));
    std::fs::write(page, html).map_err(|error| {
        Problem::failure(format!("{} cannot be written: {error}", page.display()), "choose another file for --html")
    })
}
