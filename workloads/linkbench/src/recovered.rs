//! Checks which acknowledged writes remain after the database was killed.

use std::collections::{BTreeMap, BTreeSet};

use rumba_engine_api::acid::Found;
use rumba_engine_api::error::Result;
use rumba_workload_kit::ledger::{Entries, Noted, lost};

use crate::graph::{GraphStore, LinkKey};
use crate::tally::Write;
use crate::verify::Expected;
use crate::writer::{Entered, Mark, RowKey};

/// The rows that the ledger's clients wrote.
struct Rows {
    writes: BTreeMap<RowKey, Vec<Noted<Mark>>>,
    inserted: BTreeSet<RowKey>,
    /// Nodes that acknowledged writes deleted.
    deleted: BTreeSet<RowKey>,
}

impl Rows {
    fn new(entries: &Entries) -> Self {
        let mut rows = Self { writes: BTreeMap::new(), inserted: BTreeSet::new(), deleted: BTreeSet::new() };
        entries.all().filter_map(Entered::of).for_each(|entered| rows.enter(&entered));
        rows
    }

    fn enter(&mut self, entered: &Entered) {
        let Entered { write, place, is_new, noted } = *entered;
        let is_acknowledged = noted.ended_ns.is_some();
        if write == Write::AddNode && !is_acknowledged {
            // Its id was never reported, so the node cannot be looked up.
            return;
        }
        self.writes.entry(place).or_default().push(noted);
        // A row deleted before had its key from the load, and a store may use that key again.
        if is_new && !self.deleted.contains(&place) {
            self.inserted.insert(place);
        }
        if write == Write::DeleteNode && is_acknowledged {
            self.deleted.insert(place);
        }
    }
}

/// The present state of a row.
async fn mark(graph: &mut impl GraphStore, place: RowKey) -> Result<Mark> {
    let mut mark = Mark::Absent;
    match place {
        RowKey::Link(LinkKey { link_type, id1, id2 }) => {
            graph.get_links(id1, link_type, &[id2], &mut |link| mark = Mark::of_link(link)).await?;
        }
        RowKey::Node(id) => {
            graph.get_node(id, &mut |node| mark = Mark::of_node(node)).await?;
        }
    }
    Ok(mark)
}

/// Looks up every row that the ledger's clients wrote. It adds the rows found, and those that may be there, to
/// `expected`; the tables are checked against it later.
pub async fn recovered(graph: &mut impl GraphStore, entries: &Entries, expected: &mut Expected) -> Result<Found> {
    let rows = Rows::new(entries);
    let mut found = Found { acknowledged: entries.acknowledged.len() as u64, ..Found::default() };
    for (place, writes) in &rows.writes {
        let mark = mark(graph, *place).await?;
        for write in lost(writes, &mark) {
            found.lose(|| words(*place, write.mark, mark));
        }
        let (is_there, counted) = match place {
            RowKey::Link(_) => (mark != Mark::Absent, &mut expected.links),
            RowKey::Node(_) => (mark != Mark::Absent, &mut expected.nodes),
        };
        if rows.inserted.contains(place) {
            counted.added += u64::from(is_there);
        } else if rows.deleted.contains(place) {
            counted.deleted += u64::from(!is_there);
        }
    }
    let in_doubt = |write: Write| entries.in_doubt_of(write.number());
    expected.links.adds_in_doubt += in_doubt(Write::PutLink);
    expected.nodes.adds_in_doubt += in_doubt(Write::AddNode);
    expected.nodes.deletes_in_doubt += in_doubt(Write::DeleteNode);
    Ok(found)
}

fn words(place: RowKey, lost: Mark, found: Mark) -> String {
    let row = match place {
        RowKey::Link(LinkKey { link_type, id1, id2 }) => format!("link {id1} to {id2} of type {link_type}"),
        RowKey::Node(id) => format!("node {id}"),
    };
    let lost = match lost {
        Mark::Shows(_) => "was written",
        Mark::Hidden => "was hidden",
        Mark::Absent => "was deleted",
    };
    let found = match found {
        Mark::Shows(_) => "something else is there",
        Mark::Hidden => "it is hidden",
        Mark::Absent => "it is not there",
    };
    format!("{row} {lost}, {found}")
}

#[cfg(test)]
mod tests;
