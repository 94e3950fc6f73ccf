//! The load over documents: batches, each one transaction if the server has transactions.

use rumba_engine_api::bson::Documents;
use rumba_engine_api::document::DocumentSession;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::CountedDocuments;

use super::schema::{self, COUNTS, LINKS, NODES, number};
use crate::graph::{GraphLoad, IndexRange, IndexStep, Link, LinkCount, Node};

/// The adapter of the load.
pub struct DocumentLoader {
    session: CountedDocuments,
    nodes: Documents,
    links: Documents,
    counts: Documents,
}

impl DocumentLoader {
    /// A loader over `session`.
    pub fn new(session: Box<dyn DocumentSession>) -> Self {
        let [nodes, links, counts] = Default::default();
        Self { session: CountedDocuments::new(session), nodes, links, counts }
    }

    async fn load(&mut self) -> Result<()> {
        for (into, documents) in [(NODES, &self.nodes), (LINKS, &self.links), (COUNTS, &self.counts)] {
            if documents.is_empty() {
                continue;
            }
            self.session.add(into, documents).await?;
        }
        Ok(())
    }
}

impl GraphLoad for DocumentLoader {
    fn stage_node(&mut self, node: &Node<'_>) {
        self.nodes.push(|of| {
            of.int("_id", number(node.id));
            schema::put_node(of, node);
        });
    }

    fn stage_link(&mut self, link: &Link<'_>) {
        self.links.push(|of| {
            of.binary("_id", &schema::link_id(link.key));
            schema::put_link_key(of, link.key);
            schema::put_link_change(of, link);
        });
    }

    fn stage_count(&mut self, count: &LinkCount) {
        self.counts.push(|of| schema::put_count(of, count));
    }

    async fn load_staged(&mut self) -> Result<()> {
        if self.nodes.is_empty() && self.links.is_empty() && self.counts.is_empty() {
            return Ok(());
        }
        self.session.begin().await?;
        let loaded = self.load().await;
        self.session.end(loaded).await
    }

    fn clear_staged(&mut self) {
        [&mut self.nodes, &mut self.links, &mut self.counts].into_iter().for_each(Documents::clear);
    }

    async fn build_index(&mut self, _range: IndexRange, _rows: usize) -> Result<IndexStep> {
        self.session.run(schema::index().get())?;
        Ok(IndexStep::default())
    }

    fn builds_index_at_once(&self) -> bool {
        true
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}
