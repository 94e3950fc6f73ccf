//! The list of everything managed: one small file each, below the user's state
//! directory, so that what a kill -9 left is found by a later run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rumba_core::printable::shown;
use serde::{Deserialize, Serialize};

use super::checked_dir::{CheckedDir, PRIVATE};
use super::error::{Doing, ProvisionError};
use super::owner::{Life, Owner};

/// A kind of thing that is listed. Whoever makes such things says here how one is recognised and undone; the ledger
/// itself knows none of them.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in entries: `data-directory`.
    pub name: &'static str,
    /// How a person calls it: `data directory`.
    pub words: &'static str,
    /// Whether the thing at a path is still there and still this owner's; an error where that cannot be told.
    pub is_owned: fn(&Path, &Owner) -> Result<bool, ProvisionError>,
    /// Undoes the thing at a path, if it is still there and still this owner's.
    pub clean: fn(&Path, &Owner) -> Result<(), ProvisionError>,
}

/// Something on the host that a run made and must undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Thing {
    /// The name of its kind.
    kind: String,
    /// Where it is, absolute and without links.
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    thing: Thing,
    owner: Owner,
}

/// How the names of entries end, and those of entries that are being written.
const ENTRY: &str = ".json";
const UNFINISHED: &str = ".new";

/// Nobody writes an entry for so long: whoever has begun with it was killed.
const LONGEST_WRITE: Duration = Duration::from_secs(600);

/// Longer than any entry, bytes.
const LONGEST: u64 = 64 << 10;

/// Something managed whose owner has ended without undoing it.
#[derive(Clone, Debug)]
pub struct Leftover {
    kind: Kind,
    /// Where it is.
    pub path: PathBuf,
    /// Whose it was.
    pub owner: Owner,
    /// Why rumba cannot tell whether it still is, and what to do; it is not cleaned then.
    pub doubt: Option<String>,
    /// The name of its entry.
    entry: String,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, left by {}", self.kind.words, shown(&self.path), self.owner)
    }
}

/// The ledger of a user.
#[derive(Clone, Debug)]
pub struct Ledger {
    dir: Arc<CheckedDir>,
}

impl Ledger {
    /// The user's: in `$XDG_STATE_HOME/rumba`, else `~/.local/state/rumba`,
    /// else, where neither can be written, in a directory of the user's own
    /// in that for temporary files.
    ///
    /// # Errors
    /// When none of them can be made, or be trusted.
    pub fn of_user() -> Result<Self, ProvisionError> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
        match state.map(|state| Self::at(&state.join("rumba"))) {
            Some(Ok(ledger)) => Ok(ledger),
            Some(Err(refused)) => Self::in_shared(&std::env::temp_dir()).map_err(|_| refused),
            None => Self::in_shared(&std::env::temp_dir()),
        }
    }

    /// A ledger below this directory.
    ///
    /// # Errors
    /// When it cannot be made or written, or belongs to another user.
    pub fn at(state: &Path) -> Result<Self, ProvisionError> {
        let (dir, _) = CheckedDir::make(&state.join("managed"), PRIVATE)?;
        Self::of(dir)
    }

    /// A ledger in a directory that all users share: below one that this user alone can have made, and can look into.
    fn in_shared(shared: &Path) -> Result<Self, ProvisionError> {
        let Some(shared) = CheckedDir::find(shared)? else {
            return Err(io::Error::from(io::ErrorKind::NotFound)).doing("find", shared);
        };
        shared.require_safe()?;
        let name = format!("rumba-{}", rustix::process::geteuid().as_raw());
        let managed = shared.private(&name)?.private("managed")?;
        Self::of(managed)
    }

    fn of(dir: CheckedDir) -> Result<Self, ProvisionError> {
        dir.require_own()?;
        if dir.is_writable() {
            return Ok(Self { dir: Arc::new(dir) });
        }
        Err(io::Error::from(io::ErrorKind::PermissionDenied)).doing("write to", dir.path())
    }

    /// Lists something before it is made.
    ///
    /// # Errors
    /// When the entry cannot be written.
    pub fn register(&self, kind: &Kind, path: &Path, owner: &Owner) -> Result<Registration, ProvisionError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Process and start time make the name this process's own; the number sorts as text.
        let name = format!("{}-{}-{number:08}", owner.process.pid, owner.process.start_ticks);
        let (entry, unfinished) = (format!("{name}{ENTRY}"), format!("{name}{UNFINISHED}"));
        let thing = Thing { kind: kind.name.to_owned(), path: path.to_owned() };
        let json = serde_json::to_vec_pretty(&Entry { thing, owner: owner.clone() });
        let json = json.map_err(Into::into).doing("write", &self.dir.path().join(&entry))?;
        self.dir.write(&entry, &unfinished, &json)?;
        Ok(Registration { dir: self.dir.clone(), entry: Some(entry) })
    }

    /// What ended processes left behind of these kinds, the last made first. Entries whose
    /// thing is gone are struck off, and so are those that a kill has left half written; those of other kinds are let be.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn leftovers(&self, kinds: &[Kind]) -> Result<Vec<Leftover>, ProvisionError> {
        let mut leftovers = Vec::new();
        let (unfinished, entries): (Vec<_>, Vec<_>) =
            self.entries()?.into_iter().partition(|entry| entry.ends_with(UNFINISHED));
        for entry in unfinished {
            // Nothing is made before its entry is finished.
            if self.dir.age_of(&entry)? > Some(LONGEST_WRITE) {
                self.dir.remove_file(&entry)?;
            }
        }
        for entry in entries {
            // An entry may be struck off, or be half written, by another process at this moment.
            let Ok(Some((kind, Entry { thing, owner }))) = self.read(&entry, kinds) else { continue };
            if owner.process.life() != Life::Ended {
                continue;
            }
            let doubt = match (kind.is_owned)(&thing.path, &owner) {
                Ok(false) => {
                    self.dir.remove_file(&entry)?;
                    continue;
                }
                Ok(true) => None,
                Err(doubt) => Some(doubt.to_string()),
            };
            leftovers.push(Leftover { kind, path: thing.path, owner, doubt, entry });
        }
        // Timestamps in RFC 3339 sort as text; what was made last may depend on what was made first.
        leftovers.sort_by(|a, b| b.owner.created.cmp(&a.owner.created).then_with(|| b.entry.cmp(&a.entry)));
        Ok(leftovers)
    }

    /// What living processes have of a kind, and who they are.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn living(&self, kind: &Kind) -> Result<Vec<(PathBuf, Owner)>, ProvisionError> {
        // An entry may be of another kind, or be struck off or half written by another process at this moment.
        let listed = self.entries()?.into_iter();
        let entries = listed.filter_map(|entry| self.read(&entry, std::slice::from_ref(kind)).ok().flatten());
        let living = entries.filter(|(_, Entry { owner, .. })| owner.process.life() == Life::Lives);
        Ok(living.map(|(_, Entry { thing, owner })| (thing.path, owner)).collect())
    }

    /// Entries that cannot be understood, or are of none of these kinds, each with what to do: whatever they list is not cleaned.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn unreadable(&self, kinds: &[Kind]) -> Result<Vec<ProvisionError>, ProvisionError> {
        let finished = self.entries()?.into_iter().filter(|entry| entry.ends_with(ENTRY));
        Ok(finished.filter_map(|entry| self.read(&entry, kinds).err()).collect())
    }

    /// The names of all entries.
    fn entries(&self) -> Result<Vec<String>, ProvisionError> {
        Ok(self.dir.names()?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// An entry and the kind of what it lists, if it is still there.
    fn read(&self, entry: &str, kinds: &[Kind]) -> Result<Option<(Kind, Entry)>, ProvisionError> {
        let Some(json) = self.dir.read(entry, LONGEST)? else { return Ok(None) };
        let wrong = |reason: String| ProvisionError::Marker {
            path: self.dir.path().join(entry),
            reason: format!("not an entry of this rumba's ledger: {reason}"),
        };
        let read: Entry = serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))?;
        match kinds.iter().find(|kind| kind.name == read.thing.kind) {
            Some(kind) => Ok(Some((*kind, read))),
            None => Err(wrong(format!("it lists a `{}`, which nobody here knows", read.thing.kind))),
        }
    }

    /// Undoes what was left behind.
    ///
    /// # Errors
    /// What could not be undone; it stays listed.
    pub fn clean(&self, leftover: &Leftover) -> Result<(), ProvisionError> {
        (leftover.kind.clean)(&leftover.path, &leftover.owner)?;
        self.dir.remove_file(&leftover.entry)
    }
}

/// An entry of the ledger. It stays until it is struck off, because only then
/// the thing is known to be undone.
#[derive(Debug)]
pub struct Registration {
    dir: Arc<CheckedDir>,
    entry: Option<String>,
}

impl Registration {
    /// Strikes the entry off, once the thing is undone.
    ///
    /// # Errors
    /// When the entry cannot be removed.
    pub fn strike(&mut self) -> Result<(), ProvisionError> {
        self.entry.take().map_or(Ok(()), |entry| self.dir.remove_file(&entry))
    }
}
