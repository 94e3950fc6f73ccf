//! Room on the disk of the results. Some is held from the start and given back when the disk is full, so that what was
//! measured until then can still be written; and whatever keeps results from being written is noted when it comes up.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use rumba_core::record::{Record, Status};
use rumba_core::warning::Warning;

/// What the seconds in which a trial comes to its end may write, and its record, bytes. A second of twenty types of
/// operations takes about 20 kB, a record of sixty loops 2 MB, and the old one stands until the new one is whole.
const RECORD_BYTES: u64 = 4 << 20;
/// What a last record and the page without any trial take, bytes.
const SUMMARY_BYTES: u64 = 2 << 20;
/// What a trial adds to the page, bytes.
const TRIAL_BYTES: u64 = 256 << 10;

/// The codes of the warnings of a trial whose results could not be written.
const CODES: [&str; 2] = ["results-disk-full", "results-not-written"];

/// What a part of the room is held for.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// A trial's files while it runs: the first to go.
    Record,
    /// What is written at the end: the last record, the page.
    Summary,
}

/// What keeps results from being written.
#[derive(Debug)]
enum Trouble {
    Full,
    Other(String),
}

/// Room that is held, and what has become of it.
#[derive(Debug)]
pub struct Room {
    directory: PathBuf,
    /// Files without a name, so that a kill leaves none: for the summary, then for the record.
    held: Mutex<Vec<File>>,
    trouble: OnceLock<Trouble>,
}

impl Room {
    /// Holds room in a directory for an experiment of so many trials.
    ///
    /// # Errors
    /// That there is no room ([`is_full`]), or that files cannot be made.
    pub fn hold(directory: &Path, trials: usize) -> io::Result<Self> {
        let held = [summary_bytes(trials), RECORD_BYTES].into_iter().map(|bytes| hold(directory, bytes));
        let held = Mutex::new(held.collect::<io::Result<_>>()?);
        Ok(Self { directory: directory.to_owned(), held, trouble: OnceLock::new() })
    }

    /// Lets something be written; where there is no room for it, gives back what is held for it and lets it be written
    /// again. A failure is noted.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn write<T>(&self, held: Held, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match write() {
            Err(error) if is_full(&error) => {
                let _ = self.trouble.set(Trouble::Full);
                self.give_back(held);
                write()
            }
            Err(error) => {
                let _ = self.trouble.set(Trouble::Other(error.to_string()));
                Err(error)
            }
            written => written,
        }
    }

    fn give_back(&self, held: Held) {
        let stays = match held {
            Held::Record => 1,
            Held::Summary => 0,
        };
        // A file without a name is gone, and its inode with it, as soon as it is closed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner).truncate(stays);
    }

    /// What the user is to be told, once results could not be written.
    pub fn trouble(&self) -> Option<Warning> {
        let directory = self.directory.display();
        let goes_on = format!("`rumba run --resume {directory}` goes on");
        Some(match self.trouble.get()? {
            Trouble::Full => Warning::new(
                "results-disk-full",
                format!(
                    "the disk of {directory} is full: nothing more is run, and what was measured until then is kept"
                ),
                format!("make room there (bytes, or inodes), then {goes_on}"),
            ),
            Trouble::Other(why) => Warning::new(
                "results-not-written",
                format!("{directory} cannot be written ({why}): nothing more is run"),
                format!("see to its disk, then {goes_on}"),
            ),
        })
    }
}

/// Whether a trial has failed because its results could not be written: it says nothing of its engine.
pub fn lacked_room(record: &Record) -> bool {
    let is_told = || record.warnings.iter().any(|warning| CODES.contains(&warning.code.as_str()));
    matches!(record.status, Status::Failed { .. }) && is_told()
}

/// Whether a file system has no room left, for bytes or for files.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What an experiment of so many trials holds in all, bytes.
pub fn held_bytes(trials: usize) -> u64 {
    RECORD_BYTES + summary_bytes(trials)
}

fn summary_bytes(trials: usize) -> u64 {
    SUMMARY_BYTES + TRIAL_BYTES * trials as u64
}

/// A file without a name of so many bytes. They are written, because some file systems cannot allocate, some only say
/// that they have, and some keep zeros in no room at all.
fn hold(directory: &Path, bytes: u64) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(directory)?;
    io::copy(&mut File::open("/dev/urandom")?.take(bytes), &mut file)?;
    // A file system behind a network says only now that it is full.
    file.sync_all()?;
    Ok(file)
}
