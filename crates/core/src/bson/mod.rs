//! Documents as they are sent and kept (BSON), written into and read from buffers that are used again and again.
//!
//! What is written here allocates nothing once its buffer has grown, and what is read lies where it came. Whatever bytes
//! come, reading them ends in an error and never beyond their end.
//!
//! Source: the specification at bsonspec.org, version 1.1.

mod read;
mod tag;
mod write;

pub use read::{Document, Elements, Malformed, Value};
pub use write::{DocumentBuf, Documents, Items, Writer, write};

#[cfg(test)]
mod tests;
