//! The number of repeats needed to find a difference of a given size, from the noise of a pilot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fewest repeats of each engine for which a pilot's noise is estimated.
pub const LEAST_PILOT_REPEATS: u32 = 3;

/// The repeats needed to detect a difference in nine of ten cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detection {
    /// The difference: 0.05 is 5%.
    pub change: f64,
    /// The probability of finding such a difference: 0.9.
    pub power: f64,
    /// The duration of one repeat of every engine in minutes, including its loads.
    pub minutes_of_a_repeat: f64,
    /// Each pair of engines with each number of clients in each headline metric.
    pub rows: Vec<DetectionRow>,
}

/// One headline metric of a pair of engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DetectionRow {
    /// The baseline of the pair.
    pub base: String,
    /// The other engine.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// The metric's stable name, or `OP.p99_ms`.
    pub metric: String,
    /// Repeats of each engine in the pilot; the smaller number if they differ.
    pub pilot_repeats: u32,
    /// Relative standard deviation of one repeat, both engines together; absent if the pilot has none.
    pub noise: Option<f64>,
    /// The 90% interval of the noise, which is wide with few repeats.
    pub noise_interval: Option<(f64, f64)>,
    /// The need at the estimated noise.
    pub needed: Needed,
    /// The need at the lower end of the noise's interval.
    pub at_least: Needed,
    /// The need at the upper end of the noise's interval.
    pub at_most: Needed,
    /// The reason for its absence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Repeats of each engine, and their total time with all engines of the experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Needed {
    /// Repeats of each engine; absent if more than a thousand would be needed.
    pub repeats: Option<u32>,
    /// Minutes.
    pub minutes: Option<f64>,
}
