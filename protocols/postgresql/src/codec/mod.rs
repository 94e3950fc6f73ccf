//! Encoding and decoding of the protocol's messages, without I/O.

pub mod frame;
pub mod message;
pub mod reader;
pub mod row;
pub mod types;

pub use reader::{Malformed, Reader};
