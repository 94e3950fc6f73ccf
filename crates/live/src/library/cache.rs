//! What was read of results, kept beside them so that it is not read again. It holds nothing that the results do not:
//! whoever removes it loses time.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rumba_lab::store;
use serde::{Deserialize, Serialize};

use super::Results;
use super::entry::Details;

const FILE: &str = ".library-cache.json";
/// Grows when what is kept changes its meaning.
const FORMAT: u32 = 1;

/// What tells files from what they were before: lengths and times of change, nanoseconds.
type Stamp = Vec<(u64, i64)>;

/// What is kept of results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CachedResult {
    pub experiment: String,
    pub source: Option<String>,
    pub started: String,
    pub rumba: String,
    pub trials: Vec<String>,
    /// Why the experiment cannot be read.
    pub problem: Option<String>,
    pub details: Option<Details>,
    /// Of the experiment and of the page, which is written when all else is.
    stamp: Stamp,
    /// Of the records, as long as not all trials have ended.
    records: Stamp,
}

#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    results: Results,
}

/// What was read of a directory's results.
#[derive(Default)]
pub struct Cache {
    pub results: Results,
    is_changed: bool,
}

impl Cache {
    /// What is kept beside the results; nothing where that cannot be used.
    pub fn read(base: &Path) -> Self {
        let bytes = if is_trusted(base) { store::read_plain(base, FILE.as_ref()).ok() } else { None };
        let file = bytes.and_then(|bytes| serde_json::from_slice::<File>(&bytes).ok());
        let results = file.filter(|file| file.format == FORMAT).map(|file| file.results).unwrap_or_default();
        Self { results, is_changed: false }
    }

    /// Keeps it beside the results.
    ///
    /// # Errors
    /// Why it cannot be written.
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

    /// Sees what is new, gone, or other than before.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn look(&mut self, base: &Path) -> io::Result<()> {
        let mut there = BTreeSet::new();
        for entry in fs::read_dir(base)? {
            // Names that are no text cannot stand in an address.
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

    /// Looks at one directory; says whether there are results in it.
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

    /// The newest results whose details were not read.
    pub fn unread(&self) -> Option<String> {
        let unread = self.results.iter().filter(|(_, kept)| kept.details.is_none());
        unread.max_by(|one, other| one.1.started.cmp(&other.1.started)).map(|(name, _)| name.clone())
    }

    /// Puts what was read.
    pub fn put(&mut self, base: &Path, name: &str, details: Details) {
        let Some(kept) = self.results.get_mut(name) else { return };
        if !details.is_settled() {
            kept.records = records(&base.join(name), &kept.trials);
        }
        kept.details = Some(details);
        self.is_changed = true;
    }
}

/// Whether nobody else has written what is kept: it is believed where it says that results are as they were. Whoever
/// owns the directory could as well change the results.
fn is_trusted(base: &Path) -> bool {
    let owner = |of: Metadata| of.uid();
    let Ok(there) = fs::symlink_metadata(base.join(FILE)).map(owner) else { return true };
    there == rustix::process::geteuid().as_raw() || fs::metadata(base).is_ok_and(|base| owner(base) == there)
}

fn stamp(file: &Path) -> Option<(u64, i64)> {
    fs::symlink_metadata(file).ok().map(|of: Metadata| (of.len(), of.mtime() * 1_000_000_000 + of.mtime_nsec()))
}

/// The stamps of the records that there are.
fn records(directory: &Path, trials: &[String]) -> Stamp {
    let trials = trials.iter().map(|trial| directory.join("trials").join(trial).join("record.json"));
    trials.filter_map(|record| stamp(&record)).collect()
}
