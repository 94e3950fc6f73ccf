//! What a change of the bytes written came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the KB written per operation, debt charged (`wkb_per_op_with_drain`), became others, by the engine's own counters of
/// what it wrote for what ([`crate::counted`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenChange {
    /// The base's median.
    pub base: f64,
    /// The other's median.
    pub other: f64,
    /// The fewest kinds whose changes add up to it, what accounts for most of it first.
    pub kinds: Vec<WrittenKind>,
    /// The share of it that these leave: what no counter tells of; below 0 where they come to more than it.
    pub rest: f64,
}

/// What was written for one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenKind {
    /// For what: `doublewrite`, of the metric `doublewrite_kb_per_op`.
    pub kind: String,
    /// The base's median, KB per operation.
    pub base: f64,
    /// The other's median, KB per operation.
    pub other: f64,
    /// Its change over that of all bytes; below 0 where it went the other way.
    pub share: f64,
}
