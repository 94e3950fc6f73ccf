//! Why an experiment is not admitted.

use crate::limits::LimitError;
use crate::provision::ProvisionError;
use crate::spec::SpecError;

/// Why an experiment is not admitted, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A mistake at a place of the experiment: memory in which an engine was measured not to run.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A limit that this host cannot enforce.
    #[error("{engine}: {problem}")]
    Unenforceable {
        /// The engine whose limit it is.
        engine: String,
        /// The limit, and what is missing.
        problem: String,
        /// What would work instead.
        remedy: String,
    },
    /// A limit cannot be met, or the host not be asked.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A data directory cannot be had.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The data does not fit where it is to be.
    #[error("{problem}")]
    NoRoom {
        /// What is there and what is needed.
        problem: String,
        /// What would work instead.
        remedy: &'static str,
    },
}
