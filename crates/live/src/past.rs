//! The runs of one experiment, for its history.

use std::collections::BTreeMap;

use rumba_lab::store;
use rumba_statistics::Run;

use crate::library::{Entry, Library};

/// The most runs of a history, because all of them are read for each request.
const MOST: usize = 100;

/// The runs that were read, and the reasons why others were not.
pub struct Runs {
    pub read: Vec<Run>,
    pub left_out: Vec<String>,
}

/// Whether a result can be part of a history.
fn is_past(entry: &Entry) -> bool {
    !entry.is_running && entry.kept.problem.is_none()
}

/// The past results of an experiment, the newest first.
pub fn of_experiment<'a>(found: &[&'a Entry], experiment: &str) -> Vec<&'a Entry> {
    found.iter().copied().filter(|entry| is_past(entry) && entry.kept.experiment == experiment).collect()
}

/// The number of past results of each experiment.
pub fn counts<'a>(found: &[&'a Entry]) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for entry in found.iter().filter(|entry| is_past(entry)) {
        *counts.entry(entry.kept.experiment.as_str()).or_default() += 1;
    }
    counts
}

/// Reads the newest of these results, without their intervals.
pub fn runs(library: &Library, newest_first: Vec<&Entry>) -> Runs {
    let mut runs = Runs { read: Vec::new(), left_out: Vec::new() };
    if let Some(older) = newest_first.len().checked_sub(MOST).filter(|older| *older > 0) {
        runs.left_out.push(format!("{older} older results; `rumba history DIR` reads all"));
    }
    for entry in newest_first.into_iter().take(MOST) {
        let Some(directory) = library.directory(&entry.name) else { continue };
        match store::read_records(&directory) {
            Ok(results) => runs.read.push(Run { directory: entry.name.clone(), results }),
            Err(error) => runs.left_out.push(error.to_string()),
        }
    }
    runs
}
