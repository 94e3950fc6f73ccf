//! The list of everything managed: one small file each, below the user's state
//! directory, so that what a kill -9 left is found by a later run.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

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
    fn is_owned(&self, owner: &Owner) -> bool {
        match self {
            Thing::DataDirectory { path } => data_dir::is_owned(path, owner),
            Thing::Volume { path } => data_dir::is_owned(path, owner) || volume::is_unmarked(path),
            Thing::ControlGroup { path } => control_group::is_owned(path, owner),
        }
    }

    fn clean(&self, owner: &Owner) -> Result<(), ProvisionError> {
        match self {
            Thing::DataDirectory { path } => data_dir::clean(path, owner),
            Thing::ControlGroup { path } => control_group::clean(path),
            Thing::Volume { path } => volume::clean(path, owner),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Entry {
    thing: Thing,
    owner: Owner,
}

/// Something managed whose owner has ended without undoing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub thing: Thing,
    /// Whose it was.
    pub owner: Owner,
    file: PathBuf,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, left by {}", self.thing, self.owner)
    }
}

/// The ledger of a user.
#[derive(Clone, Debug)]
pub struct Ledger {
    dir: PathBuf,
}

impl Ledger {
    /// The user's: in `$XDG_STATE_HOME/rumba`, else `~/.local/state/rumba`,
    /// else, where neither can be written, in the directory for temporary files.
    ///
    /// # Errors
    /// When none of them can be made.
    pub fn of_user() -> Result<Self, ProvisionError> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
        let user = rustix::process::getuid().as_raw();
        let fallback = std::env::temp_dir().join(format!("rumba-{user}"));
        if let Some(state) = state
            && let Ok(ledger) = Self::at(&state.join("rumba"))
        {
            return Ok(ledger);
        }
        Self::at(&fallback)
    }

    /// A ledger below this directory.
    ///
    /// # Errors
    /// When it cannot be made or belongs to another user.
    pub fn at(state: &Path) -> Result<Self, ProvisionError> {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        let dir = state.join("managed");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).doing("create", &dir)?;
        // In a shared directory for temporary files, someone else could have made it.
        let owner = fs::metadata(&dir).doing("look at", &dir)?.uid();
        if owner != rustix::process::getuid().as_raw() {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied)).doing("use another user's", &dir);
        }
        rustix::fs::access(&dir, rustix::fs::Access::WRITE_OK).map_err(Into::into).doing("write to", &dir)?;
        Ok(Self { dir })
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
        let (file, temporary) = (self.dir.join(format!("{name}.json")), self.dir.join(format!("{name}.new")));
        let entry = Entry { thing: thing.clone(), owner: owner.clone() };
        serde_json::to_vec_pretty(&entry)
            .map_err(Into::into)
            .and_then(|json| fs::write(&temporary, json))
            .and_then(|()| fs::rename(&temporary, &file))
            .doing("write", &file)?;
        Ok(Registration { file: Some(file) })
    }

    /// What ended processes left behind, the last made first. Entries whose
    /// thing is gone are struck off.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, ProvisionError> {
        let mut leftovers = Vec::new();
        for file in fs::read_dir(&self.dir).doing("read", &self.dir)? {
            let file = file.doing("read", &self.dir)?.path();
            // An entry may be struck off, or be half written, by another process at this moment.
            let Some(entry) = fs::read(&file).ok().and_then(|json| serde_json::from_slice::<Entry>(&json).ok()) else {
                continue;
            };
            let Entry { thing, owner } = entry;
            if owner.process.life() != Life::Ended {
                continue;
            }
            if thing.is_owned(&owner) {
                leftovers.push(Leftover { thing, owner, file });
            } else {
                strike(&file)?;
            }
        }
        // Timestamps in RFC 3339 sort as text; what was made last may depend on what was made first.
        leftovers.sort_by(|a, b| b.owner.created.cmp(&a.owner.created).then_with(|| b.file.cmp(&a.file)));
        Ok(leftovers)
    }

    /// Undoes what was left behind.
    ///
    /// # Errors
    /// What could not be undone; it stays listed.
    pub fn clean(&self, leftover: &Leftover) -> Result<(), ProvisionError> {
        leftover.thing.clean(&leftover.owner)?;
        strike(&leftover.file)
    }
}

fn strike(file: &Path) -> Result<(), ProvisionError> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).doing("remove", file),
        _ => Ok(()),
    }
}

/// An entry of the ledger. It stays until it is struck off, because only then
/// the thing is known to be undone.
#[derive(Debug)]
pub struct Registration {
    file: Option<PathBuf>,
}

impl Registration {
    /// Strikes the entry off, once the thing is undone.
    ///
    /// # Errors
    /// When the entry cannot be removed.
    pub fn strike(&mut self) -> Result<(), ProvisionError> {
        self.file.take().map_or(Ok(()), |file| strike(&file))
    }
}
