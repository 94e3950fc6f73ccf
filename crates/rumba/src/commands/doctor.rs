//! `rumba doctor`.

use std::process::ExitCode;

use rumba_lab::{host, provision};
use serde_json::json;

use crate::cli::DoctorArgs;
use crate::problem::FAILURE;

/// Shows the host, what spoils benchmarks on it, and leftovers of killed runs.
pub fn run(args: &DoctorArgs) -> super::Result {
    let facts = host::Facts::gather(&args.data_dir);
    let managed = provision::Ledger::of_user()?;
    let leftovers = managed.leftovers()?;
    let (mut cleaned, mut left) = (Vec::new(), Vec::new());
    for leftover in &leftovers {
        match args.clean.then(|| managed.clean(leftover)) {
            Some(Ok(())) => cleaned.push(leftover.to_string()),
            Some(Err(error)) => left.push(format!("{leftover} ({error})")),
            None => left.push(leftover.to_string()),
        }
    }
    if args.json {
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
    for leftover in &left {
        say!("leftover: {leftover}\n  remedy: rumba doctor --clean");
    }
    for leftover in &cleaned {
        say!("removed: {leftover}");
    }
    if leftovers.is_empty() {
        say!("no leftovers of killed runs");
    }
    Ok(if args.clean && !left.is_empty() { ExitCode::from(FAILURE) } else { ExitCode::SUCCESS })
}
