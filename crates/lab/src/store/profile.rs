//! The CPU profiles of trials: folded stacks next to their records.

use std::fs;
use std::path::Path;

use super::plain::read_plain;
use super::read::{of_trial, read_record};

/// The profile of a trial, next to its record: `thread;outermost;…;innermost COUNT`, one line each.
pub const STACKS: &str = "stacks.folded";

/// A profile: the engine, the number of clients, the folded stacks.
pub type Profile = (String, u32, String);

/// The profiles of results, in running order; `run` is appended to the engines' names when several runs are shown
/// together.
pub fn profiles(path: &Path, run: Option<&str>) -> Vec<Profile> {
    let trials = fs::read_dir(path.join("trials")).into_iter().flatten().flatten();
    let mut names: Vec<String> = trials.filter_map(|trial| trial.file_name().into_string().ok()).collect();
    names.sort();
    let profile = |name: &String| {
        // Most runs have no profile, so no other file is read for it.
        let stacks = String::from_utf8(read_plain(path, &of_trial(name, STACKS)).ok()?).ok()?;
        let plan = read_record(path, name, &mut Vec::new()).ok()?.plan;
        let engine = run.map_or_else(|| plan.engine.name.clone(), |run| format!("{}@{run}", plan.engine.name));
        Some((engine, plan.clients, stacks))
    };
    names.iter().filter_map(profile).collect()
}
