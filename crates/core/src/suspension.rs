//! Time in which the measurement itself stood still.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time of a phase in which the measurement itself stood still: nothing of the trial's process could run, or its
/// server was stopped. An engine that is slow by itself is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suspension {
    /// How long, seconds; or, of a phase that was longer than planned with nothing else seen, by how much.
    pub seconds: f64,
    /// What was seen, for a person.
    pub cause: String,
}
