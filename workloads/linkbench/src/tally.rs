//! What clients and loaders have put into the database and taken out of it.
//!
//! Each number has one writer, which stores it without a read-modify-write and
//! in a cache line of its own. Whoever reads it between two operations reads
//! the truth, so that the sums also hold when clients are stopped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_core::workload::State;

use crate::graph::{Written, entry_bytes, link_bytes, node_bytes};
use crate::profile::Kind;

/// A number of one writer; it wraps, so that it can also fall.
#[derive(Debug, Default)]
struct Number(AtomicU64);

impl Number {
    #[inline]
    fn add(&self, change: i64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add_signed(change), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Numbers {
    links_added: Number,
    nodes_added: Number,
    nodes_deleted: Number,
    link_adds_in_doubt: Number,
    node_adds_in_doubt: Number,
    node_deletes_in_doubt: Number,
    bytes: Number,
    loaded_link_bytes: Number,
}

/// The sums over all tallies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Links that clients inserted; none is ever expunged.
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
    /// Those of the links that loaders wrote, without index entries.
    pub loaded_link_bytes: u64,
}

/// The tallies of one instance.
#[derive(Debug)]
pub struct Tallies {
    all: Mutex<Vec<Arc<Numbers>>>,
    /// Logical bytes of a node of average payload.
    mean_node_bytes: u64,
}

impl Tallies {
    /// No tallies yet, over nodes with this mean payload in bytes.
    pub fn new(mean_node_payload: f64) -> Self {
        Self { all: Mutex::default(), mean_node_bytes: node_bytes(mean_node_payload.round() as usize) }
    }

    /// A tally for one client or loader.
    pub fn open(&self) -> Tally {
        let numbers = Arc::<Numbers>::default();
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(numbers.clone());
        Tally { numbers, mean_node_bytes: self.mean_node_bytes }
    }

    /// The sums as of now.
    pub fn sums(&self) -> Sums {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |of: fn(&Numbers) -> &Number| all.iter().fold(0, |sum: u64, each| sum.wrapping_add(of(each).get()));
        Sums {
            links_added: sum(|each| &each.links_added),
            nodes_added: sum(|each| &each.nodes_added),
            nodes_deleted: sum(|each| &each.nodes_deleted),
            link_adds_in_doubt: sum(|each| &each.link_adds_in_doubt),
            node_adds_in_doubt: sum(|each| &each.node_adds_in_doubt),
            node_deletes_in_doubt: sum(|each| &each.node_deletes_in_doubt),
            bytes: (sum(|each| &each.bytes) as i64).max(0) as u64,
            loaded_link_bytes: sum(|each| &each.loaded_link_bytes),
        }
    }
}

/// One of the numbers.
type Of = fn(&Numbers) -> &Number;

/// The sums by the names under which they go with a copy of the data. What was
/// in doubt stays in doubt: whoever reads the copy knows no more.
const NAMED: [(&str, Of); 8] = [
    ("links_added", |numbers| &numbers.links_added),
    ("nodes_added", |numbers| &numbers.nodes_added),
    ("nodes_deleted", |numbers| &numbers.nodes_deleted),
    ("link_adds_in_doubt", |numbers| &numbers.link_adds_in_doubt),
    ("node_adds_in_doubt", |numbers| &numbers.node_adds_in_doubt),
    ("node_deletes_in_doubt", |numbers| &numbers.node_deletes_in_doubt),
    ("bytes", |numbers| &numbers.bytes),
    ("loaded_link_bytes", |numbers| &numbers.loaded_link_bytes),
];

impl Tallies {
    /// The sums as of now, by name.
    pub fn state(&self) -> State {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |of: Of| all.iter().fold(0, |sum: u64, each| sum.wrapping_add(of(each).get()));
        NAMED.iter().map(|(name, of)| ((*name).to_owned(), sum(*of))).collect()
    }

    /// Adds sums that another process has given.
    ///
    /// # Errors
    /// The name of one that is missing; nothing is added then.
    pub fn restore(&self, state: &State) -> Result<(), &'static str> {
        let numbers = Numbers::default();
        for (name, of) in NAMED {
            of(&numbers).add(*state.get(name).ok_or(name)? as i64);
        }
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(numbers));
        Ok(())
    }
}

/// One client's or loader's tally: its only writer.
#[derive(Debug)]
pub struct Tally {
    numbers: Arc<Numbers>,
    mean_node_bytes: u64,
}

impl Tally {
    /// A batch was loaded: its logical bytes, and those of its links without index entries.
    pub fn loaded(&mut self, bytes: u64, link_bytes: u64) {
        self.numbers.bytes.add(bytes as i64);
        self.numbers.loaded_link_bytes.add(link_bytes as i64);
    }

    /// An operation of this type begins: until [`Tally::known`] its outcome is in doubt.
    #[inline]
    pub fn begin(&mut self, kind: Kind) {
        self.doubt(kind, 1);
    }

    /// What the operation that began came to is known.
    #[inline]
    pub fn known(&mut self, kind: Kind) {
        self.doubt(kind, -1);
    }

    #[inline]
    fn doubt(&mut self, kind: Kind, change: i64) {
        match kind {
            Kind::AddLink | Kind::UpdateLink => self.numbers.link_adds_in_doubt.add(change),
            Kind::AddNode => self.numbers.node_adds_in_doubt.add(change),
            Kind::DeleteNode => self.numbers.node_deletes_in_doubt.add(change),
            _ => {}
        }
    }

    /// A link with a payload of so many bytes was written. A store that does not
    /// learn the growth is taken to have inserted link and index entry, or to
    /// have replaced a payload by one of the same length.
    #[inline]
    pub fn link_written(&mut self, written: Written, payload: usize) {
        let inserted = !written.there;
        self.numbers.links_added.add(i64::from(inserted));
        let usual = if inserted { (link_bytes(payload) + entry_bytes(payload)) as i64 } else { 0 };
        self.numbers.bytes.add(written.growth.unwrap_or(usual));
    }

    /// A node with a payload of so many bytes was added.
    #[inline]
    pub fn node_added(&mut self, payload: usize) {
        self.numbers.nodes_added.add(1);
        self.numbers.bytes.add(node_bytes(payload) as i64);
    }

    /// A node's payload was replaced, by one of the same length if nothing better is known.
    #[inline]
    pub fn node_updated(&mut self, written: Written) {
        self.numbers.bytes.add(written.growth.unwrap_or(0));
    }

    /// A node was deleted, one of average payload if nothing better is known.
    #[inline]
    pub fn node_deleted(&mut self, written: Written) {
        if written.there {
            self.numbers.nodes_deleted.add(1);
            self.numbers.bytes.add(written.growth.unwrap_or(-(self.mean_node_bytes as i64)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TOLD: Written = Written { there: true, growth: Some(-30) };
    const UNTOLD: Written = Written { there: true, growth: None };

    #[test]
    fn sums_outlive_the_clients_that_they_are_of() {
        let tallies = Tallies::new(100.0);
        let (mut loader, mut client) = (tallies.open(), tallies.open());
        loader.loaded(5000, 400);
        client.node_added(76);
        client.link_written(Written { there: false, growth: None }, 10);
        client.link_written(TOLD, 10);
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
        client.node_deleted(TOLD);
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
        client.node_deleted(TOLD);
        client.node_deleted(UNTOLD);
        client.node_deleted(Written { there: false, growth: None });
        assert_eq!(tallies.sums().nodes_deleted, 2);
        assert_eq!(tallies.sums().bytes, 1000 - 30 - 124);
    }
}
