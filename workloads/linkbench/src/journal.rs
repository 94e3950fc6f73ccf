//! A graph that records acknowledged writes outside of the database and of the process that will be killed.

use rumba_engine_api::acid::Entry;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::journal::{End, Noted, Notes, entry_of, numbers_of};

use crate::graph::{GraphStore, Link, LinkKey, ListQuery, Node, VisitLink, VisitNode, Written};
use crate::hash::hash;

/// The kind of a client's write to a row; its number is the note's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    PutLink,
    HideLink,
    AddNode,
    UpdateNode,
    DeleteNode,
}

impl Write {
    const ALL: [Self; 5] = [Self::PutLink, Self::HideLink, Self::AddNode, Self::UpdateNode, Self::DeleteNode];

    /// Its number in a journal.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// By its number.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|write| write.number() == number)
    }
}

/// A row.
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

    /// The mark of a node.
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

impl Entered {
    /// As a journal keeps it.
    pub fn words(&self) -> Entry {
        let Noted { mark, began_ns, ended_ns } = self.noted;
        let [first, second, third] = match self.place {
            RowKey::Link(LinkKey { link_type, id1, id2 }) => [link_type, id1, id2],
            RowKey::Node(id) => [id, 0, 0],
        };
        // No time is 0.
        entry_of([first, second, third, mark.content(), began_ns, ended_ns.unwrap_or(0), self.is_new.into()])
    }

    /// From a journal.
    pub fn of_words(write: Write, words: &Entry) -> Self {
        let [first, second, third, content, began_ns, ended_ns, is_new] = numbers_of(words);
        let place = match write {
            Write::PutLink | Write::HideLink => RowKey::Link(LinkKey { link_type: first, id1: second, id2: third }),
            Write::AddNode | Write::UpdateNode | Write::DeleteNode => RowKey::Node(first),
        };
        let mark = match write {
            Write::PutLink | Write::AddNode | Write::UpdateNode => Mark::Shows(content),
            Write::HideLink => Mark::Hidden,
            Write::DeleteNode => Mark::Absent,
        };
        let noted = Noted { mark, began_ns, ended_ns: (ended_ns > 0).then_some(ended_ns) };
        Self { write, place, is_new: is_new > 0, noted }
    }
}

/// A graph for a client whose database will be killed.
pub struct Journaling<G> {
    graph: G,
    notes: Notes,
}

/// The effect of a write on its row; a store may choose the row's key.
struct Did {
    place: RowKey,
    is_new: bool,
}

impl<G: GraphStore> Journaling<G> {
    /// Wraps a graph.
    pub fn new(graph: G, notes: Notes) -> Self {
        Self { graph, notes }
    }

    fn begin(&mut self, write: Write, place: RowKey, mark: Mark) -> Result<Entered, EngineError> {
        let noted = Noted { mark, began_ns: self.notes.now_ns(), ended_ns: None };
        let entered = Entered { write, place, is_new: false, noted };
        self.notes.begin(write.number(), entered.words())?;
        Ok(entered)
    }

    /// `did` returns the effect of the write, if it found something to do.
    fn end<T>(
        &mut self,
        entered: Entered,
        ended: Result<T, EngineError>,
        did: impl Fn(&T) -> Option<Did>,
    ) -> Result<T, EngineError> {
        self.notes.end(entered.write.number(), ended, |reported, ended_ns| match did(reported) {
            None => End::Undone,
            Some(Did { place, is_new }) => {
                let noted = Noted { ended_ns: Some(ended_ns), ..entered.noted };
                End::Acknowledged(Entered { place, is_new, noted, ..entered }.words())
            }
        })
    }
}

/// A link is written whether it existed or not.
fn put(place: RowKey) -> impl Fn(&Written) -> Option<Did> {
    move |written| Some(Did { place, is_new: !written.there })
}

/// A row that is not there is not changed.
fn change(place: RowKey) -> impl Fn(bool) -> Option<Did> {
    move |there| there.then_some(Did { place, is_new: false })
}

impl<G: GraphStore> GraphStore for Journaling<G> {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64, EngineError> {
        // Which node it will be the store says.
        let entered = self.begin(Write::AddNode, RowKey::Node(0), Mark::of_node(node))?;
        let added = self.graph.add_node(node).await;
        self.end(entered, added, |id| Some(Did { place: RowKey::Node(*id), is_new: true }))
    }

    async fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> Result<bool, EngineError> {
        self.graph.get_node(id, visit).await
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written, EngineError> {
        let place = RowKey::Node(node.id);
        let entered = self.begin(Write::UpdateNode, place, Mark::of_node(node))?;
        let updated = self.graph.update_node(node).await;
        self.end(entered, updated, |written| change(place)(written.there))
    }

    async fn delete_node(&mut self, id: u64) -> Result<Written, EngineError> {
        let place = RowKey::Node(id);
        let entered = self.begin(Write::DeleteNode, place, Mark::Absent)?;
        let deleted = self.graph.delete_node(id).await;
        self.end(entered, deleted, |written| change(place)(written.there))
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written, EngineError> {
        let place = RowKey::Link(link.key);
        let entered = self.begin(Write::PutLink, place, Mark::of_link(link))?;
        let added = self.graph.add_link(link).await;
        self.end(entered, added, put(place))
    }

    async fn update_link(&mut self, link: &Link<'_>) -> Result<Written, EngineError> {
        let place = RowKey::Link(link.key);
        let entered = self.begin(Write::PutLink, place, Mark::of_link(link))?;
        let updated = self.graph.update_link(link).await;
        self.end(entered, updated, put(place))
    }

    async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool, EngineError> {
        let place = RowKey::Link(key);
        let entered = self.begin(Write::HideLink, place, Mark::Hidden)?;
        let hidden = self.graph.delete_link(key, time).await;
        self.end(entered, hidden, |there| change(place)(*there))
    }

    async fn count_links(&mut self, id1: u64, link_type: u64) -> Result<i64, EngineError> {
        self.graph.count_links(id1, link_type).await
    }

    async fn get_links(
        &mut self,
        id1: u64,
        link_type: u64,
        id2s: &[u64],
        visit: VisitLink<'_>,
    ) -> Result<u64, EngineError> {
        self.graph.get_links(id1, link_type, id2s, visit).await
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64, EngineError> {
        self.graph.get_links_list(query, visit).await
    }

    fn statements(&mut self) -> StatementCounts {
        self.graph.statements()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_entered_is_read_back() {
        let link = RowKey::Link(LinkKey { link_type: 123_456_790, id1: 1 << 40, id2: 3 });
        let (shown, node) = (Mark::Shows(u64::MAX - 5), RowKey::Node(1 << 40 | 7));
        for (write, place, mark) in [
            (Write::PutLink, link, shown),
            (Write::HideLink, link, Mark::Hidden),
            (Write::AddNode, node, shown),
            (Write::UpdateNode, node, shown),
            (Write::DeleteNode, node, Mark::Absent),
        ] {
            for (is_new, ended_ns) in [(false, None), (true, Some(1 << 33))] {
                let noted = Noted { mark, began_ns: 17, ended_ns };
                let entered = Entered { write, place, is_new, noted };
                let write = Write::of_number(write.number()).expect("it is one");
                assert_eq!(Entered::of_words(write, &entered.words()), entered);
            }
        }
        assert_eq!(Write::of_number(5), None);
    }
}
