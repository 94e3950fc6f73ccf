//! `rumba doctor`.

use std::process::ExitCode;

use rumba_lab::provision::{Ledger, Leftover};
use rumba_lab::{host, leftovers};
use serde_json::json;

use crate::cli::DoctorArgs;
use crate::problem::FAILURE;

/// Shows the host, what spoils benchmarks on it, and leftovers of killed runs.
pub fn run(args: &DoctorArgs) -> super::Result {
    let facts = host::Facts::gather(&args.data_dir);
    let managed = Ledger::of_user()?;
    let (mut cleaned, mut left) = (Vec::new(), Vec::new());
    for leftover in &leftovers::find(&managed)? {
        match treat(leftover, &managed, args.clean) {
            Ok(()) => cleaned.push(leftover.to_string()),
            Err(stays) => left.push(stays),
        }
    }
    // What such an entry lists cannot be cleaned, so that it is left, too.
    left.extend(
        leftovers::unreadable(&managed)?
            .iter()
            .map(|problem| RemainingLeftover { what: problem.to_string(), remedy: None }),
    );
    if args.json {
        let left: Vec<&String> = left.iter().map(|left| &left.what).collect();
        return super::print_json(&json!({
            "conditions": facts.conditions(),
            "warnings": facts.warnings(),
            "leftovers": left,
            "cleaned": cleaned,
        }));
    }
    for (name, value) in facts.conditions() {
        say!("{name:<24} {value}");
    }
    say!("");
    for warning in facts.warnings() {
        say!("warning: {}\n  remedy: {}", warning.message, warning.remedy);
    }
    for RemainingLeftover { what, remedy } in &left {
        say!("leftover: {what}");
        remedy.iter().for_each(|remedy| say!("  remedy: {remedy}"));
    }
    for leftover in &cleaned {
        say!("removed: {leftover}");
    }
    if left.is_empty() && cleaned.is_empty() {
        say!("no leftovers of killed runs");
    }
    Ok(if args.clean && !left.is_empty() { ExitCode::from(FAILURE) } else { ExitCode::SUCCESS })
}

/// What is still there.
struct RemainingLeftover {
    /// What it is, and why it stays if that is known: those words say what to do.
    what: String,
    /// What to do otherwise.
    remedy: Option<&'static str>,
}

/// Undoes a leftover if it is to be; says otherwise what is still there.
fn treat(leftover: &Leftover, managed: &Ledger, clean: bool) -> Result<(), RemainingLeftover> {
    match (&leftover.doubt, clean) {
        (Some(doubt), false) => Err(RemainingLeftover { what: format!("{leftover} ({doubt})"), remedy: None }),
        (None, false) => Err(RemainingLeftover { what: leftover.to_string(), remedy: Some("rumba doctor --clean") }),
        (_, true) => {
            let cleaned = managed.clean(leftover);
            cleaned.map_err(|error| RemainingLeftover { what: format!("{leftover} ({error})"), remedy: None })
        }
    }
}
