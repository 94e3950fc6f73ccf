//! The project's own chores: `cargo run -p xtask -- tidy`, `-- bench`, `-- experiments`.

mod bench;
mod experiments;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p xtask -- tidy
       cargo run --release -p xtask -- bench [--write | MEASUREMENT...]
       cargo run -p xtask -- experiments [--write]

tidy   fails when the house is not in order: an arrow between crates is wrong, a
       source file is too long, core is not documented, a link in a document is
       dead, or a file names a machine or says that it is unfinished
bench  measures what rumba itself costs against its goals, about 10 minutes, or
       only the measurements that are named; --write puts all figures into
       docs/performance.md. Fails when a goal is missed
experiments  fails when a measured table of docs/experiments.md or README.md is not that of the
       committed docs/experiments/NAME.json, or has no such file; --write puts the files'
       figures into the pages";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(),
        ["experiments"] => experiments(false),
        ["experiments", "--write"] => experiments(true),
        ["bench", "--write"] => bench(&[], true),
        ["bench", named @ ..] if named.iter().all(|name| !name.starts_with('-')) => bench(named, false),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The manifest of this crate is one directory below the root.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

fn bench(named: &[&str], write: bool) -> ExitCode {
    match bench::bench(root(), named, write) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn experiments(write: bool) -> ExitCode {
    let report = match experiments::check(root(), write) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("experiments: {error}");
            return ExitCode::from(2);
        }
    };
    for name in &report.missing {
        println!("experiments: docs/experiments/{name}.json is missing: make experiments NAME={name}");
    }
    for page in &report.differing {
        let what =
            if write { "was written" } else { "differs from its figures: cargo run -p xtask -- experiments --write" };
        println!("experiments: {page} {what}");
    }
    if report.missing.is_empty() && (write || report.differing.is_empty()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn tidy() -> ExitCode {
    match tidy::check(root()) {
        Ok(report) => {
            for finding in &report.findings {
                println!("{finding}");
            }
            println!("tidy: {} files, {} findings", report.files, report.findings.len());
            if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::from(2)
        }
    }
}
