//! Encoding and decoding of messages, without I/O.

pub mod frame;
pub mod hello;
pub mod reply;

pub use rumba_engine_api::bson::Malformed;
