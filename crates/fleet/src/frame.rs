//! Frames: a JSON head and a binary tail, both with a bound.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes of a frame: the counts of a second with a hundred types of operations are below a megabyte.
pub const MOST_BYTES: u32 = 16 << 20;
/// The most bytes of a frame from a host that is not welcome yet.
pub const MOST_BYTES_OF_HELLO: u32 = 16 << 10;
/// The bytes before the head: the frame's length without them, and the head's length.
const PREFIX: usize = 8;

/// A received frame.
#[derive(Debug, PartialEq)]
pub struct Frame<T> {
    /// The message.
    pub head: T,
    /// Binary data.
    pub tail: Vec<u8>,
}

/// The bytes of a frame.
///
/// # Errors
/// A frame above [`MOST_BYTES`].
pub fn encode<T: Serialize>(head: &T, tail: &[u8]) -> io::Result<Vec<u8>> {
    let head = serde_json::to_vec(head)?;
    let length = head.len() + tail.len();
    if length > MOST_BYTES as usize {
        return Err(io::Error::other(format!("a frame of {length} bytes is above the {MOST_BYTES} that are allowed")));
    }
    let mut frame = Vec::with_capacity(PREFIX + length);
    frame.extend_from_slice(&(length as u32).to_le_bytes());
    frame.extend_from_slice(&(head.len() as u32).to_le_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(tail);
    Ok(frame)
}

/// Writes a frame in one call.
///
/// # Errors
/// As [`encode`]; the connection's.
pub fn write<T: Serialize>(to: &mut impl Write, head: &T, tail: &[u8]) -> io::Result<()> {
    to.write_all(&encode(head, tail)?)
}

/// Reads a frame of at most `most` bytes.
///
/// # Errors
/// A frame that is too long or not as expected; the connection's.
pub fn read<T: DeserializeOwned>(from: &mut impl Read, most: u32) -> io::Result<Frame<T>> {
    let mut prefix = [0; PREFIX];
    from.read_exact(&mut prefix)?;
    let number = |at: usize| u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]]);
    let (length, head_length) = (number(0), number(4));
    if length > most || head_length > length {
        let words = format!("a frame of {length} bytes with a head of {head_length}; at most {most} are allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    let mut head = vec![0; head_length as usize];
    from.read_exact(&mut head)?;
    let head = serde_json::from_slice(&head)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("a message that is not known: {error}")))?;
    let mut tail = vec![0; (length - head_length) as usize];
    from.read_exact(&mut tail)?;
    Ok(Frame { head, tail })
}
