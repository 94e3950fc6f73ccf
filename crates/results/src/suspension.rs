//! Time in which the measurement itself was stopped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time in a phase during which the measurement itself was stopped: the trial's process could not run, or its server
/// was paused. A slow engine does not count as suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suspension {
    /// The duration in seconds. For a phase that was longer than planned without any other sign, the excess.
    pub seconds: f64,
    /// The observed cause, for people.
    pub cause: String,
}
