//! TPC-C with its settings taken.

use std::sync::Arc;

use rumba_core::engine::{Family, Schema, Session};
use rumba_core::error::EngineError;
use rumba_core::setting::{SettingError, Settings};
use rumba_core::worker::{Client, ClientAddress};
use rumba_core::workload::{Bound, Check, LoadStage, OpInfo, Short, State};

use crate::draw::Constants;
use crate::kv::{self, KvLoader, KvStore};
use crate::load::{IndexLoader, Loader, Progress, RowLoader};
use crate::scale::DISTRICTS;
use crate::settings::Config;
use crate::sql::{self, SqlLoader, SqlStore, create_tables};
use crate::tally::Tallies;
use crate::terminal::Terminal;

const fn op(name: &'static str, short: Option<Short>) -> OpInfo {
    OpInfo { name, short }
}

/// The mix, in the order of [`crate::terminal`]'s numbers.
const OPS: &[OpInfo] = &[
    op("new_order", Some(Short::new("no", 1))),
    op("payment", Some(Short::new("pay", 2))),
    op("order_status", Some(Short::new("os", 3))),
    op("delivery", Some(Short::new("dl", 4))),
    op("stock_level", Some(Short::new("sl", 5))),
    op("new_order_rolled_back", None),
];

/// The load's types of operations.
const LOAD_OPS: &[OpInfo] = &[
    op("load_items", None),
    op("load_warehouse", None),
    op("load_stock", None),
    op("load_customers", None),
    op("load_orders", None),
];

const STAGES: &[LoadStage] = &[
    LoadStage { name: "rows", parallel: true, ops: LOAD_OPS },
    LoadStage { name: "index", parallel: false, ops: &[op("build_index", None)] },
];

/// Refuses more terminals than the warehouses have.
fn refuse_too_many(config: &Config, at: ClientAddress) -> Result<(), EngineError> {
    let most = config.scale.warehouses * DISTRICTS;
    if !config.thinks || at.clients <= most {
        return Ok(());
    }
    let words = format!(
        "{} clients are more than the {most} terminals of {} warehouses: set warehouses = {}, or think = \"none\"",
        at.clients,
        config.scale.warehouses,
        at.clients.div_ceil(DISTRICTS)
    );
    Err(EngineError::failed("tpcc", words))
}

/// TPC-C with its settings taken, and what the clients of one database share.
pub struct TpcCBound {
    config: Config,
    progress: Arc<Progress>,
    tallies: Tallies,
}

impl TpcCBound {
    /// Takes the settings.
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        Ok(Self { config: Config::new(settings)?, progress: Arc::default(), tallies: Tallies::default() })
    }
}

impl Bound for TpcCBound {
    fn schema(&self, family: Family) -> Schema<'_> {
        if family == Family::KeyValue { Schema::KeyValue(&kv::SPACES) } else { Schema::BySession }
    }

    fn ops(&self) -> &'static [OpInfo] {
        OPS
    }

    fn load_stages(&self) -> &'static [LoadStage] {
        STAGES
    }

    fn expected_rows(&self) -> u64 {
        self.config.scale.rows()
    }

    fn expected_logical_bytes(&self) -> u64 {
        self.config.scale.logical_bytes()
    }

    fn conditions(&self) -> Vec<(String, String)> {
        let Constants { name_load, name_run, customer, item } = self.config.constants;
        let constants =
            format!("C of last names {name_load} loaded, {name_run} run; of customers {customer}; of items {item}");
        let mut conditions = vec![("tpcc_constants".to_owned(), constants)];
        let scale = self.config.scale;
        if !scale.is_specified() {
            let words = format!(
                "{} customers of a district and {} items; specified are 3000 and 100000",
                scale.customers, scale.items
            );
            conditions.push(("tpcc_scale".to_owned(), words));
        }
        let think =
            "no keying or think times: clients are not terminals, and tpmC is not bounded by 12.86 per warehouse";
        conditions.push(("tpcc_think".to_owned(), think.to_owned()));
        conditions
    }

    fn create_schema(&self, session: &mut Session) -> Result<(), EngineError> {
        match session {
            Session::Sql(session) => create_tables(&mut **session),
            Session::Kv(_) => Ok(()),
        }
    }

    fn loader(
        &self,
        stage: usize,
        session: Session,
        at: ClientAddress,
        seed: u64,
    ) -> Result<Box<dyn Client>, EngineError> {
        let loader = match session {
            Session::Sql(session) => Loader::Sql(SqlLoader::new(session)?),
            Session::Kv(session) => Loader::Kv(KvLoader::new(session)),
        };
        let progress = self.progress.clone();
        Ok(match stage {
            0 => Box::new(RowLoader::new(loader, &self.config, progress, at, seed)),
            _ => Box::new(IndexLoader::new(loader, progress)),
        })
    }

    fn logical_bytes(&self) -> u64 {
        let loaded = self.config.scale.logical_bytes();
        loaded.saturating_add_signed(self.tallies.sums().bytes())
    }

    fn state(&self) -> State {
        self.tallies.state()
    }

    fn restore(&self, state: &State) -> Result<(), EngineError> {
        self.tallies
            .restore(state)
            .map_err(|name| EngineError::failed("tpcc's state", format!("{name} is missing in it")))
    }

    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>, EngineError> {
        let (config, tally) = (&self.config, self.tallies.open());
        refuse_too_many(config, at)?;
        Ok(match session {
            Session::Sql(session) => {
                Box::new(Terminal::new(SqlStore::new(session, config.style)?, config, tally, at, seed))
            }
            Session::Kv(session) => Box::new(Terminal::new(KvStore::new(session, at.client), config, tally, at, seed)),
        })
    }

    fn verify(&self, session: Session) -> Result<Vec<Check>, EngineError> {
        let (scale, sums) = (&self.config.scale, &self.tallies.sums());
        match session {
            Session::Sql(session) => sql::verify(session, scale, sums),
            Session::Kv(session) => kv::verify(session, scale, sums),
        }
    }
}
