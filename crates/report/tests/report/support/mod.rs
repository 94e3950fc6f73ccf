//! What the tests share: synthetic results and the lab's statistics over them.

// Built from its source, because the report must not depend on the lab.
#[path = "../../../../lab/src/compare/mod.rs"]
#[allow(dead_code, unused_imports)]
pub mod compare;
pub mod synthetic;
