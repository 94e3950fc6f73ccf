//! Two engines of one experiment that are compared with each other.

/// The prefix of engine names from the first of two files.
pub const BASE: &str = "base/";
/// The prefix of engine names from the second of two files.
pub const OTHER: &str = "other/";

/// The name of an engine for readers: `rocksdb (base)` for `base/rocksdb`. Engines without a side keep their name.
pub fn with_side(engine: &str) -> String {
    let of_side = |prefix: &str| Some(format!("{} ({})", engine.strip_prefix(prefix)?, prefix.trim_end_matches('/')));
    of_side(BASE).or_else(|| of_side(OTHER)).unwrap_or_else(|| engine.to_owned())
}

/// A base, and the engine compared with it; both by their names in the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The baseline: `base/rocksdb`.
    pub base: String,
    /// The engine compared with it: `other/rocksdb`.
    pub other: String,
}

impl Pair {
    /// The name of the comparison: `rocksdb` if both sides have that name, else `rocksdb over lmdb`.
    pub fn name(&self) -> String {
        let base = self.base.strip_prefix(BASE).unwrap_or(&self.base);
        let other = self.other.strip_prefix(OTHER).unwrap_or(&self.other);
        if base == other { base.to_owned() } else { format!("{other} over {base}") }
    }
}
