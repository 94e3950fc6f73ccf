//! BSON documents, written into and read from reusable buffers.
//!
//! Writing allocates nothing once the buffer has grown, and reading borrows from the input. Malformed input ends in an
//! error and never causes a read past its end.
//!
//! Source: the specification at bsonspec.org, version 1.1.

mod read;
mod tag;
mod write;

pub use read::{Document, Elements, Malformed, Value};
pub use write::{DocumentBuf, Documents, Items, Writer, write};

#[cfg(test)]
mod tests;
