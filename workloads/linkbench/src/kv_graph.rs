//! The graph over ordered keys and values.
//!
//! Locks are taken in one order everywhere: first the link, then its count;
//! index entries belong to their link and need none of their own.

use rumba_engine_api::delta::Delta;
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Batch, KvSession, Scan};
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::{CountedKv, End, keep_first};

use crate::encoding::{self, COUNTS, INDEX, LINKS, NODES};
use crate::graph::{
    COUNT_BYTES, GraphLoad, GraphScan, GraphStore, IndexKey, IndexRange, IndexStep, Link, LinkCount, LinkKey,
    ListQuery, MULTIGET_MAX, Node, VisitCount, VisitLink, VisitNode, Written, entry_bytes, link_bytes, node_bytes,
};
use crate::node_ids::NodeIds;

/// Multigets up to this size use a short array of keys; most ask for fewer.
const FEW: usize = 8;

/// The adapter.
pub struct KvGraph {
    session: CountedKv,
    ids: NodeIds,
    /// Whether loaded links get their index entry at once.
    index_during_load: bool,
    /// The value read last.
    value: Vec<u8>,
    /// The buffer for the value to write.
    out: Vec<u8>,
    batch: Batch,
    /// The change of a count for engines that change values without reading them. rumba tries this until the engine
    /// refuses.
    delta: Delta,
    counts_unread: bool,
}

impl KvGraph {
    /// A graph over `session`; new nodes get their ids from `ids`.
    pub fn new(session: Box<dyn KvSession>, ids: NodeIds, index_during_load: bool) -> Self {
        // Room for all payloads but one in a thousand million (six deviations), so that the buffer does not grow.
        let buffer = || Vec::with_capacity((64 << 10) + 64);
        let session = CountedKv::new(session);
        Self {
            session,
            ids,
            index_during_load,
            value: buffer(),
            out: buffer(),
            batch: Batch::default(),
            delta: Delta::default(),
            counts_unread: true,
        }
    }

    /// Runs a transaction.
    fn transact<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<End<T>>) -> Result<T> {
        self.session.begin()?;
        let ended = body(self);
        self.session.end(ended)
    }

    /// Inserts or overwrites a link within a transaction.
    fn write_link(&mut self, link: &Link<'_>) -> Result<End<Written>> {
        let key = encoding::link_key(link.key);
        let there = self.session.get_for_update(LINKS, &key, &mut self.value)?;
        let mut written =
            Written { there, growth: Some((link_bytes(link.data.len()) + entry_bytes(link.data.len())) as i64) };
        let mut old = None;
        if there {
            let link_there = encoding::link(link.key, &self.value)?;
            written = Written::replaced(2, link_there.data.len(), link.data.len());
            old = Some(link_there.entry());
        }
        encoding::put_link(&mut self.out, link);
        self.session.put(LINKS, &key, &self.out)?;
        encoding::put_entry(&mut self.out, link);
        if let Some(old) = old.filter(|old| *old != link.entry()) {
            self.session.delete(INDEX, &encoding::entry_key(&old))?;
        }
        self.session.put(INDEX, &encoding::entry_key(&link.entry()), &self.out)?;
        let was_visible = old.is_some_and(|old| old.visible);
        let change = i64::from(link.visible) - i64::from(was_visible);
        if change != 0 || !there {
            match self.change_count(link.key, change, link.time)? {
                Some(true) => written.growth = written.growth.map(|growth| growth + COUNT_BYTES as i64),
                // The count of a link that was there is there as well.
                None if !there => written.growth = None,
                _ => {}
            }
        }
        Ok(End::Commit(written))
    }

    /// Adds to a count, or inserts a missing one. Returns whether it inserted, unless the engine did not read the old
    /// count.
    fn change_count(&mut self, link: LinkKey, change: i64, time: u64) -> Result<Option<bool>> {
        let key = encoding::count_key(link.id1, link.link_type);
        let new = LinkCount { id1: link.id1, link_type: link.link_type, count: change, time, version: 0 };
        if self.counts_unread {
            encoding::put_count_change(&mut self.delta, &new);
            self.counts_unread = self.session.update(COUNTS, &key, &self.delta)?;
            if self.counts_unread {
                return Ok(None);
            }
        }
        let there = self.session.get_for_update(COUNTS, &key, &mut self.value)?;
        let count = if there {
            let old = encoding::count(link.id1, link.link_type, &self.value)?;
            LinkCount { count: old.count + change, version: old.version + 1, time, ..old }
        } else {
            new
        };
        self.session.put(COUNTS, &key, &encoding::count_value(&count))?;
        Ok(Some(!there))
    }

    fn hide_link(&mut self, key: LinkKey, time: u64) -> Result<End<bool>> {
        let bytes = encoding::link_key(key);
        if !self.session.get_for_update(LINKS, &bytes, &mut self.value)? {
            return Ok(End::Nothing(false));
        }
        let link = encoding::link(key, &self.value)?;
        if !link.visible {
            return Ok(End::Nothing(true));
        }
        let hidden = Link { visible: false, ..link };
        encoding::put_link(&mut self.out, &hidden);
        self.session.put(LINKS, &bytes, &self.out)?;
        self.session.delete(INDEX, &encoding::entry_key(&link.entry()))?;
        encoding::put_entry(&mut self.out, &hidden);
        self.session.put(INDEX, &encoding::entry_key(&hidden.entry()), &self.out)?;
        self.change_count(key, -1, time)?;
        Ok(End::Commit(true))
    }

    /// Passes the entries of a scan to `row`, except for the first `pass_over`; returns how many.
    fn visit_rows(
        &mut self,
        space: usize,
        scan: Scan<'_>,
        pass_over: u64,
        mut row: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (mut first, mut met) = (None, 0);
        self.session.scan(space, scan, &mut |key, value| {
            met += 1;
            if met > pass_over {
                keep_first(&mut first, row(key, value));
            }
        })?;
        first.map_or(Ok(met.saturating_sub(pass_over)), Err)
    }
}

fn link_row<'a>(key: &[u8], value: &'a [u8]) -> Result<Link<'a>> {
    encoding::link(encoding::link_of_key(key), value)
}

/// A limit as the sessions count.
fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

impl GraphStore for KvGraph {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        let id = self.ids.next();
        self.transact(|graph| {
            encoding::put_node(&mut graph.out, node);
            graph.session.put(NODES, &encoding::node_key(id), &graph.out)?;
            Ok(End::Commit(id))
        })
    }

    async fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> Result<bool> {
        let found = self.session.get(NODES, &encoding::node_key(id), &mut self.value)?;
        if found {
            visit(&encoding::node(id, &self.value)?);
        }
        Ok(found)
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written> {
        let key = encoding::node_key(node.id);
        self.transact(|graph| {
            if !graph.session.get_for_update(NODES, &key, &mut graph.value)? {
                return Ok(End::Nothing(Written::NOTHING));
            }
            let old = encoding::node(node.id, &graph.value)?;
            let written = Written::replaced(1, old.data.len(), node.data.len());
            encoding::put_node(&mut graph.out, &Node { node_type: old.node_type, ..*node });
            graph.session.put(NODES, &key, &graph.out)?;
            Ok(End::Commit(written))
        })
    }

    async fn delete_node(&mut self, id: u64) -> Result<Written> {
        let key = encoding::node_key(id);
        self.transact(|graph| {
            if !graph.session.get_for_update(NODES, &key, &mut graph.value)? {
                return Ok(End::Nothing(Written::NOTHING));
            }
            let bytes = node_bytes(encoding::node(id, &graph.value)?.data.len());
            graph.session.delete(NODES, &key)?;
            Ok(End::Commit(Written { there: true, growth: Some(-(bytes as i64)) }))
        })
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.transact(|graph| graph.write_link(link))
    }

    async fn update_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.transact(|graph| graph.write_link(link))
    }

    async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        self.transact(|graph| graph.hide_link(key, time))
    }

    async fn count_links(&mut self, id1: u64, link_type: u64) -> Result<i64> {
        if !self.session.get(COUNTS, &encoding::count_key(id1, link_type), &mut self.value)? {
            return Ok(0);
        }
        Ok(encoding::count(id1, link_type, &self.value)?.count)
    }

    async fn get_links(&mut self, id1: u64, link_type: u64, id2s: &[u64], visit: VisitLink<'_>) -> Result<u64> {
        if id2s.len() <= FEW {
            self.multi_get::<FEW>(id1, link_type, id2s, visit)
        } else {
            self.multi_get::<MULTIGET_MAX>(id1, link_type, id2s, visit)
        }
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64> {
        if query.from_time > query.to_time {
            return Ok(0);
        }
        let (from, to) = encoding::list_bounds(query.id1, query.link_type, query.from_time, query.to_time);
        let scan = Scan { from: &from, to: &to, limit: size(query.limit.saturating_add(query.offset)) };
        self.visit_rows(INDEX, scan, query.offset, |key, value| encoding::entry(key, value).map(|link| visit(&link)))
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}

impl KvGraph {
    fn multi_get<const N: usize>(
        &mut self,
        id1: u64,
        link_type: u64,
        id2s: &[u64],
        visit: VisitLink<'_>,
    ) -> Result<u64> {
        let count = id2s.len().min(N);
        let mut keys = [[0; 24]; N];
        for (key, &id2) in keys.iter_mut().zip(id2s) {
            *key = encoding::link_key(LinkKey { link_type, id1, id2 });
        }
        let mut slices: [&[u8]; N] = [&[]; N];
        for (slice, key) in slices.iter_mut().zip(&keys) {
            *slice = key;
        }
        let (mut first, mut met) = (None, 0);
        self.session.multi_get(LINKS, &slices[..count], &mut self.value, &mut |position, value| {
            met += 1;
            let key = LinkKey { link_type, id1, id2: id2s[position] };
            keep_first(&mut first, encoding::link(key, value).map(|link| visit(&link)));
        })?;
        first.map_or(Ok(met), Err)
    }
}

impl GraphLoad for KvGraph {
    fn stage_node(&mut self, node: &Node<'_>) {
        encoding::put_node(&mut self.out, node);
        self.batch.push(NODES, &encoding::node_key(node.id), &self.out);
    }

    fn stage_link(&mut self, link: &Link<'_>) {
        encoding::put_link(&mut self.out, link);
        self.batch.push(LINKS, &encoding::link_key(link.key), &self.out);
        if self.index_during_load {
            encoding::put_entry(&mut self.out, link);
            self.batch.push(INDEX, &encoding::entry_key(&link.entry()), &self.out);
        }
    }

    fn stage_count(&mut self, count: &LinkCount) {
        let key = encoding::count_key(count.id1, count.link_type);
        self.batch.push(COUNTS, &key, &encoding::count_value(count));
    }

    async fn load_staged(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.session.load(&self.batch)
    }

    fn clear_staged(&mut self) {
        self.batch.clear();
    }

    async fn build_index(&mut self, range: IndexRange, rows: usize) -> Result<IndexStep> {
        let Self { session, out, batch, .. } = self;
        let (from, to) = (encoding::link_key(range.from), encoding::link_key(range.to));
        let (mut first, mut last, mut bytes) = (None, None, 0);
        batch.clear();
        let met = session.scan(LINKS, Scan { from: &from, to: &to, limit: rows }, &mut |key, value| {
            let staged = link_row(key, value).map(|link| {
                encoding::put_entry(out, &link);
                batch.push(INDEX, &encoding::entry_key(&link.entry()), out);
                bytes += entry_bytes(link.data.len());
                last = Some(link.key);
            });
            keep_first(&mut first, staged);
        })?;
        if let Some(error) = first {
            return Err(error);
        }
        if !batch.is_empty() {
            session.load(batch)?;
        }
        let next = if met < rows { None } else { last.and_then(after).filter(|&next| next < range.to) };
        Ok(IndexStep { next, bytes })
    }

    fn builds_index_at_once(&self) -> bool {
        false
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}

/// The first key after this one; none after the last.
fn after(key: LinkKey) -> Option<LinkKey> {
    match (key.id2.checked_add(1), key.id1.checked_add(1)) {
        (Some(id2), _) => Some(LinkKey { id2, ..key }),
        (None, Some(id1)) => Some(LinkKey { id1, id2: 0, ..key }),
        (None, None) => key.link_type.checked_add(1).map(|link_type| LinkKey { link_type, id1: 0, id2: 0 }),
    }
}

/// Sorts after every key of ours.
const END: [u8; 40] = [0xFF; 40];

/// The page after `key`, which starts with the next longer byte string.
fn page<const BYTES: usize>(start: &mut [u8; 34], key: Option<[u8; BYTES]>, limit: u64) -> Scan<'_> {
    let length = key.map_or(0, |key| {
        start[..BYTES].copy_from_slice(&key);
        BYTES + 1
    });
    Scan { from: &start[..length], to: &END, limit: size(limit) }
}

impl GraphScan for KvGraph {
    async fn scan_nodes(&mut self, after: Option<u64>, limit: u64, visit: VisitNode<'_>) -> Result<u64> {
        let mut start = [0; 34];
        let scan = page(&mut start, after.map(encoding::node_key), limit);
        self.visit_rows(NODES, scan, 0, |key, value| {
            encoding::node(encoding::node_id(key), value).map(|node| visit(&node))
        })
    }

    async fn scan_links(&mut self, after: Option<LinkKey>, limit: u64, visit: VisitLink<'_>) -> Result<u64> {
        let mut start = [0; 34];
        let scan = page(&mut start, after.map(encoding::link_key), limit);
        self.visit_rows(LINKS, scan, 0, |key, value| link_row(key, value).map(|link| visit(&link)))
    }

    async fn scan_index(&mut self, after: Option<IndexKey>, limit: u64, visit: VisitLink<'_>) -> Result<u64> {
        let mut start = [0; 34];
        let scan = page(&mut start, after.map(|entry| encoding::entry_key(&entry)), limit);
        self.visit_rows(INDEX, scan, 0, |key, value| encoding::entry(key, value).map(|link| visit(&link)))
    }

    async fn scan_counts(&mut self, after: Option<(u64, u64)>, limit: u64, visit: VisitCount<'_>) -> Result<u64> {
        let mut start = [0; 34];
        let scan = page(&mut start, after.map(|(id1, link_type)| encoding::count_key(id1, link_type)), limit);
        self.visit_rows(COUNTS, scan, 0, |key, value| {
            let (id1, link_type) = encoding::count_of_key(key);
            encoding::count(id1, link_type, value).map(|count| visit(&count))
        })
    }
}
