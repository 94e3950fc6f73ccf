//! TPC-C with its settings taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rumba_engine_api::acid::Acid;
use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Family, MostClients, Schema, Session};
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::KeySpace;
use rumba_engine_api::rate::Rate;
use rumba_engine_api::setting::{SettingError, Settings};
use rumba_engine_api::worker::{Client, ClientAddress, HostShare};
use rumba_engine_api::workload::{Bound, LeastClients, LoadStage, OpInfo, Ops, ResponseLimit, State};
use rumba_workload_kit::ledger::number_in;

use crate::data_set::DataSet;
use crate::draw::Constants;
use crate::kv::{self, KvLoader, KvStore};
use crate::load::{IndexLoader, Loader, Progress, RowLoader};
use crate::proof;
use crate::scale::DISTRICTS;
use crate::settings::Config;
use crate::sql::{self, SqlLoader, SqlStore, Texts, create_tables};
use crate::store::Store;
use crate::tally::{Tallies, Tally};
use crate::terminal::{NEW_ORDER, Terminal};

/// The mix, in the order of [`crate::terminal`]'s numbers.
const OPS: [OpInfo; 6] = [
    OpInfo::main("new_order", "no", 1),
    OpInfo::main("payment", "pay", 2),
    OpInfo::main("order_status", "os", 3),
    OpInfo::main("delivery", "dl", 4),
    OpInfo::main("stock_level", "sl", 5),
    OpInfo::undone("new_order_rolled_back"),
];

/// The response-time limit of each transaction for nine in ten, in seconds (5.2.5.7). For deliveries the specification
/// limits the terminal's answer and allows 80 s for the work; here both are one.
const LIMITS_S: [f64; 6] = [5.0, 5.0, 5.0, 80.0, 20.0, 5.0];

/// The maximum number of new orders per minute of a warehouse's ten terminals, in common use (4.2.2); `tpmC_percent` is
/// a percentage of it. It assumes a mix with 45% of new orders, and counts rolled-back ones.
/// A deck of 23 cards takes 476 s of keying and thinking on average (5.2.5.7). It has ten new orders, of which one in a
/// hundred is rolled back. With answers that take no time, 12.48 of them are committed, so terminals cannot exceed
/// 97.0% of this.
pub const TPMC_OF_WAREHOUSE: f64 = 12.86;

/// The load's types of operations.
const LOAD_OPS: [OpInfo; 5] = [
    OpInfo::new("load_items"),
    OpInfo::new("load_warehouse"),
    OpInfo::new("load_stock"),
    OpInfo::new("load_customers"),
    OpInfo::new("load_orders"),
];

/// TPC-C with its settings, and the state that the clients of one database share.
pub struct TpcCBound {
    /// The settings.
    pub config: Config,
    /// The spaces of all data sets, over keys and values.
    spaces: Vec<KeySpace>,
    /// The texts of each data set, over SQL.
    texts: Vec<Arc<Texts>>,
    progress: Arc<Progress>,
    /// The tallies of acknowledged work.
    pub tallies: Tallies,
    /// The number of clients so far, over all processes. Each client has a unique number, which is in the keys of its
    /// payments.
    opened: AtomicU32,
}

/// Whether terminals use the keying and think times of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// It keys and thinks where they say so.
    AsRequested,
    /// It does neither.
    Always,
}

impl Pacing {
    fn client<S: Store + 'static>(self, terminal: Terminal<S>) -> Box<dyn Client> {
        match self {
            Pacing::AsRequested => Box::new(terminal),
            Pacing::Always => Box::new(terminal.hurried()),
        }
    }
}

/// The name under which that number passes from one process to the next.
const CLIENTS: &str = "clients";

impl TpcCBound {
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        let config = Config::new(settings)?;
        let (spaces, tallies) = (kv::spaces(config.sets), Tallies::new(config.sets));
        let texts = DataSet::all(config.sets).map(|set| Arc::new(Texts::new(set))).collect();
        Ok(Self { config, spaces, texts, progress: Arc::default(), tallies, opened: AtomicU32::new(0) })
    }

    pub fn texts(&self, set: DataSet) -> Arc<Texts> {
        self.texts[set.number as usize].clone()
    }

    /// A client of the mix with this tally. For keys and values it has a number that no other client has had.
    pub fn client_with(
        &self,
        session: Session,
        at: ClientAddress,
        (number, hurry): (u32, Pacing),
        seed: u64,
        tally: Tally,
    ) -> Result<Box<dyn Client>> {
        let config = &self.config;
        let set = DataSet::of_client(at.client, config.sets);
        Ok(match session {
            Session::Sql(session) => {
                let mut store = SqlStore::new(session, self.texts(set), config.style)?;
                // A refused statement is known now, and not when a rare transaction needs it.
                if at.client == 0 {
                    store.prepare_all()?;
                }
                hurry.client(Terminal::new(store, config, tally, at, seed))
            }
            Session::Kv(session) => {
                hurry.client(Terminal::new(KvStore::new(session, set, number), config, tally, at, seed))
            }
            other => return Err(other.unserved("tpcc")),
        })
    }
}

impl Bound for TpcCBound {
    fn schema(&self, family: Family) -> Schema<'_> {
        if family == Family::KeyValue { Schema::KeyValue(&self.spaces) } else { Schema::BySession }
    }

    fn ops(&self) -> Ops {
        let limited = OPS.into_iter().zip(LIMITS_S);
        let mut ops: Vec<OpInfo> =
            limited.map(|(op, seconds)| op.with_limit(ResponseLimit { percent: 90.0, seconds })).collect();
        let most = TPMC_OF_WAREHOUSE * f64::from(self.config.sets * self.config.scale.warehouses);
        let rate = Rate { name: "tpmC".into(), most: self.config.thinks.then_some(most) };
        ops[NEW_ORDER].rate = Some(rate);
        ops.into()
    }

    fn load_stages(&self) -> Vec<LoadStage> {
        vec![LoadStage::new("rows", true, LOAD_OPS), LoadStage::new("index", true, [OpInfo::new("build_index")])]
    }

    fn expected_rows(&self) -> u64 {
        u64::from(self.config.sets) * self.config.scale.rows()
    }

    fn expected_logical_bytes(&self) -> u64 {
        u64::from(self.config.sets) * self.config.scale.logical_bytes()
    }

    /// As terminals there are ten for each warehouse.
    fn most_clients(&self) -> Option<MostClients> {
        let warehouses = self.config.sets.saturating_mul(self.config.scale.warehouses);
        self.config.thinks.then(|| MostClients {
            clients: warehouses.saturating_mul(DISTRICTS),
            why: format!(
                "with think = \"spec\" they are terminals, of which each of the {warehouses} warehouses has ten"
            ),
            remedy: "set a warehouse for every ten clients, or think = \"none\"".to_owned(),
        })
    }

    /// They take turns at the data sets ([`DataSet::of_client`]).
    fn least_clients(&self) -> Option<LeastClients> {
        let sets = self.config.sets;
        (sets > 1).then(|| LeastClients {
            clients: sets,
            why: format!("each of the {sets} data sets needs a client"),
            remedy: "divide the warehouses among fewer sets (data_sets, splits)".to_owned(),
        })
    }

    fn paces_itself(&self) -> Option<&'static str> {
        self.config.thinks.then_some("think = \"spec\"")
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
        if self.config.sets > 1 {
            let words = format!("{} sets of {} warehouses; clients take turns", self.config.sets, scale.warehouses);
            conditions.push(("tpcc_data_sets".to_owned(), words));
        }
        let think = match self.config.thinks {
            true => "keying and think times of 5.2.5.7: clients are terminals, ten of a warehouse",
            false => {
                "no keying or think times: clients are not terminals, and tpmC is not bounded by 12.86 per warehouse"
            }
        };
        conditions.push(("tpcc_think".to_owned(), think.to_owned()));
        conditions
    }

    fn create_schema(&self, session: &mut Session) -> Result<()> {
        match session {
            Session::Sql(session) => {
                // Known now, and not after the load.
                self.config.style.prepare(&mut **session)?;
                create_tables(&mut **session, self.config.sets)
            }
            _ => Ok(()),
        }
    }

    fn loader(&self, stage: usize, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        let loader = match session {
            Session::Sql(session) => Loader::Sql(SqlLoader::new(session, self.config.sets)?),
            Session::Kv(session) => Loader::Kv(KvLoader::new(session)),
            other => return Err(other.unserved("tpcc")),
        };
        let progress = self.progress.clone();
        Ok(match stage {
            0 => Box::new(RowLoader::new(loader, &self.config, progress, at, seed)),
            _ => Box::new(IndexLoader::new(loader, progress, at, seed)),
        })
    }

    fn logical_bytes(&self) -> u64 {
        let added: i64 = self.tallies.sums().map(|(_, sums)| sums.bytes()).sum();
        self.expected_logical_bytes().saturating_add_signed(added)
    }

    fn state(&self) -> State {
        let mut state = self.tallies.state();
        state.insert(CLIENTS.to_owned(), u64::from(self.opened.load(Relaxed)));
        state
    }

    fn restore(&self, state: &State) -> Result<()> {
        let clients = number_in(state, CLIENTS)?;
        self.tallies.restore(state)?;
        // A process that restores its own state already has as many clients.
        self.opened.fetch_max(u32::try_from(clients).unwrap_or(u32::MAX), Relaxed);
        Ok(())
    }

    /// Clients need no separate key ranges, because keys over SQL do not contain the client's number.
    fn partition(&self, share: HostShare) -> Result<(), &'static str> {
        self.progress.partition.set(share);
        Ok(())
    }

    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        let tally = self.tallies.open(DataSet::of_client(at.client, self.config.sets));
        self.client_with(session, at, (self.opened.fetch_add(1, Relaxed), Pacing::AsRequested), seed, tally)
    }

    fn verify(&self, session: Session) -> Result<Vec<Check>> {
        let (scale, sums) = (&self.config.scale, self.tallies.sums());
        match session {
            Session::Sql(session) => proof::verify(&mut sql::SqlRowReader::new(session), scale, sums),
            Session::Kv(session) => proof::verify(&mut kv::KvRows(session), scale, sums),
            other => Err(other.unserved("tpcc")),
        }
    }

    fn verifies_load(&self) -> bool {
        true
    }

    fn acid(&self) -> Option<&dyn Acid> {
        Some(self)
    }
}
