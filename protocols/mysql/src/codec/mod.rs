//! Encoding and decoding of packets without I/O, so that any bytes can be tested.

pub mod answer;
pub mod column;
pub mod frame;
pub mod reader;
pub mod row;

pub use reader::{Malformed, Reader};
