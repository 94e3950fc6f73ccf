//! Two engines of one experiment that are compared with each other.

/// What the names of the engines of the first of two files begin with.
pub const BASE: &str = "base/";
/// What the names of the engines of the second of two files begin with.
pub const OTHER: &str = "other/";

/// A base, and what is compared with it; both by their names in the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// What is compared with: `base/rocksdb`.
    pub base: String,
    /// What is compared: `other/rocksdb`.
    pub other: String,
}

impl Pair {
    /// What both are called when they are compared: `rocksdb` where that is the name on both sides, else
    /// `rocksdb over lmdb`.
    pub fn name(&self) -> String {
        let base = self.base.strip_prefix(BASE).unwrap_or(&self.base);
        let other = self.other.strip_prefix(OTHER).unwrap_or(&self.other);
        if base == other { base.to_owned() } else { format!("{other} over {base}") }
    }
}
