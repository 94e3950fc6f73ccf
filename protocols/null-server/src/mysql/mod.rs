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

/// The version in the server's greeting.
pub const VERSION: &str = "8.0.0-rumba-null";

/// Error 1040 in place of a greeting; it has no SQL state, which is not agreed yet.
pub fn refusal(words: &str) -> Vec<u8> {
    let mut out = Vec::new();
    packet::packet(&mut out, &mut 0, |out| {
        out.push(0xFF);
        out.extend_from_slice(&1040u16.to_le_bytes());
        out.extend_from_slice(format!("Too many connections: {words}").as_bytes());
    });
    out
}
