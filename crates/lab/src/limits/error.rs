//! Errors of limits, with alternatives that would work.

use std::io;

use crate::provision::ProvisionError;

/// Why a limit is not in force.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// This host cannot enforce the limit. The caller may continue without it if the user allows that.
    #[error("{limit} cannot be enforced here: {problem}; {remedy}")]
    Unenforceable {
        /// Its key in the experiment: `limits.memory`.
        limit: &'static str,
        /// The missing feature.
        problem: String,
        /// An alternative that would work.
        remedy: String,
    },
    /// The host can enforce the limit, but there is too little space for it. The run cannot continue without it.
    #[error("{limit} cannot be met here: {problem}; {remedy}")]
    NoRoom {
        /// Its key in the experiment: `limits.storage`.
        limit: &'static str,
        /// The available and the needed space.
        problem: String,
        /// An alternative that would work.
        remedy: String,
    },
    /// The volume's place or a ledger entry is not available, or a resource cannot be undone.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The system refused a step.
    #[error("{limit}: cannot {doing}: {cause}")]
    Io {
        /// Its key in the experiment.
        limit: &'static str,
        /// The failed operation and its object.
        doing: String,
        /// The system's error.
        cause: io::Error,
    },
}

impl LimitError {
    pub(super) fn unenforceable(limit: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unenforceable { limit, problem: problem.into(), remedy: remedy.into() }
    }
}

pub const MEMORY: &str = "limits.memory";
pub const STORAGE: &str = "limits.storage";

/// The key of the engine's CPUs.
pub const CPUS: &str = "limits.cpus";
pub const CLIENT_CPUS: &str = "limits.client_cpus";

/// Adds the failed operation and the limit to a system error.
pub fn refused(limit: &'static str, doing: impl Into<String>) -> impl FnOnce(io::Error) -> LimitError {
    let doing = doing.into();
    move |cause| LimitError::Io { limit, doing, cause }
}
