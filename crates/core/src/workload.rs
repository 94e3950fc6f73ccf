//! What a workload is: settings, a loader, an operation mix, a check of the data.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acid::Acid;
use crate::check::Check;
use crate::engine::{Family, MostClients, Schema, Session};
use crate::error::EngineError;
use crate::rate::Rate;
use crate::setting::{SettingError, SettingInfo, Settings};
use crate::worker::{Client, ClientAddress};

/// The condition by which the text of a user's script is known, whatever its file is called.
pub const SCRIPT_TEXT: &str = "script text";

/// One type of operation. Its name may exist only at run time: a script's.
#[derive(Clone, Debug, PartialEq)]
pub struct OpInfo {
    /// Its name in records: `get_links_list`.
    pub name: Cow<'static, str>,
    /// What it is called in the tables, which show the 99th percentile of the main operations: those that have one.
    pub short: Option<Short>,
    /// What its rate is called, where the workload's specification reports one.
    pub rate: Option<Rate>,
    /// How long it may take, where the workload's specification says so.
    pub limit: Option<ResponseLimit>,
    /// Whether it is undone on purpose, as the workload's specification wants some to be: it has times and a count of its
    /// own, and is in no rate and no cost per operation.
    pub is_undone: bool,
}

impl OpInfo {
    /// An operation that is known by its name alone.
    pub const fn new(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), short: None, rate: None, limit: None, is_undone: false }
    }

    /// One that is known by its name alone, and undone on purpose.
    pub const fn undone(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), short: None, rate: None, limit: None, is_undone: true }
    }

    /// A main operation: its abbreviation, and its column's place among the others, from 1.
    pub const fn main(name: &'static str, short: &'static str, column: u32) -> Self {
        let short = Some(Short::new(short, column));
        Self { name: Cow::Borrowed(name), short, rate: None, limit: None, is_undone: false }
    }

    /// The same, with the rate that is reported of it.
    #[must_use]
    pub fn with_rate(self, rate: Rate) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// The same, with the time that it may take.
    #[must_use]
    pub fn with_limit(self, limit: ResponseLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// The types of operations of a mix, or of a stage of a load.
pub type Ops = Arc<[OpInfo]>;

/// How long a type of operation may take: so many percent are to succeed with a response time within so many seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseLimit {
    /// Of 100 operations, how many must be within it.
    pub percent: f64,
    /// The longest response time, seconds, that keeps it.
    pub seconds: f64,
}

/// What tables call a type of operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Short {
    /// The abbreviation, that of the published tables where there are such: `gl`.
    pub name: Cow<'static, str>,
    /// Its column's place among those of its kind, from 1.
    pub column: u32,
}

impl Short {
    /// The abbreviation `name`, shown in this place.
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
    /// Whether it needs data of its own, loaded by these settings; else tests run over what all of them share.
    pub loads: bool,
}

/// What an engine is called in a test of a suite, in records, tables and claims: `innodb/point-query`; by its own name
/// where there is no suite.
pub fn engine_in_test(engine: &str, test: Option<&str>) -> String {
    test.map_or_else(|| engine.to_owned(), |test| format!("{engine}/{test}"))
}

/// Schema, loader and operation mix under a name: `linkbench`.
pub trait Workload: Send + Sync {
    /// The name in experiments, letters and digits: `[workload.NAME]`.
    fn name(&self) -> &'static str;

    /// One line for `rumba workloads`.
    fn about(&self) -> &'static str;

    /// The settings that it has whatever else is said, in the order of the help.
    fn settings(&self) -> &'static [SettingInfo];

    /// Settings that these make known beside [`Workload::settings`], such as the options that a script declares. What is
    /// given for them is among these too.
    ///
    /// # Errors
    /// A setting that is neither of both, with the nearest that is; that those which make others known do not.
    fn declared(&self, _given: &Settings) -> Result<Vec<SettingInfo<String>>, SettingError> {
        Ok(Vec::new())
    }

    /// The families it has an adapter for, of SQL each dialect. Engines of others are refused when the
    /// experiment is read.
    fn families(&self) -> &'static [Family];

    /// Whether it writes more than one key, or reads and writes several, between begin and commit. One that does not also
    /// serves engines that have no transactions. It may be otherwise with each family.
    fn needs_transactions(&self, _of: Family) -> bool {
        true
    }

    /// The tests of a suite that these settings ask for, in order; none where the workload is one by itself. They run
    /// one after the other over what [`Workload::bind`] of the settings themselves loads, but those that load for
    /// themselves, of about as many bytes.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    fn tests(&self, _settings: &Settings) -> Result<Vec<Test>, SettingError> {
        Ok(Vec::new())
    }

    /// Takes the settings: all that follows is fixed by them and by the seed.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError>;
}

/// One stage of the load; stages follow each other.
#[derive(Clone, Debug)]
pub struct LoadStage {
    /// What it does: `rows`, `index`.
    pub name: Cow<'static, str>,
    /// Whether several loaders share it; otherwise one does it.
    pub parallel: bool,
    /// Its types of operations; each operation is a batch of rows.
    pub ops: Ops,
}

impl LoadStage {
    /// A stage that all loaders share, or that one does.
    pub fn new(name: &'static str, parallel: bool, ops: impl Into<Ops>) -> Self {
        Self { name: Cow::Borrowed(name), parallel, ops: ops.into() }
    }
}

/// What a workload counts of its data, by name, in the workload's own units. It
/// goes with the data from the process that loaded it to those that use it.
pub type State = BTreeMap<String, u64>;

/// How many clients at work reach all of a workload's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastClients {
    /// The fewest that do.
    pub clients: u32,
    /// Why fewer do not.
    pub why: String,
    /// What would make fewer enough.
    pub remedy: String,
}

impl LeastClients {
    /// Why so many clients at work are too few, and what to do; `None` if they are not.
    pub fn refusal(&self, at_work: u32) -> Option<(String, String)> {
        if at_work >= self.clients {
            return None;
        }
        let problem = format!("with {at_work} at work a part of the data would lie idle: {}", self.why);
        Some((problem, format!("{}, or have {} or more at work", self.remedy, self.clients)))
    }
}

/// A workload with its settings taken.
pub trait Bound: Send + Sync {
    /// What an instance of a family is to hold; asked for those of [`Workload::families`] alone.
    fn schema(&self, family: Family) -> Schema<'_>;

    /// The types of operations of its mix.
    fn ops(&self) -> Ops;

    /// The stages of its load in order: one begins when all loaders of the one before have ended.
    fn load_stages(&self) -> Vec<LoadStage>;

    /// About how many rows the load writes (its progress is shown against this).
    fn expected_rows(&self) -> u64;

    /// About how many bytes of keys and payloads the load writes, index entries
    /// included: what `space_amp` divides by until the loaders have counted them.
    fn expected_logical_bytes(&self) -> u64;

    /// How many clients of the mix its data is enough for; `None` where nothing bounds them. Asked when the experiment is
    /// read, so that nobody loads for hours to be refused.
    fn most_clients(&self) -> Option<MostClients> {
        None
    }

    /// How many clients of the mix must be at work for all of its data to be worked on; `None` where one is enough. Asked when
    /// the experiment is read: figures of data that nobody touches would be told as figures of all of it.
    fn least_clients(&self) -> Option<LeastClients> {
        None
    }

    /// The setting by which clients wait by themselves between operations, which an open loop's arrivals would overrule; `None`
    /// where they do not.
    fn paces_itself(&self) -> Option<&'static str> {
        None
    }

    /// Facts that a reader of the numbers must know: degree cap, deviations.
    fn conditions(&self) -> Vec<(String, String)>;

    /// Creates what [`Schema::BySession`] stands for; nothing for other families.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn create_schema(&self, session: &mut Session) -> Result<(), EngineError>;

    /// A loader of a stage; it ends when the stage's work is used up. The
    /// stage's work is shared by all loaders made from this value.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn loader(
        &self,
        stage: usize,
        session: Session,
        at: ClientAddress,
        seed: u64,
    ) -> Result<Box<dyn Client>, EngineError>;

    /// Bytes of keys and payloads in the database now, index entries included:
    /// what loaders and clients have inserted less what they have removed, not
    /// what the engine made of it.
    fn logical_bytes(&self) -> u64;

    /// Why [`Bound::logical_bytes`] does not hold now, if it does not: the workload does not track what was written since.
    fn logical_bytes_unknown(&self) -> Option<&'static str> {
        None
    }

    /// What this process knows of the database beyond the settings: what loaders
    /// have counted, by name. No loader or client is at work.
    fn state(&self) -> State;

    /// Takes over what another process's [`Bound::state`] has said, before the
    /// first client: the database is a copy of the one that it was said of.
    ///
    /// # Errors
    /// What is missing in it.
    fn restore(&self, state: &State) -> Result<(), EngineError>;

    /// A client of the operation mix.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>, EngineError>;

    /// Proves that the data is consistent after the run; and after the load, if [`Bound::verifies_load`].
    ///
    /// # Errors
    /// Whatever the engine said; an inconsistency is not an error but a failed [`Check`].
    fn verify(&self, session: Session) -> Result<Vec<Check>, EngineError>;

    /// Whether [`Bound::verify`] is to prove what a load has left too, before the first client works on it. A matter of
    /// what it costs: it reads all data once more.
    fn verifies_load(&self) -> bool {
        false
    }

    /// Its proof of what transactions are promised, if it has one.
    fn acid(&self) -> Option<&dyn Acid> {
        None
    }
}
