//! A managed data directory.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::{Doing, ProvisionError};
use super::ledger::{Ledger, Registration, Thing};
use super::marker::{self, Marker};
use super::owner::{Life, Owner};
use super::tenants;

/// Where the engine's data is, below the directory.
const ENGINE: &str = "data";

/// A note about the data, beside the marker.
const NOTE: &str = "note.json";

/// What a directory may hold and still count as empty: what mkfs makes, and a
/// marker whose writer was killed.
const COUNT_AS_EMPTY: [&str; 2] = ["lost+found", marker::UNFINISHED_NAME];

/// A data directory of this process. It is removed when dropped, unless it is kept.
#[derive(Debug)]
pub struct DataDir {
    marker: Marker,
    registration: Registration,
    keep: bool,
    removed: bool,
}

impl DataDir {
    /// Refuses a path that [`DataDir::create`] would refuse, and touches nothing.
    ///
    /// # Errors
    /// As [`DataDir::create`].
    pub fn check(path: &Path) -> Result<(), ProvisionError> {
        match path.canonicalize() {
            Ok(path) => may_take(&path).map(drop),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(refusal(path, error)),
        }
    }

    /// Makes a data directory, or takes an empty one, or cleans and takes one
    /// whose owner has ended.
    ///
    /// # Errors
    /// [`ProvisionError::Foreign`] when it holds anything that is not rumba's,
    /// [`ProvisionError::InUse`] when its owner lives, and others that say what to do.
    pub fn create(path: &Path, owner: &Owner, ledger: &Ledger) -> Result<Self, ProvisionError> {
        let (path, made) = make(path)?;
        Self::take(&path, owner, ledger, made.clone()).inspect_err(|_| remove_empty(&made))
    }

    fn take(path: &Path, owner: &Owner, ledger: &Ledger, mut made: Vec<PathBuf>) -> Result<Self, ProvisionError> {
        let _lock = lock(path)?;
        if let Some(leftover) = may_take(path)? {
            tenants::end(&tenants::mark(path, &leftover.owner), path)?;
            remove_data(path)?;
            made = leftover.made;
        }
        // Registered before it is marked: a kill in between leaves an entry
        // without a directory, which is harmless, and never the reverse.
        let thing = Thing::DataDirectory { path: path.to_owned() };
        let registration = ledger.register(&thing, owner)?;
        let marker = Marker::new(path.to_owned(), owner.clone(), made);
        marker.write().doing("write the marker of", path)?;
        // From here on, dropping it undoes it.
        let dir = Self { marker, registration, keep: false, removed: false };
        fs::create_dir(dir.engine_dir()).doing("create", &dir.engine_dir())?;
        Ok(dir)
    }

    /// Takes over a directory with the data in it, if there is one that a process
    /// which has ended made. Nobody's or none: `None`.
    ///
    /// # Errors
    /// When its owner lives, or it was kept for the user.
    pub fn adopt(path: &Path, owner: &Owner, ledger: &Ledger) -> Result<Option<Self>, ProvisionError> {
        let Ok(path) = path.canonicalize() else { return Ok(None) };
        let _lock = lock(&path)?;
        let Some(leftover) = Marker::read(&path)? else { return Ok(None) };
        refuse_unless_leftover(&path, &leftover)?;
        tenants::end(&tenants::mark(&path, &leftover.owner), &path)?;
        let registration = ledger.register(&Thing::DataDirectory { path: path.clone() }, owner)?;
        let marker = Marker::new(path.clone(), owner.clone(), leftover.made);
        marker.write().doing("write the marker of", &path)?;
        Ok(Some(Self { marker, registration, keep: false, removed: false }))
    }

    /// Where a note about the data may be written; it is removed with the data.
    pub fn note(&self) -> PathBuf {
        self.marker.path.join(NOTE)
    }

    /// The directory, absolute and without links.
    pub fn path(&self) -> &Path {
        &self.marker.path
    }

    /// The engine's own directory in it, empty at first.
    pub fn engine_dir(&self) -> PathBuf {
        self.marker.path.join(ENGINE)
    }

    /// What the processes of its trial carry in their environment, as [`super::MARK_VARIABLE`].
    pub fn mark(&self) -> String {
        tenants::mark(&self.marker.path, &self.marker.owner)
    }

    /// Waits until the processes that its trial has started have ended, and kills
    /// those that do not within seconds. The trial's own process must have ended.
    ///
    /// # Errors
    /// When one cannot be ended.
    pub fn vacate(&self) -> Result<(), ProvisionError> {
        tenants::end(&self.mark(), self.path())
    }

    /// Keeps the data beyond the end of this process. It is then the user's: no
    /// later run takes or cleans it.
    ///
    /// # Errors
    /// When the marker cannot be written; the data is kept nevertheless.
    pub fn keep(&mut self) -> Result<(), ProvisionError> {
        self.keep = true;
        self.marker.kept = true;
        self.marker.write().doing("write the marker of", self.path())?;
        self.registration.strike()
    }

    /// Removes it now, and says when that fails.
    ///
    /// # Errors
    /// What could not be removed; `rumba doctor --clean` finds it later.
    pub fn remove(mut self) -> Result<(), ProvisionError> {
        self.remove_once()
    }

    fn remove_once(&mut self) -> Result<(), ProvisionError> {
        if self.keep || self.removed {
            return Ok(());
        }
        self.removed = true;
        remove(&self.marker)?;
        self.registration.strike()
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // What fails here stays in the ledger and is found by the next `leftovers`.
        let _ = self.remove_once();
    }
}

/// Removes what a dead process left of a data directory. What has been taken by
/// another process, or removed, meanwhile is let be.
pub fn clean(path: &Path, owner: &Owner) -> Result<(), ProvisionError> {
    if !path.is_dir() {
        return Ok(());
    }
    let _lock = lock(path)?;
    match Marker::read(path)? {
        Some(marker) if marker.owner == *owner && !marker.kept => {
            tenants::end(&tenants::mark(&marker.path, owner), &marker.path)?;
            remove(&marker)
        }
        _ => Ok(()),
    }
}

/// Whether a directory is still the one that an owner made.
pub fn is_owned(path: &Path, owner: &Owner) -> bool {
    matches!(Marker::read(path), Ok(Some(marker)) if marker.owner == *owner && !marker.kept)
}

/// Makes the directory and what is missing above it; returns its path without
/// links, and what was made, innermost first.
pub(super) fn make(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), ProvisionError> {
    let absolute = std::path::absolute(path).doing("find", path)?;
    let missing: Vec<&Path> = absolute.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    fs::create_dir_all(&absolute).map_err(|error| refusal(&absolute, error))?;
    let resolved = absolute.canonicalize().doing("find", &absolute)?;
    let mut made: Vec<PathBuf> = resolved.ancestors().take(missing.len()).map(Path::to_owned).collect();
    if made.len() == 1 {
        made.extend(made_for_neighbours(&resolved));
    }
    Ok((resolved, made))
}

/// The directories above one that were made for managed directories beside it:
/// whichever of them goes last removes them.
fn made_for_neighbours(path: &Path) -> Vec<PathBuf> {
    let Some(parent) = path.parent() else { return Vec::new() };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let markers = entries.filter_map(|entry| Marker::read(&entry.path()).ok().flatten());
    let above = |marker: Marker| marker.made.into_iter().filter(|made| parent.starts_with(made)).collect::<Vec<_>>();
    markers.map(above).max_by_key(Vec::len).unwrap_or_default()
}

/// Why a path cannot be a directory.
fn refusal(path: &Path, source: io::Error) -> ProvisionError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => ProvisionError::NotADirectory { path },
        _ => ProvisionError::Io { doing: "make or reach", path, source },
    }
}

/// Refuses a path that may not be taken; returns the marker of a leftover.
pub(super) fn may_take(path: &Path) -> Result<Option<Marker>, ProvisionError> {
    if !path.is_dir() {
        return Err(ProvisionError::NotADirectory { path: path.to_owned() });
    }
    let marker = Marker::read(path)?;
    match &marker {
        Some(leftover) => refuse_unless_leftover(path, leftover)?,
        None => refuse_unless_empty(path)?,
    }
    Ok(marker)
}

/// Holds off other processes that look at the same directory, until it is dropped.
pub(super) fn lock(path: &Path) -> Result<File, ProvisionError> {
    loop {
        let dir = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(path)
            .doing("open", path)?;
        flock(&dir, FlockOperation::LockExclusive).map_err(Into::into).doing("lock", path)?;
        // Whoever held the lock may have removed the directory and made it anew.
        let locked = dir.metadata().doing("look at", path)?;
        let current = fs::symlink_metadata(path).doing("look at", path)?;
        if (locked.dev(), locked.ino()) == (current.dev(), current.ino()) {
            return Ok(dir);
        }
    }
}

fn refuse_unless_leftover(path: &Path, marker: &Marker) -> Result<(), ProvisionError> {
    let (path, owner) = (path.to_owned(), Box::new(marker.owner.clone()));
    if marker.kept {
        return Err(ProvisionError::Kept { path, owner });
    }
    match marker.owner.process.life() {
        Life::Ended => Ok(()),
        Life::Lives => Err(ProvisionError::InUse { path, owner }),
        Life::OutOfSight => Err(ProvisionError::OutOfSight { path, owner }),
    }
}

fn refuse_unless_empty(path: &Path) -> Result<(), ProvisionError> {
    for entry in fs::read_dir(path).doing("read", path)? {
        let name = entry.doing("read", path)?.file_name();
        if !COUNT_AS_EMPTY.iter().any(|&known| name == known) {
            return Err(ProvisionError::Foreign { path: path.to_owned(), holds: name.to_string_lossy().into_owned() });
        }
    }
    Ok(())
}

/// Removes the engine's data, then the marker, then the directories that were
/// made; in this order, because without the marker it would be foreign.
fn remove(marker: &Marker) -> Result<(), ProvisionError> {
    remove_data(&marker.path)?;
    let file = marker.path.join(marker::NAME);
    unless_gone(fs::remove_file(&file)).doing("remove", &file)?;
    remove_empty(&marker.made);
    Ok(())
}

/// Removes the engine's directory. A link in its place, or in it, is removed
/// and not followed: `remove_dir_all` sees to it.
fn remove_data(path: &Path) -> Result<(), ProvisionError> {
    // The note first: what is half removed is nothing that it could speak of.
    for note in [path.join(NOTE), path.join(NOTE).with_extension("part")] {
        unless_gone(fs::remove_file(&note)).doing("remove", &note)?;
    }
    let data = path.join(ENGINE);
    unless_gone(fs::remove_dir_all(&data)).doing("remove", &data)
}

/// Removes directories that are empty; one that is not has been put to use by someone.
pub(super) fn remove_empty(made: &[PathBuf]) {
    for dir in made {
        if fs::remove_dir(dir).is_err() {
            break;
        }
    }
}

pub(super) fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
