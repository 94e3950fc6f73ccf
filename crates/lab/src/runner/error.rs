//! Errors that end a run.

use crate::conduct::profile::NoProfile;
use crate::prepare::Refusal;
use crate::provision::ProvisionError;
use crate::spec::SpecError;
use crate::store::{ClaimError, ReadError};

/// Why an experiment was not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The experiment cannot be run here.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// A mistake in the stored experiment.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The directory cannot be taken for results.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The results so far cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A data directory is not available.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// The CPU cannot be profiled.
    #[error(transparent)]
    Profile(#[from] NoProfile),
    #[error("{problem}")]
    Mistake {
        /// The fault.
        problem: String,
        remedy: String,
    },
    /// Something that failed.
    #[error("{problem}")]
    Failure {
        /// The fault.
        problem: String,
        remedy: String,
    },
}

impl RunError {
    pub(super) fn mistake(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Mistake { problem: problem.into(), remedy: remedy.into() }
    }

    pub(super) fn failure(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Failure { problem: problem.into(), remedy: remedy.into() }
    }
}
