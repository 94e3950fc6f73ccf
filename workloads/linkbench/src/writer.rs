//! A graph whose clients' writes are in the ledger.

use rumba_engine_api::error::Result;
use rumba_workload_kit::ledger::{self, Entry, Noted, entry_of, numbers_of};

use crate::graph::{GraphStore, Link, LinkKey, Node, Written};
use crate::hash::hash;
use crate::tally::{Tally, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKey {
    Link(LinkKey),
    Node(u64),
}

/// The state of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// There, and shown, with a time and a payload of this hash.
    Shows(u64),
    /// A hidden link, with any content: a client that hides a link does not know the rest.
    Hidden,
    Absent,
}

impl Mark {
    /// The mark of a link as stored. Versions are left out because the store may number them itself.
    pub fn of_link(link: &Link<'_>) -> Self {
        if link.visible { Self::Shows(hash([link.time], link.data)) } else { Self::Hidden }
    }

    pub fn of_node(node: &Node<'_>) -> Self {
        Self::Shows(hash([node.version, node.time.into()], node.data))
    }

    fn content(self) -> u64 {
        match self {
            Self::Shows(content) => content,
            Self::Hidden | Self::Absent => 0,
        }
    }
}

/// A write to a row: the content it leaves, whether the row is new, and when the write was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    pub write: Write,
    pub place: RowKey,
    pub is_new: bool,
    pub noted: Noted<Mark>,
}

/// The place in an entry of the flag that a row is new.
const IS_NEW: usize = 8;

fn entry(place: RowKey, mark: Mark) -> Entry {
    let [first, second, third] = match place {
        RowKey::Link(LinkKey { link_type, id1, id2 }) => [link_type, id1, id2],
        RowKey::Node(id) => [id, 0, 0],
    };
    entry_of([first, second, third, mark.content()])
}

impl Entered {
    /// From the ledger's file; `None` for an unknown kind of write.
    pub fn of(noted: &ledger::Write) -> Option<Self> {
        let write = Write::of_number(noted.kind)?;
        let [first, second, third, content, is_new, ..] = numbers_of(&noted.entry);
        let place = match write {
            Write::PutLink | Write::HideLink => RowKey::Link(LinkKey { link_type: first, id1: second, id2: third }),
            Write::AddNode | Write::UpdateNode | Write::DeleteNode => RowKey::Node(first),
        };
        let mark = match write {
            Write::PutLink | Write::AddNode | Write::UpdateNode => Mark::Shows(content),
            Write::HideLink => Mark::Hidden,
            Write::DeleteNode => Mark::Absent,
        };
        let noted = Noted { mark, began_ns: noted.began_ns, ended_ns: noted.ended_ns };
        Some(Self { write, place, is_new: is_new > 0, noted })
    }
}

/// A graph, and the tally of its writes.
pub struct Writer<G> {
    pub graph: G,
    tally: Tally,
}

impl<G: GraphStore> Writer<G> {
    pub fn new(graph: G, tally: Tally) -> Self {
        Self { graph, tally }
    }

    fn begin(&mut self, write: Write, place: RowKey, mark: impl FnOnce() -> Mark) -> Result<()> {
        self.tally.begin(write, || entry(place, mark()))
    }

    /// Ends a write to a row that it changes only if the row was there.
    fn end_change<T>(&mut self, result: Result<T>, was_there: impl Fn(&T) -> bool) -> Result<T> {
        self.tally.end(result, |written| was_there(written).then_some(|_: &mut Entry| ()))
    }

    /// A link is written whether it existed or not.
    fn end_put(&mut self, put: Result<Written>, payload: usize) -> Result<Written> {
        let written = self.tally.end(put, |written| {
            let is_new = u32::from(!written.there);
            Some(move |entry: &mut Entry| entry[IS_NEW] = is_new)
        })?;
        self.tally.link_written(written, payload);
        Ok(written)
    }

    pub async fn add_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.begin(Write::PutLink, RowKey::Link(link.key), || Mark::of_link(link))?;
        let added = self.graph.add_link(link).await;
        self.end_put(added, link.data.len())
    }

    pub async fn update_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.begin(Write::PutLink, RowKey::Link(link.key), || Mark::of_link(link))?;
        let updated = self.graph.update_link(link).await;
        self.end_put(updated, link.data.len())
    }

    pub async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        self.begin(Write::HideLink, RowKey::Link(key), || Mark::Hidden)?;
        let hidden = self.graph.delete_link(key, time).await;
        self.end_change(hidden, |was_there| *was_there)
    }

    pub async fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        // The store chooses the id.
        self.begin(Write::AddNode, RowKey::Node(0), || Mark::of_node(node))?;
        let added = self.graph.add_node(node).await;
        let id = self.tally.end(added, |&id| {
            Some(move |entry: &mut Entry| {
                entry[..2].copy_from_slice(&entry_of([id])[..2]);
                entry[IS_NEW] = 1;
            })
        })?;
        self.tally.node_added(node.data.len());
        Ok(id)
    }

    pub async fn update_node(&mut self, node: &Node<'_>) -> Result<Written> {
        self.begin(Write::UpdateNode, RowKey::Node(node.id), || Mark::of_node(node))?;
        let updated = self.graph.update_node(node).await;
        let written = self.end_change(updated, |written| written.there)?;
        self.tally.node_updated(written);
        Ok(written)
    }

    pub async fn delete_node(&mut self, id: u64) -> Result<Written> {
        self.begin(Write::DeleteNode, RowKey::Node(id), || Mark::Absent)?;
        let deleted = self.graph.delete_node(id).await;
        let written = self.end_change(deleted, |written| written.there)?;
        self.tally.node_deleted(written);
        Ok(written)
    }
}
