//! Why something could not be provisioned, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rumba_core::printable::shown;

use super::owner::Owner;
use super::trust::Objection;

/// Why something could not be provisioned.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The directory holds something that rumba did not make.
    #[error(
        "{} is not empty and was not made by rumba (it holds {holds}); \
         name a directory that is empty or does not exist",
        shown(path)
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first of what it holds.
        holds: String,
    },
    /// The path is something else than a directory.
    #[error("{} is not a directory; name a directory that is empty or does not exist", shown(path))]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Its name would be a line of its own wherever it is shown, or worse.
    #[error(
        "{} cannot be shown as it is: its name has ends of lines, or what a terminal obeys; \
         name a directory without such characters for the data",
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
        /// Who uses it.
        owner: Box<Owner>,
    },
    /// Whether its owner still runs cannot be told from here.
    #[error(
        "{} belongs to {owner} of another container or host, which may still run; \
         if it does not, remove the directory yourself",
        shown(path)
    )]
    OutOfSight {
        /// The directory.
        path: PathBuf,
        /// Who owns it.
        owner: Box<Owner>,
    },
    /// The data was kept on purpose.
    #[error(
        "{} holds the data that {owner} was told to keep; remove it yourself, or name another directory",
        shown(path)
    )]
    Kept {
        /// The directory.
        path: PathBuf,
        /// Who kept it.
        owner: Box<Owner>,
    },
    /// The marker cannot be understood, so nothing is known about the directory.
    #[error("{}: {reason}; if its data is not needed, remove the directory yourself", shown(path))]
    Marker {
        /// The marker.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody else could have put there what is there.
    #[error("{}: {objection}, so that rumba does not trust what is there; {remedy}", shown(path))]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// Who could, in words: `it belongs to nobody (65534)`.
        objection: String,
        /// What to do.
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
        /// Who uses it.
        users: String,
    },
    /// The system refused something.
    #[error("cannot {doing} {}: {source}", shown(path))]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ProvisionError {
    /// Says what is wrong with a file or directory of rumba's own.
    pub(crate) fn managed(path: &Path, objection: Objection) -> Self {
        Self::untrusted(path, objection, "remove it if nobody needs it, or name another directory")
    }

    /// Says what is wrong with a directory in which, or below which, rumba is to work.
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

/// What to do about a directory that cannot be trusted.
const ELSEWHERE: &str = "name a directory that only this user and root may change: run.data_dir (--set data_dir=DIR) is \
                         for data, the variable XDG_STATE_HOME for the ledger";

/// Says what was being done when the system refused.
pub trait Doing<T> {
    /// Adds what was tried and on what.
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, ProvisionError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, ProvisionError> {
        self.map_err(|source| ProvisionError::Io { doing, path: path.to_owned(), source })
    }
}
