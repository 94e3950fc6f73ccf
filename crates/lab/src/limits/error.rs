//! Why a limit is not in force, and what would work instead.

use std::io;

use crate::provision::ProvisionError;

/// Why a limit is not in force.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// This host cannot enforce it. A caller who is told to may go on without it.
    #[error("{limit} cannot be enforced here: {problem}; {remedy}")]
    Unenforceable {
        /// Its key in the experiment: `limits.memory`.
        limit: &'static str,
        /// What is missing.
        problem: String,
        /// What would work instead.
        remedy: String,
    },
    /// It can be enforced here, and there is no room for what it asks for: nobody may go on without it.
    #[error("{limit} cannot be met here: {problem}; {remedy}")]
    NoRoom {
        /// Its key in the experiment: `limits.storage`.
        limit: &'static str,
        /// What is there and what is needed.
        problem: String,
        /// What would work instead.
        remedy: String,
    },
    /// The volume's place or an entry of the ledger cannot be had, or something cannot be undone.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The system refused a step.
    #[error("{limit}: cannot {doing}: {cause}")]
    Io {
        /// Its key in the experiment.
        limit: &'static str,
        /// What was tried, and on what.
        doing: String,
        /// What the system said.
        cause: io::Error,
    },
}

impl LimitError {
    pub(super) fn unenforceable(limit: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unenforceable { limit, problem: problem.into(), remedy: remedy.into() }
    }
}

/// The key of the memory limit.
pub const MEMORY: &str = "limits.memory";
/// The key of the storage limit.
pub const STORAGE: &str = "limits.storage";

/// Says what was being done for which limit when the system refused.
pub fn refused(limit: &'static str, doing: impl Into<String>) -> impl FnOnce(io::Error) -> LimitError {
    let doing = doing.into();
    move |cause| LimitError::Io { limit, doing, cause }
}
