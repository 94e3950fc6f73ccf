//! The project's tools: `cargo run -p xtask -- tidy`, `-- new`, `-- bench`, `-- simulate`, `-- aa`, `-- experiments`,
//! `-- package`, `-- book`.

mod aa;
mod bench;
mod book;
mod experiments;
mod memory_needs;
mod new;
mod package;
mod simulate;
mod tests_reported;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use bench::Failure;

const USAGE: &str = "usage: cargo run -p xtask -- tidy [--counts]
       cargo run -p xtask -- new engine|workload NAME
       cargo run -p xtask -- tests-reported LOG STATUS
       cargo run --release -p xtask -- bench [--write] [MEASUREMENT...]
       cargo run -p xtask -- memory-needs [--fit | BUILD...]
       cargo run --release -p xtask -- simulate [--write]
       cargo run --release -p xtask -- aa [ENGINE=A,B] [MODE=loads|kept] [PAIRS=N] [--write]
       cargo run -p xtask -- experiments [--write]
       cargo run -p xtask -- package BINARY
       cargo run -p xtask -- book

tidy   checks the project's rules: fails when a crate has a forbidden dependency, a
       source file is too long, core is not documented, a link in a document is
       broken, a generic crate names an engine or a workload, or a file names a
       machine or is marked as unfinished. --counts also prints, for each page,
       words per sentence, percent of long and inverted ones, and words per thousand
new    makes a crate in engines/ or workloads/ as a template for your own. It builds, runs and
       conforms, and has its page and its lines in the registry and the manifests
tests-reported  sums up a log of `cargo test` that ended with STATUS. With CI or
       RUMBA_TESTS_MUST_RUN set, fails when a test was skipped that Debian 12
       runs as root, except for the needs in RUMBA_TESTS_MAY_LACK
bench  compares rumba's own cost with its goals, in about an hour, or takes only
       the named measurements. --write stores the figures in
       docs/performance.json and the page. Fails when a goal is missed
memory-needs  measures the memory that engines need in addition to their cache,
       in memory groups of several sizes, about 3 minutes for each build, and
       writes engines/memory-needs.txt. Other builds keep their lines. --fit
       measures nothing and computes the first columns from the others.
       Needs root and a rumba next to this program: cargo build -p rumba
simulate
       measures the error rate and the power of verdicts on generated data. --write puts
       the tables into docs/error-rates.md. Fails when they err more often than stated
aa     measures the error rate of verdicts on real runs: compares engines with themselves, 20 pairs
       of each, with loads as repeats and with starts of one load. Runs that this commit has finished
       are in results/aa and are not repeated. --write stores the counts in docs/aa.json and puts the
       table into docs/error-rates.md. Fails when verdicts over loads err in more than 5% of cases.
       Needs a rumba next to this program: cargo build --release -p rumba
experiments  fails when a measured table of docs/experiments/ or README.md differs from the committed
       docs/experiments/NAME.json, or when docs/experiments/ does not state how an
       experiments/NAME.toml differs from the file of its run. Lists the experiments without
       results. --write puts the figures and these differences into the pages
package  makes a Debian package, a tarball and a wheel of a release binary, in target/package
book   builds docs/SUMMARY.md's pages with mdBook in target/book. Fails when one of their links is broken";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["tidy"] => tidy(false),
        ["tidy", "--counts"] => tidy(true),
        ["new", "engine", name] => new(new::Kind::Engine, name),
        ["new", "workload", name] => new(new::Kind::Workload, name),
        ["tests-reported", log, status] => tests_reported(log, *status == "0"),
        ["memory-needs", named @ ..] => memory_needs::measure(root(), named).map(|()| true),
        ["simulate"] => simulate::run(root(), false),
        ["simulate", "--write"] => simulate::run(root(), true),
        ["aa", words @ ..] => aa::run(root(), words),
        ["experiments"] => experiments(false),
        ["experiments", "--write"] => experiments(true),
        ["book"] => book(),
        ["package", binary] => package(Path::new(binary)),
        ["bench", "--write", named @ ..] => bench::bench(root(), named, true),
        ["bench", named @ ..] if named.iter().all(|name| !name.starts_with('-')) => bench::bench(root(), named, false),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", args[0]);
            ExitCode::from(2)
        }
    }
}

/// The manifest of this crate is one directory below the root.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

fn new(kind: new::Kind, name: &str) -> Result<bool, Failure> {
    let files = new::make(root(), kind, name)?;
    files.iter().for_each(|file| println!("new: {}", file.display()));
    println!("{}", new::next(kind, name));
    Ok(true)
}

fn book() -> Result<bool, Failure> {
    let first = book::build(root()).map_err(|problems| problems.join("\nbook: "))?;
    println!("book: {}", first.display());
    Ok(true)
}

fn package(binary: &Path) -> Result<bool, Failure> {
    let files = package::make(root(), binary)?;
    files.iter().for_each(|file| println!("package: {}", file.display()));
    Ok(true)
}

fn tests_reported(log: &str, ended_well: bool) -> Result<bool, Failure> {
    let reported = std::fs::read(log).map_err(|error| format!("{log}: {error}"))?;
    let machine = tests_reported::Machine::here();
    let sum = tests_reported::Sum::of(&String::from_utf8_lossy(&reported), ended_well, &machine);
    println!("{sum}");
    Ok(sum.is_ok())
}

fn experiments(write: bool) -> Result<bool, Failure> {
    let report = experiments::check(root(), write)?;
    for name in &report.missing {
        println!(
            "experiments: {name} is yet to be run, there is no docs/experiments/{name}.json: make experiments NAME={name}"
        );
    }
    for name in &report.unreported {
        println!(
            "experiments: a page of docs/experiments/ quotes {name}.json and does not say what the file of \
             its experiment has otherwise today: write <!-- since: {name} --> and, on a line below, <!-- end --> where \
             the page speaks of that run, then cargo run -p xtask -- experiments --write"
        );
    }
    for sentence in &report.outdated {
        println!(
            "experiments: {sentence} No page that quotes it states this: run it again, or quote it on a page of docs/experiments/"
        );
    }
    if let Some(why) = &report.without_history {
        println!("experiments: claims were not compared with those of the first kept results: {why}");
    }
    for page in &report.differing {
        let what =
            if write { "was written" } else { "differs from its files: cargo run -p xtask -- experiments --write" };
        println!("experiments: {page} {what}");
    }
    Ok(report.is_in_order(write))
}

fn tidy(with_counts: bool) -> Result<bool, Failure> {
    let report = tidy::check(root())?;
    if with_counts {
        print!("{}", report.counts);
    }
    report.findings.iter().for_each(|finding| println!("{finding}"));
    println!("tidy: {} files, {} findings", report.files, report.findings.len());
    Ok(report.findings.is_empty())
}
