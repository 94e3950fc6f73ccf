//! The data of a load, kept for the trials that start from it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

use rumba_engine_api::workload::State;
use serde::{Deserialize, Serialize};

use super::copy::Contents;
use super::error::{CopyError, writing};
use crate::provision::{DataDir, Owner, ProvisionError, ResourceRegistry};

/// The load that the data comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The results that the load is part of, absolute.
    pub results: PathBuf,
    /// The load's directory in them.
    pub trial: String,
    /// When the load began, RFC 3339.
    pub started: String,
}

/// A note that is written next to the data once the data is complete.
#[derive(Serialize, Deserialize)]
struct Note {
    origin: Origin,
    state: State,
    contents: Contents,
}

/// The data of a load. It is removed when dropped.
#[derive(Debug)]
pub struct KeptData {
    dir: DataDir,
    state: State,
    contents: Contents,
}

impl KeptData {
    /// Keeps the data of a cleanly closed instance, with the workload's state. The data is in `dir`, or is copied there
    /// `from` a volume that will be removed.
    ///
    /// # Errors
    /// Data that cannot be read, copied or noted; the data in `dir` is then removed.
    pub fn keep(
        dir: DataDir,
        from: Option<&Path>,
        origin: Origin,
        state: State,
        stops: &AtomicUsize,
    ) -> Result<Self, CopyError> {
        let contents = Contents::of(from.unwrap_or(&dir.engine_dir()), stops)?;
        if let Some(from) = from {
            contents.copy(from, &dir.engine_dir(), stops)?;
        }
        let note = Note { origin, state, contents };
        write_whole(&dir.note(), &note).map_err(writing(&dir.note()))?;
        Ok(Self { dir, state: note.state, contents: note.contents })
    }

    /// Takes over the data that an ended process kept, if it is complete and comes from this load.
    ///
    /// # Errors
    /// When the data exists and another process owns it.
    pub fn adopt(
        path: &Path,
        origin: &Origin,
        owner: &Owner,
        ledger: &ResourceRegistry,
    ) -> Result<Option<Self>, ProvisionError> {
        let noted = |note: &Path| serde_json::from_slice::<Note>(&fs::read(note).ok()?).ok();
        let Some(dir) = DataDir::adopt(path, owner, ledger)? else { return Ok(None) };
        // Data that is not usable was left by a killed run, and is removed with `dir`.
        let note = noted(&dir.note()).filter(|note| note.origin == *origin);
        Ok(note.map(|Note { state, contents, .. }| Self { dir, state, contents }))
    }

    /// Copies the data into an empty directory.
    pub fn copy(&self, to: &Path, stops: &AtomicUsize) -> Result<(), CopyError> {
        self.contents.copy(&self.dir.engine_dir(), to, stops)
    }

    /// The workload's state after the load.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Bytes that a copy takes on disk.
    pub fn allocated_bytes(&self) -> u64 {
        self.contents.allocated_bytes
    }

    /// Removes the data now, and returns the error if that fails.
    ///
    /// # Errors
    /// Data that could not be removed; `rumba doctor --clean` finds it later.
    pub fn remove(self) -> Result<(), ProvisionError> {
        self.dir.remove()
    }
}

/// Writes a note that is on the device completely, or not at all.
fn write_whole(path: &Path, note: &Note) -> io::Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, serde_json::to_vec(note)?)?;
    fs::File::open(&part)?.sync_all()?;
    fs::rename(part, path)
}
