//! Follows growing results: reads only what is new.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rumba_results::engine_samples::{EngineSample, EngineTimeSeries};
use rumba_results::record::Interval;
use rumba_results::results::{Results, Trial};
use serde::de::DeserializeOwned;

use super::error::ReadError;
use super::plain::{self, Line};
use super::read::{EXPERIMENT, add_look, of_trial, read_experiment, read_record};
use super::write::ENGINE;

/// Identifies a state of a file: its inode, its length, its time of change.
type Stamp = (u64, u64, i64, i64);

fn stamp(of: &Metadata) -> Stamp {
    (of.ino(), of.len(), of.mtime(), of.mtime_nsec())
}

/// The read position in a trial.
#[derive(Default)]
struct Seen {
    record: Stamp,
    intervals: Tail,
    engine: Tail,
}

/// The read position in a file of lines.
#[derive(Default)]
struct Tail {
    /// The inode: a trial that is run again has a new one.
    file: u64,
    bytes: u64,
}

/// Results as far as they were read. Trials that have not begun are in no list.
pub struct Following {
    path: PathBuf,
    experiment: Stamp,
    directories: Vec<String>,
    seen: BTreeMap<String, Seen>,
    results: Results,
}

impl Following {
    /// Reads the current contents of a directory.
    ///
    /// # Errors
    /// When it is no results directory.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (results, directories) = read_experiment(path)?;
        let experiment = fs::symlink_metadata(path.join(EXPERIMENT)).map(|of| stamp(&of)).unwrap_or_default();
        let seen = BTreeMap::new();
        let mut following = Self { path: path.to_owned(), experiment, directories, seen, results };
        following.read_trials();
        Ok(following)
    }

    /// The results read so far.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Reads new data; returns whether a record has changed, rather than only intervals.
    ///
    /// # Errors
    /// When it is no results directory any more.
    pub fn refresh(&mut self) -> Result<bool, ReadError> {
        let experiment = fs::symlink_metadata(self.path.join(EXPERIMENT)).map(|of| stamp(&of)).unwrap_or_default();
        if experiment != self.experiment {
            // An interrupted run was resumed, with other trials than were planned.
            *self = Self::open(&self.path)?;
            return Ok(true);
        }
        Ok(self.read_trials())
    }

    fn read_trials(&mut self) -> bool {
        let mut changed = false;
        for place in 0..self.directories.len() {
            let name = self.directories[place].clone();
            changed |= self.read_record_of(&name);
            if let Some(trial) = self.results.trials.iter_mut().find(|trial| trial.directory == name) {
                let (intervals, engine) = (of_trial(&name, "intervals.ndjson"), of_trial(&name, ENGINE));
                let seen = self.seen.entry(name).or_default();
                // A partial line is read the next time.
                if let Ok(more) = read_on::<Interval>(&self.path, &intervals, &mut seen.intervals) {
                    if more.is_again {
                        trial.intervals.clear();
                    }
                    trial.intervals.extend(more.lines);
                }
                if let Ok(more) = read_on::<EngineSample>(&self.path, &engine, &mut seen.engine) {
                    if more.is_again {
                        trial.course = EngineTimeSeries::default();
                    }
                    // Samples beyond the limit are reported when all results are read.
                    more.lines.into_iter().all(|look| add_look(&mut trial.course, look));
                }
            }
        }
        changed
    }

    /// Reads a trial's record if it has changed.
    fn read_record_of(&mut self, name: &str) -> bool {
        let file = plain::open(&self.path, &of_trial(name, "record.json"));
        let Ok(now) = file.and_then(|file| file.metadata()).map(|of| stamp(&of)) else { return false };
        if self.seen.get(name).is_some_and(|seen| seen.record == now) {
            return false;
        }
        // Damage is reported when all results are read; here the file may be complete the next time.
        let Ok(record) = read_record(&self.path, name, &mut Vec::new()) else { return false };
        self.seen.entry(name.to_owned()).or_default().record = now;
        match self.results.trials.iter_mut().find(|trial| trial.directory == name) {
            Some(trial) => trial.record = record,
            None => self.results.trials.push(Trial {
                directory: name.to_owned(),
                record,
                intervals: Vec::new(),
                course: EngineTimeSeries::default(),
            }),
        }
        // Sort in running order, because the order of appearance is arbitrary.
        self.results.trials.sort_by_key(|trial| trial.record.plan.number);
        true
    }
}

/// The new lines of a file.
struct More<T> {
    /// Whether it is a new file, and these are all its lines.
    is_again: bool,
    lines: Vec<T>,
}

/// Reads the new lines of a file; all lines of a new file.
fn read_on<T: DeserializeOwned>(results: &Path, file: &Path, tail: &mut Tail) -> io::Result<More<T>> {
    let file = plain::open(results, file)?;
    let now = file.metadata()?;
    let is_again = now.ino() != tail.file || now.len() < tail.bytes;
    if is_again {
        *tail = Tail { file: now.ino(), bytes: 0 };
    }
    let mut lines = Vec::new();
    let reached = plain::lines(file, tail.bytes, |line| {
        if let Line::Whole(line) = line {
            lines.extend(serde_json::from_slice(line).ok());
        }
        true
    })?;
    tail.bytes = reached.whole_bytes;
    Ok(More { is_again, lines })
}
