//! What goes wrong inside an engine, as everybody who drives one needs to know it.

/// What went wrong inside an engine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// Another transaction stood in the way; rolling back and trying again may succeed.
    /// Carries no allocation: it happens on the load path.
    #[error("conflict: {0}")]
    Conflict(&'static str),
    /// A row with this key is there already. The statement did nothing; the
    /// transaction goes on. Carries no allocation: it happens on the load path.
    #[error("a row with this key is there already")]
    Duplicate,
    /// The connection was lost, the session has made a new one. Whether the
    /// operation at hand took effect is not known, so it is not tried again.
    /// Carries no allocation: what a server's end costs a thousand clients is counted.
    #[error("the connection was lost and made anew: {0}")]
    CutOff(&'static str),
    /// The device is full.
    #[error("the device is full: {0}")]
    DiskFull(String),
    /// Anything else: the engine's call and its own words.
    #[error("{call}: {message}")]
    Failed {
        /// The engine's function that failed.
        call: &'static str,
        /// Its code and message.
        message: String,
    },
}

impl EngineError {
    /// A failure of `call`, told apart from a full device by the engine's words.
    pub fn failed(call: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        let lower = message.to_ascii_lowercase();
        if lower.contains("no space left") || lower.contains("disk is full") || lower.contains("disk full") {
            return EngineError::DiskFull(format!("{call}: {message}"));
        }
        EngineError::Failed { call, message }
    }

    /// Whether trying the whole transaction again may succeed.
    pub fn is_conflict(&self) -> bool {
        matches!(self, EngineError::Conflict(_))
    }
}
