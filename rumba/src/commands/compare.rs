//! `rumba compare`.

use std::process::ExitCode;

use rumba_engine_api::printable::shown;
use rumba_results::comparison::Comparison;
use rumba_statistics::claims::Mistake;
use rumba_statistics::{Drift, Found, Gate, Gated};

use super::Output;
use crate::cli::{CompareArgs, Format};
use crate::problem::{Problem, REFUTED};

/// Compares one run against a base, or the sides of one run.
pub fn run(args: &CompareArgs) -> super::Result {
    let gates = gates(&args.fail_if, args.allow_drift)?;
    let comparison = comparison(args)?;
    let gated = judge(&gates, &comparison)?;
    let text = match args.format() {
        Format::Json => format!("{:#}", rumba_report::comparison_json(&comparison, &gated)),
        Format::Csv => rumba_report::comparison_csv(&comparison),
        Format::Markdown => rumba_report::comparison_markdown(&comparison, &gated),
        Format::Table => table(&rumba_report::comparison_table(&comparison, args.details), &gated),
    };
    Ok(Output { text, ..exit(&gated, args.fail_if_undecided).into() })
}

pub fn table(table: &str, gated: &[Gated]) -> String {
    let verdicts: String = gated.iter().map(|gated| format!("\n{}", gated.line())).collect();
    format!("{}{verdicts}", table.trim_end_matches('\n'))
}

/// Parses the `--fail-if` conditions. For runs that were not interleaved, a condition must hold beyond the host's
/// drift.
pub fn gates(texts: &[String], drift: Drift) -> Result<Vec<Gate>, Problem> {
    let gate = |text: &String| Gate::parse(text).map(|gate| gate.allowing(drift));
    texts.iter().map(gate).collect::<Result<_, _>>().map_err(mistake)
}

/// The exit code of gates: whether one fails, or with `--fail-if-undecided` is undecided.
pub fn exit(gated: &[Gated], fail_if_undecided: bool) -> ExitCode {
    let is_open = |found: Found| matches!(found, Found::Undecided | Found::SingleRun);
    let fails = |gated: &Gated| gated.verdict.closes() || (fail_if_undecided && is_open(gated.verdict));
    if gated.iter().any(fails) { ExitCode::from(REFUTED) } else { ExitCode::SUCCESS }
}

/// Judges each gate for each engine.
pub fn judge(gates: &[Gate], comparison: &Comparison) -> Result<Vec<Gated>, Problem> {
    let gated = gates.iter().map(|gate| gate.judge(comparison)).collect::<Result<Vec<_>, _>>().map_err(mistake)?;
    Ok(gated.into_iter().flatten().collect())
}

/// Compares two runs, or the two sides of one.
fn comparison(args: &CompareArgs) -> Result<Comparison, Problem> {
    let base = super::report::read(&args.base)?;
    match &args.directory {
        Some(directory) => Ok(rumba_statistics::compare(&base, &super::report::read(directory)?)),
        None => super::report::sides(&base).ok_or_else(|| {
            Problem::mistake(
                format!("{} is one run without a base and another to compare", shown(&args.base)),
                "name a second directory, or one that `rumba ab` or `rumba run --against` has written",
            )
        }),
    }
}

fn mistake(error: Mistake) -> Problem {
    Problem::mistake(format!("--fail-if: {}", error.problem), error.remedy)
}
