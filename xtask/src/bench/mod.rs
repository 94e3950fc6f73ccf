//! `xtask bench`: rumba's own cost, against its goals. Every figure is printed with the command that measured it.
//! `--write` stores it in docs/performance.json, from which docs/performance.md is made.

mod client_counts;
mod clients;
mod harness;
mod kept;
mod measure;
mod page;
mod scripts;
mod servers;
mod suite;

use std::path::Path;

use kept::MeasurementStore;
use measure::Bench;
pub use servers::output_of;

/// One goal and its measurement.
pub struct Line {
    /// The measured quantity.
    pub what: String,
    pub goal: String,
    /// The figure, with its unit.
    pub measured: String,
    /// Whether the goal is met; `None` if there is no goal or this machine cannot judge it.
    pub met: Option<bool>,
    pub command: String,
}

/// The reason why a figure could not be measured.
pub type Failure = Box<dyn std::error::Error>;

/// A measurement of one or more figures.
type Step = fn(&Bench) -> Result<Vec<Line>, Failure>;

/// The examples that are clients of a server.
const CLIENTS: &[&str] = &["wire_clients", "minimal_loop"];

/// All measurements by name and in order, with the examples that they run next to `rumba`.
pub const STEPS: &[(&str, Step, &[&str])] = &[
    ("instructions", harness::instructions, &["record_cost", "harness_cost"]),
    ("harness", harness::harness, &[]),
    ("mysql", clients::mysql, CLIENTS),
    ("postgresql", clients::postgresql, CLIENTS),
    ("mongodb", clients::mongodb, &["wire_clients"]),
    ("script", scripts::null_server, &["minimal_loop"]),
    ("script-mariadb", suite::mariadb, &[]),
    ("client-counts", client_counts::mariadb, CLIENTS),
    ("client-counts-postgresql", client_counts::postgresql, CLIENTS),
    ("delay", clients::delay, &["wire_clients"]),
];

/// A measurement that failed; its goal counts as missed.
fn not_measured(name: &str, error: &dyn std::error::Error, root: &Path) -> Line {
    // The page must not show the path of this source tree.
    let here = root.display();
    let words = error.to_string().replace(&format!("cd \"{here}\" && "), "").replace(&format!("{here}/"), "");
    let reported: Vec<&str> = words.split_whitespace().collect();
    Line {
        what: format!("the measurement `{name}`"),
        goal: "to be taken".to_owned(),
        measured: format!("not measured: {}", reported.join(" ")),
        met: Some(false),
        command: format!("cargo run --release -p xtask -- bench {name}"),
    }
}

/// Measures the named steps, or everything; returns whether every goal was met.
///
/// # Errors
/// No measurement is possible, or the page cannot be written. A single failed measurement becomes a line that reports
/// it.
pub fn bench(root: &Path, named: &[&str], write: bool) -> Result<bool, Failure> {
    if let Some(unknown) = named.iter().find(|name| STEPS.iter().all(|(step, ..)| step != *name)) {
        let steps: Vec<_> = STEPS.iter().map(|(name, ..)| *name).collect();
        return Err(format!("there is no measurement `{unknown}`; there are: {}", steps.join(" ")).into());
    }
    let mut kept = MeasurementStore::read(root)?;
    let chosen = || STEPS.iter().filter(|(name, ..)| named.is_empty() || named.contains(name));
    let examples = chosen().flat_map(|(.., examples)| examples.iter().copied()).collect();
    let bench = Bench::new(root, examples)?;
    let mut are_met = true;
    for (name, step, _) in chosen() {
        // A failed measurement does not affect the others.
        let measured = step(&bench).unwrap_or_else(|error| vec![not_measured(name, error.as_ref(), root)]);
        for line in &measured {
            println!("{}", page::text(line));
            are_met &= line.met != Some(false);
        }
        // A step without its external program measures nothing, and its stored results stay.
        if write && !measured.is_empty() {
            kept.put(name, &measured, bench.conditions()?)?;
        }
    }
    Ok(are_met)
}
