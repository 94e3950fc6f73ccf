//! A results directory is one run's alone: claimed before anything runs, and held until the last of it is written.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_core::printable::{fits_on_a_line, shown};
use rustix::fs::{FlockOperation, flock};

use super::read::ReadError;

/// How long a run that was just killed may keep its directory: the kernel takes a process apart bit by bit.
const ENDING: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
/// How many names are tried, or how often one is that other runs make and remove meanwhile.
const TRIES: u32 = 1000;

/// Why a directory cannot be taken for results.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another run has it.
    #[error("{} is taken: another run of rumba is writing its results there", shown(path))]
    Taken {
        /// The directory.
        path: PathBuf,
    },
    /// It holds something.
    #[error("{} is not empty; results are never overwritten", shown(path))]
    Used {
        /// The directory.
        path: PathBuf,
    },
    /// Its disk is too full to begin with.
    #[error(
        "the disk of {} has no room for the {mebibytes} MiB that are held for the record and the page, so that \
         nothing measured is lost should others fill it",
        shown(path)
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// What is to be held there, rounded up.
        mebibytes: u64,
    },
    /// It cannot be made, or not be written.
    #[error("{} cannot be written: {cause}", shown(path))]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// Its name would be a line of its own wherever it is shown, or worse.
    #[error("{} cannot be shown as it is: its name has ends of lines, or what a terminal obeys", shown(path))]
    Unshowable {
        /// The directory.
        path: PathBuf,
    },
    /// It holds no results with which to go on.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A directory that no other run takes. Dropped before there are results in it, it takes with it what was made for it.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Locked while it is open.
    _lock: File,
    /// Directories that were made for it, innermost first.
    made: Vec<PathBuf>,
}

impl Claim {
    /// Claims a directory that is not there yet, or is empty.
    ///
    /// # Errors
    /// [`ClaimError::Taken`], [`ClaimError::Used`], [`ClaimError::Unshowable`], or that it cannot be made.
    pub fn new(path: &Path) -> Result<Self, ClaimError> {
        if !fits_on_a_line(&path.to_string_lossy()) {
            return Err(ClaimError::Unshowable { path: path.to_owned() });
        }
        for _ in 0..TRIES {
            let mut made = make_above(path).map_err(|cause| io_error(path, cause))?;
            match fs::create_dir(path) {
                Ok(()) => made.insert(0, path.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(cause) => return Err(io_error(path, cause)),
            }
            if let Some(claim) = Self::take(path, made)? {
                return Ok(claim);
            }
        }
        Err(ClaimError::Taken { path: path.to_owned() })
    }

    /// Claims a new directory in `base`, named after the experiment and the time; a run that began in the same second
    /// gets another name.
    ///
    /// # Errors
    /// That none can be made.
    pub fn named(base: &Path, experiment: &str) -> Result<Self, ClaimError> {
        let name = super::directory_name(experiment);
        let names = (1..=TRIES).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
        for path in names.map(|name| base.join(name)) {
            let mut made = make_above(&path).map_err(|cause| io_error(&path, cause))?;
            match fs::create_dir(&path) {
                Ok(()) => made.insert(0, path.clone()),
                // Of another run; or the directory above has gone with one that was refused.
                Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                    continue;
                }
                Err(cause) => return Err(io_error(&path, cause)),
            }
            match Self::take(&path, made) {
                Ok(Some(claim)) => return Ok(claim),
                Ok(None) | Err(ClaimError::Taken { .. } | ClaimError::Used { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(ClaimError::Taken { path: base.join(name) })
    }

    /// Claims a directory with results in it, to go on with them.
    ///
    /// # Errors
    /// [`ClaimError::Taken`], or that it cannot be opened.
    pub(super) fn again(path: &Path) -> Result<Self, ClaimError> {
        let since = Instant::now();
        let lock = loop {
            match lock(path) {
                Err(ClaimError::Taken { .. }) if since.elapsed() < ENDING => sleep(LOOK),
                locked => break locked?.ok_or_else(|| io_error(path, io::ErrorKind::NotFound.into()))?,
            }
        };
        Ok(Self { path: path.to_owned(), _lock: lock, made: Vec::new() })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps it beyond its drop: there are results in it now.
    pub(super) fn keep(&mut self) {
        self.made.clear();
    }

    /// Takes a directory that is there; `None` when it has gone meanwhile.
    fn take(path: &Path, made: Vec<PathBuf>) -> Result<Option<Self>, ClaimError> {
        let Some(lock) = lock(path)? else { return Ok(None) };
        let claim = Self { path: path.to_owned(), _lock: lock, made };
        // Looked at only now: whoever had it before may have written into it and ended.
        match fs::read_dir(path).and_then(|mut entries| entries.next().transpose()) {
            Ok(None) => Ok(Some(claim)),
            Ok(Some(_)) => Err(ClaimError::Used { path: path.to_owned() }),
            Err(cause) => Err(io_error(path, cause)),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        for directory in &self.made {
            // One that is not empty is of use to another, and so is what is above it.
            if fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
}

pub(super) fn io_error(path: &Path, cause: io::Error) -> ClaimError {
    ClaimError::Io { path: path.to_owned(), cause }
}

/// Makes what is missing above a directory; gives what was made, innermost first.
fn make_above(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) else { return Ok(Vec::new()) };
    let is_missing = |directory: &&Path| !directory.as_os_str().is_empty() && !directory.exists();
    let missing = above.ancestors().take_while(is_missing).map(Path::to_owned).collect();
    fs::create_dir_all(above)?;
    Ok(missing)
}

/// Whether a run writes its results to this directory now. On another host of a shared disk that is not seen.
pub fn is_being_written(path: &Path) -> bool {
    // A pipe in its place would be waited for.
    let Ok(directory) = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path) else { return false };
    // Others that look at the same moment do not keep each other out.
    flock(&directory, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// Locks a directory for as long as the file is open; `None` when it is not there, or not any more.
fn lock(path: &Path) -> Result<Option<File>, ClaimError> {
    let directory = match OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|cause| io_error(path, cause))?,
    };
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(ClaimError::Taken { path: path.to_owned() }),
        locked => locked.map_err(|error| io_error(path, error.into()))?,
    }
    // A run that was refused removes what it has made while it holds the lock: then this is none that others see.
    let same = |held: &fs::Metadata, there: &fs::Metadata| (held.dev(), held.ino()) == (there.dev(), there.ino());
    match (directory.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) if same(&held, &there) => Ok(Some(directory)),
        (Err(cause), _) => Err(io_error(path, cause)),
        _ => Ok(None),
    }
}
