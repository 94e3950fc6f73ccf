//! Reading the library's log. It writes every insert and delete before it acknowledges it, and leaves it to its user what to
//! do with them: its own recovery is not finished.
//!
//! The log is segments of a fixed size, one behind the other, filled with entries from their beginning and written anew as
//! they grow. An entry is its length, its number and a page, eight bytes each, then the lengths of key and value in two
//! bytes each, a byte that says whether it inserts or deletes, key and value. A length of zero ends a segment. Numbers
//! follow each other without a gap.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rumba_core::error::EngineError;

use crate::files::failed;

const HEADER: usize = 24;
/// Behind the lengths stands what it does.
const ACTION: usize = HEADER + 2 + 2;
const BEFORE_KEY: usize = ACTION + 1;

/// How long the entry of a write is.
pub(crate) const fn entry_length(key: usize, value: usize) -> usize {
    BEFORE_KEY + key + value
}

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    Insert(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

/// The entry at the beginning of these bytes, if one of this number is, and how long it is.
fn entry(bytes: &[u8], expected: u64) -> Option<(Entry<'_>, usize)> {
    let length = usize::try_from(number(bytes, 0)?).ok()?;
    if length == 0 || number(bytes, 8)? != expected {
        return None;
    }
    let (key, value) = (short(bytes, HEADER)?, short(bytes, HEADER + 2)?);
    if length != entry_length(key, value) {
        return None;
    }
    let body = bytes.get(BEFORE_KEY..length)?;
    let (key, value) = body.split_at_checked(key)?;
    match bytes.get(ACTION)? {
        0 => Some((Entry::Insert(key, value), length)),
        1 => Some((Entry::Delete(key), length)),
        _ => None,
    }
}

/// Visits all writes of a log in their order, up to the first that is not whole; how many there were.
///
/// # Errors
/// Whatever the file system said.
pub(crate) fn replay(
    log: &Path,
    segment: usize,
    visit: &mut dyn FnMut(Entry<'_>) -> Result<(), EngineError>,
) -> Result<u64, EngineError> {
    let mut file = File::open(log).map_err(failed("open"))?;
    let (mut bytes, mut next) = (Vec::with_capacity(segment), 0);
    loop {
        bytes.clear();
        file.by_ref().take(segment as u64).read_to_end(&mut bytes).map_err(failed("read"))?;
        let (mut at, before) = (0, next);
        while let Some((entry, length)) = bytes.get(at..).and_then(|rest| entry(rest, next)) {
            visit(entry)?;
            at += length;
            next += 1;
        }
        // A segment without a new entry is behind the end.
        if bytes.len() < segment || next == before {
            return Ok(next);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use bf_tree::{BfTree, Config, WalConfig};

    use super::*;

    /// What the library itself has written.
    #[test]
    fn every_write_of_the_library_is_read_in_its_order() {
        const SEGMENT: usize = 1024;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wal");
        let mut log = WalConfig::new(&path);
        log.segment_size(SEGMENT).flush_interval(std::time::Duration::from_micros(50));
        let mut config = Config::default();
        config.enable_write_ahead_log(Arc::new(log));
        let tree = BfTree::with_config(config, None).unwrap();
        let mut expected = Vec::new();
        for number in 0..100_u32 {
            let (key, value) = (format!("key{:03}", number % 40), vec![b'v'; 1 + number as usize * 3 % 200]);
            if number % 7 == 6 {
                tree.delete(key.as_bytes());
                expected.push((key, None));
            } else {
                tree.insert(key.as_bytes(), &value);
                expected.push((key, Some(value)));
            }
        }
        drop(tree);
        let read = |path: &Path| {
            let mut found: Vec<(String, Option<Vec<u8>>)> = Vec::new();
            let mut visit = |entry: Entry<'_>| {
                let (key, value) = match entry {
                    Entry::Insert(key, value) => (key, Some(value.to_vec())),
                    Entry::Delete(key) => (key, None),
                };
                found.push((String::from_utf8(key.to_vec()).unwrap(), value));
                Ok(())
            };
            assert_eq!(replay(path, SEGMENT, &mut visit).unwrap(), found.len() as u64);
            found
        };
        assert_eq!(read(&path), expected);
        // Cut off anywhere, it is read up to there.
        let whole = std::fs::read(&path).unwrap();
        for end in (0..whole.len()).step_by(97) {
            let cut = dir.path().join("cut");
            std::fs::write(&cut, &whole[..end]).unwrap();
            let found = read(&cut);
            assert_eq!(found, expected[..found.len()]);
        }
    }
}
