//! The port: LinkBench's own operations on a graph of nodes and typed links.
//!
//! Every session family has an adapter. [`crate::oracle`] is the reference implementation for tests.

use std::future::Future;

use rumba_engine_api::error::Result;
use rumba_engine_api::worker::StatementCounts;

/// The type of every node.
pub const NODE_TYPE: u32 = 2048;
/// The first link type; further ones follow it.
pub const LINK_TYPE: u64 = 123_456_789;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    pub id: u64,
    pub node_type: u32,
    pub version: u64,
    /// When it was written, seconds since 1970.
    pub time: u32,
    /// Its payload.
    pub data: &'a [u8],
}

/// The key of a link, in the order of the primary key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkKey {
    pub link_type: u64,
    /// The source node.
    pub id1: u64,
    /// The target node.
    pub id2: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    pub key: LinkKey,
    /// Whether lists show it and counts count it; deleting hides.
    pub visible: bool,
    pub version: u32,
    /// When it was written, milliseconds since 1970.
    pub time: u64,
    /// Its payload.
    pub data: &'a [u8],
}

impl Link<'_> {
    /// The link's entry in the secondary index.
    pub fn entry(&self) -> IndexKey {
        let LinkKey { link_type, id1, id2 } = self.key;
        IndexKey { id1, link_type, visible: self.visible, time: self.time, id2 }
    }
}

/// An entry of the secondary index `id1_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// The source node.
    pub id1: u64,
    pub link_type: u64,
    pub visible: bool,
    /// When it was written.
    pub time: u64,
    /// The target node.
    pub id2: u64,
}

/// The number of visible links of a type that an id has, as stored in the count table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCount {
    pub id1: u64,
    pub link_type: u64,
    /// The number of visible links; negative only when something is broken.
    pub count: i64,
    /// When it was changed, milliseconds since 1970.
    pub time: u64,
    /// How often it was changed since its insertion.
    pub version: u64,
}

/// A request for a list of links: newest first, at most `limit`, after skipping `offset` of them.
#[derive(Clone, Copy, Debug)]
pub struct ListQuery {
    /// The source node of the links.
    pub id1: u64,
    pub link_type: u64,
    /// The oldest time wanted.
    pub from_time: u64,
    /// The newest time wanted.
    pub to_time: u64,
    /// The number of newest links to skip.
    pub offset: u64,
    /// How many are wanted.
    pub limit: u64,
}

/// The effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether the row was there, visible or hidden.
    pub there: bool,
    /// The logical bytes by which the graph grew, including index entries and counts; `None` if the store does not
    /// know.
    pub growth: Option<i64>,
}

impl Written {
    /// There was no such row, and nothing was done.
    pub const NOTHING: Self = Self { there: false, growth: Some(0) };

    /// The growth when a payload of `old` bytes has become one of `new` bytes in `copies` places.
    pub fn replaced(copies: i64, old: usize, new: usize) -> Self {
        Self { there: true, growth: Some(copies * (new as i64 - old as i64)) }
    }
}

/// A write of unknown growth, because servers do not report the length of what they replace or remove.
pub fn unreported(there: bool) -> Written {
    Written { there, growth: None }
}

/// The callback for each node of an answer.
pub type VisitNode<'a> = &'a mut dyn FnMut(&Node<'_>);
/// The callback for each link of an answer.
pub type VisitLink<'a> = &'a mut dyn FnMut(&Link<'_>);
/// The callback for each count of an answer.
pub type VisitCount<'a> = &'a mut dyn FnMut(&LinkCount);

pub trait Answer<T>: Future<Output = Result<T>> {}
impl<T, F: Future<Output = Result<T>>> Answer<T> for F {}

/// LinkBench's operations. Each is one transaction and undoes itself when it
/// fails; after `EngineError::Conflict` it may be tried again.
pub trait GraphStore: Send {
    /// Adds a node and returns its id from the store (`node.id` is ignored).
    fn add_node(&mut self, node: &Node<'_>) -> impl Answer<u64>;

    /// Visits the node with this id; false if there is none.
    fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> impl Answer<bool>;

    /// Replaces version, time and data of an existing node.
    fn update_node(&mut self, node: &Node<'_>) -> impl Answer<Written>;

    /// Removes a node, if it is there.
    fn delete_node(&mut self, id: u64) -> impl Answer<Written>;

    /// Inserts or overwrites a link, and adjusts its count.
    fn add_link(&mut self, link: &Link<'_>) -> impl Answer<Written>;

    /// Overwrites a link or inserts a missing one, and adjusts its count.
    fn update_link(&mut self, link: &Link<'_>) -> impl Answer<Written>;

    /// Hides a link and adjusts its count; returns false if there is no such link. `time` is written to the count.
    fn delete_link(&mut self, key: LinkKey, time: u64) -> impl Answer<bool>;

    /// The number of visible links; 0 when there is no count.
    fn count_links(&mut self, id1: u64, link_type: u64) -> impl Answer<i64>;

    /// Visits those of the links to `id2s` (rising, each once, at most
    /// [`MULTIGET_MAX`]) that exist, hidden ones too; returns how many.
    fn get_links(&mut self, id1: u64, link_type: u64, id2s: &[u64], visit: VisitLink<'_>) -> impl Answer<u64>;

    /// Visits visible links, newest first, and at the same time the larger id2 first;
    /// returns how many.
    fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> impl Answer<u64>;

    /// The statements since this was last called.
    fn statements(&mut self) -> StatementCounts {
        StatementCounts::NONE
    }
}

/// The most links that one multiget may ask for.
pub const MULTIGET_MAX: usize = 128;

/// The load: rows are staged without I/O, then written together.
pub trait GraphLoad: Send {
    fn stage_node(&mut self, node: &Node<'_>);

    /// Stages a link, and its index entry where the index is kept during the load.
    fn stage_link(&mut self, link: &Link<'_>);

    fn stage_count(&mut self, count: &LinkCount);

    /// Writes the staged rows in one transaction. They stay staged, so that a
    /// conflict can be tried again.
    fn load_staged(&mut self) -> impl Answer<()>;

    /// Forgets the staged rows and keeps the memory.
    fn clear_staged(&mut self);

    /// Builds index entries for links that come after `done` and before `end` in the order of the primary key, about
    /// `rows` of them at once. Returns the last link that was done, `None` when the range has ended. A store that
    /// builds its index with one statement does it all at once.
    fn build_index(&mut self, range: IndexRange, rows: usize) -> impl Answer<IndexStep>;

    /// Whether [`GraphLoad::build_index`] indexes all links at once, for any range.
    fn builds_index_at_once(&self) -> bool;

    /// The statements since this was last called.
    fn statements(&mut self) -> StatementCounts {
        StatementCounts::NONE
    }
}

/// The links that an index build step works on.
#[derive(Clone, Copy, Debug)]
pub struct IndexRange {
    /// The first link that may be done.
    pub from: LinkKey,
    /// The first link after the range.
    pub to: LinkKey,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStep {
    /// The start of the next step; `None` when the range is done.
    pub next: Option<LinkKey>,
    /// Logical bytes written.
    pub bytes: u64,
}

/// Full scans in pages, for verification: each visits at most `limit` rows that
/// come after `after` in the store's own order, and returns how many.
pub trait GraphScan: Send {
    fn scan_nodes(&mut self, after: Option<u64>, limit: u64, visit: VisitNode<'_>) -> impl Answer<u64>;

    /// Links by (link_type, id1, id2), from the link table.
    fn scan_links(&mut self, after: Option<LinkKey>, limit: u64, visit: VisitLink<'_>) -> impl Answer<u64>;

    /// Links by (id1, link_type) and then in any order, from the secondary index.
    fn scan_index(&mut self, after: Option<IndexKey>, limit: u64, visit: VisitLink<'_>) -> impl Answer<u64>;

    /// Counts by (id1, link_type); `after` names these two.
    fn scan_counts(&mut self, after: Option<(u64, u64)>, limit: u64, visit: VisitCount<'_>) -> impl Answer<u64>;
}

/// Logical bytes of a node: id, type, version, time, payload.
pub const fn node_bytes(data: usize) -> u64 {
    8 + 4 + 8 + 4 + data as u64
}

/// Logical bytes of a link: link_type, id1, id2, visibility, version, time, payload.
pub const fn link_bytes(data: usize) -> u64 {
    24 + 1 + 4 + 8 + data as u64
}

/// Logical bytes of an index entry: the same columns as the link, in another order.
pub const fn entry_bytes(data: usize) -> u64 {
    link_bytes(data)
}

/// Logical bytes of a count: id, link_type, count, time, version.
pub const COUNT_BYTES: u64 = 16 + 8 + 8 + 8;
