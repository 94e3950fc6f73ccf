//! Message frames: a byte for the type, and four bytes of length.

use super::Malformed;

/// The bytes before a message's body.
pub const HEADER: usize = 5;
/// The bytes of the length field, which the length includes.
const ITSELF: usize = 4;
/// The limit for a message's length, and so for a row. A server could send 1 GiB, which a client would have to keep in
/// memory.
const LONGEST: usize = 64 << 20;
/// The error for a longer message, or for a length that does not include itself.
const TOO_LONG: Malformed = Malformed("length (at most 64 MiB)");

/// The position of a message in a buffer, or its missing length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// A message.
    Whole {
        /// Its type: `b'D'`.
        kind: u8,
        /// The length of its body, which starts after the header.
        length: usize,
    },
    /// The buffer must hold at least this many bytes before parsing can continue.
    Short(usize),
}

/// Parses the frame of the message at the start of `bytes`.
///
/// # Errors
/// An impossible length.
pub fn framed(bytes: &[u8]) -> Result<Framed, Malformed> {
    let Some((&[kind, a, b, c, d], rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(Framed::Short(HEADER));
    };
    let said = u32::from_be_bytes([a, b, c, d]) as usize;
    let length = said.checked_sub(ITSELF).filter(|&length| length <= LONGEST).ok_or(TOO_LONG)?;
    if rest.len() < length {
        return Ok(Framed::Short(HEADER + length));
    }
    Ok(Framed::Whole { kind, length })
}

/// Removes the first message from `bytes`, if it is complete.
#[inline]
pub fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[kind, a, b, c, d], after) = bytes.split_first_chunk::<HEADER>()?;
    let length = (u32::from_be_bytes([a, b, c, d]) as usize).wrapping_sub(ITSELF);
    let (body, after) = after.split_at_checked(length)?;
    *bytes = after;
    Some((kind, body))
}

/// Begins a message of this type; [`finish`] takes the returned position.
#[inline]
pub fn start(out: &mut Vec<u8>, kind: u8) -> usize {
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    out.len() - ITSELF
}

/// Ends the message that began at `at`.
#[inline]
pub fn finish(out: &mut [u8], at: usize) {
    let length = (out.len() - at) as u32;
    out[at..at + ITSELF].copy_from_slice(&length.to_be_bytes());
}

/// Appends text and its terminating zero.
pub fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends a value with its length prefix.
#[inline]
pub fn put_value(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_cannot_be_is_refused_and_not_waited_for() {
        for said in [0_u32, 3, LONGEST as u32 + 5, 0x4000_0005, u32::MAX] {
            let mut bytes = vec![b'D'];
            bytes.extend_from_slice(&said.to_be_bytes());
            assert_eq!(framed(&bytes), Err(TOO_LONG), "{said}");
            assert_eq!(next(&mut &bytes[..]), None);
        }
    }
}
