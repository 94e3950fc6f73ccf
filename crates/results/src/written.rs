//! Causes of a change in bytes written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The causes of a change in KB written per operation including deferred work (`wkb_per_op_with_drain`), by the
/// engine's own counters of bytes written per purpose ([`crate::counted`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenChange {
    /// The base's median.
    pub base: f64,
    /// The other's median.
    pub other: f64,
    /// The fewest kinds whose changes add up to it, the largest share first.
    pub kinds: Vec<WrittenKind>,
    /// The share that these kinds leave, for which there is no counter; below 0 if they add up to more than the change.
    pub rest: f64,
}

/// Bytes written for one purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenKind {
    /// The purpose: `doublewrite`, from the metric `doublewrite_kb_per_op`.
    pub kind: String,
    /// The base's median, KB per operation.
    pub base: f64,
    /// The other's median, KB per operation.
    pub other: f64,
    /// Its change divided by that of all bytes; below 0 if it went the other way.
    pub share: f64,
}
