//! What engines do differently by their nature, whatever an experiment has in common for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an engine, with its settings, works in what its figures depend on; `None` where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// The isolation of its transactions as SQL names it, `SNAPSHOT` added: `READ COMMITTED`.
    pub isolation: Option<String>,
    /// Whether there is a log from which the data is recovered after a crash of the host: one that reaches the device
    /// before the pages that it describes.
    pub has_log: Option<bool>,
    /// How it reads its files: by the page cache, by direct I/O or by a mapping; engines that differ in it are not at
    /// par in memory.
    pub reads: Option<Reads>,
}

/// How an engine reads its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// Past the page cache (O_DIRECT): its own cache is all it has.
    Direct,
    /// Through the page cache, which holds beside its own cache as much as memory allows.
    Buffered,
    /// By a memory map: the page cache is its cache.
    Mapped,
}

impl Nature {
    /// An engine with these; the isolation as SQL names it.
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
