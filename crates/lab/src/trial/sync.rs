//! The page cache's part of the debt.
//!
//! What an engine has written may still be in the page cache: a short run over
//! a buffered engine can end before the device has seen any of it. Settle and
//! drain therefore sync the instance's files, so that the loops do not pay for
//! the load's dirty pages and the drain pays for the loops'.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rumba_core::engine::{EngineError, Gauge};

use crate::host::parse::meminfo_bytes;

/// Syncs an instance's files, and keeps them open.
///
/// POSIX takes all of a process's locks on a file away when any descriptor of
/// it is closed; the engine's own locks live in the same process. So what was
/// opened here is closed by the end of the trial's process.
#[derive(Default)]
pub struct Synced {
    open: Vec<File>,
}

impl Synced {
    /// Syncs every file below `dir`; files that vanish meanwhile have nothing to pay.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn sync(&mut self, dir: &Path) -> Result<(), EngineError> {
        self.walk(dir).map_err(|error| EngineError::failed("fsync", format!("{}: {error}", dir.display())))
    }

    fn walk(&mut self, dir: &Path) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let result = if kind.is_dir() {
                self.walk(&entry.path())
            } else if kind.is_file() {
                File::open(entry.path()).and_then(|file| {
                    let result = file.sync_all();
                    self.open.push(file);
                    result
                })
            } else {
                Ok(())
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        Ok(())
    }
}

/// Bytes of the whole host's page cache that wait to be written; none when the kernel does not tell.
pub fn host_dirty() -> Option<Gauge> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |key| meminfo_bytes(&text, key);
    Some(Gauge::new("host_dirty_bytes", (bytes("Dirty")? + bytes("Writeback")?) as f64))
}
