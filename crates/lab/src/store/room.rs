//! Space on the disk of the results. Some is reserved at the start and released when the disk is full, so that measured
//! data can still be written. Any error of writing results is noted at once.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use rumba_results::record::{Record, Status};
use rumba_results::warning::Warning;

/// Bytes that the last seconds of a trial and its record may take. A second with twenty types of operations takes about
/// 20 kB, a record of sixty loops 2 MB. The old record stays until the new one is complete.
const RECORD_BYTES: u64 = 4 << 20;
/// Bytes of a last record and of the page without any trial.
const SUMMARY_BYTES: u64 = 2 << 20;
/// Bytes that a trial adds to the page.
const TRIAL_BYTES: u64 = 256 << 10;

/// The codes of the warnings of a trial whose results could not be written.
const CODES: [&str; 2] = ["results-disk-full", "results-not-written"];

/// The use of a part of the reserved space.
#[derive(Clone, Copy, Debug)]
pub enum Held {
    /// A running trial's files: released first.
    Record,
    /// The last writes: the last record, the page.
    Summary,
}

/// The reason why results cannot be written.
#[derive(Debug)]
enum Trouble {
    Full,
    Other(String),
}

/// The reserved space and its state.
#[derive(Debug)]
pub struct Room {
    directory: PathBuf,
    /// Files without a name, so that a kill leaves none: for the summary, then for the record.
    held: Mutex<Vec<File>>,
    trouble: OnceLock<Trouble>,
}

impl Room {
    /// Reserves space in a directory for an experiment with this many trials.
    ///
    /// # Errors
    /// When there is too little space ([`is_full`]), or files cannot be made.
    pub fn hold(directory: &Path, trials: usize) -> io::Result<Self> {
        let held = [summary_bytes(trials), RECORD_BYTES].into_iter().map(|bytes| hold(directory, bytes));
        let held = Mutex::new(held.collect::<io::Result<_>>()?);
        Ok(Self { directory: directory.to_owned(), held, trouble: OnceLock::new() })
    }

    /// Runs a write. On a full disk it releases the space reserved for this use and repeats the write. A failure is
    /// noted.
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
        // A file without a name, and its inode, is freed when it is closed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner).truncate(stays);
    }

    /// The warning for the user, once results could not be written.
    pub fn trouble(&self) -> Option<Warning> {
        let directory = self.directory.display();
        let goes_on = format!("`rumba run --resume {directory}` continues");
        Some(match self.trouble.get()? {
            Trouble::Full => Warning::new(
                "results-disk-full",
                format!("the disk of {directory} is full; the run stops, and all measurements so far are kept"),
                format!("make room there (bytes, or inodes), then {goes_on}"),
            ),
            Trouble::Other(why) => Warning::new(
                "results-not-written",
                format!("{directory} cannot be written ({why}); the run stops"),
                format!("see to its disk, then {goes_on}"),
            ),
        })
    }
}

/// Whether a trial failed because its results could not be written, which is no finding about its engine.
pub fn lacked_room(record: &Record) -> bool {
    let is_reported = || record.warnings.iter().any(|warning| CODES.contains(&warning.code.as_str()));
    matches!(record.status, Status::Failed { .. }) && is_reported()
}

/// Whether a filesystem is out of space or inodes.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The total reserved space for this many trials, bytes.
pub fn held_bytes(trials: usize) -> u64 {
    RECORD_BYTES + summary_bytes(trials)
}

fn summary_bytes(trials: usize) -> u64 {
    SUMMARY_BYTES + TRIAL_BYTES * trials as u64
}

/// A file without a name, of this size. It is written, because some filesystems cannot allocate, some only claim to,
/// and some store zeros without space.
fn hold(directory: &Path, bytes: u64) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(directory)?;
    io::copy(&mut File::open("/dev/urandom")?.take(bytes), &mut file)?;
    // A network filesystem reports only now that it is full.
    file.sync_all()?;
    Ok(file)
}
