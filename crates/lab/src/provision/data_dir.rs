//! A managed data directory.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::checked_dir::{CheckedDir, PASSABLE, remove_empty};
use super::error::ProvisionError;
use super::ledger::{Kind, Registration, ResourceRegistry};
use super::marker::{self, OwnerTag};
use super::owner::{Life, Owner};
use super::stray_processes;
use super::trust::Objection;

pub const KIND: Kind = Kind { name: "data-directory", words: "data directory", is_owned, clean };

/// The engine's data directory, in the managed directory.
const ENGINE: &str = "data";

/// A note about the data, next to the marker.
const NOTE: &str = "note.json";
const UNFINISHED_NOTE: &str = "note.part";

/// The longest note, bytes.
const LONGEST_NOTE: u64 = 64 << 10;

/// The commits that clients saw acknowledged before a kill, next to the data.
const JOURNAL: &str = "journal";

/// Contents that still count as empty: the directory that mkfs makes, and a marker whose writer was killed.
const COUNT_AS_EMPTY: [&str; 2] = ["lost+found", marker::UNFINISHED_NAME];

/// A data directory of this process. It is removed when dropped, unless the user keeps it.
#[derive(Debug)]
pub struct DataDir {
    marker: OwnerTag,
    /// Device and inode, which distinguish it from any other directory at the path.
    id: (u64, u64),
    registration: Registration,
}

impl DataDir {
    /// Refuses a path that [`DataDir::create`] would refuse, and changes nothing.
    ///
    /// # Errors
    /// As [`DataDir::create`].
    pub fn check(path: &Path) -> Result<(), ProvisionError> {
        CheckedDir::find(path)?.map_or(Ok(()), |dir| may_take(&dir).map(drop))
    }

    /// Makes a data directory, takes an empty one, or cleans and takes one whose owner has ended.
    ///
    /// # Errors
    /// [`ProvisionError::Foreign`] when it has contents that rumba did not make, [`ProvisionError::Untrusted`] when
    /// another user could change them, [`ProvisionError::InUse`] when its owner lives; other errors name their remedy.
    pub fn create(path: &Path, owner: &Owner, ledger: &ResourceRegistry) -> Result<Self, ProvisionError> {
        let (dir, _lock, marker, registration) = take(path, &KIND, owner, ledger, |dir, leftover| {
            stray_processes::end(&stray_processes::mark(dir.path(), &leftover.owner), dir.path())?;
            remove_data(dir)
        })?;
        // From here on, dropping the value undoes it.
        let data = Self { marker, id: dir.id()?, registration };
        dir.make_dir(ENGINE, PASSABLE)?;
        Ok(data)
    }

    /// Takes over the directory of an ended process, with its data; `None` if there is no such directory.
    ///
    /// # Errors
    /// When its owner lives, or it was kept for the user.
    pub fn adopt(path: &Path, owner: &Owner, ledger: &ResourceRegistry) -> Result<Option<Self>, ProvisionError> {
        let Some(found) = CheckedDir::find(path)? else { return Ok(None) };
        let (dir, _lock) = lock(found.path())?;
        let Some(leftover) = OwnerTag::read(&dir)? else { return Ok(None) };
        let path = dir.path();
        refuse_unless_leftover(path, &leftover)?;
        stray_processes::end(&stray_processes::mark(path, &leftover.owner), path)?;
        let registration = ledger.register(&KIND, path, owner)?;
        let marker = OwnerTag::new(path.to_owned(), owner.clone(), leftover.made);
        marker.write()?;
        Ok(Some(Self { marker, id: dir.id()?, registration }))
    }

    /// The path of a note about the data; it is removed with the data.
    pub fn note(&self) -> PathBuf {
        self.marker.path.join(NOTE)
    }

    /// The note about the data of a directory, if there is one.
    ///
    /// # Errors
    /// When the directory belongs to another user, or cannot be read.
    pub fn noted(path: &Path) -> Result<Option<Vec<u8>>, ProvisionError> {
        let Some(dir) = CheckedDir::at(path)? else { return Ok(None) };
        dir.require_own()?;
        dir.read(NOTE, LONGEST_NOTE)
    }

    /// The data of a directory that was kept for the user; `None` for any other directory.
    ///
    /// # Errors
    /// When its marker belongs to another user or another directory.
    pub fn kept(path: &Path) -> Result<Option<PathBuf>, ProvisionError> {
        let Some(dir) = CheckedDir::at(path)? else { return Ok(None) };
        Ok(OwnerTag::read(&dir)?.filter(|marker| marker.kept).map(|_| path.join(ENGINE)))
    }

    /// The path where clients note acknowledged commits before a kill; it is removed with the data.
    pub fn journal(&self) -> PathBuf {
        self.marker.path.join(JOURNAL)
    }

    /// The directory, absolute and without links.
    pub fn path(&self) -> &Path {
        &self.marker.path
    }

    /// The engine's own directory in it, empty at first.
    pub fn engine_dir(&self) -> PathBuf {
        self.marker.path.join(ENGINE)
    }

    /// The value of [`super::MARK_VARIABLE`] in the environment of its trial's processes.
    pub fn mark(&self) -> String {
        stray_processes::mark(&self.marker.path, &self.marker.owner)
    }

    /// Waits until the processes that its trial has started have ended, and kills those that do not end within seconds.
    /// The trial's own process must have ended.
    ///
    /// # Errors
    /// When a process cannot be ended.
    pub fn vacate(&self) -> Result<(), ProvisionError> {
        stray_processes::end(&self.mark(), self.path())
    }

    /// Keeps the data beyond the end of this process. It then belongs to the user: no later run takes or cleans it.
    ///
    /// # Errors
    /// When the marker cannot be written; the data is kept nevertheless.
    pub fn keep(&mut self) -> Result<(), ProvisionError> {
        self.marker.kept = true;
        self.registration.undo(|| self.marker.write())
    }

    /// Removes the directory now, and returns the error if that fails.
    ///
    /// # Errors
    /// Data that could not be removed; `rumba doctor --clean` finds it later.
    pub fn remove(mut self) -> Result<(), ProvisionError> {
        self.remove_once()
    }

    fn remove_once(&mut self) -> Result<(), ProvisionError> {
        self.registration.undo(|| {
            let Some(dir) = CheckedDir::at(&self.marker.path)? else { return Ok(()) };
            if dir.id()? != self.id {
                let another = Objection::new("it is not the directory that was made there");
                return Err(ProvisionError::managed(&self.marker.path, another));
            }
            remove(&dir, &self.marker)
        })
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // Data that cannot be removed stays in the ledger for the next `leftovers`.
        let _ = self.remove_once();
    }
}

/// Removes the data directory of an ended process. A directory that another process has taken or removed meanwhile is
/// left alone.
fn clean(path: &Path, owner: &Owner) -> Result<(), ProvisionError> {
    let Some((dir, _lock)) = CheckedDir::lock(path)? else { return Ok(()) };
    match OwnerTag::read(&dir)? {
        Some(marker) if marker.owner == *owner && !marker.kept => {
            stray_processes::end(&stray_processes::mark(path, owner), path)?;
            remove(&dir, &marker)
        }
        _ => Ok(()),
    }
}

/// Whether a directory still belongs to an owner.
///
/// # Errors
/// When this is unknown, because its marker is invalid or belongs to another user.
fn is_owned(path: &Path, owner: &Owner) -> Result<bool, ProvisionError> {
    let Some(dir) = CheckedDir::at(path)? else { return Ok(false) };
    Ok(OwnerTag::read(&dir)?.is_some_and(|marker| marker.owner == *owner && !marker.kept))
}

/// Makes a managed directory, takes an empty one, or clears and takes one whose owner has ended. Returns it and its
/// lock, its marker, and its entry in the ledger.
pub fn take(
    path: &Path,
    kind: &Kind,
    owner: &Owner,
    ledger: &ResourceRegistry,
    clear: impl Fn(&CheckedDir, &OwnerTag) -> Result<(), ProvisionError>,
) -> Result<(CheckedDir, File, OwnerTag, Registration), ProvisionError> {
    let (path, made) = make(path)?;
    let take = || -> Result<_, ProvisionError> {
        let (dir, lock) = lock(&path)?;
        let leftover = may_take(&dir)?;
        leftover.as_ref().map_or(Ok(()), |leftover| clear(&dir, leftover))?;
        // Register before writing the marker. A kill in between leaves an entry without a directory, which is harmless,
        // and never the reverse.
        let registration = ledger.register(kind, &path, owner)?;
        let made = leftover.map_or_else(|| made.clone(), |leftover| leftover.made);
        let marker = OwnerTag::new(path.clone(), owner.clone(), made);
        marker.write()?;
        Ok((dir, lock, marker, registration))
    };
    take().inspect_err(|_| remove_empty(&made))
}

/// Makes the directory and missing ones above it. Returns its path without links, and those that were made, innermost
/// first.
fn make(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), ProvisionError> {
    let (dir, mut made) = CheckedDir::make(path, PASSABLE)?;
    if made.len() == 1 {
        made.extend(made_for_neighbours(dir.path()));
    }
    Ok((dir.path().to_owned(), made))
}

/// The directories above one that were made for a managed directory next to it: the last of these to go removes them.
/// Only this user's markers count.
fn made_for_neighbours(path: &Path) -> Vec<PathBuf> {
    let Some(parent) = path.parent() else { return Vec::new() };
    let Ok(Some(dir)) = CheckedDir::at(parent) else { return Vec::new() };
    let names = dir.names().unwrap_or_default();
    let markers = names.iter().filter_map(|name| OwnerTag::read(&dir.below(name).ok()??).ok()?);
    let above = |marker: OwnerTag| marker.made.into_iter().filter(|made| parent.starts_with(made)).collect::<Vec<_>>();
    markers.map(above).max_by_key(Vec::len).unwrap_or_default()
}

/// Refuses a directory that may not be taken; returns the marker of a leftover.
fn may_take(dir: &CheckedDir) -> Result<Option<OwnerTag>, ProvisionError> {
    let marker = OwnerTag::read(dir)?;
    match &marker {
        Some(leftover) => refuse_unless_leftover(dir.path(), leftover)?,
        None => refuse_unless_empty(dir)?,
    }
    Ok(marker)
}

/// A directory that existed a moment ago, with other processes locked out.
pub fn lock(path: &Path) -> Result<(CheckedDir, File), ProvisionError> {
    CheckedDir::lock(path)?.ok_or_else(|| ProvisionError::NotADirectory { path: path.to_owned() })
}

fn refuse_unless_leftover(path: &Path, marker: &OwnerTag) -> Result<(), ProvisionError> {
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

fn refuse_unless_empty(dir: &CheckedDir) -> Result<(), ProvisionError> {
    for name in dir.names()? {
        if !COUNT_AS_EMPTY.iter().any(|&known| name == known) {
            let holds = name.to_string_lossy().into_owned();
            return Err(ProvisionError::Foreign { path: dir.path().to_owned(), holds });
        }
    }
    Ok(())
}

/// Removes the engine's data, then the marker, then the directories that were made. In another order, a kill would
/// leave data without a marker, which counts as foreign.
fn remove(dir: &CheckedDir, marker: &OwnerTag) -> Result<(), ProvisionError> {
    dir.require_own()?;
    remove_data(dir)?;
    dir.remove_file(marker::NAME)?;
    remove_empty(&marker.made);
    Ok(())
}

/// Removes the engine's directory and its notes.
fn remove_data(dir: &CheckedDir) -> Result<(), ProvisionError> {
    // Remove the note first, because it would describe data that is partly removed.
    dir.remove_file(NOTE)?;
    dir.remove_file(UNFINISHED_NOTE)?;
    dir.remove_file(JOURNAL)?;
    dir.remove_all(ENGINE)
}
