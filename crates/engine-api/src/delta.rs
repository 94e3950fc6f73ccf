//! Changes of a value that do not read it, so that an engine may defer the write until the next read.
//!
//! A [`Delta`] is a flat list of edits. The client encodes one, and [`crate::kv::KvSession::update`] hands it to the
//! engine. The engine calls [`apply`] to make the new value at any later time, in any thread, and again after a crash.

const ADD: u8 = 1;
const OVERWRITE: u8 = 2;
const FIELD: u8 = 3;
/// The length that marks a missing value for an absent key.
const NOTHING: u32 = u32::MAX;
/// The size of each field length at the start of a value.
const LENGTH: usize = 4;

/// Edits of a value, in their order. Its memory is reused: once grown, it does not allocate.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    bytes: Vec<u8>,
}

impl Delta {
    /// Begins a new delta. If the key is absent, the engine inserts this value, or does nothing if there is none.
    pub fn begin(&mut self, if_absent: Option<&[u8]>) {
        self.bytes.clear();
        match if_absent {
            Some(value) => self.put_bytes(value),
            None => self.put(NOTHING),
        }
    }

    /// Adds to an eight-byte integer, the least significant byte first, with wrap-around.
    pub fn add(&mut self, at: u32, amount: i64) {
        self.bytes.push(ADD);
        self.put(at);
        self.bytes.extend_from_slice(&amount.to_le_bytes());
    }

    /// Replaces the same number of bytes at this position.
    pub fn overwrite(&mut self, at: u32, bytes: &[u8]) {
        self.bytes.push(OVERWRITE);
        self.put(at);
        self.put_bytes(bytes);
    }

    /// Replaces the content of a field. The value begins with the lengths of its fields, four bytes each, the least
    /// significant first, followed by their content.
    pub fn set_field(&mut self, field: u32, fields: u32, content: &[u8]) {
        self.bytes.push(FIELD);
        self.put(field);
        self.put(fields);
        self.put_bytes(content);
    }

    /// Its encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn put(&mut self, number: u32) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(bytes.len() as u32);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Makes the new value of a key from its old one, which is `None` if the key is absent. Returns false if the key stays
/// absent. An edit that does not fit the value leaves it unchanged.
pub fn apply(delta: &[u8], old: Option<&[u8]>, new: &mut Vec<u8>) -> bool {
    new.clear();
    let mut rest = delta;
    let if_absent = take_absent(&mut rest);
    let Some(old) = old else {
        new.extend_from_slice(if_absent.unwrap_or_default());
        return if_absent.is_some();
    };
    new.extend_from_slice(old);
    while edit(&mut rest, new).is_some() {}
    true
}

fn take_absent<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    if length == NOTHING { None } else { take(rest, length as usize) }
}

/// Applies the next edit; `None` when there is none.
fn edit(rest: &mut &[u8], value: &mut Vec<u8>) -> Option<()> {
    match take(rest, 1)? {
        [ADD] => {
            let (at, amount) = (number(rest)? as usize, take(rest, 8)?);
            if let Some(place) = value.get_mut(at..at + 8) {
                place.copy_from_slice(&eight(place).wrapping_add(eight(amount)).to_le_bytes());
            }
        }
        [OVERWRITE] => {
            let (at, bytes) = (number(rest)? as usize, take_bytes(rest)?);
            if let Some(place) = value.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        [FIELD] => {
            let (field, fields) = (number(rest)? as usize, number(rest)? as usize);
            set_field(value, field, fields, take_bytes(rest)?);
        }
        _ => return None,
    }
    Some(())
}

fn set_field(value: &mut Vec<u8>, field: usize, fields: usize, content: &[u8]) {
    let length_of = |value: &[u8], field: usize| {
        let bytes = value.get(field * LENGTH..(field + 1) * LENGTH).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
    };
    let start = fields * LENGTH + (0..field).map(|before| length_of(value, before)).sum::<usize>();
    let (old, new, whole) = (length_of(value, field), content.len(), value.len());
    if field >= fields || start + old > whole {
        return;
    }
    if new > old {
        value.resize(whole + new - old, 0);
    }
    value.copy_within(start + old..whole, start + new);
    value.truncate(whole - old + new);
    value[start..start + new].copy_from_slice(content);
    value[field * LENGTH..(field + 1) * LENGTH].copy_from_slice(&(new as u32).to_le_bytes());
}

fn eight(bytes: &[u8]) -> i64 {
    bytes.try_into().map_or(0, i64::from_le_bytes)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    take(rest, 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    take(rest, length as usize)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(delta: &Delta, old: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut new = b"left over".to_vec();
        apply(delta.as_bytes(), old, &mut new).then_some(new)
    }

    fn record(fields: &[&str]) -> Vec<u8> {
        let lengths = fields.iter().flat_map(|field| (field.len() as u32).to_le_bytes());
        lengths.chain(fields.iter().flat_map(|field| field.bytes())).collect()
    }

    #[test]
    fn a_count_is_added_to_where_it_is_and_inserted_where_it_is_not() {
        let mut delta = Delta::default();
        delta.begin(Some(b"absent"));
        delta.add(0, -3);
        delta.overwrite(8, b"now");
        let old = [&10i64.to_le_bytes()[..], b"old!"].concat();
        assert_eq!(applied(&delta, Some(&old)), Some([&7i64.to_le_bytes()[..], b"now!"].concat()));
        assert_eq!(applied(&delta, None), Some(b"absent".to_vec()));
        delta.begin(None);
        delta.add(0, 1);
        assert_eq!(applied(&delta, None), None);
    }

    #[test]
    fn delta_handles_longer_shorter_and_empty_fields() {
        let old = record(&["a", "bb", "", "dddd"]);
        for content in ["", "x", "yy", "longer than all of it before"] {
            for field in 0..4 {
                let mut delta = Delta::default();
                delta.begin(None);
                delta.set_field(field, 4, content.as_bytes());
                let mut right = ["a", "bb", "", "dddd"];
                right[field as usize] = content;
                assert_eq!(applied(&delta, Some(&old)), Some(record(&right)), "{field} {content}");
            }
        }
        let mut all = Delta::default();
        all.begin(None);
        (0..4).for_each(|field| all.set_field(field, 4, b"new"));
        assert_eq!(applied(&all, Some(&old)), Some(record(&["new"; 4])));
    }

    /// An engine applies edits in places that cannot return an error.
    #[test]
    fn edit_that_does_not_fit_changes_nothing() {
        let mut delta = Delta::default();
        delta.begin(None);
        delta.add(1, 1);
        delta.overwrite(7, b"ab");
        delta.set_field(4, 4, b"x");
        delta.set_field(0, 1, b"x");
        let old = [255, 255, 255, 255, 1, 2, 3, 4];
        assert_eq!(applied(&delta, Some(&old)), Some(old.to_vec()));
        let mut new = Vec::new();
        for end in 0..delta.as_bytes().len() {
            assert!(apply(&delta.as_bytes()[..end], Some(&old), &mut new));
            assert_eq!(new, old);
        }
    }
}
