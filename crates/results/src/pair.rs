//! Two engines of one experiment that are compared with each other.

/// The prefix of engine names from the first of two files.
pub const BASE: &str = "base/";
/// The prefix of engine names from the second of two files.
pub const OTHER: &str = "other/";

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
