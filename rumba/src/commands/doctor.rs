//! `rumba doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rumba_lab::provision::{Leftover, ResourceRegistry};
use rumba_lab::registry::Registry;
use rumba_lab::{host, leftovers};
use serde_json::json;

use super::Output;
use crate::problem::FAILURE;

/// Arguments of `doctor`.
#[derive(Args)]
pub struct DoctorArgs {
    /// Remove the leftovers of killed runs
    #[arg(long)]
    pub clean: bool,
    /// With --clean: also remove what belongs to other containers, time namespaces and hosts. First check that no run
    /// is active there, because rumba cannot
    #[arg(long, requires = "clean")]
    pub out_of_sight: bool,
    /// The directory to check, where data directories would be created
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub data_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows the host's conditions, settings that spoil benchmarks, and leftovers of killed runs.
pub fn run(args: &DoctorArgs, registry: &Registry) -> super::Result {
    let facts = host::Facts::gather(&args.data_dir);
    let managed = ResourceRegistry::of_user()?;
    let (mut cleaned, mut left) = (Vec::new(), Vec::new());
    let (out_of_sight, found): (Vec<_>, Vec<_>) =
        leftovers::find(&managed)?.into_iter().partition(|found| found.may_be_in_use() && !args.out_of_sight);
    let treated = |leftover: &Leftover| treat(leftover, &managed, args.clean.then_some(registry));
    for (leftover, result) in leftovers::clean_each(&found, treated) {
        match result {
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
        let out_of_sight: Vec<String> = out_of_sight.iter().map(with_doubt).collect();
        return Ok(Output::json(&json!({
            "conditions": facts.conditions(),
            "warnings": facts.warnings(),
            "leftovers": left,
            "out_of_sight": out_of_sight,
            "cleaned": cleaned,
        })));
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
    for owned in &out_of_sight {
        say!("not known to be a leftover: {}", with_doubt(owned));
    }
    for leftover in &cleaned {
        say!("removed: {leftover}");
    }
    if left.is_empty() && cleaned.is_empty() {
        say!("no leftovers of killed runs");
    }
    Ok(if args.clean && !left.is_empty() { ExitCode::from(FAILURE).into() } else { Output::default() })
}

struct RemainingLeftover {
    /// The leftover, and the reason if known, which includes the remedy.
    what: String,
    /// The remedy if the reason is unknown.
    remedy: Option<&'static str>,
}

/// A resource, and why rumba does not remove it.
fn with_doubt(leftover: &Leftover) -> String {
    format!("{leftover} ({})", leftover.doubt.as_deref().unwrap_or_default())
}

/// Removes a leftover if a registry is given; otherwise returns it as remaining.
fn treat(leftover: &Leftover, managed: &ResourceRegistry, by: Option<&Registry>) -> Result<(), RemainingLeftover> {
    let Some(registry) = by else {
        return Err(match leftover.doubt {
            Some(_) => RemainingLeftover { what: with_doubt(leftover), remedy: None },
            None => RemainingLeftover { what: leftover.to_string(), remedy: Some(remedy_for(leftover)) },
        });
    };
    let cleaned = leftovers::clean(managed, leftover, registry);
    cleaned.map_err(|error| RemainingLeftover { what: format!("{leftover} ({error})"), remedy: None })
}

fn remedy_for(leftover: &Leftover) -> &'static str {
    match leftover.is_of(&leftovers::EXISTING_SERVER) {
        true => "rumba doctor --clean, with the password in the environment as for the run",
        false => "rumba doctor --clean",
    }
}
