//! Rows that wait to be loaded over SQL, in one flat buffer.

use crate::graph::{Link, LinkCount, Node};

#[derive(Clone, Copy, Debug)]
pub enum Staged<'a> {
    Node(Node<'a>),
    Link(Link<'a>),
    Count(LinkCount),
}

/// The rows.
#[derive(Debug, Default)]
pub struct Stage {
    /// Each row without its payload, and where that ends in the flat buffer; it begins at the end of the previous one.
    entries: Vec<(Staged<'static>, usize)>,
    payload: Vec<u8>,
}

impl Stage {
    fn push(&mut self, row: Staged<'static>, payload: &[u8]) {
        self.payload.extend_from_slice(payload);
        self.entries.push((row, self.payload.len()));
    }

    pub fn push_node(&mut self, node: &Node<'_>) {
        let Node { id, node_type, version, time, data } = *node;
        self.push(Staged::Node(Node { id, node_type, version, time, data: &[] }), data);
    }

    pub fn push_link(&mut self, link: &Link<'_>) {
        let Link { key, visible, version, time, data } = *link;
        self.push(Staged::Link(Link { key, visible, version, time, data: &[] }), data);
    }

    pub fn push_count(&mut self, count: &LinkCount) {
        self.push(Staged::Count(*count), &[]);
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
        self.entries.iter().map(move |&(row, end)| {
            let data = &self.payload[std::mem::replace(&mut start, end)..end];
            match row {
                Staged::Node(node) => Staged::Node(Node { data, ..node }),
                Staged::Link(link) => Staged::Link(Link { data, ..link }),
                Staged::Count(count) => Staged::Count(count),
            }
        })
    }
}
