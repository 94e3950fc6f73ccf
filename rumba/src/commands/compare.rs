//! `rumba compare`.

use std::process::ExitCode;

use rumba_core::comparison::Comparison;
use rumba_statistics::{Found, Gate, GateError, Gated};

use crate::cli::CompareArgs;
use crate::problem::{Problem, REFUTED};

/// Compares one run against a base, or the sides of one run.
pub fn run(args: &CompareArgs) -> super::Result {
    let gates = args.fail_if.iter().map(|text| Gate::parse(text)).collect::<Result<Vec<_>, _>>();
    let gates = gates.map_err(mistake)?;
    let comparison = comparison(args)?;
    let gated = gates.iter().map(|gate| gate.judge(&comparison)).collect::<Result<Vec<_>, _>>().map_err(mistake)?;
    let gated: Vec<Gated> = gated.into_iter().flatten().collect();
    if args.json {
        let unwritable = |error: serde_json::Error| {
            Problem::failure(format!("the comparison cannot be written as JSON: {error}"), "report this")
        };
        let mut value = serde_json::to_value(&comparison).map_err(unwritable)?;
        value["fail_if"] = serde_json::to_value(&gated).map_err(unwritable)?;
        super::print_json(&value)?;
    } else {
        super::print(rumba_report::comparison_table(&comparison, args.details))?;
        gated.iter().for_each(|gated| say!("{}", line(gated)));
    }
    let closed = gated.iter().any(|gated| gated.verdict.closes());
    Ok(if closed { ExitCode::from(REFUTED) } else { ExitCode::SUCCESS })
}

/// Of two runs, or of the two sides of one.
fn comparison(args: &CompareArgs) -> Result<Comparison, Problem> {
    let base = super::report::read(&args.base)?;
    match &args.directory {
        Some(directory) => Ok(rumba_statistics::compare(&base, &super::report::read(directory)?)),
        None => super::ab::comparison(&base).ok_or_else(|| {
            Problem::mistake(
                format!("{} is one run without a base and another to compare", args.base.display()),
                "name a second directory, or one that `rumba ab` or `rumba run --against` has written",
            )
        }),
    }
}

fn mistake(error: GateError) -> Problem {
    Problem::mistake(format!("--fail-if: {}", error.problem), error.remedy)
}

fn line(gated: &Gated) -> String {
    let Gated { gate, engine, clients, reason, .. } = gated;
    let verdict = match gated.verdict {
        Found::Holds => "IS SO",
        Found::Fails => "is not so",
        Found::Undecided => "undecided",
        Found::SeenOnce => "seen once, no failure",
        Found::NotJudged => return format!("fail-if {gate}: {engine}, {clients} clients: not judged: {reason}"),
    };
    format!("fail-if {gate}: {engine}, {clients} clients: {verdict} ({reason})")
}
