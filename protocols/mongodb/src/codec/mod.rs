//! Bytes as messages, and messages as bytes, without I/O.

pub mod frame;
pub mod hello;
pub mod reply;

pub use rumba_core::bson::Malformed;
