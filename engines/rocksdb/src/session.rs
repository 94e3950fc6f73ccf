//! One client's session.

use std::sync::Arc;

use rumba_engine_api::engine::Durability;
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};

use crate::access::{ManyKeys, ReadOptions};
use crate::db::{Database, Locking};
use crate::transaction::{Transaction, WriteBatch};

/// A session: reads go to the database, or to the transaction while one is open.
pub struct Session {
    points: ReadOptions,
    prefix_scans: ReadOptions,
    total_order_scans: ReadOptions,
    many: ManyKeys,
    transaction: Transaction,
    batch: WriteBatch,
    spaces: Arc<[Space]>,
}

/// The properties of a key space that a session needs.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// The length of its prefix extractor's prefix, 0 for none.
    pub prefix: usize,
    /// Whether its entries need no separate locks ([`rumba_engine_api::kv::KeySpace::derived`]).
    pub derived: bool,
}

impl Session {
    pub fn new(db: &Arc<Database>, durability: Durability, locking: &Locking, spaces: &Arc<[Space]>) -> Self {
        Self {
            points: ReadOptions::for_points(db),
            prefix_scans: ReadOptions::for_prefix_scans(db),
            total_order_scans: ReadOptions::for_total_order_scans(db),
            many: ManyKeys::default(),
            transaction: Transaction::new(db, durability, locking),
            batch: WriteBatch::new(db, durability),
            spaces: spaces.clone(),
        }
    }
}

impl KvSession for Session {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = if self.transaction.active() {
            self.transaction.get(&self.points, space, key, false)?
        } else {
            self.points.get(space, key)?
        };
        Ok(found.map(|found| value.extend_from_slice(found.bytes())).is_some())
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        if !self.transaction.active() {
            return self.many.get(&self.points, space, keys, visit);
        }
        // RocksDB's own multi-get of a transaction is the same loop (TransactionBaseImpl::MultiGet).
        for (position, key) in keys.iter().enumerate() {
            if self.get(space, key, scratch)? {
                visit(position, scratch);
            }
        }
        Ok(())
    }

    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        if scan.from >= scan.to || scan.limit == 0 {
            return Ok(0);
        }
        let options = if within_prefix(scan.from, scan.to, self.spaces[space].prefix) {
            &mut self.prefix_scans
        } else {
            &mut self.total_order_scans
        };
        let within = self.transaction.active().then_some(&self.transaction);
        let mut cursor = options.cursor(within, space, scan.to);
        cursor.seek(scan.from);
        let mut visited = 0;
        while let Some((key, value)) = cursor.entry() {
            // The upper bound excludes committed rows, but not the transaction's own (BaseDeltaIterator in 7.8 ignores
            // the bound).
            if within.is_some() && key >= scan.to {
                break;
            }
            visit(key, value);
            visited += 1;
            if visited == scan.limit {
                return Ok(visited);
            }
            cursor.advance();
        }
        cursor.status()?;
        Ok(visited)
    }

    fn begin(&mut self) -> Result<()> {
        self.transaction.begin()
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.transaction.get(&self.points, space, key, true)?;
        Ok(found.map(|found| value.extend_from_slice(found.bytes())).is_some())
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        if self.spaces[space].derived {
            self.transaction.put_unlocked(space, key, value)
        } else {
            self.transaction.put(space, key, value)
        }
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        if self.spaces[space].derived {
            self.transaction.delete_unlocked(space, key)
        } else {
            self.transaction.delete(space, key)
        }
    }

    fn commit(&mut self) -> Result<()> {
        self.transaction.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.transaction.rollback()
    }

    /// Writes to the base database without row locks. That is safe because `load` guarantees exclusive rows. The write
    /// itself is what a commit does after taking its locks.
    fn load(&mut self, batch: &Batch) -> Result<()> {
        for (space, key, value) in batch.iter() {
            self.batch.put(space, key, value);
        }
        self.batch.write()
    }
}

/// Whether all keys from `from` up to, not including, `to` share the first `length` bytes of `from`. A seek may then
/// use the prefix bloom filters.
fn within_prefix(from: &[u8], to: &[u8], length: usize) -> bool {
    if length == 0 || from.len() < length {
        return false;
    }
    let prefix = &from[..length];
    if to.len() >= length && &to[..length] == prefix {
        return true;
    }
    // `to` may also be the prefix's successor: its last byte other than 0xff incremented, and no bytes after it (`ab\0`
    // would include the key `ab`).
    match prefix.iter().rposition(|&byte| byte != 0xff) {
        Some(last) => to.len() == last + 1 && to[..last] == prefix[..last] && to[last] == prefix[last] + 1,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::within_prefix;

    #[test]
    fn scan_beyond_its_prefix_bypasses_the_bloom_filter() {
        assert!(within_prefix(b"aab", b"aac", 2));
        assert!(within_prefix(b"aab", b"ab", 2));
        assert!(within_prefix(b"a\xff1", b"b", 2));
        assert!(!within_prefix(b"a\xff1", b"b\0", 2), "the key `b` is in the range");
        assert!(!within_prefix(b"aab", b"ac", 2));
        assert!(!within_prefix(b"aab", b"ab\0", 2), "the key `ab` is in the range");
        assert!(!within_prefix(b"a", b"ab", 2), "shorter than the prefix");
        assert!(!within_prefix(b"\xff\xff1", b"\xff\xff\xff", 3));
        assert!(!within_prefix(b"aab", b"aac", 0));
    }
}
