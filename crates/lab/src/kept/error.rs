//! Errors of keeping a load's data or copying it.

use std::io;
use std::path::{Path, PathBuf};

use rumba_engine_api::units::show_bytes;

/// Why data cannot be kept or copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source cannot be read, or differs from the kept data: another load may help.
    #[error("{path} of the kept data {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        problem: String,
    },
    /// There is no space for the copy.
    #[error(
        "a copy of the kept data takes {} and {path} has {} free; use less data, or a larger volume (run.data_dir, \
         limits.storage.size)", show_bytes(*needed as f64), show_bytes(*free as f64)
    )]
    NoRoom {
        /// The target of the copy.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The filesystem shares the copy's blocks although they were written.
    #[error(
        "the filesystem shares blocks of {path} with other files (deduplication?), so an engine's first write to each \
         block is a copy; set run.data_dir to a volume that does not share blocks"
    )]
    Shared {
        /// The file.
        path: PathBuf,
    },
    /// The user has requested a stop.
    #[error("the copy was interrupted")]
    Interrupted,
    /// The copy cannot be written.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl CopyError {
    /// Whether loading again may help.
    pub fn requests_for_another_load(&self) -> bool {
        matches!(self, CopyError::Damaged { .. })
    }
}

/// An error while reading the source.
pub(super) fn reading(path: &Path) -> impl Fn(io::Error) -> CopyError + '_ {
    |cause| CopyError::Damaged { path: path.to_owned(), problem: format!("cannot be read: {cause}") }
}

/// An error while writing the copy.
pub(super) fn writing(path: &Path) -> impl Fn(io::Error) -> CopyError + '_ {
    |cause| CopyError::Io { path: path.to_owned(), cause }
}
