//! The cache of summaries, stored next to the results so that they are not read again. It contains only copies;
//! deleting it costs only time.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rumba_lab::store;
use serde::{Deserialize, Serialize};

use super::Results;
use super::entry::{CachedResult, Details, Stamp};

const FILE: &str = ".library-cache.json";
/// Increased whenever the meaning of the cached data changes.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    results: Results,
}

/// The cached summaries of a directory's results.
#[derive(Default)]
pub struct Cache {
    pub results: Results,
    is_changed: bool,
}

impl Cache {
    /// The cache next to the results; empty if it cannot be used.
    pub fn read(base: &Path) -> Self {
        let bytes = if is_trusted(base) { store::read_plain(base, FILE.as_ref()).ok() } else { None };
        let file = bytes.and_then(|bytes| serde_json::from_slice::<File>(&bytes).ok());
        let results = file.filter(|file| file.format == FORMAT).map(|file| file.results).unwrap_or_default();
        Self { results, is_changed: false }
    }

    /// Writes the cache next to the results.
    ///
    /// # Errors
    /// The reason why it cannot be written.
    pub fn write(&mut self, base: &Path) -> io::Result<()> {
        if !self.is_changed || !is_trusted(base) {
            return Ok(());
        }
        let file = File { format: FORMAT, results: std::mem::take(&mut self.results) };
        let text = serde_json::to_string(&file);
        self.results = file.results;
        store::replace_plain(&base.join(FILE), &text?)?;
        self.is_changed = false;
        Ok(())
    }

    /// Updates the cache for new, deleted and changed results.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn look(&mut self, base: &Path) -> io::Result<()> {
        let mut there = BTreeSet::new();
        for entry in fs::read_dir(base)? {
            // Names that are not UTF-8 cannot be part of an address.
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if name.starts_with('.') {
                continue;
            }
            if self.look_at(base, &name) {
                there.insert(name);
            }
        }
        let before = self.results.len();
        self.results.retain(|name, _| there.contains(name));
        self.is_changed |= self.results.len() != before;
        Ok(())
    }

    /// Updates the cache for one directory; returns whether it contains results.
    fn look_at(&mut self, base: &Path, name: &str) -> bool {
        let directory = base.join(name);
        let Some(experiment) = stamp(&directory.join("experiment.json")) else { return false };
        let now = vec![experiment, stamp(&directory.join("report.html")).unwrap_or_default()];
        if let Some(kept) = self.results.get_mut(name).filter(|kept| kept.stamp == now) {
            if kept.details.as_ref().is_some_and(|details| !details.is_settled()) {
                let records = records(&directory, &kept.trials);
                if records != kept.records {
                    (kept.records, kept.details) = (records, None);
                }
            }
            return true;
        }
        let mut kept = match store::read_head(&directory) {
            Ok(head) => CachedResult {
                experiment: head.name,
                source: head.source,
                started: head.started,
                rumba: head.rumba,
                trials: head.trials,
                ..CachedResult::default()
            },
            Err(error) => CachedResult {
                problem: Some(error.to_string()),
                details: Some(Details::default()),
                ..CachedResult::default()
            },
        };
        kept.stamp = now;
        self.results.insert(name.to_owned(), kept);
        self.is_changed = true;
        true
    }

    /// The newest results whose details have not been read.
    pub fn unread(&self) -> Option<String> {
        let unread = self.results.iter().filter(|(_, kept)| kept.details.is_none());
        unread.max_by(|one, other| one.1.started.cmp(&other.1.started)).map(|(name, _)| name.clone())
    }

    /// Stores the details of a result.
    pub fn put(&mut self, base: &Path, name: &str, details: Details) {
        let Some(kept) = self.results.get_mut(name) else { return };
        if !details.is_settled() {
            kept.records = records(&base.join(name), &kept.trials);
        }
        kept.details = Some(details);
        self.is_changed = true;
    }
}

/// Whether the cache was written by this user or by the directory's owner, because its stamps are trusted. The
/// directory's owner could change the results as well.
fn is_trusted(base: &Path) -> bool {
    let owner = |of: Metadata| of.uid();
    let Ok(there) = fs::symlink_metadata(base.join(FILE)).map(owner) else { return true };
    there == rustix::process::geteuid().as_raw() || fs::metadata(base).is_ok_and(|base| owner(base) == there)
}

fn stamp(file: &Path) -> Option<(u64, i64)> {
    fs::symlink_metadata(file).ok().map(|of: Metadata| (of.len(), of.mtime() * 1_000_000_000 + of.mtime_nsec()))
}

fn records(directory: &Path, trials: &[String]) -> Stamp {
    let trials = trials.iter().map(|trial| directory.join("trials").join(trial).join("record.json"));
    trials.filter_map(|record| stamp(&record)).collect()
}
