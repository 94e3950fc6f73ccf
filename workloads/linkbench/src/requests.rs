//! The operation mix: one client's stream.

use std::sync::Arc;

use rand::SeedableRng;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Chance, Mix, Random, Retry, client_seed, stream_seed};
use strum::VariantArray;

use crate::choice::{Choice, Graph};
use crate::distribution::payload::Payload;
use crate::graph::{GraphStore, Link, LinkKey, ListQuery, MULTIGET_MAX, NODE_TYPE, Node};
use crate::profile::{Existing, Kind};
use crate::settings::Config;
use crate::tails::{Tail, Tails};
use crate::writer::Writer;

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
    writer: Writer<G>,
    random: Random,
    mix: Mix<10>,
    loaded: Arc<Graph>,
    choice: Choice,
    link_payload: Payload,
    node_payload: Payload,
    history: Chance,
    list_limit: u64,
    tails: Tails,
    retry: Retry,
    /// The client's own clock: it ticks a millisecond per operation, so that the
    /// same seed writes the same rows.
    now_ms: u64,
    drawn: Drawn,
    data: Vec<u8>,
    id2s: Vec<u64>,
}

impl<G: GraphStore> Requests<G> {
    /// The client at this address, whose writes are in the ledger. Clients of one seed draw different streams.
    pub fn new(writer: Writer<G>, config: &Config, loaded: Arc<Graph>, at: ClientAddress, seed: u64) -> Self {
        let stream = client_seed(seed, at);
        let mut random = Random::seed_from_u64(stream);
        Self {
            writer,
            mix: Mix::new(&config.mix),
            loaded,
            choice: Choice::new(config),
            link_payload: Payload::new(&config.link, &mut random),
            node_payload: Payload::new(&config.node, &mut random),
            history: Chance::new(config.history),
            list_limit: config.list_limit,
            tails: Tails::default(),
            retry: Retry::new(config.max_retries, stream_seed(stream, 1)),
            now_ms: LOADED_AT_MS,
            drawn: Drawn { kind: Kind::GetNode, id1: 0, link_type: 0, id2: 0, tail: None },
            data: Vec::with_capacity(PAYLOAD),
            id2s: Vec::with_capacity(MULTIGET_MAX),
            random,
        }
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
        let id1 = self.choice.reads.id(&mut self.random);
        self.draw_links(id1);
    }

    /// Performs the drawn operation once; returns the rows it read or wrote.
    async fn attempt(&mut self) -> Result<u64> {
        let Self { writer, data, now_ms, .. } = self;
        let Drawn { kind, id1, link_type, id2, .. } = self.drawn;
        let key = LinkKey { link_type, id1, id2 };
        let link = Link { key, visible: true, version: 0, time: *now_ms, data };
        let node = Node { id: id1, node_type: NODE_TYPE, version: 1, time: (*now_ms / 1000) as u32, data };
        match kind {
            Kind::GetLinksList => self.list().await,
            Kind::GetNode => writer.graph.get_node(id1, &mut |_| {}).await.map(u64::from),
            Kind::GetLinks => writer.graph.get_links(id1, link_type, &self.id2s, &mut |_| {}).await,
            Kind::AddLink => writer.add_link(&link).await.map(|_| 1),
            Kind::UpdateLink => writer.update_link(&link).await.map(|_| 1),
            Kind::DeleteLink => writer.delete_link(key, *now_ms).await.map(u64::from),
            Kind::CountLinks => writer.graph.count_links(id1, link_type).await.map(|_| 1),
            Kind::AddNode => writer.add_node(&node).await.map(|_| 1),
            Kind::UpdateNode => {
                writer.update_node(&Node { version: 2, ..node }).await.map(|written| u64::from(written.there))
            }
            Kind::DeleteNode => writer.delete_node(id1).await.map(|written| u64::from(written.there)),
        }
    }

    /// Lists, and remembers where a full list ended.
    async fn list(&mut self) -> Result<u64> {
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
        let rows = self.writer.graph.get_links_list(&query, &mut |link| oldest = link.time).await?;
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
        let kind = Kind::VARIANTS[self.mix.draw(&mut self.random)];
        self.drawn.kind = kind;
        match kind {
            Kind::GetLinksList => self.draw_list(),
            Kind::GetLinks | Kind::CountLinks => {
                let id1 = self.choice.reads.id(&mut self.random);
                self.draw_links(id1);
                if kind == Kind::GetLinks {
                    self.draw_multiget();
                }
            }
            Kind::AddLink | Kind::UpdateLink | Kind::DeleteLink => {
                let id1 = self.choice.writes.id(&mut self.random);
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
            Kind::GetNode => self.drawn.id1 = self.choice.node_reads.id(&mut self.random),
            Kind::UpdateNode => {
                self.drawn.id1 = self.choice.node_updates.id(&mut self.random);
                self.node_payload.fill(&mut self.random, &mut self.data);
            }
            Kind::AddNode => self.node_payload.fill(&mut self.random, &mut self.data),
            Kind::DeleteNode => self.drawn.id1 = self.choice.node_deletes.id(&mut self.random),
        }
        Some(kind as OpKind)
    }

    async fn perform(&mut self) -> Result<Op> {
        let mut retries = 0;
        loop {
            match self.attempt().await {
                Ok(rows) => return Ok(Op { rows, retries, failed: false }),
                Err(error) => {
                    if !self.retry.operation(&mut retries, error).await? {
                        return Ok(Op { rows: 0, retries, failed: true });
                    }
                }
            }
        }
    }

    #[inline]
    fn statements(&mut self) -> StatementCounts {
        self.writer.graph.statements()
    }
}

#[cfg(test)]
mod tests;
