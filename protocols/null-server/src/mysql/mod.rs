//! MySQL's protocol.

mod answers;
mod commands;
mod constants;
mod handshake;
mod packet;
mod resultset;
mod statements;
mod variables;

pub use answers::Answers;
pub use commands::Dialogue;
pub use packet::LONGEST;

/// The version that the server greets with.
pub const VERSION: &str = "8.0.0-rumba-null";

/// The error 1040 in the place of a greeting; nobody has agreed on SQL states by then.
pub fn refusal(words: &str) -> Vec<u8> {
    let mut out = Vec::new();
    packet::packet(&mut out, &mut 0, |out| {
        out.push(0xFF);
        out.extend_from_slice(&1040u16.to_le_bytes());
        out.extend_from_slice(format!("Too many connections: {words}").as_bytes());
    });
    out
}
