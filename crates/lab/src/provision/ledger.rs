//! The list of all managed resources: one small file each, below the user's state directory, so that a later run finds
//! the leftovers of a kill -9.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rumba_engine_api::printable::shown;
use serde::{Deserialize, Serialize};

use super::checked_dir::{CheckedDir, PRIVATE};
use super::error::{Doing, ProvisionError};
use super::owner::{Life, Owner};

/// A kind of resource. The module that makes such resources defines how one is recognised and undone; the ledger knows
/// no kind itself.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in entries: `data-directory`.
    pub name: &'static str,
    /// Its name for a person: `data directory`.
    pub words: &'static str,
    /// Whether the resource at a path exists and still belongs to this owner; an error if that is unknown.
    pub is_owned: fn(&Path, &Owner) -> Result<bool, ProvisionError>,
    /// Undoes the resource at a path, if it exists and still belongs to this owner.
    pub clean: fn(&Path, &Owner) -> Result<(), ProvisionError>,
}

/// A resource on the host that a run made and must undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Thing {
    kind: String,
    /// Its path, absolute and without links.
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    thing: Thing,
    owner: Owner,
}

/// Suffixes of the names of entries and of unfinished entries.
const ENTRY: &str = ".json";
const UNFINISHED: &str = ".new";

/// Why a resource of a process that is out of sight is not cleaned.
const OUT_OF_SIGHT: &str = "this process of another container, time namespace or host may still run; if it has ended, \
                            `rumba doctor --clean --out-of-sight` removes this";

/// Writing an entry never takes this long, so the writer of an older one was killed.
const LONGEST_WRITE: Duration = Duration::from_secs(600);

/// The longest entry, bytes.
const LONGEST: u64 = 64 << 10;

/// A managed resource whose owner has ended without undoing it, or is out of sight.
#[derive(Clone, Debug)]
pub struct Leftover {
    kind: Kind,
    pub path: PathBuf,
    pub owner: Owner,
    /// Why rumba cannot know whether it still exists, or whether its owner has ended, and the remedy.
    pub doubt: Option<String>,
    entry: String,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.may_be_in_use() { "of" } else { "left by" };
        write!(f, "{} {}, {of} {}", self.kind.words, shown(&self.path), self.owner)
    }
}

impl Leftover {
    /// Whether it is of this kind.
    pub fn is_of(&self, kind: &Kind) -> bool {
        self.kind.name == kind.name
    }

    /// Whether its owner may still live, in another container, time namespace or host.
    pub fn may_be_in_use(&self) -> bool {
        self.owner.process.life() != Life::Ended
    }
}

/// The ledger of a user.
#[derive(Clone, Debug)]
pub struct ResourceRegistry {
    dir: Arc<CheckedDir>,
}

impl ResourceRegistry {
    /// The user's ledger, in `$XDG_STATE_HOME/rumba`, else `~/.local/state/rumba`. If neither is writable, it is in the
    /// user's own directory within the directory for temporary files.
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

    /// A ledger in a directory that all users share: in a subdirectory that only this user can have made and can read.
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

    /// Lists a resource before it is made.
    ///
    /// # Errors
    /// When the entry cannot be written.
    pub fn register(&self, kind: &Kind, path: &Path, owner: &Owner) -> Result<Registration, ProvisionError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Pid and start time make the name unique to this process; the number sorts as text.
        let name = format!("{}-{}-{number:08}", owner.process.pid, owner.process.start_ticks);
        let (entry, unfinished) = (format!("{name}{ENTRY}"), format!("{name}{UNFINISHED}"));
        let thing = Thing { kind: kind.name.to_owned(), path: path.to_owned() };
        let json = serde_json::to_vec_pretty(&Entry { thing, owner: owner.clone() });
        let json = json.map_err(Into::into).doing("write", &self.dir.path().join(&entry))?;
        self.dir.write(&entry, &unfinished, &json)?;
        Ok(Registration { dir: self.dir.clone(), entry: Some(entry) })
    }

    /// The leftovers of ended processes, of these kinds, the newest first, then resources of processes that are out of
    /// sight. Entries of ended processes without a resource are removed, and so are those that a kill has left
    /// incomplete. Entries of other kinds stay.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn leftovers(&self, kinds: &[Kind]) -> Result<Vec<Leftover>, ProvisionError> {
        let mut leftovers = Vec::new();
        let (unfinished, entries): (Vec<_>, Vec<_>) =
            self.entries()?.into_iter().partition(|entry| entry.ends_with(UNFINISHED));
        for entry in unfinished {
            // A resource is made only after its entry is complete, so an unfinished entry can be removed.
            if self.dir.age_of(&entry)? > Some(LONGEST_WRITE) {
                self.dir.remove_file(&entry)?;
            }
        }
        for entry in entries {
            // Another process may remove or write an entry at this moment.
            let Ok(Some((kind, Entry { thing, owner }))) = self.read(&entry, kinds) else { continue };
            let life = owner.process.life();
            if life == Life::Lives {
                continue;
            }
            let doubt = match ((kind.is_owned)(&thing.path, &owner), life) {
                (Ok(false), Life::Ended) => {
                    self.dir.remove_file(&entry)?;
                    continue;
                }
                // Another container may have it, at the same path.
                (Ok(false), _) => continue,
                (Ok(true), Life::Ended) => None,
                (Ok(true), _) => Some(OUT_OF_SIGHT.to_owned()),
                (Err(doubt), _) => Some(doubt.to_string()),
            };
            leftovers.push(Leftover { kind, path: thing.path, owner, doubt, entry });
        }
        // Timestamps in RFC 3339 sort as text. The newest comes first, because it may depend on older ones.
        leftovers.sort_by(|a, b| b.owner.created.cmp(&a.owner.created).then_with(|| b.entry.cmp(&a.entry)));
        leftovers.sort_by_key(Leftover::may_be_in_use);
        Ok(leftovers)
    }

    /// The resources of a kind that living processes have, with their owners.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn living(&self, kind: &Kind) -> Result<Vec<(PathBuf, Owner)>, ProvisionError> {
        // An entry may be of another kind, or another process may remove or write it at this moment.
        let listed = self.entries()?.into_iter();
        let entries = listed.filter_map(|entry| self.read(&entry, std::slice::from_ref(kind)).ok().flatten());
        let living = entries.filter(|(_, Entry { owner, .. })| owner.process.life() == Life::Lives);
        Ok(living.map(|(_, Entry { thing, owner })| (thing.path, owner)).collect())
    }

    /// Entries that cannot be read, or are of none of these kinds, each with its remedy. The resources that they list
    /// are not cleaned.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn unreadable(&self, kinds: &[Kind]) -> Result<Vec<ProvisionError>, ProvisionError> {
        let finished = self.entries()?.into_iter().filter(|entry| entry.ends_with(ENTRY));
        Ok(finished.filter_map(|entry| self.read(&entry, kinds).err()).collect())
    }

    fn entries(&self) -> Result<Vec<String>, ProvisionError> {
        Ok(self.dir.names()?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }

    /// An entry and the kind of its resource, if the entry still exists.
    fn read(&self, entry: &str, kinds: &[Kind]) -> Result<Option<(Kind, Entry)>, ProvisionError> {
        let Some(json) = self.dir.read(entry, LONGEST)? else { return Ok(None) };
        let wrong = |reason: String| ProvisionError::OwnerTag {
            path: self.dir.path().join(entry),
            reason: format!("not an entry of this rumba's ledger: {reason}"),
        };
        let read: Entry = serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))?;
        match kinds.iter().find(|kind| kind.name == read.thing.kind) {
            Some(kind) => Ok(Some((*kind, read))),
            None => Err(wrong(format!("it lists an unknown kind `{}`", read.thing.kind))),
        }
    }

    /// Removes all entries of this process and of ended ones for a path, because the resource is undone.
    ///
    /// # Errors
    /// When the ledger cannot be changed.
    pub fn forget(&self, kind: &Kind, path: &Path) -> Result<(), ProvisionError> {
        let this = std::process::id();
        for entry in self.entries()?.into_iter().filter(|entry| entry.ends_with(ENTRY)) {
            let Ok(Some((_, Entry { thing, owner }))) = self.read(&entry, std::slice::from_ref(kind)) else { continue };
            let life = owner.process.life();
            if thing.path == path && (life == Life::Ended || life == Life::Lives && owner.process.pid == this) {
                self.dir.remove_file(&entry)?;
            }
        }
        Ok(())
    }

    /// Undoes a leftover. If its owner may still live, only the user can know that it has ended.
    ///
    /// # Errors
    /// A resource that could not be undone; it stays listed.
    pub fn clean(&self, leftover: &Leftover) -> Result<(), ProvisionError> {
        (leftover.kind.clean)(&leftover.path, &leftover.owner)?;
        self.dir.remove_file(&leftover.entry)
    }
}

/// An entry of the ledger. It stays until `undo` succeeds, because only then the resource is known to be undone.
#[derive(Debug)]
pub struct Registration {
    dir: Arc<CheckedDir>,
    entry: Option<String>,
}

impl Registration {
    /// Undoes the resource, unless that was tried before, and removes the entry.
    ///
    /// # Errors
    /// When the resource cannot be undone, or the entry cannot be removed; `rumba doctor --clean` finds it later.
    pub fn undo(&mut self, undo: impl FnOnce() -> Result<(), ProvisionError>) -> Result<(), ProvisionError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        undo()?;
        self.dir.remove_file(&entry)
    }
}
