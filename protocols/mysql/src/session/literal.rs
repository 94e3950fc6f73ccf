//! Parameters as SQL text.

use rumba_core::sql::Param;

/// Appends a parameter as SQL has it. Where `backslashes` escape nothing, only quotes are doubled.
pub(super) fn put(out: &mut Vec<u8>, param: Param<'_>, backslashes: bool) {
    match param {
        Param::Null => out.extend_from_slice(b"NULL"),
        Param::Int(number) => put_int(out, number),
        Param::Bytes(bytes) => put_quoted(out, bytes, backslashes),
    }
}

/// Appends an integer in decimal.
pub(super) fn put_int(out: &mut Vec<u8>, number: i64) {
    // 2^64 has twenty digits.
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut left = number.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
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
        let mut rest = bytes;
        while let Some(quote) = rest.iter().position(|&byte| byte == b'\'') {
            out.extend_from_slice(&rest[..=quote]);
            out.push(b'\'');
            rest = &rest[quote + 1..];
        }
        out.extend_from_slice(rest);
    }
    out.push(b'\'');
}

/// Appends bytes, with a backslash and `escape`'s answer in the place of those that it has one for.
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

/// A name in backticks; a dot parts schema and table.
pub(super) fn quoted_name(name: &str) -> String {
    let parts: Vec<String> = name.split('.').map(|part| format!("`{}`", part.replace('`', "``"))).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_written_as_rust_writes_them() {
        for number in [0, 1, -1, 9, 10, 1234567890, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_int(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn nothing_in_a_string_ends_it() {
        let text = |backslashes| {
            let mut out = Vec::new();
            put_quoted(&mut out, b"it's \\ a\0b\n\xff", backslashes);
            out
        };
        assert_eq!(text(true), b"'it\\'s \\\\ a\\0b\\n\xff'");
        assert_eq!(text(false), b"'it''s \\ a\0b\n\xff'");
    }

    #[test]
    fn names_are_quoted_part_by_part() {
        assert_eq!(quoted_name("db.na`me"), "`db`.`na``me`");
    }
}
