//! The data that a load has left, kept for the trials that start from it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

use rumba_core::workload::State;
use serde::{Deserialize, Serialize};

use super::copy::Contents;
use super::error::{CopyError, writing};
use crate::provision::{DataDir, Ledger, Owner, ProvisionError};

/// Which load has left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The results that the load is part of, absolute.
    pub results: PathBuf,
    /// The load's directory in them.
    pub trial: String,
    /// When the load began, RFC 3339.
    pub started: String,
}

/// What is noted beside the data once it is whole.
#[derive(Serialize, Deserialize)]
struct Note {
    origin: Origin,
    state: State,
    contents: Contents,
}

/// The data that a load has left. It is removed when dropped.
#[derive(Debug)]
pub struct KeptData {
    dir: DataDir,
    state: State,
    contents: Contents,
}

impl KeptData {
    /// Keeps what a cleanly closed instance has left in a data directory, with
    /// what the workload knows of it.
    ///
    /// # Errors
    /// What cannot be read, or noted; then the data is removed.
    pub fn keep(dir: DataDir, origin: Origin, state: State, stops: &AtomicUsize) -> Result<Self, CopyError> {
        let contents = Contents::of(&dir.engine_dir(), stops)?;
        let note = Note { origin, state, contents };
        write_whole(&dir.note(), &note).map_err(writing(&dir.note()))?;
        Ok(Self { dir, state: note.state, contents: note.contents })
    }

    /// The same for data that is elsewhere, on a volume that will be gone: it is copied.
    ///
    /// # Errors
    /// See [`KeptData::keep`]; no room.
    pub fn keep_copy(
        from: &Path,
        dir: DataDir,
        origin: Origin,
        state: State,
        stops: &AtomicUsize,
    ) -> Result<Self, CopyError> {
        let contents = Contents::of(from, stops)?;
        contents.copy(from, &dir.engine_dir(), stops)?;
        let note = Note { origin, state, contents };
        write_whole(&dir.note(), &note).map_err(writing(&dir.note()))?;
        Ok(Self { dir, state: note.state, contents: note.contents })
    }

    /// Takes over what a process that has ended kept, if it is there, of this load, and noted as whole.
    ///
    /// # Errors
    /// When it is there and another process has it.
    pub fn adopt(path: &Path, origin: &Origin, owner: &Owner, ledger: &Ledger) -> Result<Option<Self>, ProvisionError> {
        let noted = |note: &Path| serde_json::from_slice::<Note>(&fs::read(note).ok()?).ok();
        let Some(dir) = DataDir::adopt(path, owner, ledger)? else { return Ok(None) };
        // One that is of no use is what a killed run has left, and goes with `dir`.
        let note = noted(&dir.note()).filter(|note| note.origin == *origin);
        Ok(note.map(|Note { state, contents, .. }| Self { dir, state, contents }))
    }

    /// Copies it into an empty directory.
    ///
    /// # Errors
    /// See [`Contents::copy`].
    pub fn copy(&self, to: &Path, stops: &AtomicUsize) -> Result<(), CopyError> {
        self.contents.copy(&self.dir.engine_dir(), to, stops)
    }

    /// What the workload knows of it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What a copy takes on disk, bytes.
    pub fn allocated_bytes(&self) -> u64 {
        self.contents.allocated_bytes
    }

    /// Removes it now, and says when that fails.
    ///
    /// # Errors
    /// What could not be removed; `rumba doctor --clean` finds it later.
    pub fn remove(self) -> Result<(), ProvisionError> {
        self.dir.remove()
    }
}

/// On the device whole, or not there at all.
fn write_whole(path: &Path, note: &Note) -> io::Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, serde_json::to_vec(note)?)?;
    fs::File::open(&part)?.sync_all()?;
    fs::rename(part, path)
}
