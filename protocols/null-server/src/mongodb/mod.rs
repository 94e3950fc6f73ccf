//! MongoDB's protocol: OP_MSG, and OP_QUERY for the greeting of older drivers.

mod answers;
mod dialogue;
mod message;

pub use answers::Answers;
pub use dialogue::Dialogue;

/// The version that the server reports.
pub const VERSION: &str = "7.0.0 (rumba null server)";

/// The longest answer: the most that drivers accept in one message, without its envelope.
pub const LONGEST: u64 = 47 << 20;
