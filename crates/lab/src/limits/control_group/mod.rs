//! Control groups: the host's trees, the groups that this process makes, and the limits in one. Includes systemd scopes
//! for users who may not make groups.

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
