//! `rumba compare`.

use std::process::ExitCode;

use rumba_statistics::{Found, Gate, GateError, Gated};

use crate::cli::CompareArgs;
use crate::problem::{Problem, REFUTED};

/// Compares one run against a base.
pub fn run(args: &CompareArgs) -> super::Result {
    let gates = args.fail_if.iter().map(|text| Gate::parse(text)).collect::<Result<Vec<_>, _>>();
    let gates = gates.map_err(mistake)?;
    let base = super::report::read(&args.base)?;
    let other = super::report::read(&args.directory)?;
    let comparison = rumba_statistics::compare(&base, &other);
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
