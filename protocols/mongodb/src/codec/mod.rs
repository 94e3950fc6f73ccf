//! Encoding and decoding of messages, without I/O.

pub mod frame;
pub mod hello;
pub mod reply;

pub use rumba_core::bson::Malformed;
