//! Clients write a graph in memory, which is then damaged like by a kill.

use std::fs::File;
use std::io::Seek;
use std::sync::{Arc, Mutex};

use rumba_engine_api::check::{Check, EXAMPLES};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::block_on;
use rumba_workload_kit::ledger::RowCount;

use super::*;
use crate::graph::{LINK_TYPE, Link, ListQuery, NODE_TYPE, Node, VisitLink, VisitNode, Written};
use crate::oracle::Oracle;
use crate::tally::Tallies;
use crate::writer::Writer;

/// How a write ends that does not end well.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    /// It is carried out, but not acknowledged.
    CutOff,
    /// It is neither carried out nor acknowledged.
    CutOffBefore,
    Conflict,
}

/// The damage that a kill does to a graph.
type Damage = fn(&mut Oracle);

/// The graph, and the ledger of its clients.
#[derive(Clone)]
struct World {
    graph: Arc<Mutex<Oracle>>,
    tallies: Arc<Tallies>,
    ledger: Arc<File>,
}

/// A client's way to the graph.
struct Way {
    world: World,
    trouble: Option<Trouble>,
}

impl Way {
    fn write<T>(&self, write: impl FnOnce(&mut Oracle) -> Result<T>) -> Result<T> {
        let mut graph = self.world.graph.lock().unwrap();
        match self.trouble {
            None => write(&mut graph),
            Some(Trouble::CutOff) => write(&mut graph).and(Err(EngineError::CutOff("killed"))),
            Some(Trouble::CutOffBefore) => Err(EngineError::CutOff("killed")),
            Some(Trouble::Conflict) => Err(EngineError::conflict("busy")),
        }
    }
}

impl GraphStore for Way {
    async fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        self.write(|graph| {
            graph.next_id += 1;
            block_on(graph.add_node(node))
        })
    }

    async fn get_node(&mut self, id: u64, visit: VisitNode<'_>) -> Result<bool> {
        block_on(self.world.graph.lock().unwrap().get_node(id, visit))
    }

    async fn update_node(&mut self, node: &Node<'_>) -> Result<Written> {
        self.write(|graph| block_on(graph.update_node(node)))
    }

    async fn delete_node(&mut self, id: u64) -> Result<Written> {
        self.write(|graph| block_on(graph.delete_node(id)))
    }

    async fn add_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.write(|graph| block_on(graph.add_link(link)))
    }

    async fn update_link(&mut self, link: &Link<'_>) -> Result<Written> {
        self.write(|graph| block_on(graph.update_link(link)))
    }

    async fn delete_link(&mut self, key: LinkKey, time: u64) -> Result<bool> {
        self.write(|graph| block_on(graph.delete_link(key, time)))
    }

    async fn count_links(&mut self, id1: u64, link_type: u64) -> Result<i64> {
        block_on(self.world.graph.lock().unwrap().count_links(id1, link_type))
    }

    async fn get_links(&mut self, id1: u64, link_type: u64, id2s: &[u64], visit: VisitLink<'_>) -> Result<u64> {
        block_on(self.world.graph.lock().unwrap().get_links(id1, link_type, id2s, visit))
    }

    async fn get_links_list(&mut self, query: &ListQuery, visit: VisitLink<'_>) -> Result<u64> {
        block_on(self.world.graph.lock().unwrap().get_links_list(query, visit))
    }
}

const fn key(id2: u64) -> LinkKey {
    LinkKey { link_type: LINK_TYPE, id1: 1, id2 }
}

fn link(id2: u64, time: u64) -> Link<'static> {
    Link { key: key(id2), visible: true, version: 0, time, data: b"payload" }
}

fn node(id: u64, data: &[u8]) -> Node<'_> {
    Node { id, node_type: NODE_TYPE, version: 2, time: 7, data }
}

/// The expectation without writes: this many loaded rows, or none.
fn expected(links: u64, nodes: u64) -> Expected {
    let loaded = |loaded| RowCount { loaded, ..RowCount::default() };
    Expected { link_types: 1, links: loaded(links), nodes: loaded(nodes) }
}

impl World {
    fn client(&self, number: u32, trouble: Option<Trouble>) -> Writer<Way> {
        let way = Way { world: self.clone(), trouble };
        Writer::new(way, self.tallies.open_with(Some(&self.ledger), number))
    }

    /// Three loaded nodes and three loaded links, with a client's changes. Link 2 is new, link 3 was overwritten twice
    /// and link 4 hidden. Node 1 was updated, node 2 deleted and node 3 added.
    fn worked() -> Self {
        let (graph, tallies, ledger) = (Arc::default(), Arc::new(Tallies::new(0.0)), tempfile::tempfile().unwrap());
        let world = Self { graph, tallies, ledger: Arc::new(ledger) };
        {
            let mut graph = world.graph.lock().unwrap();
            [1, 2, 90].into_iter().for_each(|id| graph.put_node(&node(id, b"loaded")));
            graph.next_id = 2;
            (3..=5).for_each(|id2| drop(block_on(graph.add_link(&link(id2, 1)))));
        }
        let mut client = world.client(0, None);
        block_on(async {
            client.add_link(&link(2, 10)).await?;
            client.update_link(&link(3, 11)).await?;
            client.update_link(&link(3, 12)).await?;
            client.delete_link(key(4), 13).await?;
            client.update_node(&node(1, b"updated")).await?;
            client.delete_node(2).await?;
            client.add_node(&node(0, b"added")).await?;
            // These have no effect.
            client.delete_node(2).await?;
            client.update_node(&node(77, b"updated")).await?;
            client.delete_link(key(77), 14).await
        })
        .unwrap();
        world
    }

    /// The result of the recovery check, and whether the numbers of rows match the expectation.
    fn look(&self) -> (Found, [Check; 2]) {
        let mut expected = expected(3, 3);
        (&*self.ledger).rewind().unwrap();
        let entries = Entries::read(&self.ledger).unwrap();
        let mut way = Way { world: self.clone(), trouble: None };
        let found = block_on(recovered(&mut way, &entries, &mut expected)).unwrap();
        let graph = self.graph.lock().unwrap();
        let links = expected.links.check("links", graph.links.len() as u64);
        (found, [links, expected.nodes.check("nodes", graph.nodes.len() as u64)])
    }

    /// The numbers of lost and of acknowledged writes; the tables must have the expected number of rows.
    fn lost(&self) -> (u64, u64) {
        let (found, counts) = self.look();
        assert!(counts.iter().all(|count| count.wrong == 0), "{counts:?}");
        assert_eq!(found.examples.len() as u64, found.lost.min(EXAMPLES as u64), "{:?}", found.examples);
        (found.lost, found.acknowledged)
    }

    fn damage(&self, damage: impl FnOnce(&mut Oracle)) {
        damage(&mut self.graph.lock().unwrap());
    }
}

#[test]
fn missing_writes_of_each_kind_are_lost() {
    let cases: [(&str, u64, Damage); 8] = [
        ("link 1 to 2 of type 123456789 was written, it is not there", 1, |graph| drop(graph.links.remove(&key(2)))),
        ("link 1 to 3 of type 123456789 was written, something else is there", 1, |graph| {
            graph.put_link(&link(3, 11));
        }),
        ("link 1 to 3 of type 123456789 was written, something else is there", 2, |graph| {
            graph.put_link(&link(3, 1));
        }),
        ("link 1 to 3 of type 123456789 was written, it is hidden", 2, |graph| {
            graph.links.get_mut(&key(3)).unwrap().visible = false;
        }),
        ("link 1 to 4 of type 123456789 was hidden, something else is there", 1, |graph| {
            graph.put_link(&link(4, 1));
        }),
        ("node 1 was written, something else is there", 1, |graph| graph.put_node(&node(1, b"loaded"))),
        ("node 2 was deleted, something else is there", 1, |graph| graph.put_node(&node(2, b"loaded"))),
        ("node 3 was written, it is not there", 1, |graph| drop(graph.nodes.remove(&3))),
    ];
    for (reported, lost, damage) in cases {
        let world = World::worked();
        world.damage(damage);
        assert_eq!(world.lost(), (lost, 7), "{reported}");
        assert_eq!(world.look().0.examples[0], reported);
    }
}

#[test]
fn unwritten_and_missing_loaded_rows_are_wrong_not_lost() {
    let damages: [(Damage, (u64, u64)); 3] = [
        (|graph| drop(graph.put_link(&link(99, 1))), (1, 0)),
        (|graph| drop(graph.links.remove(&key(5))), (1, 0)),
        (|graph| drop(graph.nodes.remove(&90)), (0, 1)),
    ];
    for (damage, wrong) in damages {
        let world = World::worked();
        world.damage(damage);
        let (found, [links, nodes]) = world.look();
        assert_eq!((found.lost, links.wrong, nodes.wrong), (0, wrong.0, wrong.1));
    }
}

#[test]
fn a_link_that_was_found_hidden_by_one_in_doubt_is_not_lost() {
    let world = World::worked();
    assert!(block_on(world.client(1, Some(Trouble::CutOff)).delete_link(key(3), 20)).is_err());
    assert!(block_on(world.client(2, None).delete_link(key(3), 21)).unwrap());
    // The first one's commit was only in memory.
    world.damage(|graph| drop(graph.put_link(&link(3, 12))));
    assert_eq!(world.lost(), (0, 8));
}

#[test]
fn a_number_that_is_used_again_is_counted_once() {
    let world = World::worked();
    world.damage(|graph| graph.next_id = 1);
    assert_eq!(block_on(world.client(1, None).add_node(&node(0, b"again"))).unwrap(), 2);
    assert_eq!(world.lost(), (0, 8));
}

#[test]
fn doubtful_writes_may_be_present_or_absent() {
    for (trouble, links) in [(Trouble::CutOff, 1), (Trouble::CutOffBefore, 0), (Trouble::Conflict, 0)] {
        let world = World::worked();
        let mut clients = [1, 2, 3, 4, 5].map(|number| world.client(number, Some(trouble)));
        let [first, second, third, fourth, fifth] = &mut clients;
        assert!(block_on(first.add_link(&link(50, 20))).is_err());
        assert!(block_on(second.update_link(&link(3, 21))).is_err());
        assert!(block_on(third.delete_link(key(2), 22)).is_err());
        assert!(block_on(fourth.add_node(&node(0, b"open"))).is_err());
        assert!(block_on(fifth.delete_node(1)).is_err());
        assert_eq!(world.lost(), (0, 7));
        let (_, [link_rows, node_rows]) = world.look();
        let is_open = trouble != Trouble::Conflict;
        assert_eq!(link_rows.name.contains("leaving open 2"), is_open, "{}", link_rows.name);
        assert_eq!(node_rows.name.contains("leaving open 2"), is_open, "{}", node_rows.name);
        assert_eq!((link_rows.examined, node_rows.examined), (4 + links, 3));
        // A later write is still checked.
        block_on(world.client(9, None).update_link(&link(2, 30))).unwrap();
        world.damage(|graph| drop(graph.put_link(&link(2, 10))));
        assert_eq!(world.lost(), (1, 8));
    }
}
