//! `rumba doctor`.

use std::process::ExitCode;

use rumba_lab::{host, provision};
use serde_json::json;

use crate::cli::DoctorArgs;

/// Shows the host, what spoils benchmarks on it, and leftovers of killed runs.
pub fn run(args: &DoctorArgs) -> super::Result {
    let facts = host::Facts::gather(&args.data_dir);
    let managed = provision::Ledger::of_user()?;
    let leftovers = managed.leftovers()?;
    let mut cleaned = Vec::new();
    if args.clean {
        for leftover in &leftovers {
            managed.clean(leftover)?;
            cleaned.push(leftover.to_string());
        }
    }
    let left: Vec<String> = if args.clean { Vec::new() } else { leftovers.iter().map(ToString::to_string).collect() };
    if args.json {
        return super::print_json(&json!({
            "conditions": facts.conditions(),
            "warnings": facts.warnings(),
            "leftovers": left,
            "cleaned": cleaned,
        }));
    }
    for (name, value) in facts.conditions() {
        println!("{name:<24} {value}");
    }
    println!();
    for warning in facts.warnings() {
        println!("warning: {}\n  remedy: {}", warning.message, warning.remedy);
    }
    for leftover in &left {
        println!("leftover: {leftover}\n  remedy: rumba doctor --clean");
    }
    for leftover in &cleaned {
        println!("removed: {leftover}");
    }
    if leftovers.is_empty() {
        println!("no leftovers of killed runs");
    }
    Ok(ExitCode::SUCCESS)
}
