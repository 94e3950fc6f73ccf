//! Loaders that stand in each other's way.

use super::*;
use crate::graph::{IndexStep, Node};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::setting::Value;
use rumba_engine_api::worker::block_on;

/// A store whose first writes conflict.
#[derive(Default)]
struct Busy {
    /// The number of coming writes that conflict.
    conflicts: u32,
    /// The bytes of the staged nodes, and the most that were written at once.
    staged: u64,
    most: u64,
    /// How often nodes were written.
    loads: u32,
}

impl Busy {
    fn answer(&mut self) -> Result<()> {
        if self.conflicts > 0 {
            self.conflicts -= 1;
            return Err(EngineError::conflict("busy"));
        }
        Ok(())
    }
}

impl GraphLoad for Busy {
    fn stage_node(&mut self, node: &Node<'_>) {
        self.staged += node.data.len() as u64;
    }

    fn stage_link(&mut self, _: &Link<'_>) {}

    fn stage_count(&mut self, _: &LinkCount) {}

    async fn load_staged(&mut self) -> Result<()> {
        self.answer()?;
        self.most = self.most.max(self.staged);
        self.loads += u32::from(self.staged > 0);
        Ok(())
    }

    fn clear_staged(&mut self) {
        self.staged = 0;
    }

    async fn build_index(&mut self, _: IndexRange, _: usize) -> Result<IndexStep> {
        self.answer().map(|()| IndexStep::default())
    }

    fn builds_index_at_once(&self) -> bool {
        false
    }
}

fn work(settings: &[(&str, Value)]) -> Work {
    let config = Arc::new(Config::new(&settings.iter().cloned().collect()).unwrap());
    Work {
        loaded: Arc::new(Graph::new(&config)),
        progress: Arc::default(),
        tallies: Arc::new(Tallies::new(config.node.mean())),
        config,
        at: ClientAddress { host: 0, driver: 0, client: 0, clients: 2 },
        seed: 7,
    }
}

#[test]
fn load_batch_retries_more_often_than_an_operation() {
    let work = work(&[("maxid1", Value::Int(100))]);
    let operations = work.config.max_retries;
    let mut rows = RowLoader::new(Busy { conflicts: operations + 50, ..Busy::default() }, work.clone());
    assert_eq!(rows.draw(), Some(LOAD_NODES));
    let op = block_on(rows.perform()).unwrap();
    assert_eq!((op.rows, op.retries, op.failed), (99, operations + 50, false));
    assert_eq!(rows.graph.loads, 1);
    let mut index = IndexLoader::new(Busy { conflicts: operations + 50, ..Busy::default() }, work);
    assert_eq!(index.draw(), Some(0));
    assert_eq!(block_on(index.perform()).unwrap().retries, operations + 50);
}

#[test]
fn large_nodes_are_written_few_at_a_time() {
    const MEDIAN: f64 = 100e3;
    let large = [("maxid1", Value::Int(200)), ("node_datasize", Value::Float(MEDIAN))];
    let mut rows = RowLoader::new(Busy::default(), work(&large));
    let mut nodes = 0;
    while let Some(kind) = rows.draw() {
        let loaded = block_on(rows.perform()).unwrap().rows;
        nodes += if kind == LOAD_NODES { loaded } else { 0 };
    }
    assert!((199..=200).contains(&nodes), "{nodes}");
    // The last node may exceed it; payloads are limited to some multiple of their median.
    let Busy { most, loads, .. } = rows.graph;
    assert!((BATCH_BYTES..2 * BATCH_BYTES).contains(&most), "{most}");
    assert!(loads >= 10, "{loads} of {MEDIAN} bytes each");
}
