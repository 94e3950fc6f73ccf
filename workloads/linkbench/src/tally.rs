//! Counts the rows that clients and loaders have inserted and deleted.

use rumba_engine_api::workload::State;
use rumba_workload_kit::tallies::{self, state_of, sums_of};

use crate::graph::{Written, entry_bytes, link_bytes, node_bytes};
use crate::profile::Kind;

/// The counters, by position.
#[derive(Clone, Copy, Debug)]
enum Of {
    LinksAdded,
    NodesAdded,
    NodesDeleted,
    LinkAddsInDoubt,
    NodeAddsInDoubt,
    NodeDeletesInDoubt,
    Bytes,
    LoadedLinkBytes,
}

/// The names of the sums, in order, under which they are stored with a copy of the data.
/// Counts in doubt stay in doubt, because a reader of the copy knows no more.
const NAMES: [&str; 8] = [
    "links_added",
    "nodes_added",
    "nodes_deleted",
    "link_adds_in_doubt",
    "node_adds_in_doubt",
    "node_deletes_in_doubt",
    "bytes",
    "loaded_link_bytes",
];

/// The sums over all tallies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Links that clients inserted; no link is ever expunged.
    pub links_added: u64,
    /// Nodes that clients added.
    pub nodes_added: u64,
    /// Nodes that clients deleted.
    pub nodes_deleted: u64,
    /// Operations that may or may not have inserted a link: begun, and not known to have ended.
    pub link_adds_in_doubt: u64,
    /// Operations that may or may not have added a node.
    pub node_adds_in_doubt: u64,
    /// Operations that may or may not have deleted a node.
    pub node_deletes_in_doubt: u64,
    /// Logical bytes in the database.
    pub bytes: u64,
    /// The link bytes that loaders wrote, without index entries.
    pub loaded_link_bytes: u64,
}

/// The tallies of one instance.
#[derive(Debug)]
pub struct Tallies {
    all: tallies::Tallies<{ NAMES.len() }>,
    /// Logical bytes of a node of average payload.
    mean_node_bytes: u64,
}

impl Tallies {
    /// No tallies yet, over nodes with this mean payload in bytes.
    pub fn new(mean_node_payload: f64) -> Self {
        Self { all: Default::default(), mean_node_bytes: node_bytes(mean_node_payload.round() as usize) }
    }

    /// A tally for one client or loader.
    pub fn open(&self) -> Tally {
        Tally { numbers: self.all.open(), mean_node_bytes: self.mean_node_bytes }
    }

    /// The sums as of now.
    pub fn sums(&self) -> Sums {
        let all = self.all.sums();
        let sum = |of: Of| all[of as usize].cast_unsigned();
        Sums {
            links_added: sum(Of::LinksAdded),
            nodes_added: sum(Of::NodesAdded),
            nodes_deleted: sum(Of::NodesDeleted),
            link_adds_in_doubt: sum(Of::LinkAddsInDoubt),
            node_adds_in_doubt: sum(Of::NodeAddsInDoubt),
            node_deletes_in_doubt: sum(Of::NodeDeletesInDoubt),
            bytes: all[Of::Bytes as usize].max(0).cast_unsigned(),
            loaded_link_bytes: sum(Of::LoadedLinkBytes),
        }
    }

    /// The sums as of now, by name.
    pub fn state(&self) -> State {
        state_of(NAMES, self.all.sums())
    }

    /// Adds sums that another process has given.
    ///
    /// # Errors
    /// The name of one that is missing; nothing is added then.
    pub fn restore(&self, state: &State) -> Result<(), &'static str> {
        sums_of(NAMES, state).map(|sums| self.all.add(sums))
    }
}

/// One client's or loader's tally: its only writer.
#[derive(Debug)]
pub struct Tally {
    numbers: tallies::Tally<{ NAMES.len() }>,
    mean_node_bytes: u64,
}

impl Tally {
    #[inline]
    fn add(&mut self, of: Of, change: i64) {
        self.numbers.add(of as usize, change);
    }

    /// A batch was loaded: its logical bytes, and those of its links without index entries.
    pub fn loaded(&mut self, bytes: u64, link_bytes: u64) {
        self.add(Of::Bytes, bytes as i64);
        self.add(Of::LoadedLinkBytes, link_bytes as i64);
    }

    /// An operation of this type begins: until [`Tally::known`] its outcome is in doubt.
    #[inline]
    pub fn begin(&mut self, kind: Kind) {
        self.doubt(kind, 1);
    }

    /// The outcome of the operation is known.
    #[inline]
    pub fn known(&mut self, kind: Kind) {
        self.doubt(kind, -1);
    }

    #[inline]
    fn doubt(&mut self, kind: Kind, change: i64) {
        match kind {
            Kind::AddLink | Kind::UpdateLink => self.add(Of::LinkAddsInDoubt, change),
            Kind::AddNode => self.add(Of::NodeAddsInDoubt, change),
            Kind::DeleteNode => self.add(Of::NodeDeletesInDoubt, change),
            _ => {}
        }
    }

    /// A link with a payload of this many bytes was written. If the store does not report the growth, the tally assumes
    /// one of two cases. A new link added its row and its index entry; an old one got a payload of the same length.
    #[inline]
    pub fn link_written(&mut self, written: Written, payload: usize) {
        let inserted = !written.there;
        self.add(Of::LinksAdded, i64::from(inserted));
        let usual = if inserted { (link_bytes(payload) + entry_bytes(payload)) as i64 } else { 0 };
        self.add(Of::Bytes, written.growth.unwrap_or(usual));
    }

    /// A node with a payload of this many bytes was added.
    #[inline]
    pub fn node_added(&mut self, payload: usize) {
        self.add(Of::NodesAdded, 1);
        self.add(Of::Bytes, node_bytes(payload) as i64);
    }

    /// A node's payload was replaced, by one of the same length unless the growth is known.
    #[inline]
    pub fn node_updated(&mut self, written: Written) {
        self.add(Of::Bytes, written.growth.unwrap_or(0));
    }

    /// A node was deleted, with an average payload unless the growth is known.
    #[inline]
    pub fn node_deleted(&mut self, written: Written) {
        if written.there {
            self.add(Of::NodesDeleted, 1);
            self.add(Of::Bytes, written.growth.unwrap_or(-(self.mean_node_bytes as i64)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const REPORTED: Written = Written { there: true, growth: Some(-30) };
    const UNREPORTED: Written = Written { there: true, growth: None };

    #[test]
    fn sums_outlive_the_clients_that_they_are_of() {
        let tallies = Tallies::new(100.0);
        let (mut loader, mut client) = (tallies.open(), tallies.open());
        loader.loaded(5000, 400);
        client.node_added(76);
        client.link_written(Written { there: false, growth: None }, 10);
        client.link_written(REPORTED, 10);
        drop((loader, client));
        let sums = tallies.sums();
        assert_eq!((sums.links_added, sums.nodes_added, sums.loaded_link_bytes), (1, 1, 400));
        assert_eq!(sums.bytes, 5000 + 100 + 2 * 47 - 30);
    }

    #[test]
    fn sums_go_to_another_process_whole_or_not_at_all() {
        let (loaded, started) = (Tallies::new(100.0), Tallies::new(100.0));
        loaded.open().loaded(5000, 400);
        let mut client = loaded.open();
        client.node_deleted(REPORTED);
        client.begin(Kind::AddLink);
        let state = loaded.state();
        started.restore(&state).unwrap();
        assert_eq!(started.sums(), loaded.sums());
        for missing in state.keys() {
            let mut partial = state.clone();
            partial.remove(missing);
            let untouched = Tallies::new(100.0);
            assert_eq!(untouched.restore(&partial), Err(missing.as_str()));
            assert_eq!(untouched.sums(), Sums::default());
        }
    }

    #[test]
    fn a_deleted_node_takes_its_bytes_with_it_known_or_on_average() {
        let tallies = Tallies::new(100.0);
        tallies.open().loaded(1000, 0);
        let mut client = tallies.open();
        client.node_deleted(REPORTED);
        client.node_deleted(UNREPORTED);
        client.node_deleted(Written { there: false, growth: None });
        assert_eq!(tallies.sums().nodes_deleted, 2);
        assert_eq!(tallies.sums().bytes, 1000 - 30 - 124);
    }
}
