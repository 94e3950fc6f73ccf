//! One client's session: reads through snapshots, writes through the one writer.

use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};

use crate::raw::{Reader, Writer};

/// A session. Conflicts cannot happen: `begin` waits until no other
/// transaction writes. A transaction must end on the thread that began it.
pub(crate) struct LmdbSession {
    reader: Reader,
    writer: Writer,
}

impl LmdbSession {
    /// A session without a transaction.
    pub fn new(reader: Reader, writer: Writer) -> Self {
        Self { reader, writer }
    }
}

fn copy(found: Option<&[u8]>, value: &mut Vec<u8>) -> bool {
    value.clear();
    if let Some(found) = found {
        value.extend_from_slice(found);
    }
    found.is_some()
}

impl KvSession for LmdbSession {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        if self.writer.is_open() {
            return Ok(copy(self.writer.get(space, key)?, value));
        }
        Ok(copy(self.reader.snapshot()?.get(space, key)?, value))
    }

    /// All keys are read from one snapshot, straight out of the map.
    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        _scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        if self.writer.is_open() {
            return visit_found(keys, |key| self.writer.get(space, key), visit);
        }
        let snapshot = self.reader.snapshot()?;
        visit_found(keys, |key| snapshot.get(space, key), visit)
    }

    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        if self.writer.is_open() {
            return self.writer.scan(space, scan, visit);
        }
        self.reader.snapshot()?.scan(space, scan, visit)
    }

    fn begin(&mut self) -> Result<()> {
        self.writer.begin()
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        Ok(copy(self.writer.get(space, key)?, value))
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.writer.put(space, key, value)
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        self.writer.delete(space, key)
    }

    fn commit(&mut self) -> Result<()> {
        self.writer.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.writer.abort()
    }

    /// One transaction per batch, which an error undoes whole.
    fn load(&mut self, batch: &Batch) -> Result<()> {
        self.writer.begin()?;
        for (space, key, value) in batch.iter() {
            if let Err(error) = self.writer.put(space, key, value) {
                self.writer.abort()?;
                return Err(error);
            }
        }
        self.writer.commit()
    }
}

fn visit_found<'s>(
    keys: &[&[u8]],
    get: impl Fn(&[u8]) -> Result<Option<&'s [u8]>>,
    visit: &mut dyn FnMut(usize, &[u8]),
) -> Result<()> {
    for (position, key) in keys.iter().enumerate() {
        if let Some(value) = get(key)? {
            visit(position, value);
        }
    }
    Ok(())
}
