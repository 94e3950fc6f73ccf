//! The table over ordered keys and values: one space, in which a record is the value of its key.
//!
//! A write to a part of a record is one transaction that reads it for update, so that writes to other fields are not
//! lost. If the engine changes values without reading them, the write is a message to the record. It touches only one
//! key, so an engine without transactions only needs to protect that record.

use rumba_engine_api::delta::Delta;
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Batch, KeySpace, KvSession, Scan, SpaceId};
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::{CountedKv, End, keep_first};

use crate::keys::Key;
use crate::record::{self, Record};
use crate::store::{Inspect, Load, Store, Values, VisitField, VisitRecord, Wanted, Written};

pub const SPACES: [KeySpace; 1] = [KeySpace { name: "usertable", scan_prefix: 0, derived: false }];
const TABLE: SpaceId = 0;

/// Sorts after every key.
const END: [u8; 1] = [0xFF];

/// The adapter, of clients and of loaders.
pub struct KvStore {
    session: CountedKv,
    fields: usize,
    /// The value read last.
    value: Vec<u8>,
    /// The buffer for the value to write.
    out: Vec<u8>,
    batch: Batch,
    /// The update for engines that change records without reading them. rumba tries this until the engine refuses.
    delta: Delta,
    updates_unread: bool,
}

impl KvStore {
    /// A store of records with this many fields and this maximum length.
    pub fn new(session: Box<dyn KvSession>, fields: usize, longest: usize) -> Self {
        let buffer = || Vec::with_capacity(longest);
        Self {
            session: CountedKv::new(session),
            fields,
            value: buffer(),
            out: buffer(),
            batch: Batch::default(),
            delta: Delta::default(),
            updates_unread: true,
        }
    }

    /// Runs a transaction.
    fn transact(&mut self, body: impl FnOnce(&mut Self) -> Result<End<Written>>) -> Result<Written> {
        self.session.begin()?;
        let ended = body(self);
        self.session.end(ended)
    }

    /// Writes some fields of a record, and first visits its wanted fields.
    fn change(&mut self, key: &Key, values: &Values, visit: impl FnOnce(&Record<'_>)) -> Result<Written> {
        self.transact(|store| {
            if !store.session.get_for_update(TABLE, key.bytes(), &mut store.value)? {
                return Ok(End::Nothing(Written::NOTHING));
            }
            let record = Record::of(&store.value, store.fields)?;
            visit(&record);
            let growth = Some(record.put_with(values, &mut store.out));
            store.session.put(TABLE, key.bytes(), &store.out)?;
            Ok(End::Commit(Written { found: Some(true), growth }))
        })
    }

    /// Writes some fields of a record without reading it, if the engine can; after a refusal, this is not tried again.
    fn change_unread(&mut self, key: &Key, values: &Values) -> Result<Written> {
        self.delta.begin(None);
        for field in values.fields() {
            self.delta.set_field(field as u32, self.fields as u32, values.get(field).unwrap_or_default());
        }
        self.transact(|store| {
            store.updates_unread = store.session.update(TABLE, key.bytes(), &store.delta)?;
            Ok(if store.updates_unread { End::Commit(Written::UNREAD) } else { End::Nothing(Written::NOTHING) })
        })
    }
}

impl Store for KvStore {
    async fn read(&mut self, key: &Key, wanted: Wanted, visit: VisitField<'_>) -> Result<bool> {
        let found = self.session.get(TABLE, key.bytes(), &mut self.value)?;
        if found {
            Record::of(&self.value, self.fields)?.visit(wanted, visit);
        }
        Ok(found)
    }

    async fn update(&mut self, key: &Key, values: &Values) -> Result<Written> {
        if self.updates_unread {
            let written = self.change_unread(key, values)?;
            if self.updates_unread {
                return Ok(written);
            }
        }
        self.change(key, values, |_| {})
    }

    async fn insert(&mut self, key: &Key, values: &Values) -> Result<()> {
        let put = |store: &mut Self| {
            record::put(&mut store.out, values);
            store.session.put(TABLE, key.bytes(), &store.out)?;
            Ok(End::Commit(Written { found: Some(true), growth: None }))
        };
        self.transact(put).map(drop)
    }

    async fn scan(&mut self, from: &Key, count: u64, wanted: Wanted, visit: VisitField<'_>) -> Result<u64> {
        let (mut first, fields) = (None, self.fields);
        let scan = Scan { from: from.bytes(), to: &END, limit: usize::try_from(count).unwrap_or(usize::MAX) };
        let met = self.session.scan(TABLE, scan, &mut |_, value| {
            keep_first(&mut first, Record::of(value, fields).map(|record| record.visit(wanted, visit)));
        })?;
        first.map_or(Ok(met as u64), Err)
    }

    async fn read_modify_write(
        &mut self,
        key: &Key,
        wanted: Wanted,
        values: &Values,
        visit: VisitField<'_>,
    ) -> Result<Written> {
        self.change(key, values, |record| record.visit(wanted, visit))
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}

impl Load for KvStore {
    /// They lie on as many leaves, and a tree that keeps uncommitted changes in its cache must hold them all. A
    /// thousand records from each of four loaders would need several times a small cache.
    const SCATTERED_TOGETHER: u64 = 32;

    fn stage(&mut self, key: &Key, values: &Values) {
        record::put(&mut self.out, values);
        self.batch.push(TABLE, key.bytes(), &self.out);
    }

    async fn load_staged(&mut self) -> Result<()> {
        self.session.load(&self.batch)
    }

    fn clear_staged(&mut self) {
        self.batch.clear();
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}

impl Inspect for KvStore {
    fn page(&mut self, after: Option<&[u8]>, limit: u64, visit: VisitRecord<'_>) -> Result<u64> {
        // The next longer byte string directly follows a key.
        let from = after.map(|key| [key, &[0]].concat()).unwrap_or_default();
        let fields = self.fields;
        let scan = Scan { from: &from, to: &END, limit: usize::try_from(limit).unwrap_or(usize::MAX) };
        let met = self.session.scan(TABLE, scan, &mut |key, value| {
            let record = Record::of(value, fields).ok().filter(Record::is_exact);
            visit(key, &record.unwrap_or(Record::NONE));
        })?;
        Ok(met as u64)
    }
}
