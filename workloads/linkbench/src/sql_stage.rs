//! Rows that wait to be loaded over SQL, in one flat buffer.

use crate::graph::{Link, LinkCount, Node};

/// A staged row.
pub enum Staged<'a> {
    Node(Node<'a>),
    Link(Link<'a>),
    Count(LinkCount),
}

/// A row whose payload ends at `end` in the flat buffer; it begins at the end of the previous one.
#[derive(Debug)]
enum Entry {
    Node { node: Node<'static>, end: usize },
    Link { link: Link<'static>, end: usize },
    Count(LinkCount),
}

/// The rows.
#[derive(Debug, Default)]
pub struct Stage {
    entries: Vec<Entry>,
    payload: Vec<u8>,
}

impl Stage {
    pub fn push_node(&mut self, node: &Node<'_>) {
        self.payload.extend_from_slice(node.data);
        let Node { id, node_type, version, time, .. } = *node;
        self.entries
            .push(Entry::Node { node: Node { id, node_type, version, time, data: &[] }, end: self.payload.len() });
    }

    pub fn push_link(&mut self, link: &Link<'_>) {
        self.payload.extend_from_slice(link.data);
        let Link { key, visible, version, time, .. } = *link;
        self.entries
            .push(Entry::Link { link: Link { key, visible, version, time, data: &[] }, end: self.payload.len() });
    }

    pub fn push_count(&mut self, count: &LinkCount) {
        self.entries.push(Entry::Count(*count));
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.payload.clear();
    }

    /// The rows in the order they were staged.
    pub fn rows(&self) -> impl Iterator<Item = Staged<'_>> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let mut payload = |end: usize| &self.payload[std::mem::replace(&mut start, end)..end];
            match *entry {
                Entry::Node { node, end } => Staged::Node(Node { data: payload(end), ..node }),
                Entry::Link { link, end } => Staged::Link(Link { data: payload(end), ..link }),
                Entry::Count(count) => Staged::Count(count),
            }
        })
    }
}
