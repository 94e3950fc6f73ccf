//! Messages: a header of sixteen bytes with length, number and opcode.

use rumba_engine_api::bson::{Writer, write};

const HEADER: usize = 16;
/// The opcode of all clients since 3.6.
pub const OP_MSG: u32 = 2013;
/// The opcode by which drivers find out whether a server supports OP_MSG.
pub const OP_QUERY: u32 = 2004;
/// The opcode of its answer.
const OP_REPLY: u32 = 1;
/// The longest accepted message, as announced in `hello`.
pub const LONGEST: usize = 48_000_000;

/// The first message of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<'a> {
    /// A complete message.
    Whole {
        /// Its number, which the answer repeats.
        number: u32,
        /// Its opcode.
        kind: u32,
        /// The bytes after its header.
        body: &'a [u8],
        /// The input after the message.
        rest: &'a [u8],
    },
    /// An incomplete message.
    Part,
    /// Invalid input.
    Nonsense,
}

/// Parses the first message.
#[inline]
pub fn first(input: &[u8]) -> First<'_> {
    let Some((header, _)) = input.split_first_chunk::<HEADER>() else { return First::Part };
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let length = number(0) as usize;
    if !(HEADER..=LONGEST).contains(&length) {
        return First::Nonsense;
    }
    match input.split_at_checked(length) {
        Some((message, rest)) => First::Whole { number: number(4), kind: number(12), body: &message[HEADER..], rest },
        None => First::Part,
    }
}

/// An answer in OP_MSG; [`append`] fills in the request's number.
pub fn answer(values: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = header(OP_MSG);
    // No flags; the kind of a document section.
    out.extend_from_slice(&[0; 5]);
    write(&mut out, values);
    ended(out)
}

/// An answer in OP_REPLY.
pub fn old_answer(values: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = header(OP_REPLY);
    // Zero flags, cursor and starting position; one document.
    out.extend_from_slice(&[0; 16]);
    out.extend_from_slice(&1_u32.to_le_bytes());
    write(&mut out, values);
    ended(out)
}

fn header(kind: u32) -> Vec<u8> {
    let mut out = vec![0; HEADER - 4];
    out.extend_from_slice(&kind.to_le_bytes());
    out
}

fn ended(mut out: Vec<u8>) -> Vec<u8> {
    let length = out.len() as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

/// Appends an answer to the request of this number.
#[inline]
pub fn append(out: &mut Vec<u8>, answer: &[u8], number: u32) {
    let at = out.len();
    out.extend_from_slice(answer);
    out[at + 8..at + 12].copy_from_slice(&number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_message_is_refused_at_once() {
        let whole = answer(|of| of.double("ok", 1.0));
        let length = whole.len();
        let two = [&whole[..], b"?"].concat();
        let expected = First::Whole { number: 0, kind: OP_MSG, body: &whole[HEADER..], rest: b"?" };
        assert_eq!(first(&two), expected);
        (0..length).for_each(|cut| assert_eq!(first(&whole[..cut]), First::Part, "{cut}"));
        assert_eq!(first(b"GET / HTTP/1.1\r\n\r\n"), First::Nonsense);
        assert_eq!(first(&[15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), First::Nonsense);
        let mut out = Vec::new();
        append(&mut out, &whole, 7);
        assert_eq!(out[8], 7);
    }
}
