//! What operations asked of an engine, added up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statements by what they do. Over keys and values each call of a session's is one, of a batch each entry.
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
    /// Of those that read, that write, and all others; `None` where there are none: who does not count them has none.
    pub fn counted([reads, writes, others]: [u64; 3]) -> Option<Self> {
        let is_counted = reads + writes + others > 0;
        is_counted.then_some(Self { reads, writes, others })
    }
}
