//! Totals of the statements that operations sent to an engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statements by kind. For keys and values, each call of a session counts as one, and each entry of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatementTotals {
    /// Those that read: they ask for rows.
    pub reads: u64,
    /// Those that write: they insert, change, delete or load rows.
    pub writes: u64,
    /// All others: they begin and end transactions.
    pub others: u64,
}

impl StatementTotals {
    /// Reads, writes and all others; `None` if all are zero, as for a workload that does not count them.
    pub fn counted([reads, writes, others]: [u64; 3]) -> Option<Self> {
        let is_counted = reads + writes + others > 0;
        is_counted.then_some(Self { reads, writes, others })
    }
}
