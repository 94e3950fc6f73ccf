//! LinkBench with its settings taken.

use std::sync::Arc;

use rumba_core::engine::{EngineError, Session};
use rumba_core::kv::KeySpace;
use rumba_core::setting::{SettingError, Settings};
use rumba_core::worker::{Client, ClientAddress};
use rumba_core::workload::{Bound, Check, LoadStage, OpInfo};

use crate::choice::Graph;
use crate::distribution::degree;
use crate::encoding::SPACES;
use crate::graph::{COUNT_BYTES, entry_bytes, link_bytes, node_bytes};
use crate::kv_graph::KvGraph;
use crate::load::{IndexLoader, Progress, RowLoader};
use crate::node_ids::{NextNodeId, NodeIds};
use crate::requests::Requests;
use crate::settings::{Config, DegreeCap};
use crate::sql_graph::SqlGraph;
use crate::sql_text;
use crate::verify::verify;
use crate::wait::wait;

const fn op(name: &'static str, short: Option<&'static str>) -> OpInfo {
    OpInfo { name, short }
}

/// The mix, in the order of [`crate::profile::Kind::ALL`]; the abbreviations are
/// those of the published tables.
const OPS: &[OpInfo] = &[
    op("get_links_list", Some("gl")),
    op("get_node", Some("gn")),
    op("get_links", None),
    op("add_link", None),
    op("update_link", Some("ul")),
    op("delete_link", None),
    op("count_links", None),
    op("add_node", None),
    op("update_node", Some("un")),
    op("delete_node", None),
];

const ROWS: LoadStage = LoadStage {
    name: "rows",
    parallel: true,
    ops: &[op("load_nodes", None), op("load_links", None), op("load_counts", None)],
};
const INDEX: LoadStage = LoadStage { name: "index", parallel: true, ops: &[op("build_index", None)] };

/// LinkBench with its settings taken, and what the clients of one instance share.
pub struct LinkBenchBound {
    config: Arc<Config>,
    graph: Arc<Graph>,
    progress: Arc<Progress>,
    next_node: Arc<NextNodeId>,
}

impl LinkBenchBound {
    /// Takes the settings.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        let config = Arc::new(Config::new(settings)?);
        Ok(Self {
            graph: Arc::new(Graph::new(&config)),
            progress: Arc::default(),
            next_node: NextNodeId::new(config.end()),
            config,
        })
    }

    fn kv(&self, session: Box<dyn rumba_core::kv::KvSession>, host: u32) -> KvGraph {
        KvGraph::new(session, NodeIds::new(self.next_node.clone(), host), self.config.index_during_load)
    }

    fn sql(
        &self,
        session: Box<dyn rumba_core::sql::SqlSession>,
        statements: &[sql_text::Sql],
    ) -> Result<SqlGraph, EngineError> {
        SqlGraph::new(session, self.config.profile.write, &[statements])
    }

    fn stage_loader<G: crate::graph::GraphLoad + 'static>(&self, stage: usize, graph: G, seed: u64) -> Box<dyn Client> {
        let (config, progress) = (self.config.clone(), self.progress.clone());
        match stage {
            0 => Box::new(RowLoader::new(graph, config, self.graph.clone(), progress, seed)),
            _ => Box::new(IndexLoader::new(graph, config, progress, seed)),
        }
    }

    /// What the cap is and where it comes from, for a reader of the numbers.
    fn cap_in_words(&self) -> String {
        let largest = degree::largest(self.config.profile.degrees);
        let ids = self.config.ids;
        match self.config.degree_cap {
            DegreeCap::None => format!("none; the largest id has {} links", self.graph.largest()),
            DegreeCap::Given(links) => format!("{links} links as set (the published table goes to {largest})"),
            DegreeCap::Auto(links) => format!(
                "{links} links: the table's {largest} scaled by {ids} / 1e9 ids, at least 100, so that one id has \
                 no larger share of the graph than at a billion ids"
            ),
        }
    }
}

impl Bound for LinkBenchBound {
    fn spaces(&self) -> Vec<KeySpace> {
        SPACES.to_vec()
    }

    fn ops(&self) -> &'static [OpInfo] {
        OPS
    }

    fn load_stages(&self) -> &'static [LoadStage] {
        if self.config.index_during_load { &[ROWS] } else { &[ROWS, INDEX] }
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
        let (links, _) = self.graph.totals();
        let config = &self.config;
        let index = if config.index_during_load { "kept during the load" } else { "built after the load" };
        let per_id = links as f64 / config.ids as f64;
        [
            ("profile", config.profile.name.to_owned()),
            ("ids", format!("{} ({} to {})", config.ids, config.first, config.end() - 1)),
            ("degree cap", self.cap_in_words()),
            ("links", format!("{links} loaded, {per_id:.2} per id, at most {} for one id", self.graph.largest())),
            ("index id1_type", index.to_owned()),
            ("list limit", config.list_limit.to_string()),
            ("motif length", format!("{} bytes", config.link.motif_length)),
            ("clock", "rows carry a clock of their own: loaded up to 2017-12-01, then 1 ms per operation".to_owned()),
        ]
        .map(|(name, value)| (format!("linkbench {name}"), value))
        .into()
    }

    fn create_schema(&self, session: &mut Session) -> Result<(), EngineError> {
        let Session::Sql(session) = session else { return Ok(()) };
        let text = sql_text::text(session.dialect())?;
        session.run(text.schema)?;
        if self.config.index_during_load {
            session.run(text.index)?;
        }
        Ok(())
    }

    fn loader(
        &self,
        stage: usize,
        session: Session,
        at: ClientAddress,
        seed: u64,
    ) -> Result<Box<dyn Client>, EngineError> {
        Ok(match session {
            Session::Kv(session) => self.stage_loader(stage, self.kv(session, at.host), seed),
            Session::Sql(session) => self.stage_loader(stage, self.sql(session, sql_text::LOAD)?, seed),
        })
    }

    fn logical_bytes(&self) -> u64 {
        self.progress.logical_bytes()
    }

    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>, EngineError> {
        let (config, loaded) = (&self.config, self.graph.clone());
        Ok(match session {
            Session::Kv(session) => Box::new(Requests::new(self.kv(session, at.host), config, loaded, at, seed)),
            Session::Sql(session) => {
                let graph = self.sql(session, sql_text::MIX)?;
                Box::new(Requests::new(graph, config, loaded, at, seed))
            }
        })
    }

    fn verify(&self, session: Session) -> Result<Vec<Check>, EngineError> {
        let types = self.config.link_types;
        match session {
            Session::Kv(session) => wait(verify(&mut self.kv(session, 0), types)),
            Session::Sql(session) => wait(verify(&mut self.sql(session, sql_text::SCANS)?, types)),
        }
    }
}
