//! Errors that refuse an experiment.

use crate::limits::LimitError;
use crate::provision::ProvisionError;
use crate::spec::SpecError;

/// Why an experiment is refused, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A mistake at a place of the experiment: too little memory for an engine, according to measurements.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A limit that this host cannot enforce.
    #[error("{engine}: {problem}")]
    Unenforceable {
        /// The engine whose limit it is.
        engine: String,
        /// The limit, and the missing feature.
        problem: String,
        /// An alternative that would work.
        remedy: String,
    },
    /// A limit cannot be met, or the host cannot be queried.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A data directory is not available.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The data does not fit.
    #[error("{problem}")]
    NoRoom {
        /// The available and the needed space.
        problem: String,
        /// An alternative that would work.
        remedy: &'static str,
    },
}
