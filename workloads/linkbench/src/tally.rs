//! Counts the rows that clients and loaders have inserted and deleted.

use std::fs::File;
use std::sync::Arc;

use rumba_engine_api::error::Result;
use rumba_workload_kit::ledger::{Account, Entry, Ledger};

use crate::graph::{Written, entry_bytes, link_bytes, node_bytes};

rumba_workload_kit::counters! {
    /// The sums over all tallies. Counts in doubt stay in doubt for a reader of a copy of the data, who knows no more.
    Sums at Of {
        /// Links that clients inserted; no link is ever expunged.
        links_added: LinksAdded,
        nodes_added: NodesAdded,
        nodes_deleted: NodesDeleted,
        /// Operations that may or may not have inserted a link: begun, and not known to have ended.
        link_adds_in_doubt: LinkAddsInDoubt,
        /// Operations that may or may not have added a node.
        node_adds_in_doubt: NodeAddsInDoubt,
        /// Operations that may or may not have deleted a node.
        node_deletes_in_doubt: NodeDeletesInDoubt,
        /// Logical bytes in the database.
        bytes: Bytes,
        /// The link bytes that loaders wrote, without index entries.
        loaded_link_bytes: LoadedLinkBytes,
    }
}

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

    /// Its number in the ledger's file.
    pub fn number(self) -> u32 {
        self as u32
    }

    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|write| write.number() == number)
    }
}

#[derive(Debug)]
pub struct Tallies {
    pub ledger: Ledger<{ Sums::NAMES.len() }>,
    /// Logical bytes of a node of average payload.
    mean_node_bytes: u64,
}

impl Tallies {
    /// No tallies yet, over nodes with this mean payload in bytes.
    pub fn new(mean_node_payload: f64) -> Self {
        Self { ledger: Ledger::new(Sums::NAMES), mean_node_bytes: node_bytes(mean_node_payload.round() as usize) }
    }

    /// A tally for one client or loader.
    pub fn open(&self) -> Tally {
        self.open_with(None, 0)
    }

    /// The tally of the client with this number, which also appends its writes to a file if there is one.
    pub fn open_with(&self, file: Option<&Arc<File>>, client: u32) -> Tally {
        Tally { account: self.ledger.open_with(file, client), mean_node_bytes: self.mean_node_bytes }
    }

    /// The sums as of now.
    pub fn sums(&self) -> Sums {
        self.ledger.sums()
    }
}

/// One client's or loader's tally: its only writer.
#[derive(Debug)]
pub struct Tally {
    account: Account<{ Sums::NAMES.len() }>,
    mean_node_bytes: u64,
}

impl Tally {
    #[inline]
    fn add(&mut self, of: Of, change: i64) {
        self.account.add(of as usize, change);
    }

    /// A batch was loaded: its logical bytes, and those of its links without index entries.
    pub fn loaded(&mut self, bytes: u64, link_bytes: u64) {
        self.add(Of::Bytes, bytes as i64);
        self.add(Of::LoadedLinkBytes, link_bytes as i64);
    }

    /// A write begins: its outcome is in doubt until it ends.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub fn begin(&mut self, write: Write, entry: impl FnOnce() -> Entry) -> Result<()> {
        let doubt = match write {
            Write::PutLink => Some(Of::LinkAddsInDoubt as usize),
            Write::AddNode => Some(Of::NodeAddsInDoubt as usize),
            Write::DeleteNode => Some(Of::NodeDeletesInDoubt as usize),
            Write::HideLink | Write::UpdateNode => None,
        };
        self.account.begin(write.number(), doubt, entry)
    }

    /// Ends a write: acknowledged if `done` returns how to complete its entry, and without an effect if it returns none.
    /// After an error the write is undone or stays in doubt.
    ///
    /// # Errors
    /// The error of the write; the file cannot be written.
    #[inline]
    pub fn end<T, Complete: FnOnce(&mut Entry)>(
        &mut self,
        result: Result<T>,
        done: impl FnOnce(&T) -> Option<Complete>,
    ) -> Result<T> {
        let result = self.account.settle(result)?;
        match done(&result) {
            Some(complete) => self.account.acknowledge(complete)?,
            None => self.account.undo()?,
        }
        Ok(result)
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
