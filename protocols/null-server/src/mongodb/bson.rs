//! The part of BSON that answers need.

/// The types of written values.
const DOUBLE: u8 = 0x01;
const TEXT: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const BOOL: u8 = 0x08;
const INT32: u8 = 0x10;
const INT64: u8 = 0x12;

/// Writes documents.
#[derive(Debug)]
pub struct Writer<'a>(&'a mut Vec<u8>);

/// Appends a document with these values.
pub fn write(out: &mut Vec<u8>, values: impl FnOnce(&mut Writer<'_>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    values(&mut Writer(out));
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

impl Writer<'_> {
    fn put(&mut self, kind: u8, name: &str, value: &[u8]) {
        self.0.push(kind);
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        self.0.extend_from_slice(value);
    }

    pub fn ok(&mut self, ok: bool) {
        self.put(DOUBLE, "ok", &f64::from(u8::from(ok)).to_le_bytes());
    }

    pub fn bool(&mut self, name: &str, value: bool) {
        self.put(BOOL, name, &[u8::from(value)]);
    }

    pub fn small(&mut self, name: &str, value: i32) {
        self.put(INT32, name, &value.to_le_bytes());
    }

    pub fn int(&mut self, name: &str, value: i64) {
        self.put(INT64, name, &value.to_le_bytes());
    }

    pub fn text(&mut self, name: &str, value: &str) {
        self.put(TEXT, name, &(value.len() as u32 + 1).to_le_bytes());
        self.0.extend_from_slice(value.as_bytes());
        self.0.push(0);
    }

    pub fn document(&mut self, name: &str, values: impl FnOnce(&mut Writer<'_>)) {
        self.put(DOCUMENT, name, &[]);
        write(self.0, values);
    }

    pub fn array(&mut self, name: &str, values: impl FnOnce(&mut Writer<'_>)) {
        self.put(ARRAY, name, &[]);
        write(self.0, values);
    }
}

/// The name of a document's first value, which is the command's name.
pub fn first_name(document: &[u8]) -> Option<&[u8]> {
    let (_, name, _) = elements(document)?.next()?;
    Some(name)
}

/// The number of values in the list of this name.
pub fn values_in(document: &[u8], list: &[u8]) -> Option<usize> {
    let (_, _, value) = elements(document)?.find(|(kind, name, _)| *kind == ARRAY && *name == list)?;
    Some(elements(value)?.count())
}

/// The number of consecutive documents.
pub fn documents_in(mut bytes: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !bytes.is_empty() {
        let length = length(bytes).filter(|&length| length >= 5)?;
        bytes = bytes.get(length..)?;
        count += 1;
    }
    Some(count)
}

/// Types, names and values, up to one that is truncated or of a type that no command needs.
fn elements(document: &[u8]) -> Option<impl Iterator<Item = (u8, &[u8], &[u8])>> {
    let mut left = document.get(4..length(document)?.checked_sub(1)?)?;
    Some(std::iter::from_fn(move || {
        let (&kind, rest) = left.split_first()?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        let (name, rest) = (&rest[..end], &rest[end + 1..]);
        let (value, rest) = rest.split_at_checked(width(kind, rest)?)?;
        left = rest;
        Some((kind, name, value))
    }))
}

fn width(kind: u8, value: &[u8]) -> Option<usize> {
    Some(match kind {
        TEXT => length(value)?.checked_add(4)?,
        DOCUMENT | ARRAY => length(value)?,
        // Binary data of any subtype.
        0x05 => length(value)?.checked_add(5)?,
        // An ObjectId.
        0x07 => 12,
        BOOL => 1,
        // Null.
        0x0a => 0,
        INT32 => 4,
        // Doubles, dates, timestamps.
        DOUBLE | 0x09 | 0x11 | INT64 => 8,
        _ => return None,
    })
}

fn length(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.first_chunk()?) as usize)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_command_is_known_by_its_first_name_and_its_lists_by_theirs() {
        let mut bytes = Vec::new();
        write(&mut bytes, |of| {
            of.text("insert", "t");
            of.bool("ordered", true);
            of.array("documents", |of| {
                of.document("0", |of| of.int("_id", 1));
                of.document("1", |of| of.ok(true));
            });
        });
        assert_eq!(first_name(&bytes), Some(&b"insert"[..]));
        assert_eq!((values_in(&bytes, b"documents"), values_in(&bytes, b"updates")), (Some(2), None));
        let doubled = [&bytes[..], &bytes].concat();
        assert_eq!((documents_in(&doubled), documents_in(&doubled[..bytes.len() + 3])), (Some(2), None));
        for cut in 0..bytes.len() {
            // A truncated document must not cause a read beyond its end.
            let _ = (first_name(&bytes[..cut]), values_in(&bytes[..cut], b"documents"));
        }
        assert_eq!(documents_in(&[0, 0, 0, 0]), None, "it would never end");
    }
}
