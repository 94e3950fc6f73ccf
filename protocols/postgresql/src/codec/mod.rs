//! The protocol's messages as bytes, without I/O.

pub mod frame;
pub mod message;
pub mod reader;
pub mod row;
pub mod types;

pub use reader::{Malformed, Reader};
