//! Where the CPU of trials went, as it was sampled: folded stacks beside their records.

use std::fs;
use std::path::Path;

use super::read::read_record;

/// What a sampled trial has beside its record: `thread;outermost;…;innermost COUNT`, a line each.
pub const STACKS: &str = "stacks.folded";

/// What was sampled of a trial: its engine, how many clients, the folded stacks.
pub type Profile = (String, u32, String);

/// The profiles of results, in the order of running; `run` is put behind the engines' names where several runs are shown
/// as one.
pub fn profiles(path: &Path, run: Option<&str>) -> Vec<Profile> {
    let trials = fs::read_dir(path.join("trials")).into_iter().flatten().flatten();
    let mut directories: Vec<_> = trials.map(|trial| trial.path()).collect();
    directories.sort();
    let of_trial = |directory: &std::path::PathBuf| {
        // Most runs have none, and nothing else of them is read for it.
        let stacks = fs::read_to_string(directory.join(STACKS)).ok()?;
        let plan = read_record(&directory.join("record.json"), "", &mut Vec::new()).ok()?.plan;
        let engine = run.map_or_else(|| plan.engine.name.clone(), |run| format!("{}@{run}", plan.engine.name));
        Some((engine, plan.clients, stacks))
    };
    directories.iter().filter_map(of_trial).collect()
}
