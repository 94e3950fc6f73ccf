//! Reads the library's log. The library logs every insert and delete before acknowledging it, but its own recovery is
//! unfinished, so the user must replay the log.
//!
//! The log is a sequence of fixed-size segments. Entries fill each segment from its start, and the library rewrites the
//! whole segment as it grows. An entry starts with its length, its number and a page, eight bytes each. The lengths of
//! key and value follow, two bytes each, then one byte for insert or delete, then key and value. A length of zero ends
//! a segment. Entry numbers are consecutive.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rumba_engine_api::error::Result;

use crate::files::failed;

const HEADER: usize = 24;
/// Offset of the byte that says insert or delete, after the lengths.
const ACTION: usize = HEADER + 2 + 2;
const BEFORE_KEY: usize = ACTION + 1;

/// Length of the log entry of a write.
pub(crate) const fn entry_length(key: usize, value: usize) -> usize {
    BEFORE_KEY + key + value
}

/// A logged write.
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

/// Parses the entry at the start of `bytes` if it is complete and has the expected number; also returns its length.
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

/// Visits all writes of a log in order, up to the first incomplete entry, and returns their number.
///
/// # Errors
/// An I/O error.
pub(crate) fn replay(log: &Path, segment: usize, visit: &mut dyn FnMut(Entry<'_>) -> Result<()>) -> Result<u64> {
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
        // A segment without a new entry lies past the end of the log.
        if bytes.len() < segment || next == before {
            return Ok(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bf_tree::{BfTree, Config, WalConfig};

    use super::*;

    /// Replays a log that the library itself wrote.
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
        // A log truncated at any byte must replay up to the truncation.
        let whole = std::fs::read(&path).unwrap();
        for end in (0..whole.len()).step_by(97) {
            let cut = dir.path().join("cut");
            std::fs::write(&cut, &whole[..end]).unwrap();
            let found = read(&cut);
            assert_eq!(found, expected[..found.len()]);
        }
    }
}
