//! The page cache's part of the deferred work.
//!
//! Data that an engine has written may still be in the page cache: a short run over a buffered engine can end before
//! the device has seen any of it. Settle and drain therefore sync the instance's files. The loops then do not include
//! the load's dirty pages, and the drain includes those of the loops.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rumba_engine_api::engine::{Gauge, ProcessLocation};
use rumba_engine_api::error::EngineError;
use rumba_results::warning::Warning;

use crate::host::parse::meminfo_bytes;
use crate::meter::data_dir;

/// Syncs an instance's files.
///
/// Files of an embedded engine stay open. When any descriptor of a file is closed, POSIX releases all of the process's
/// locks on it. The engine's own locks are in the same process. The descriptors are therefore closed only by the end of
/// the trial's process. A server's locks belong to its own process.
#[derive(Default)]
pub struct Synced {
    open: Vec<File>,
    skipped: Option<String>,
    said: bool,
}

impl Synced {
    /// Syncs every file of an instance with the directory `own`; files that disappear meanwhile need no sync. A
    /// server's files may be out of reach: then [`Synced::warning`] says why.
    ///
    /// # Errors
    /// When the device fails.
    pub fn sync(&mut self, place: &ProcessLocation, own: &Path) -> Result<(), EngineError> {
        let embedded = *place == ProcessLocation::Embedded;
        let dir = match data_dir(place, own) {
            Ok(dir) => dir,
            Err(reason) => {
                self.skipped = Some(reason);
                return Ok(());
            }
        };
        match self.walk(dir, embedded) {
            Err(error) if !embedded && error.kind() == io::ErrorKind::PermissionDenied => {
                self.skipped = Some(format!("{}: {error}", dir.display()));
                Ok(())
            }
            walked => walked.map_err(|error| EngineError::failed("fsync", format!("{}: {error}", dir.display()))),
        }
    }

    /// The warning that files were not synced; returned once.
    pub fn warning(&mut self) -> Option<Warning> {
        let reason = self.skipped.as_ref().filter(|_| !self.said)?;
        self.said = true;
        Some(Warning::new(
            "not-synced",
            format!("the server's files were not synced after settle and drain: {reason}"),
            "data that the server left to the page cache is in no figure of this trial; run as a user who may read \
             its data directory, or let the server write past the page cache",
        ))
    }

    fn walk(&mut self, dir: &Path, keep_open: bool) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let result = if kind.is_dir() {
                self.walk(&entry.path(), keep_open)
            } else if kind.is_file() {
                File::open(entry.path()).and_then(|file| {
                    let result = file.sync_all();
                    if keep_open {
                        self.open.push(file);
                    }
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

/// Dirty bytes in the page cache of the whole host; `None` if the kernel does not report them.
pub fn host_dirty() -> Option<Gauge> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |key| meminfo_bytes(&text, key);
    Some(Gauge::new("host_dirty_bytes", (bytes("Dirty")? + bytes("Writeback")?) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(data_dir: Option<&Path>) -> ProcessLocation {
        ProcessLocation::Server { pid: None, data_dir: data_dir.map(Path::to_owned) }
    }

    #[test]
    fn a_servers_files_are_synced_where_they_are_and_closed_again() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("schema")).unwrap();
        fs::write(dir.path().join("schema/table"), "rows").unwrap();
        let mut synced = Synced::default();
        synced.sync(&server(Some(dir.path())), Path::new("/nowhere")).unwrap();
        assert!(synced.open.is_empty() && synced.warning().is_none());
        synced.sync(&ProcessLocation::Embedded, dir.path()).unwrap();
        assert_eq!(synced.open.len(), 1, "a close would take the engine's own locks away");
    }

    #[test]
    fn unreadable_files_are_reported_once_and_fail_nothing() {
        let mut synced = Synced::default();
        synced.sync(&server(None), Path::new("/nowhere")).unwrap();
        let warning = synced.warning().unwrap();
        assert!(warning.message.contains("on another host or may not be read"), "{}", warning.message);
        synced.sync(&server(None), Path::new("/nowhere")).unwrap();
        assert!(synced.warning().is_none());
    }
}
