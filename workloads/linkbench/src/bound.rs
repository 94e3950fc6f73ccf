//! LinkBench with its settings taken.

use std::fs::File;
use std::sync::Arc;

use rumba_engine_api::acid::Acid;
use rumba_engine_api::check::Check;
use rumba_engine_api::document::DocumentSession;
use rumba_engine_api::engine::{Family, Schema, Session};
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::setting::{SettingError, Settings};
use rumba_engine_api::sql::SqlSession;
use rumba_engine_api::worker::{Client, ClientAddress, HostShare, block_on};
use rumba_engine_api::workload::{Bound, LoadStage, OpInfo, Ops, State};
use rumba_workload_kit::ledger::{RowCount, number_in};

use crate::choice::Graph;
use crate::conditions::{conditions, refuse_history_of_nothing};
use crate::document_graph::{self, DocumentGraph, DocumentLoader};
use crate::graph::{COUNT_BYTES, GraphLoad, GraphStore, entry_bytes, link_bytes, node_bytes};
use crate::kv_graph::KvGraph;
use crate::load::{IndexLoader, Progress, RowLoader, Work};
use crate::node_ids::{NextNodeId, NodeIds};
use crate::requests::Requests;
use crate::settings::Config;
use crate::sql_graph::{SqlGraph, SqlLoader};
use crate::sql_text::{self, Tables};
use crate::tally::{Tallies, Tally};
use crate::verify::{Expected, verify};
use crate::writer::Writer;

/// The mix, in the order of [`crate::profile::Kind`]; the abbreviations and
/// their order are those of the published tables.
const OPS: [OpInfo; 10] = [
    OpInfo::main("get_links_list", "gl", 4),
    OpInfo::main("get_node", "gn", 2),
    OpInfo::new("get_links"),
    OpInfo::new("add_link"),
    OpInfo::main("update_link", "ul", 3),
    OpInfo::new("delete_link"),
    OpInfo::new("count_links"),
    OpInfo::new("add_node"),
    OpInfo::main("update_node", "un", 1),
    OpInfo::new("delete_node"),
];

/// The operations of the stage that loads rows.
const ROWS: [OpInfo; 3] = [OpInfo::new("load_nodes"), OpInfo::new("load_links"), OpInfo::new("load_counts")];

/// The name in [`State`] of the first unused node id.
const NEXT_NODE: &str = "next_node";

/// LinkBench with its settings, and the state that the clients of one instance share.
pub struct LinkBenchBound {
    config: Arc<Config>,
    graph: Arc<Graph>,
    progress: Arc<Progress>,
    tallies: Arc<Tallies>,
    next_node: Arc<NextNodeId>,
}

impl LinkBenchBound {
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        let config = Arc::new(Config::new(settings)?);
        let graph = Arc::new(Graph::new(&config));
        refuse_history_of_nothing(settings, &config, &graph)?;
        Ok(Self {
            graph,
            progress: Arc::default(),
            tallies: Arc::new(Tallies::new(config.node.mean())),
            next_node: NextNodeId::new(config.end()),
            config,
        })
    }

    pub fn kv(&self, session: Box<dyn KvSession>, host: u32) -> KvGraph {
        KvGraph::new(session, NodeIds::new(self.next_node.clone(), host), self.config.index_during_load)
    }

    /// The graph over a session, with the statements of the mix.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn sql(&self, session: Box<dyn SqlSession>) -> Result<SqlGraph> {
        SqlGraph::client(session, self.config.profile.write)
    }

    pub fn documents(&self, session: Box<dyn DocumentSession>, host: u32) -> DocumentGraph {
        DocumentGraph::new(session, NodeIds::new(self.next_node.clone(), host))
    }

    fn requests<G: GraphStore + 'static>(
        &self,
        graph: G,
        at: ClientAddress,
        seed: u64,
        tally: Tally,
    ) -> Box<dyn Client> {
        Box::new(Requests::new(Writer::new(graph, tally), &self.config, self.graph.clone(), at, seed))
    }

    /// A client of the mix, which also appends its writes to the ledger's file if there is one.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn client_with(
        &self,
        session: Session,
        at: ClientAddress,
        seed: u64,
        file: Option<&Arc<File>>,
    ) -> Result<Box<dyn Client>> {
        let tally = self.tallies.open_with(file, at.client);
        Ok(match session {
            Session::Kv(session) => self.requests(self.kv(session, at.host), at, seed, tally),
            Session::Sql(session) => self.requests(self.sql(session)?, at, seed, tally),
            Session::Document(session) => self.requests(self.documents(session, at.host), at, seed, tally),
        })
    }

    /// Compares the tables with the expected content.
    pub fn prove(&self, session: Session, expected: &Expected) -> Result<Vec<Check>> {
        match session {
            Session::Kv(session) => block_on(verify(&mut self.kv(session, 0), expected)),
            Session::Sql(session) => {
                let mut graph = SqlGraph::verifier(session, self.config.profile.write)?;
                block_on(verify(&mut graph, expected))
            }
            Session::Document(session) => block_on(verify(&mut self.documents(session, 0), expected)),
        }
    }

    /// A loader's share of the work.
    fn work(&self, at: ClientAddress, seed: u64) -> Work {
        let (config, loaded) = (self.config.clone(), self.graph.clone());
        Work { config, loaded, progress: self.progress.clone(), tallies: self.tallies.clone(), at, seed }
    }

    /// The expected content: the loaded data plus the changes of this process's clients.
    pub fn expected(&self) -> Expected {
        let ((links, _), sums) = (self.graph.totals(), self.tallies.sums());
        Expected {
            link_types: self.config.link_types,
            links: RowCount {
                loaded: links,
                added: sums.links_added.cast_unsigned(),
                adds_in_doubt: sums.link_adds_in_doubt.cast_unsigned(),
                ..RowCount::default()
            },
            nodes: RowCount {
                loaded: self.config.ids,
                added: sums.nodes_added.cast_unsigned(),
                deleted: sums.nodes_deleted.cast_unsigned(),
                adds_in_doubt: sums.node_adds_in_doubt.cast_unsigned(),
                deletes_in_doubt: sums.node_deletes_in_doubt.cast_unsigned(),
            },
        }
    }
}

fn stage_loader<G: GraphLoad + 'static>(stage: usize, graph: G, work: Work) -> Box<dyn Client> {
    match stage {
        0 => Box::new(RowLoader::new(graph, work)),
        _ => Box::new(IndexLoader::new(graph, work)),
    }
}

impl Bound for LinkBenchBound {
    fn schema(&self, family: Family) -> Schema<'_> {
        crate::schema(family)
    }

    fn ops(&self) -> Ops {
        OPS.into()
    }

    fn load_stages(&self) -> Vec<LoadStage> {
        let mut stages = vec![LoadStage::new("rows", true, ROWS)];
        if !self.config.index_during_load {
            stages.push(LoadStage::new("index", true, [OpInfo::new("build_index")]));
        }
        stages
    }

    fn expected_rows(&self) -> u64 {
        let (links, counts) = self.graph.totals();
        self.config.ids + links + counts
    }

    fn expected_logical_bytes(&self) -> u64 {
        let (links, counts) = self.graph.totals();
        let (node, link) = (self.config.node.mean(), self.config.link.mean());
        let nodes_f = self.config.ids as f64 * (node_bytes(0) as f64 + node);
        let links_f = links as f64 * ((link_bytes(0) + entry_bytes(0)) as f64 + 2.0 * link);
        (nodes_f + links_f) as u64 + counts * COUNT_BYTES
    }

    fn conditions(&self) -> Vec<(String, String)> {
        conditions(&self.config, &self.graph)
    }

    fn create_schema(&self, session: &mut Session) -> Result<()> {
        let session = match session {
            Session::Kv(_) => return Ok(()),
            Session::Sql(session) => session,
            Session::Document(session) => {
                let index = self.config.index_during_load.then(document_graph::index);
                let mut all = document_graph::collections().into_iter().chain(index);
                return all.try_for_each(|command| session.run(command.get()));
            }
        };
        let text = sql_text::text(session.dialect())?;
        let options = session.table_options().to_owned();
        let (partitions, next_node) = (self.config.partitions, self.config.end());
        let tables = Tables { table_options: &options, partitions, next_node };
        for table in (text.schema)(tables) {
            session.run(&table)?;
        }
        if self.config.index_during_load {
            session.run(text.index)?;
        }
        Ok(())
    }

    fn loader(&self, stage: usize, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        Ok(match session {
            Session::Kv(session) => stage_loader(stage, self.kv(session, at.host), self.work(at, seed)),
            Session::Sql(session) => stage_loader(stage, SqlLoader::new(session)?, self.work(at, seed)),
            Session::Document(session) => stage_loader(stage, DocumentLoader::new(session), self.work(at, seed)),
        })
    }

    fn logical_bytes(&self) -> u64 {
        self.tallies.sums().bytes.max(0).cast_unsigned()
    }

    fn state(&self) -> State {
        let mut state = self.tallies.ledger.state();
        state.insert(NEXT_NODE.to_owned(), self.next_node.now());
        state
    }

    fn restore(&self, state: &State) -> Result<()> {
        self.next_node.set(number_in(state, NEXT_NODE)?);
        self.tallies.ledger.restore(state)
    }

    /// A database assigns the ids of new nodes, and [`NodeIds`] are separate for each host.
    fn partition(&self, share: HostShare) -> Result<(), &'static str> {
        self.progress.partition.set(share);
        Ok(())
    }

    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        self.client_with(session, at, seed, None)
    }

    fn verify(&self, session: Session) -> Result<Vec<Check>> {
        self.prove(session, &self.expected())
    }

    fn acid(&self) -> Option<&dyn Acid> {
        Some(self)
    }
}
