//! PostgreSQL's protocol, version 3.0.

mod answers;
mod dialogue;
mod message;

pub use answers::Answers;
pub use dialogue::Dialogue;

/// The version that the server reports.
pub const VERSION: &str = "15.0 (rumba null server)";

/// Error 53300 in place of an answer to the first message.
pub fn refusal(words: &str) -> Vec<u8> {
    let mut out = Vec::new();
    message::put_error(&mut out, "FATAL", "53300", &format!("sorry, too many clients already: {words}"));
    out
}
