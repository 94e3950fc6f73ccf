//! Differences between engines that follow from their design and that no setting of an experiment removes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traits of an engine, with its settings, that affect its figures; `None` if it does not report them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineTraits {
    /// The isolation level of its transactions in SQL's terms, including `SNAPSHOT`: `READ COMMITTED`.
    pub isolation: Option<String>,
    /// Whether it has a log that reaches the device before the pages that it describes, so that the data can be
    /// recovered after a crash of the host.
    pub has_log: Option<bool>,
    /// How it reads its files: through the page cache, by direct I/O or by a mapping. Engines that differ here do not
    /// have comparable memory.
    pub reads: Option<Reads>,
}

/// How an engine reads its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// Bypassing the page cache (O_DIRECT): the engine's own cache is its only one.
    Direct,
    /// Through the page cache, which holds as much as memory allows in addition to the engine's own cache.
    Buffered,
    /// Through a memory map: the page cache is its cache.
    Mapped,
}

impl EngineTraits {
    /// An engine with these traits; the isolation in SQL's terms.
    pub fn new(isolation: &str, has_log: bool, reads: Reads) -> Self {
        Self { isolation: Some(isolation.to_owned()), has_log: Some(has_log), reads: Some(reads) }
    }
}

impl std::fmt::Display for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reads::Direct => "past the page cache",
            Reads::Buffered => "through the page cache",
            Reads::Mapped => "by a memory map",
        })
    }
}
