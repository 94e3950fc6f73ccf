//! `rumba doctor`.

use std::process::ExitCode;

use rumba_lab::provision::{Leftover, ResourceRegistry};
use rumba_lab::{host, leftovers};
use serde_json::json;

use crate::cli::DoctorArgs;
use crate::problem::FAILURE;

/// Shows the host's conditions, settings that spoil benchmarks, and leftovers of killed runs.
pub fn run(args: &DoctorArgs) -> super::Result {
    let facts = host::Facts::gather(&args.data_dir);
    let managed = ResourceRegistry::of_user()?;
    let (mut cleaned, mut left) = (Vec::new(), Vec::new());
    for leftover in &leftovers::find(&managed)? {
        match treat(leftover, &managed, args.clean) {
            Ok(()) => cleaned.push(leftover.to_string()),
            Err(stays) => left.push(stays),
        }
    }
    // An unreadable entry cannot be cleaned, so its leftovers remain too.
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

/// A leftover that remains.
struct RemainingLeftover {
    /// The leftover, and the reason if known, which includes the remedy.
    what: String,
    /// The remedy if the reason is unknown.
    remedy: Option<&'static str>,
}

/// Removes a leftover on request; otherwise returns it as remaining.
fn treat(leftover: &Leftover, managed: &ResourceRegistry, clean: bool) -> Result<(), RemainingLeftover> {
    match (&leftover.doubt, clean) {
        (Some(doubt), false) => Err(RemainingLeftover { what: format!("{leftover} ({doubt})"), remedy: None }),
        (None, false) => Err(RemainingLeftover { what: leftover.to_string(), remedy: Some("rumba doctor --clean") }),
        (_, true) => {
            let cleaned = managed.clean(leftover);
            cleaned.map_err(|error| RemainingLeftover { what: format!("{leftover} ({error})"), remedy: None })
        }
    }
}
