//! Packets as functions over bytes: no I/O, so that any bytes can be tried on them.

pub mod answer;
pub mod column;
pub mod frame;
pub mod reader;
pub mod row;

pub use reader::{Malformed, Reader};
