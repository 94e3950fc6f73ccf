//! Parameters as SQL text.

use rumba_engine_api::sql::Param;
use rumba_engine_api::value::put_int;
use rumba_transport::put_doubled;

/// Appends a parameter as SQL. If `backslashes` is false, only quotes are doubled.
pub(super) fn put(out: &mut Vec<u8>, param: Param<'_>, backslashes: bool) {
    match param {
        Param::Null => out.extend_from_slice(b"NULL"),
        Param::Int(number) => put_int(out, number),
        Param::Unsigned(_) | Param::Decimal(_) => param.write_text(out),
        Param::Double(number) if number.is_finite() => param.write_text(out),
        // The server refuses an invalid number with its own error.
        Param::Double(_) | Param::Timestamp(_) => {
            out.push(b'\'');
            param.write_text(out);
            out.push(b'\'');
        }
        Param::Text(bytes) | Param::Bytes(bytes) => put_quoted(out, bytes, backslashes),
    }
}

/// Appends a string in quotes.
pub(super) fn put_quoted(out: &mut Vec<u8>, bytes: &[u8], backslashes: bool) {
    out.push(b'\'');
    if backslashes {
        put_escaped(out, bytes, |byte| match byte {
            0 => Some(b'0'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            0x1a => Some(b'Z'),
            b'\'' | b'\\' => Some(byte),
            _ => None,
        });
    } else {
        put_doubled(out, bytes);
    }
    out.push(b'\'');
}

/// Appends bytes, and puts a backslash and the result of `escape` in place of those to escape.
#[inline]
pub(super) fn put_escaped(out: &mut Vec<u8>, bytes: &[u8], escape: impl Fn(u8) -> Option<u8>) {
    let mut kept = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if let Some(letter) = escape(byte) {
            out.extend_from_slice(&bytes[kept..at]);
            out.extend_from_slice(&[b'\\', letter]);
            kept = at + 1;
        }
    }
    out.extend_from_slice(&bytes[kept..]);
}
