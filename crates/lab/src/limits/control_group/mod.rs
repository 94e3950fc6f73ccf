//! Control groups: where this host has them, those that this process makes, what is limited in one, and the scopes
//! that systemd makes where this user may make none.

mod limited;
mod owned;
mod scope;
#[cfg(test)]
mod tests;
mod tree;

pub use limited::{Group, MemoryPressure, MemoryReading};
pub use owned::{KIND, open};
pub use scope::{Scope, is_offered};
pub use tree::{Tree, Version, parent_with, tree_of};
