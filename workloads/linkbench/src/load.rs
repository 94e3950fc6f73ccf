//! The load: nodes, links and counts in chunks of ids, then the index.
//!
//! Every chunk draws from its own generator. The data therefore depends only on the seed and the number of ids, and not
//! on which loader loads which chunk.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Padded, Partition, Random, Retry, stream_seed};

use crate::choice::Graph;
use crate::distribution::payload::Payload;
use crate::graph::{
    COUNT_BYTES, GraphLoad, IndexRange, LINK_TYPE, Link, LinkCount, LinkKey, NODE_TYPE, Node, entry_bytes, link_bytes,
    node_bytes,
};
use crate::requests::LOADED_AT_MS;
use crate::settings::Config;
use crate::tally::{Tallies, Tally};

/// Ids that a loader claims at once.
pub const CHUNK: u64 = 2048;
/// Rows that are written together.
pub const BATCH: usize = 1024;
/// The bytes of nodes at which a batch ends, because one transaction, or one message, has to hold it.
const BATCH_BYTES: u64 = 1 << 20;
/// The stream of the motifs, which no chunk uses.
const MOTIFS: u64 = u64::MAX;

/// The load's types of operations, in the order of [`crate::ROWS_OPS`].
pub const LOAD_NODES: OpKind = 0;
pub const LOAD_LINKS: OpKind = 1;
pub const LOAD_COUNTS: OpKind = 2;

/// The shared state of an instance's loaders: each touches it once per chunk.
#[derive(Debug, Default)]
pub struct Progress {
    rows_chunk: Padded,
    index_chunk: Padded,
    /// This host's share of the chunks.
    pub partition: Partition,
}

/// The inputs of every loader.
#[derive(Clone)]
pub struct Work {
    pub config: Arc<Config>,
    pub loaded: Arc<Graph>,
    /// Loaders of the same progress share the work.
    pub progress: Arc<Progress>,
    pub tallies: Arc<Tallies>,
    /// The loader's address.
    pub at: ClientAddress,
    pub seed: u64,
}

/// The position of a loader within its chunk.
#[derive(Clone, Copy, Debug)]
enum LoadPosition {
    Node {
        id: u64,
    },
    /// The next link: its number among the `of` links of this type.
    Link {
        id: u64,
        nth_type: u64,
        nth: u64,
        of: u64,
        newest: u64,
    },
    /// All links are out, counts may be left.
    End,
}

pub struct RowLoader<G> {
    graph: G,
    config: Arc<Config>,
    loaded: Arc<Graph>,
    progress: Arc<Progress>,
    tally: Tally,
    link_payload: Payload,
    node_payload: Payload,
    seed: u64,
    random: Random,
    place: LoadPosition,
    end: u64,
    counts: Vec<LinkCount>,
    data: Vec<u8>,
    rows: u64,
    bytes: u64,
    link_bytes: u64,
    /// The drawn batch that is not performed yet. A run that is stopped in between and continued must not lose it.
    drawn: Option<OpKind>,
    retry: Retry,
}

impl<G: GraphLoad> RowLoader<G> {
    /// A loader that takes its share of the work.
    pub fn new(graph: G, work: Work) -> Self {
        let retry = Retry::of_loader(work.at, work.seed);
        let Work { config, loaded, progress, tallies, seed, .. } = work;
        let mut random = Random::seed_from_u64(stream_seed(seed, MOTIFS));
        Self {
            graph,
            tally: tallies.open(),
            link_payload: Payload::new(&config.link, &mut random),
            node_payload: Payload::new(&config.node, &mut random),
            config,
            loaded,
            progress,
            seed,
            random,
            place: LoadPosition::End,
            end: 0,
            counts: Vec::with_capacity(2 * BATCH),
            data: Vec::with_capacity(64 << 10),
            rows: 0,
            bytes: 0,
            link_bytes: 0,
            drawn: None,
            retry,
        }
    }

    /// Claims the next chunk; false when there is none.
    fn claim(&mut self) -> bool {
        let chunk = self.progress.partition.next(&self.progress.rows_chunk);
        let start = self.config.first + chunk * CHUNK;
        if start >= self.config.end() {
            return false;
        }
        self.random = Random::seed_from_u64(stream_seed(self.seed, chunk));
        self.place = LoadPosition::Node { id: start };
        self.end = (start + CHUNK).min(self.config.end());
        true
    }

    fn stage_nodes(&mut self, id: u64) {
        let (first, upto, mut bytes) = (id, (id + BATCH as u64).min(self.end), 0);
        let mut id = first;
        while id < upto && bytes < BATCH_BYTES {
            self.node_payload.fill(&mut self.random, &mut self.data);
            let time = (LOADED_AT_MS / 1000) as u32;
            self.graph.stage_node(&Node { id, node_type: NODE_TYPE, version: 1, time, data: &self.data });
            bytes += node_bytes(self.data.len());
            id += 1;
        }
        self.bytes += bytes;
        self.rows = id - first;
        self.place = if id < self.end { LoadPosition::Node { id } } else { self.links_of(self.chunk_start(), 0) };
    }

    fn chunk_start(&self) -> u64 {
        self.end - 1 - (self.end - 1 - self.config.first) % CHUNK
    }

    /// The position before the links of this id and type, or of the next.
    fn links_of(&self, id: u64, nth_type: u64) -> LoadPosition {
        match (nth_type < self.config.link_types, id + 1 < self.end) {
            (true, _) => LoadPosition::Link { id, nth_type, nth: 0, of: self.loaded.links(id, nth_type), newest: 0 },
            (false, true) => self.links_of(id + 1, 0),
            (false, false) => LoadPosition::End,
        }
    }

    /// Stages links up to a batch, and sets their counts aside.
    fn stage_links(&mut self) {
        while let LoadPosition::Link { id, nth_type, nth, of, newest } = self.place {
            let room = BATCH as u64 - self.rows;
            if room == 0 {
                return;
            }
            let upto = of.min(nth + room);
            let link_type = LINK_TYPE + nth_type;
            let mut newest = newest;
            for nth in nth..upto {
                newest = newest.max(self.stage_link(LinkKey { link_type, id1: id, id2: id + nth }));
            }
            self.rows += upto - nth;
            if upto < of {
                self.place = LoadPosition::Link { id, nth_type, nth: upto, of, newest };
                return;
            }
            if of > 0 {
                self.counts.push(LinkCount { id1: id, link_type, count: of as i64, time: newest, version: 0 });
            }
            self.place = self.links_of(id, nth_type + 1);
        }
    }

    /// Stages a link with a time in the last 2^32 ms, about 50 days; returns the time.
    fn stage_link(&mut self, key: LinkKey) -> u64 {
        let time = LOADED_AT_MS - u64::from(self.random.next_u32());
        self.link_payload.fill(&mut self.random, &mut self.data);
        self.graph.stage_link(&Link { key, visible: true, version: 0, time, data: &self.data });
        let length = self.data.len();
        self.link_bytes += link_bytes(length);
        self.bytes += link_bytes(length);
        if self.config.index_during_load {
            self.bytes += entry_bytes(length);
        }
        time
    }

    fn stage_counts(&mut self) {
        let some = self.counts.len().min(BATCH);
        self.rows = some as u64;
        self.bytes += self.rows * COUNT_BYTES;
        for count in self.counts.drain(..some) {
            self.graph.stage_count(&count);
        }
    }

    /// Stages the next batch; `None` when the chunk is done.
    fn stage(&mut self) -> Option<OpKind> {
        if self.counts.len() >= BATCH {
            self.stage_counts();
            return Some(LOAD_COUNTS);
        }
        match self.place {
            LoadPosition::Node { id } => {
                self.stage_nodes(id);
                Some(LOAD_NODES)
            }
            LoadPosition::Link { .. } => {
                self.stage_links();
                if self.rows > 0 { Some(LOAD_LINKS) } else { self.stage() }
            }
            LoadPosition::End if self.counts.is_empty() => None,
            LoadPosition::End => {
                self.stage_counts();
                Some(LOAD_COUNTS)
            }
        }
    }
}

impl<G: GraphLoad> Worker for RowLoader<G> {
    fn draw(&mut self) -> Option<OpKind> {
        if self.drawn.is_none() {
            self.graph.clear_staged();
            (self.rows, self.bytes, self.link_bytes) = (0, 0, 0);
            self.drawn = self.stage();
        }
        while self.drawn.is_none() && self.claim() {
            self.drawn = self.stage();
        }
        self.drawn
    }

    async fn perform(&mut self) -> Result<Op> {
        let mut retries = 0;
        while let Err(error) = self.graph.load_staged().await {
            self.retry.load("rows", &mut retries, error).await?;
        }
        self.drawn = None;
        self.tally.loaded(self.bytes, self.link_bytes);
        Ok(Op { rows: self.rows, retries, failed: false })
    }

    fn statements(&mut self) -> StatementCounts {
        self.graph.statements()
    }
}

/// A loader of the index, after the rows.
pub struct IndexLoader<G> {
    graph: G,
    config: Arc<Config>,
    progress: Arc<Progress>,
    tallies: Arc<Tallies>,
    tally: Tally,
    ids: (u64, u64),
    nth_type: u64,
    next: Option<LinkKey>,
    retry: Retry,
}

impl<G: GraphLoad> IndexLoader<G> {
    /// A loader that takes its share of the work.
    pub fn new(graph: G, work: Work) -> Self {
        let retry = Retry::of_loader(work.at, work.seed);
        let Work { config, progress, tallies, .. } = work;
        let (nth_type, tally) = (config.link_types, tallies.open());
        Self { graph, config, progress, tallies, tally, ids: (0, 0), nth_type, next: None, retry }
    }

    fn key(&self, id1: u64) -> LinkKey {
        LinkKey { link_type: LINK_TYPE + self.nth_type, id1, id2: 0 }
    }

    /// Continues with the next type of the chunk, or the next chunk; false when all is done.
    fn advance(&mut self) -> bool {
        if self.nth_type + 1 < self.config.link_types {
            self.nth_type += 1;
        } else {
            let chunk = self.progress.partition.next(&self.progress.index_chunk);
            let start = self.config.first + chunk * CHUNK;
            if start >= self.config.end() || (chunk > 0 && self.graph.builds_index_at_once()) {
                return false;
            }
            self.ids = (start, (start + CHUNK).min(self.config.end()));
            self.nth_type = if self.graph.builds_index_at_once() { self.config.link_types - 1 } else { 0 };
        }
        self.next = Some(self.key(self.ids.0));
        true
    }
}

impl<G: GraphLoad> Worker for IndexLoader<G> {
    fn draw(&mut self) -> Option<OpKind> {
        (self.next.is_some() || self.advance()).then_some(0)
    }

    async fn perform(&mut self) -> Result<Op> {
        let Some(from) = self.next else { return Ok(Op::default()) };
        let range = IndexRange { from, to: self.key(self.ids.1) };
        let mut retries = 0;
        let step = loop {
            match self.graph.build_index(range, BATCH).await {
                Ok(step) => break step,
                Err(error) => self.retry.load("index entries", &mut retries, error).await?,
            }
        };
        self.next = step.next;
        let all = self.graph.builds_index_at_once();
        // An index has the same columns as its links.
        let bytes = if all { self.tallies.sums().loaded_link_bytes.cast_unsigned() } else { step.bytes };
        self.tally.loaded(bytes, 0);
        // Index entries are not rows, whether they are written during the load or after it.
        Ok(Op { rows: 0, retries, failed: false })
    }

    fn statements(&mut self) -> StatementCounts {
        self.graph.statements()
    }
}

#[cfg(test)]
mod tests;
