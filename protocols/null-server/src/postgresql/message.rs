//! Messages: a byte for the type, four bytes of length, a body.

/// The bytes before a message's body.
const HEADER: usize = 5;
/// The longest accepted message.
const LONGEST: usize = 64 << 20;

/// The first message of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First<'a> {
    /// A complete message.
    Whole {
        /// Its type.
        kind: u8,
        /// Its body.
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
    let Some((&[kind, a, b, c, d], after)) = input.split_first_chunk::<HEADER>() else { return First::Part };
    let Some(length) = (u32::from_be_bytes([a, b, c, d]) as usize).checked_sub(4).filter(|&length| length <= LONGEST)
    else {
        return First::Nonsense;
    };
    match after.split_at_checked(length) {
        Some((body, rest)) => First::Whole { kind, body, rest },
        None => First::Part,
    }
}

/// Parses the first message of a connection, which has no type, into its code and its body.
pub fn startup(input: &[u8]) -> First<'_> {
    let Some((&length, after)) = input.split_first_chunk::<4>() else { return First::Part };
    // The length that servers accept before authentication.
    let Some(length) =
        (u32::from_be_bytes(length) as usize).checked_sub(4).filter(|length| (4..=10_000).contains(length))
    else {
        return First::Nonsense;
    };
    match after.split_at_checked(length) {
        Some((body, rest)) => First::Whole { kind: 0, body, rest },
        None => First::Part,
    }
}

/// Appends a message.
pub fn put(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends an error.
pub fn put_error(out: &mut Vec<u8>, severity: &str, sqlstate: &str, words: &str) {
    put(out, b'E', |out| {
        for (field, text) in [(b'S', severity), (b'V', severity), (b'C', sqlstate), (b'M', words)] {
            out.push(field);
            put_text(out, text);
        }
        out.push(0);
    });
}

/// Appends CommandComplete.
pub fn put_tag(out: &mut Vec<u8>, tag: &str) {
    put(out, b'C', |out| put_text(out, tag));
}

/// Appends text and its terminating zero.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Removes text up to a zero from a body; `None` without one.
pub fn take_text<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = body.iter().position(|&byte| byte == 0)?;
    let (text, rest) = body.split_at(end);
    *body = &rest[1..];
    Some(text)
}

/// Removes a number of two bytes from a body.
pub fn take_u16(body: &mut &[u8]) -> Option<u16> {
    let (&number, rest) = body.split_first_chunk::<2>()?;
    *body = rest;
    Some(u16::from_be_bytes(number))
}

/// Removes a value with its length prefix from a body.
pub fn pass_value(body: &mut &[u8]) -> Option<()> {
    let (&length, rest) = body.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(length);
    *body = if length == u32::MAX { rest } else { rest.get(length as usize..)? };
    Some(())
}
