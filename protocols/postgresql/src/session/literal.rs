//! Parameters as SQL text.

use rumba_engine_api::sql::Param;
use rumba_engine_api::value::put_int;
use rumba_transport::put_doubled;

use crate::codec::types::{self, ParamLayout};

/// Appends a parameter of a type as SQL, assuming `standard_conforming_strings = on`, which is the default.
pub(super) fn put(out: &mut Vec<u8>, param: Param<'_>, oid: u32) {
    match param {
        Param::Null => out.extend_from_slice(b"NULL"),
        // A text parameter requires a quoted literal.
        Param::Int(number) if ParamLayout::of(oid) == ParamLayout::Bytes => {
            out.push(b'\'');
            put_int(out, number);
            out.push(b'\'');
        }
        // Two adjacent minus signs would begin a comment.
        Param::Int(number) if number < 0 => {
            out.push(b'(');
            put_int(out, number);
            out.push(b')');
        }
        Param::Int(number) => put_int(out, number),
        Param::Bytes(bytes) if types::is_bytea(oid) => {
            out.push(b'\'');
            put_hex(out, bytes);
            out.push(b'\'');
        }
        Param::Text(bytes) | Param::Bytes(bytes) => put_quoted(out, bytes),
        // A quoted literal gets the type that its position requires.
        Param::Unsigned(_) | Param::Double(_) | Param::Decimal(_) | Param::Timestamp(_) => {
            out.push(b'\'');
            param.write_text(out);
            out.push(b'\'');
        }
    }
}

/// Appends bytes in `bytea`'s text format.
pub(super) fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\x");
    for &byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

fn put_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'\'');
    put_doubled(out, bytes);
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(param: Param<'_>, oid: u32) -> String {
        let mut out = Vec::new();
        put(&mut out, param, oid);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_byte_of_a_value_is_kept() {
        assert_eq!(written(Param::Bytes(b"it's \\ --"), 25), "'it''s \\ --'");
        assert_eq!(written(Param::Bytes(b"'\0"), 17), "'\\x2700'");
        assert_eq!(written(Param::Null, 25), "NULL");
        assert_eq!((written(Param::Int(-7), 20), written(Param::Int(7), 20)), ("(-7)".into(), "7".into()));
        assert_eq!(written(Param::Int(i64::MIN), 20), format!("({})", i64::MIN));
    }
}
