//! Errors of reading and of claiming a results directory.

use std::io;
use std::path::{Path, PathBuf};

use rumba_engine_api::printable::shown;
use rumba_results::record::FORMAT;

/// Why a directory cannot be read as results.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{} has no results: experiment.json is missing", shown(path))]
    NoResults {
        /// The directory.
        path: PathBuf,
    },
    /// Another version has written the results.
    #[error("{} was written in format {found}; this version reads format {FORMAT}", shown(path))]
    Format {
        /// The directory.
        path: PathBuf,
        found: u64,
    },
    /// The results are damaged or unreadable.
    #[error("{} cannot be read: {cause}", shown(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

/// Why a directory cannot be taken for results.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another run uses the directory.
    #[error("{} is taken: another run of rumba is writing its results there", shown(path))]
    Taken {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is not empty.
    #[error("{} is not empty; results are never overwritten", shown(path))]
    Used {
        /// The directory.
        path: PathBuf,
    },
    /// The disk is too full to start.
    #[error(
        "the disk of {} has no room for the {mebibytes} MiB that rumba reserves so that it can write the record and \
         the page on a full disk",
        shown(path)
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// The space to reserve there, rounded up.
        mebibytes: u64,
    },
    /// The directory cannot be made or written.
    #[error("{} cannot be written: {cause}", shown(path))]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The path has a symbolic link to nothing.
    #[error("{} is a symbolic link to {}, which does not exist", shown(link), shown(target))]
    Dangling {
        link: PathBuf,
        /// Its target, as the link names it.
        target: PathBuf,
    },
    /// The path has control characters, which would break lines or change the terminal.
    #[error("{} cannot be displayed, because its name has newlines or terminal control characters", shown(path))]
    Unshowable {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has no results to resume.
    #[error(transparent)]
    Read(#[from] ReadError),
}

pub(super) fn io_error(path: &Path, cause: io::Error) -> ClaimError {
    ClaimError::Io { path: path.to_owned(), cause }
}
