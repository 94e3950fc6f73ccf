//! Message frames: a header of sixteen bytes, flags, and sections.

use rumba_engine_api::bson::{self, Document, Malformed, Writer};

/// The bytes before a message's flags: its length, its number, the number of the request it answers, and its opcode.
pub const HEADER: usize = 16;
/// The only supported opcode, OP_MSG.
const OP_MSG: u32 = 2013;
/// The header with flags and the kind of the first section, before that section's document.
const OPENING: usize = HEADER + 5;
/// The limit for a message's length; servers accept and send at most 48,000,000 bytes.
const LONGEST: usize = 64 << 20;

/// Flag: the message ends with a checksum of four bytes.
const CHECKSUM: u32 = 1;
/// Flag of an answer: more answers follow without a request. Flag of a request: no answer is wanted.
const MORE_TO_COME: u32 = 1 << 1;
/// Flags that an implementation may ignore if it does not know them.
const OPTIONAL: u32 = 0xffff_0000;

/// The position of a message in a buffer, or its missing length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// The complete message has this many bytes.
    Whole(usize),
    /// The buffer must hold at least this many bytes before parsing can continue.
    Short(usize),
}

/// Parses the frame of the message at the start of `bytes`.
///
/// # Errors
/// An impossible length.
#[inline]
pub fn framed(bytes: &[u8]) -> Result<Framed, Malformed> {
    let Some(&length) = bytes.first_chunk::<4>() else { return Ok(Framed::Short(HEADER)) };
    let length = u32::from_le_bytes(length) as usize;
    if !(OPENING + Document::EMPTY.bytes().len()..=LONGEST).contains(&length) {
        return Err(Malformed("a message's length"));
    }
    Ok(if bytes.len() < length { Framed::Short(length) } else { Framed::Whole(length) })
}

/// The number of the request that a complete message answers, and its document.
///
/// # Errors
/// The message is not an OP_MSG, or has a form that was not requested.
#[inline]
pub fn answer(message: &[u8]) -> Result<(u32, Document<'_>), Malformed> {
    let number = |at: usize| -> Result<u32, Malformed> {
        let bytes = message.get(at..).and_then(|rest| rest.first_chunk::<4>());
        Ok(u32::from_le_bytes(*bytes.ok_or(Malformed("a message is cut off"))?))
    };
    if number(12)? != OP_MSG {
        return Err(Malformed("a message that is not OP_MSG, which servers use since 3.6"));
    }
    let flags = number(HEADER)?;
    if flags & !(CHECKSUM | OPTIONAL) != 0 {
        return Err(Malformed("a message with unexpected flags"));
    }
    let end = message.len().checked_sub(if flags & CHECKSUM != 0 { 4 } else { 0 });
    let sections = end.and_then(|end| message.get(HEADER + 4..end)).ok_or(Malformed("a message is cut off"))?;
    match sections {
        [0, body @ ..] => Ok((number(8)?, Document::new(body)?)),
        _ => Err(Malformed("an answer that does not begin with its document")),
    }
}

/// Begins a message with this number and the document that `values` writes; [`finish`] takes the returned position.
#[inline]
pub fn start(out: &mut Vec<u8>, number: u32, values: impl FnOnce(&mut Writer<'_>)) -> usize {
    let at = out.len();
    let mut opening = [0; OPENING];
    opening[4..8].copy_from_slice(&number.to_le_bytes());
    opening[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
    out.extend_from_slice(&opening);
    bson::write(out, values);
    at
}

/// Appends a section with documents under this name.
#[inline]
pub fn sequence(out: &mut Vec<u8>, name: &str, documents: &[u8]) {
    out.push(1);
    let length = (4 + name.len() + 1 + documents.len()) as u32;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(documents);
}

/// Ends the message that began at `at`.
#[inline]
pub fn finish(out: &mut [u8], at: usize) {
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Sets the flag that the message at `at` is not answered.
pub fn unanswered(out: &mut [u8], at: usize) {
    out[at + HEADER..at + HEADER + 4].copy_from_slice(&MORE_TO_COME.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        let mut bytes = Vec::new();
        let at = start(&mut bytes, 7, |of| of.small("ok", 1));
        finish(&mut bytes, at);
        bytes
    }

    #[test]
    fn malformed_answer_is_refused_at_once() {
        for length in [0_u32, 25, 0x0400_0001, u32::MAX] {
            assert!(framed(&length.to_le_bytes()).is_err(), "{length}");
        }
        let whole = message();
        for (at, byte, why) in
            [(12, 1, "not OP_MSG"), (HEADER, 2, "flags"), (HEADER + 1, 1, "flags"), (HEADER + 4, 1, "begin")]
        {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let error = answer(&bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let mut optional = whole.clone();
        optional[HEADER + 2] = 1;
        assert!(answer(&optional).is_ok());
        let mut summed = whole.clone();
        summed[HEADER] = 1;
        assert!(answer(&summed).is_err(), "its last four bytes are no checksum");
        summed.extend_from_slice(&[1, 2, 3, 4]);
        assert!(answer(&summed).is_ok());
        for cut in 0..whole.len() {
            assert!(answer(&whole[..cut]).is_err(), "{cut}");
        }
    }
}
