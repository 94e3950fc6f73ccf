//! A results directory belongs to one run: claimed before anything runs, and held until the last write.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::printable::fits_on_a_line;
use rustix::fs::{FlockOperation, flock};

use super::error::{ClaimError, io_error};

/// How long a run that was just killed may keep its directory: the kernel needs time to end a process.
const ENDING: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
/// The number of names that are tried, or of attempts with a name that other runs make and remove meanwhile.
const TRIES: u32 = 1000;

/// A directory that no other run uses. If it is dropped before it has results, the directories made for it are removed.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// Locked while it is open.
    _lock: File,
    /// Directories that were made for it, innermost first.
    made: Vec<PathBuf>,
}

impl Claim {
    /// Claims a directory that does not exist yet, or is empty.
    ///
    /// # Errors
    /// [`ClaimError::Taken`], [`ClaimError::Used`], [`ClaimError::Unshowable`], or an error of making it.
    pub fn new(path: &Path) -> Result<Self, ClaimError> {
        if !fits_on_a_line(&path.to_string_lossy()) {
            return Err(ClaimError::Unshowable { path: path.to_owned() });
        }
        for _ in 0..TRIES {
            if let Some(claim) = Self::attempt(path, true)? {
                return Ok(claim);
            }
        }
        Err(ClaimError::Taken { path: path.to_owned() })
    }

    /// Claims a new directory in `base`, named after the experiment and the time. A run that began in the same second
    /// gets another name.
    ///
    /// # Errors
    /// When no directory can be made.
    pub fn named(base: &Path, experiment: &str) -> Result<Self, ClaimError> {
        let name = super::directory_name(experiment);
        let names = (1..=TRIES).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
        for path in names.map(|name| base.join(name)) {
            match Self::attempt(&path, false) {
                Ok(Some(claim)) => return Ok(claim),
                Ok(None) | Err(ClaimError::Taken { .. } | ClaimError::Used { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(ClaimError::Taken { path: base.join(name) })
    }

    /// Makes a directory and claims it; `None` if another run is faster, or if it exists and may not.
    fn attempt(path: &Path, may_exist: bool) -> Result<Option<Self>, ClaimError> {
        let mut made = make_above(path)?;
        match fs::create_dir(path) {
            Ok(()) => made.insert(0, path.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && may_exist => {}
            // The name belongs to another run, or a refused run has just removed the directory above.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                return Ok(None);
            }
            Err(cause) => return Err(io_error(path, cause)),
        }
        Self::take(path, made)
    }

    /// Claims a directory with results, to resume them.
    ///
    /// # Errors
    /// [`ClaimError::Taken`], or an error of opening it.
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

    /// Keeps the directory after the drop, because it has results now.
    pub(super) fn keep(&mut self) {
        self.made.clear();
    }

    /// Claims an existing directory; `None` when it has disappeared meanwhile.
    fn take(path: &Path, made: Vec<PathBuf>) -> Result<Option<Self>, ClaimError> {
        let Some(lock) = lock(path)? else { return Ok(None) };
        let claim = Self { path: path.to_owned(), _lock: lock, made };
        // Check only after locking, because the last holder may have written results before it ended.
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
            // A directory that is not empty is in use, and so are those above it.
            if fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
}

/// Makes missing directories above a directory; returns them, innermost first.
fn make_above(path: &Path) -> Result<Vec<PathBuf>, ClaimError> {
    // Creating a directory in place of such a link fails with an error that says that it exists.
    let is_dangling = |link: &&Path| link.is_symlink() && !link.exists();
    if let Some(link) = path.ancestors().find(is_dangling) {
        let target = fs::read_link(link).unwrap_or_default();
        return Err(ClaimError::Dangling { link: link.to_owned(), target });
    }
    let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) else { return Ok(Vec::new()) };
    let is_missing = |directory: &&Path| !directory.as_os_str().is_empty() && !directory.exists();
    let missing = above.ancestors().take_while(is_missing).map(Path::to_owned).collect();
    fs::create_dir_all(above).map_err(|cause| io_error(path, cause))?;
    Ok(missing)
}

/// Whether a run writes results to this directory now. A run on another host of a shared disk is not detected.
pub fn is_being_written(path: &Path) -> bool {
    // Opening only a directory avoids waiting for a pipe in its place.
    let Ok(directory) = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path) else { return false };
    // A shared lock, so that concurrent checks do not exclude each other.
    flock(&directory, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// Locks a directory while the file is open; `None` when the directory does not exist, or is removed meanwhile.
fn lock(path: &Path) -> Result<Option<File>, ClaimError> {
    let directory = match OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|cause| io_error(path, cause))?,
    };
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(ClaimError::Taken { path: path.to_owned() }),
        locked => locked.map_err(|error| io_error(path, error.into()))?,
    }
    // A refused run removes its directory while it holds the lock, so compare with the directory at the path.
    let same = |held: &fs::Metadata, there: &fs::Metadata| (held.dev(), held.ino()) == (there.dev(), there.ino());
    match (directory.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) if same(&held, &there) => Ok(Some(directory)),
        (Err(cause), _) => Err(io_error(path, cause)),
        _ => Ok(None),
    }
}
