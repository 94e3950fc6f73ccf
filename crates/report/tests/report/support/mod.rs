//! What the tests share: synthetic results, and the lab's statistics over them.

pub use rumba_lab::compare;
pub mod synthetic;
