//! MongoDB's protocol: OP_MSG, and the OP_QUERY with which older drivers say hello.

mod answers;
mod bson;
mod dialogue;
mod message;

pub use answers::Answers;
pub use dialogue::Dialogue;

/// The version that the server says it is.
pub const VERSION: &str = "7.0.0 (rumba null server)";

/// The longest answer: as much as drivers take in one message, its envelope apart.
pub const LONGEST: u64 = 47 << 20;
