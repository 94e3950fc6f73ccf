//! How many repeats it takes to find a difference of a given size, from the noise of a pilot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fewest repeats of each engine that a pilot takes its noise from.
pub const LEAST_PILOT_REPEATS: u32 = 3;

/// What it takes to detect a difference in nine of ten cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detection {
    /// The difference: 0.05 is 5%.
    pub change: f64,
    /// In which share of cases such a difference is found: 0.9.
    pub power: f64,
    /// How long one repeat of every engine took, in minutes; its loads are included.
    pub minutes_of_a_repeat: f64,
    /// Each pair of engines with each number of clients in each headline metric.
    pub rows: Vec<DetectionRow>,
}

/// One headline metric of a pair of engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DetectionRow {
    /// The engine that the other is compared with.
    pub base: String,
    /// The other engine.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// The metric's stable name, or `OP.p99_ms`.
    pub metric: String,
    /// Repeats of each engine in the pilot: of the engine that has fewer.
    pub pilot_repeats: u32,
    /// Relative standard deviation of one repeat, both engines together; absent where the pilot has none.
    pub noise: Option<f64>,
    /// The 90% interval of the noise: few repeats estimate it badly.
    pub noise_interval: Option<(f64, f64)>,
    /// What the estimated noise takes.
    pub needed: Needed,
    /// What the lower end of the noise's interval takes.
    pub at_least: Needed,
    /// What the upper end takes.
    pub at_most: Needed,
    /// Why nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Repeats of each engine, and the time that they take with all engines of the experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Needed {
    /// Repeats of each engine; absent where more than a thousand would be needed.
    pub repeats: Option<u32>,
    /// Minutes.
    pub minutes: Option<f64>,
}
