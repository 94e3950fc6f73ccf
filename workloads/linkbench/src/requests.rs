//! The operation mix: one client's stream.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Chance, Random, Retry, client_seed, stream_seed};

use crate::choice::{Choice, Graph};
use crate::distribution::payload::Payload;
use crate::graph::{GraphStore, Link, LinkKey, ListQuery, MULTIGET_MAX, NODE_TYPE, Node};
use crate::profile::{Existing, Kind};
use crate::settings::Config;
use crate::tails::{Tail, Tails};
use crate::tally::Tally;

/// "Now" at the end of the load: 2017-12-01T00:00:00Z, in milliseconds since 1970.
pub const LOADED_AT_MS: u64 = 1_512_086_400_000;

/// Bytes reserved for a payload. One node in ten million is larger, and the buffer grows for it. Pages that no payload
/// has touched take no memory.
const PAYLOAD: usize = 32 << 10;

/// The drawn operation that is not yet performed.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    kind: Kind,
    /// A node's id, or the source of the links.
    id1: u64,
    link_type: u64,
    id2: u64,
    /// The list that this one continues, and since when.
    tail: Option<(usize, u64)>,
}

/// A client of the mix.
pub struct Requests<G> {
    graph: G,
    random: Random,
    /// Upper bounds of the types' shares of 2^64.
    mix: [u64; 10],
    loaded: Arc<Graph>,
    choice: Choice,
    link_payload: Payload,
    node_payload: Payload,
    history: Chance,
    list_limit: u64,
    tails: Tails,
    tally: Tally,
    retry: Retry,
    /// The client's own clock: it ticks a millisecond per operation, so that the
    /// same seed writes the same rows.
    now_ms: u64,
    drawn: Drawn,
    data: Vec<u8>,
    id2s: Vec<u64>,
}

fn mix_bounds(mix: &[f64; 10]) -> [u64; 10] {
    let sum: f64 = mix.iter().sum();
    let mut upto = 0.0;
    let mut bounds = mix.map(|percent| {
        upto += percent / sum;
        (upto * u64::MAX as f64) as u64
    });
    // The last type that occurs takes the remainder of rounding.
    if let Some(last) = mix.iter().rposition(|percent| *percent > 0.0) {
        bounds[last..].fill(u64::MAX);
    }
    bounds
}

impl<G: GraphStore> Requests<G> {
    /// The client at this address, which counts its writes in `tally`. Clients of one seed draw different streams.
    pub fn new(graph: G, config: &Config, loaded: Arc<Graph>, tally: Tally, at: ClientAddress, seed: u64) -> Self {
        let stream = client_seed(seed, at);
        let mut random = Random::seed_from_u64(stream);
        Self {
            graph,
            mix: mix_bounds(&config.mix),
            loaded,
            choice: Choice::new(config),
            link_payload: Payload::new(&config.link, &mut random),
            node_payload: Payload::new(&config.node, &mut random),
            history: Chance::new(config.history),
            list_limit: config.list_limit,
            tails: Tails::default(),
            tally,
            retry: Retry::new(config.max_retries, stream_seed(stream, 1)),
            now_ms: LOADED_AT_MS,
            drawn: Drawn { kind: Kind::GetNode, id1: 0, link_type: 0, id2: 0, tail: None },
            data: Vec::with_capacity(PAYLOAD),
            id2s: Vec::with_capacity(MULTIGET_MAX),
            random,
        }
    }

    fn draw_kind(&mut self) -> Kind {
        let draw = self.random.next_u64();
        let place = self.mix.iter().position(|&bound| draw <= bound).unwrap_or(0);
        Kind::ALL[place]
    }

    /// Draws the source of the links, and their type.
    fn draw_links(&mut self, id1: u64) {
        self.drawn.id1 = id1;
        self.drawn.link_type = self.choice.link_type(&mut self.random);
    }

    fn draw_id2(&mut self, existing: f64) {
        let Drawn { id1, link_type, .. } = self.drawn;
        self.drawn.id2 = self.choice.id2(&self.loaded, id1, link_type, existing, &mut self.random);
    }

    fn draw_multiget(&mut self) {
        let Drawn { id1, link_type, .. } = self.drawn;
        self.choice.id2s(&self.loaded, id1, link_type, Existing::GET, &mut self.random, &mut self.id2s);
    }

    /// Draws a list: sometimes one that continues where a full one ended.
    fn draw_list(&mut self) {
        self.drawn.tail = None;
        if self.history.happens(&mut self.random)
            && let Some((place, tail)) = self.tails.choose(&mut self.random)
        {
            let Tail { id1, link_type, time } = tail;
            self.drawn = Drawn { id1, link_type, tail: Some((place, time)), ..self.drawn };
            return;
        }
        let id1 = self.choice.link_read(&mut self.random);
        self.draw_links(id1);
    }

    /// Performs the drawn operation once and counts its writes; returns the rows it read or wrote.
    async fn attempt(&mut self) -> Result<u64, EngineError> {
        let Self { graph, data, now_ms, tally, .. } = self;
        let Drawn { kind, id1, link_type, id2, .. } = self.drawn;
        let key = LinkKey { link_type, id1, id2 };
        let link = Link { key, visible: true, version: 0, time: *now_ms, data };
        let node = Node { id: id1, node_type: NODE_TYPE, version: 1, time: (*now_ms / 1000) as u32, data };
        match kind {
            Kind::GetLinksList => self.list().await,
            Kind::GetNode => graph.get_node(id1, &mut |_| {}).await.map(u64::from),
            Kind::GetLinks => graph.get_links(id1, link_type, &self.id2s, &mut |_| {}).await,
            Kind::AddLink | Kind::UpdateLink => {
                let written =
                    if kind == Kind::AddLink { graph.add_link(&link).await? } else { graph.update_link(&link).await? };
                tally.link_written(written, data.len());
                Ok(1)
            }
            Kind::DeleteLink => graph.delete_link(key, *now_ms).await.map(u64::from),
            Kind::CountLinks => graph.count_links(id1, link_type).await.map(|_| 1),
            Kind::AddNode => {
                graph.add_node(&node).await?;
                tally.node_added(data.len());
                Ok(1)
            }
            Kind::UpdateNode => {
                let written = graph.update_node(&Node { version: 2, ..node }).await?;
                tally.node_updated(written);
                Ok(u64::from(written.there))
            }
            Kind::DeleteNode => {
                let written = graph.delete_node(id1).await?;
                tally.node_deleted(written);
                Ok(u64::from(written.there))
            }
        }
    }

    /// Lists, and remembers where a full list ended.
    async fn list(&mut self) -> Result<u64, EngineError> {
        let Drawn { id1, link_type, tail, .. } = self.drawn;
        let query = ListQuery {
            id1,
            link_type,
            from_time: 0,
            to_time: tail.map_or(i64::MAX as u64, |(_, time)| time),
            // The previous list has already shown the oldest link.
            offset: u64::from(tail.is_some()),
            limit: self.list_limit,
        };
        let mut oldest = 0;
        let rows = self.graph.get_links_list(&query, &mut |link| oldest = link.time).await?;
        let full = rows >= self.list_limit;
        match tail {
            Some((place, _)) => self.tails.went_on(place, full.then_some(oldest)),
            None if full => self.tails.remember(Tail { id1, link_type, time: oldest }, &mut self.random),
            None => {}
        }
        Ok(rows)
    }
}

impl<G: GraphStore> Worker for Requests<G> {
    fn draw(&mut self) -> Option<OpKind> {
        self.now_ms += 1;
        let kind = self.draw_kind();
        self.drawn.kind = kind;
        match kind {
            Kind::GetLinksList => self.draw_list(),
            Kind::GetLinks | Kind::CountLinks => {
                let id1 = self.choice.link_read(&mut self.random);
                self.draw_links(id1);
                if kind == Kind::GetLinks {
                    self.draw_multiget();
                }
            }
            Kind::AddLink | Kind::UpdateLink | Kind::DeleteLink => {
                let id1 = self.choice.link_write(&mut self.random);
                self.draw_links(id1);
                self.draw_id2(match kind {
                    Kind::AddLink => Existing::ADD,
                    Kind::UpdateLink => Existing::UPDATE,
                    _ => Existing::DELETE,
                });
                if kind != Kind::DeleteLink {
                    self.link_payload.fill(&mut self.random, &mut self.data);
                }
            }
            Kind::GetNode => self.drawn.id1 = self.choice.node_read(&mut self.random),
            Kind::UpdateNode => {
                self.drawn.id1 = self.choice.node_update(&mut self.random);
                self.node_payload.fill(&mut self.random, &mut self.data);
            }
            Kind::AddNode => self.node_payload.fill(&mut self.random, &mut self.data),
            Kind::DeleteNode => self.drawn.id1 = self.choice.node_delete(&mut self.random),
        }
        Some(kind as OpKind)
    }

    async fn perform(&mut self) -> Result<Op, EngineError> {
        // An error, or a future that is dropped, leaves the outcome in doubt.
        self.tally.begin(self.drawn.kind);
        let mut retries = 0;
        let op = loop {
            match self.attempt().await {
                Ok(rows) => break Op { rows, retries, failed: false },
                Err(error) if error.is_conflict() => {
                    if !self.retry.wait(retries + 1, &error).await {
                        break Op { rows: 0, retries, failed: true };
                    }
                    retries += 1;
                }
                // The session continues; the outcome of the operation stays in doubt.
                Err(EngineError::CutOff(_)) => return Ok(Op { rows: 0, retries, failed: true }),
                Err(error) => return Err(error),
            }
        };
        self.tally.known(self.drawn.kind);
        Ok(op)
    }

    #[inline]
    fn statements(&mut self) -> StatementCounts {
        self.graph.statements()
    }
}

#[cfg(test)]
mod tests;
