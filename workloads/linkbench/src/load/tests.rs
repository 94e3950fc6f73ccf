//! Loaders that stand in each other's way.

use super::*;
use crate::graph::{IndexStep, Node};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::setting::Value;
use rumba_engine_api::worker::block_on;

/// Conflicts this many times, and then never again.
#[derive(Default)]
struct Busy {
    conflicts: u32,
    loads: u32,
    cut_off: bool,
}

impl Busy {
    fn answer(&mut self) -> Result<()> {
        if self.conflicts > 0 {
            self.conflicts -= 1;
            return Err(EngineError::conflict("busy"));
        }
        if self.cut_off {
            return Err(EngineError::CutOff("server gone"));
        }
        self.loads += 1;
        Ok(())
    }
}

impl GraphLoad for Busy {
    fn stage_node(&mut self, _: &Node<'_>) {}

    fn stage_link(&mut self, _: &Link<'_>) {}

    fn stage_count(&mut self, _: &LinkCount) {}

    async fn load_staged(&mut self) -> Result<()> {
        self.answer()
    }

    fn clear_staged(&mut self) {}

    async fn build_index(&mut self, _: IndexRange, _: usize) -> Result<IndexStep> {
        self.answer().map(|()| IndexStep::default())
    }

    fn builds_index_at_once(&self) -> bool {
        false
    }
}

fn work(client: u32) -> Work {
    work_of(client, &[("maxid1", Value::Int(100))])
}

fn work_of(client: u32, settings: &[(&str, Value)]) -> Work {
    let config = Arc::new(Config::new(&settings.iter().cloned().collect()).unwrap());
    Work {
        loaded: Arc::new(Graph::new(&config)),
        progress: Arc::default(),
        tallies: Arc::new(Tallies::new(config.node.mean())),
        config,
        at: ClientAddress { host: 0, driver: client, client, clients: 2 },
        seed: 7,
    }
}

#[test]
fn load_batch_retries_more_often_than_an_operation() {
    let operations = work(0).config.max_retries;
    let mut rows = RowLoader::new(Busy { conflicts: operations + 50, ..Busy::default() }, work(0));
    assert_eq!(rows.draw(), Some(LOAD_NODES));
    let op = block_on(rows.perform()).unwrap();
    assert_eq!((op.rows, op.retries, op.failed), (99, operations + 50, false));
    assert_eq!(rows.graph.loads, 1);
    let mut index = IndexLoader::new(Busy { conflicts: operations + 50, ..Busy::default() }, work(0));
    assert_eq!(index.draw(), Some(0));
    assert_eq!(block_on(index.perform()).unwrap().retries, operations + 50);
}

#[test]
fn lost_connection_fails_the_load_as_writes_are_unknown() {
    let cut_off = || Busy { cut_off: true, ..Busy::default() };
    let work = work(0);
    let mut rows = RowLoader::new(cut_off(), work.clone());
    rows.draw();
    let mut index = IndexLoader::new(cut_off(), work.clone());
    index.draw();
    for end in [block_on(rows.perform()), block_on(index.perform())] {
        let error = end.unwrap_err().to_string();
        assert!(error.contains("server gone") && error.contains("run it again"), "{error}");
    }
    assert_eq!(work.tallies.sums().bytes, 0, "what was not loaded is not counted");
}

/// The bytes of staged nodes, and the maximum written at once.
#[derive(Default)]
struct Weighed {
    staged: u64,
    most: u64,
    loads: u32,
}

impl GraphLoad for &mut Weighed {
    fn stage_node(&mut self, node: &Node<'_>) {
        self.staged += node.data.len() as u64;
    }

    fn stage_link(&mut self, _: &Link<'_>) {}

    fn stage_count(&mut self, _: &LinkCount) {}

    async fn load_staged(&mut self) -> Result<()> {
        self.most = self.most.max(self.staged);
        self.loads += u32::from(self.staged > 0);
        Ok(())
    }

    fn clear_staged(&mut self) {
        self.staged = 0;
    }

    async fn build_index(&mut self, _: IndexRange, _: usize) -> Result<IndexStep> {
        Ok(IndexStep::default())
    }

    fn builds_index_at_once(&self) -> bool {
        false
    }
}

#[test]
fn large_nodes_are_written_few_at_a_time() {
    const MEDIAN: f64 = 100e3;
    let mut weighed = Weighed::default();
    let large = [("maxid1", Value::Int(200)), ("node_datasize", Value::Float(MEDIAN))];
    let mut rows = RowLoader::new(&mut weighed, work_of(0, &large));
    let mut nodes = 0;
    while let Some(kind) = rows.draw() {
        let loaded = block_on(rows.perform()).unwrap().rows;
        nodes += if kind == LOAD_NODES { loaded } else { 0 };
    }
    assert!((199..=200).contains(&nodes), "{nodes}");
    // The last node may exceed it; payloads are limited to some multiple of their median.
    assert!((BATCH_BYTES..2 * BATCH_BYTES).contains(&weighed.most), "{}", weighed.most);
    assert!(weighed.loads >= 10, "{} of {MEDIAN} bytes each", weighed.loads);
}
