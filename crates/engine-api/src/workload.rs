//! The interface of a workload: settings, a loader, an operation mix, a check of the data.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acid::Acid;
use crate::check::Check;
use crate::engine::{Family, MostClients, Schema, Session};
use crate::error::Result;
use crate::rate::Rate;
use crate::setting::{SettingError, SettingInfo, Settings};
use crate::worker::{Client, ClientAddress, HostShare};

/// The condition with a user's script text, which identifies it under any file name.
pub const SCRIPT_TEXT: &str = "script text";

/// One type of operation. Its name may be known only at run time, as for a script's.
#[derive(Clone, Debug, PartialEq)]
pub struct OpInfo {
    /// Its name in records: `get_links_list`.
    pub name: Cow<'static, str>,
    /// The short name of a main operation in tables, which show its 99th percentile; absent for all others.
    pub short: Option<Short>,
    /// The name of its rate, if the workload's specification defines one.
    pub rate: Option<Rate>,
    /// Its time limit, if the workload's specification sets one.
    pub limit: Option<ResponseLimit>,
    /// Whether it is rolled back on purpose, as the workload's specification requires. It has its own times and count,
    /// and counts in no rate and no cost per operation.
    pub is_undone: bool,
}

impl OpInfo {
    /// An operation with only a name.
    pub const fn new(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), short: None, rate: None, limit: None, is_undone: false }
    }

    /// An operation with only a name that is rolled back on purpose.
    pub const fn undone(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), short: None, rate: None, limit: None, is_undone: true }
    }

    /// A main operation: its abbreviation, and the position of its column, from 1.
    pub const fn main(name: &'static str, short: &'static str, column: u32) -> Self {
        let short = Some(Short::new(short, column));
        Self { name: Cow::Borrowed(name), short, rate: None, limit: None, is_undone: false }
    }

    /// The same, with its time limit.
    #[must_use]
    pub fn with_limit(self, limit: ResponseLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// The types of operations of a mix, or of a stage of a load.
pub type Ops = Arc<[OpInfo]>;

/// The time limit of a type of operation: a percentage must succeed with a response time within this many seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseLimit {
    /// The required percent of operations within the limit.
    pub percent: f64,
    /// The longest response time within the limit, seconds.
    pub seconds: f64,
}

/// The short name of a type of operation in tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Short {
    /// The abbreviation, as in the published tables if there is one: `gl`.
    pub name: Cow<'static, str>,
    /// The position of its column among those of its kind, from 1.
    pub column: u32,
}

impl Short {
    /// The abbreviation `name`, shown in this position.
    pub const fn new(name: &'static str, column: u32) -> Self {
        Self { name: Cow::Borrowed(name), column }
    }
}

/// One test of a suite: the same data, other operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Its name: `point-query`.
    pub name: String,
    /// The workload's settings in it.
    pub settings: Settings,
    /// Whether it loads separate data with these settings; otherwise it runs over the data that all tests share.
    pub loads: bool,
}

/// The name of an engine in a test of a suite, in records, tables and claims: `innodb/point-query`. Without a suite it
/// is the engine's own name.
pub fn engine_in_test(engine: &str, test: Option<&str>) -> String {
    test.map_or_else(|| engine.to_owned(), |test| format!("{engine}/{test}"))
}

/// Schema, loader and operation mix under a name: `linkbench`.
pub trait Workload: Send + Sync {
    /// The name in experiments, letters and digits: `[workload.NAME]`.
    fn name(&self) -> &'static str;

    /// One line for `rumba workloads`.
    fn about(&self) -> &'static str;

    /// The settings that it always has, in the order of the help.
    fn settings(&self) -> &'static [SettingInfo];

    /// Additional settings that the given ones define, such as the options that a script declares. `_given` contains
    /// their values too.
    ///
    /// # Errors
    /// A setting that is in neither set, with the nearest known one; or a failure of the defining settings, for example
    /// an unreadable script.
    fn declared(&self, _given: &Settings) -> Result<Vec<SettingInfo<String>>, SettingError> {
        Ok(Vec::new())
    }

    /// The families for which it has an adapter, with each SQL dialect listed. Engines of other families are refused
    /// when the experiment is read.
    fn families(&self) -> &'static [Family];

    /// Whether it writes more than one key, or reads and writes several, between begin and commit. If not, it also runs
    /// on engines without transactions. The answer may depend on the family.
    fn needs_transactions(&self, _of: Family) -> bool {
        true
    }

    /// The tests of a suite that these settings select, in order; empty if the workload is not a suite. They run one
    /// after the other over the data that [`Workload::bind`] of the settings loads. Tests that load separate data load
    /// about as many bytes.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    fn tests(&self, _settings: &Settings) -> Result<Vec<Test>, SettingError> {
        Ok(Vec::new())
    }

    /// Binds the settings: together with the seed they determine everything that follows.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError>;
}

/// One stage of the load; stages follow each other.
#[derive(Clone, Debug)]
pub struct LoadStage {
    /// The stage's task: `rows`, `index`.
    pub name: Cow<'static, str>,
    /// Whether several loaders share it; otherwise one loader runs it.
    pub parallel: bool,
    /// Its types of operations; each operation is a batch of rows.
    pub ops: Ops,
}

impl LoadStage {
    /// A stage shared by all loaders, or run by one.
    pub fn new(name: &'static str, parallel: bool, ops: impl Into<Ops>) -> Self {
        Self { name: Cow::Borrowed(name), parallel, ops: ops.into() }
    }
}

/// Counts of a workload's data, by name, in the workload's own units. The loading process hands them with the data to
/// the processes that use it.
pub type State = BTreeMap<String, u64>;

/// The fewest working clients that reach all of a workload's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastClients {
    /// The fewest working clients.
    pub clients: u32,
    /// The reason.
    pub why: String,
    /// How to make fewer clients enough.
    pub remedy: String,
}

impl LeastClients {
    /// The reason why this number of working clients is too small, and the remedy; `None` if it is not.
    pub fn refusal(&self, at_work: u32) -> Option<(String, String)> {
        if at_work >= self.clients {
            return None;
        }
        let problem = format!("{at_work} at work would use only a part of the data: {}", self.why);
        Some((problem, format!("{}, or use at least {} at a time", self.remedy, self.clients)))
    }
}

/// A workload with its settings.
pub trait Bound: Send + Sync {
    /// The schema of an instance of a family; called only for those of [`Workload::families`].
    fn schema(&self, family: Family) -> Schema<'_>;

    /// The types of operations of its mix.
    fn ops(&self) -> Ops;

    /// The stages of its load in order: one begins when all loaders of the one before have ended.
    fn load_stages(&self) -> Vec<LoadStage>;

    /// The approximate number of rows that the load writes, for its progress.
    fn expected_rows(&self) -> u64;

    /// The approximate bytes of keys and payloads that the load writes, index entries included. `space_amp` uses it
    /// until the loaders have counted them.
    fn expected_logical_bytes(&self) -> u64;

    /// The most clients of the mix that its data supports; `None` for no limit. Checked when the experiment is read, so
    /// that a long load is not refused at its end.
    fn most_clients(&self) -> Option<MostClients> {
        None
    }

    /// The fewest clients of the mix that work on all of its data; `None` if one is enough. Checked when the experiment
    /// is read, because results would otherwise count data that no client touches.
    fn least_clients(&self) -> Option<LeastClients> {
        None
    }

    /// The setting by which clients pause between operations, which is incompatible with an open loop's arrivals;
    /// `None` if they do not pause.
    fn paces_itself(&self) -> Option<&'static str> {
        None
    }

    /// Facts that a reader of the numbers must know: degree cap, deviations.
    fn conditions(&self) -> Vec<(String, String)>;

    /// Creates what [`Schema::BySession`] stands for; nothing for other families.
    fn create_schema(&self, session: &mut Session) -> Result<()>;

    /// A loader of a stage; it ends when the stage's work is used up. The
    /// stage's work is shared by all loaders made from this value.
    fn loader(&self, stage: usize, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>>;

    /// Bytes of keys and payloads in the database now, index entries included: inserted bytes less removed bytes,
    /// regardless of the engine's storage format.
    fn logical_bytes(&self) -> u64;

    /// The reason why [`Bound::logical_bytes`] is not valid now, if it is not: the workload does not track later
    /// writes.
    fn logical_bytes_unknown(&self) -> Option<&'static str> {
        None
    }

    /// Totals so far of the workload's own counters, of all loaders and clients of this process; empty if it has none.
    /// They only grow.
    fn counted(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// This process's knowledge of the database beyond the settings: counts from the loaders, by name. No loader or
    /// client is at work.
    fn state(&self) -> State;

    /// Takes over the [`Bound::state`] of another process before the first client starts. The database must be a copy
    /// of that process's database.
    ///
    /// # Errors
    /// The missing part.
    fn restore(&self, state: &State) -> Result<()>;

    /// Limits this process to one host's share: loaders and clients of the other hosts work in other processes. Numbers
    /// that clients of one process count together, such as those of new rows, are then divided among the hosts. Called
    /// before the first loader or client. The sum over all hosts of what [`Bound::state`] has grown by is the state of
    /// the data.
    ///
    /// # Errors
    /// Why the work cannot be divided.
    fn partition(&self, _share: HostShare) -> Result<(), &'static str> {
        Err("its clients count together in one process what they write")
    }

    /// A client of the operation mix.
    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>>;

    /// Proves that the data is consistent after the run; and after the load, if [`Bound::verifies_load`].
    ///
    /// # Errors
    /// Any error from the engine; an inconsistency is not an error but a failed [`Check`].
    fn verify(&self, session: Session) -> Result<Vec<Check>>;

    /// Whether [`Bound::verify`] also checks the loaded data before the first client uses it. It depends on the cost,
    /// because all data is read again.
    fn verifies_load(&self) -> bool {
        false
    }

    /// Its test of transaction guarantees, if it has one.
    fn acid(&self) -> Option<&dyn Acid> {
        None
    }
}
