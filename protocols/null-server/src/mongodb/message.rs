//! Messages: sixteen bytes that say how long they are, of which number, and of which kind.

use super::bson::{Writer, write};

const HEADER: usize = 16;
/// What everybody speaks since 3.6.
pub const OP_MSG: u32 = 2013;
/// By what drivers find out whether a server speaks it.
pub const OP_QUERY: u32 = 2004;
/// How that is answered.
const OP_REPLY: u32 = 1;
/// The longest message that is taken, which is what `hello` says.
pub const LONGEST: usize = 48_000_000;

/// The message that input starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<'a> {
    /// A message.
    Whole {
        /// Its number, which the answer names.
        number: u32,
        /// Of what kind.
        kind: u32,
        /// What follows its header.
        body: &'a [u8],
        /// What follows it.
        rest: &'a [u8],
    },
    /// Not all of it has come.
    Part,
    /// Something that no message starts with.
    Nonsense,
}

/// Looks at the first message.
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

/// An answer in OP_MSG, to a question whose number is put in by [`append`].
pub fn answer(values: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = header(OP_MSG);
    // No flags; a document.
    out.extend_from_slice(&[0; 5]);
    write(&mut out, values);
    ended(out)
}

/// An answer in OP_REPLY.
pub fn old_answer(values: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = header(OP_REPLY);
    // Flags, a cursor, where it starts: nothing; one document.
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

/// Appends an answer to the question of this number.
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
    fn what_cannot_be_a_message_is_not_waited_for() {
        let whole = answer(|of| of.ok(true));
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
