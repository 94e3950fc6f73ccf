//! The list of everything managed: one small file each, below the user's state
//! directory, so that what a kill -9 left is found by a later run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::checked_dir::{CheckedDir, PRIVATE};
use super::error::{Doing, ProvisionError};
use super::owner::{Life, Owner};
use super::{control_group, data_dir, volume};

/// Something on the host that a run made and must undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Thing {
    /// A data directory.
    DataDirectory {
        /// Where it is, absolute and without links.
        path: PathBuf,
    },
    /// A control group with the processes in it.
    ControlGroup {
        /// Its directory.
        path: PathBuf,
    },
    /// A filesystem of its own: mounts, loop device, throttles, file.
    Volume {
        /// The directory that holds it, absolute and without links.
        path: PathBuf,
    },
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Thing::DataDirectory { path } => write!(f, "data directory {}", path.display()),
            Thing::ControlGroup { path } => write!(f, "control group {}", path.display()),
            Thing::Volume { path } => write!(f, "throttled filesystem {}", path.display()),
        }
    }
}

impl Thing {
    /// Whether it is still there and still this owner's.
    ///
    /// # Errors
    /// When that cannot be told: then it stays listed, for the user to look at.
    fn is_owned(&self, owner: &Owner) -> Result<bool, ProvisionError> {
        match self {
            Thing::DataDirectory { path } => data_dir::is_owned(path, owner),
            Thing::Volume { path } => volume::is_owned(path, owner),
            Thing::ControlGroup { path } => Ok(control_group::is_owned(path, owner)),
        }
    }

    fn clean(&self, owner: &Owner) -> Result<(), ProvisionError> {
        match self {
            Thing::DataDirectory { path } => data_dir::clean(path, owner),
            Thing::ControlGroup { path } => control_group::clean(path, owner),
            Thing::Volume { path } => volume::clean(path, owner),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Entry {
    thing: Thing,
    owner: Owner,
}

/// How the names of entries end, and those of entries that are being written.
const ENTRY: &str = ".json";
const UNFINISHED: &str = ".new";

/// Longer than any entry, bytes.
const LONGEST: u64 = 64 << 10;

/// Something managed whose owner has ended without undoing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub thing: Thing,
    /// Whose it was.
    pub owner: Owner,
    /// Why rumba cannot tell whether it still is, and what to do; it is not cleaned then.
    pub doubt: Option<String>,
    /// The name of its entry.
    entry: String,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, left by {}", self.thing, self.owner)
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
    pub fn register(&self, thing: &Thing, owner: &Owner) -> Result<Registration, ProvisionError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Process and start time make the name this process's own; the number sorts as text.
        let name = format!("{}-{}-{number:08}", owner.process.pid, owner.process.start_ticks);
        let (entry, unfinished) = (format!("{name}{ENTRY}"), format!("{name}{UNFINISHED}"));
        let json = serde_json::to_vec_pretty(&Entry { thing: thing.clone(), owner: owner.clone() });
        let json = json.map_err(Into::into).doing("write", &self.dir.path().join(&entry))?;
        self.dir.write(&entry, &unfinished, &json)?;
        Ok(Registration { dir: self.dir.clone(), entry: Some(entry) })
    }

    /// What ended processes left behind, the last made first. Entries whose
    /// thing is gone are struck off.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, ProvisionError> {
        let mut leftovers = Vec::new();
        for entry in self.entries()? {
            // An entry may be struck off, or be half written, by another process at this moment.
            let Ok(Some(Entry { thing, owner })) = self.read(&entry) else { continue };
            if owner.process.life() != Life::Ended {
                continue;
            }
            match thing.is_owned(&owner) {
                Ok(false) => self.dir.remove_file(&entry)?,
                Ok(true) => leftovers.push(Leftover { thing, owner, doubt: None, entry }),
                Err(doubt) => leftovers.push(Leftover { thing, owner, doubt: Some(doubt.to_string()), entry }),
            }
        }
        // Timestamps in RFC 3339 sort as text; what was made last may depend on what was made first.
        leftovers.sort_by(|a, b| b.owner.created.cmp(&a.owner.created).then_with(|| b.entry.cmp(&a.entry)));
        Ok(leftovers)
    }

    /// Entries that cannot be understood, each with what to do: whatever they list is not cleaned.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn unreadable(&self) -> Result<Vec<ProvisionError>, ProvisionError> {
        let finished = self.entries()?.into_iter().filter(|entry| entry.ends_with(ENTRY));
        Ok(finished.filter_map(|entry| self.read(&entry).err()).collect())
    }

    /// The names of all entries.
    fn entries(&self) -> Result<Vec<String>, ProvisionError> {
        Ok(self.dir.names()?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// An entry, if it is still there.
    fn read(&self, entry: &str) -> Result<Option<Entry>, ProvisionError> {
        let Some(json) = self.dir.read(entry, LONGEST)? else { return Ok(None) };
        serde_json::from_slice(&json).map(Some).map_err(|error| ProvisionError::Marker {
            path: self.dir.path().join(entry),
            reason: format!("not an entry of this rumba's ledger: {error}"),
        })
    }

    /// Undoes what was left behind.
    ///
    /// # Errors
    /// What could not be undone; it stays listed.
    pub fn clean(&self, leftover: &Leftover) -> Result<(), ProvisionError> {
        leftover.thing.clean(&leftover.owner)?;
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
