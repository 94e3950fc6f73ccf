//! Errors between the coordinator and its agents.

use std::io;

/// Why a fleet, or an agent, cannot work.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The coordinator does not answer.
    #[error("no coordinator at {address}: {cause}")]
    Unreachable {
        /// The address that was dialled.
        address: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The coordinator refuses this agent.
    #[error("the coordinator refused this agent: {0}")]
    Refused(String),
    /// The connection broke.
    #[error("the connection to the coordinator broke: {0}")]
    Broken(io::Error),
    /// A host did not come in time.
    #[error("{0}")]
    Incomplete(String),
    /// The token is missing or unusable.
    #[error("{0}")]
    Token(String),
    /// The trial is to stop.
    #[error("interrupted while waiting for client hosts")]
    Interrupted,
    /// The system's error.
    #[error("{what}: {cause}")]
    Io {
        /// The operation.
        what: String,
        /// Why.
        cause: io::Error,
    },
}

impl FleetError {
    /// The system's error in an operation.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |cause| Self::Io { what, cause }
    }
}
