//! Why data cannot be kept, or a copy of it not be had.

use std::io;
use std::path::{Path, PathBuf};

use rumba_core::units::show_bytes;

/// Why data cannot be kept, or a copy of it not be had.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// What is to be copied cannot be read, or is not what was kept: another load may help.
    #[error("{path} of the kept data {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no room for the copy.
    #[error(
        "a copy of the kept data takes {} and {path} has {} free; use less data, or a larger volume (run.data_dir, \
         limits.storage.size)", show_bytes(*needed as f64), show_bytes(*free as f64)
    )]
    NoRoom {
        /// Where it was to be.
        path: PathBuf,
        /// What it takes, bytes.
        needed: u64,
        /// What is free, bytes.
        free: u64,
    },
    /// The filesystem has shared the blocks of a copy although they were written.
    #[error(
        "the filesystem shares blocks of {path} with other files (deduplication?): an engine's writes to them would \
         be copies on write, and cost what they cost nowhere else; set run.data_dir to a volume that does not \
         share blocks"
    )]
    Shared {
        /// The file.
        path: PathBuf,
    },
    /// The user has asked to stop.
    #[error("the copy was interrupted")]
    Interrupted,
    /// The copy cannot be written.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
}

impl CopyError {
    /// Whether loading again may help.
    pub fn asks_for_another_load(&self) -> bool {
        matches!(self, CopyError::Damaged { .. })
    }
}

/// What was read could not be.
pub(super) fn reading(path: &Path) -> impl Fn(io::Error) -> CopyError + '_ {
    |cause| CopyError::Damaged { path: path.to_owned(), problem: format!("cannot be read: {cause}") }
}

/// What was written could not be.
pub(super) fn writing(path: &Path) -> impl Fn(io::Error) -> CopyError + '_ {
    |cause| CopyError::Io { path: path.to_owned(), cause }
}
