//! Errors of provisioning, with their remedies.

use std::io;
use std::path::{Path, PathBuf};

use rumba_engine_api::printable::shown;

use super::owner::Owner;
use super::trust::Objection;

/// Why something could not be provisioned.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The directory has contents that rumba did not make.
    #[error(
        "{} is not empty and was not made by rumba (it holds {holds}); \
         name a directory that is empty or does not exist",
        shown(path)
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first of its contents.
        holds: String,
    },
    /// The path is not a directory.
    #[error("{} is not a directory; name a directory that is empty or does not exist", shown(path))]
    NotADirectory { path: PathBuf },
    /// The path has control characters, which would break lines or change the terminal.
    #[error(
        "{} cannot be displayed, because its name has newlines or terminal control characters; choose a data \
         directory without them",
        shown(path)
    )]
    Unshowable {
        /// The directory.
        path: PathBuf,
    },
    /// A running trial owns the directory.
    #[error("{} is in use by {owner}; wait until it has ended, or name another directory", shown(path))]
    InUse {
        /// The directory.
        path: PathBuf,
        owner: Box<Owner>,
    },
    /// From here it is unknown whether the owner still runs.
    #[error(
        "{} belongs to {owner} in another container, time namespace or host, which may still run; \
         if it has ended, `rumba doctor --clean --out-of-sight` removes this",
        shown(path)
    )]
    OutOfSight {
        /// The directory.
        path: PathBuf,
        owner: Box<Owner>,
    },
    /// The data was kept on purpose.
    #[error(
        "{} holds data that {owner} requested to keep; remove it yourself, or choose another directory",
        shown(path)
    )]
    Kept {
        /// The directory.
        path: PathBuf,
        owner: Box<Owner>,
    },
    /// The marker is not readable, so nothing is known about the directory.
    #[error("{}: {reason}; if its data is not needed, remove the directory yourself", shown(path))]
    OwnerTag {
        /// The marker.
        path: PathBuf,
        /// The problem with the marker.
        reason: String,
    },
    /// Another user could have made the contents.
    #[error("{}: {objection}, so rumba does not trust its content; {remedy}", shown(path))]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// The reason, as text: `it belongs to no_user (65534)`.
        objection: String,
        remedy: String,
    },
    /// Another process holds the lock of a directory.
    #[error(
        "{} is locked by another process, which does not let go (`fuser -v` names it); end it, or name another directory",
        shown(path)
    )]
    Held {
        /// The directory.
        path: PathBuf,
    },
    /// A filesystem of an ended trial is still in use.
    #[error(
        "{} cannot be unmounted: {users} still works on it; end it, then `rumba doctor --clean` removes the rest",
        shown(path)
    )]
    StillUsed {
        /// The mount point.
        path: PathBuf,
        /// The processes that use it.
        users: String,
    },
    /// The system refused an operation.
    #[error("cannot {doing} {}: {source}", shown(path))]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// Its object.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ProvisionError {
    /// An untrusted file or directory of rumba's own.
    pub(crate) fn managed(path: &Path, objection: Objection) -> Self {
        Self::untrusted(path, objection, "remove it if it is not needed, or choose another directory")
    }

    /// An untrusted directory in or below which rumba is to work.
    pub(super) fn above(path: &Path, objection: Objection) -> Self {
        Self::untrusted(path, objection, ELSEWHERE)
    }

    fn untrusted(path: &Path, Objection { words, is_mode }: Objection, otherwise: &str) -> Self {
        let remedy = match is_mode {
            true => format!("take that right away (chmod go-w {}), or {otherwise}", shown(path)),
            false => otherwise.to_owned(),
        };
        Self::Untrusted { path: path.to_owned(), objection: words, remedy }
    }
}

/// The remedy for a directory that cannot be trusted.
const ELSEWHERE: &str = "name a directory that only this user and root may change: run.data_dir (--set data_dir=DIR) is \
                         for data, the variable XDG_STATE_HOME for the ledger";

/// Adds the failed operation to a system error.
pub trait Doing<T> {
    /// Adds the operation and its object.
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, ProvisionError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, ProvisionError> {
        self.map_err(|source| ProvisionError::Io { doing, path: path.to_owned(), source })
    }
}
