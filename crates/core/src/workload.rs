//! What a workload is: settings, a loader, an operation mix, a check of the data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{Family, Schema, Session};
use crate::error::EngineError;
use crate::setting::{SettingError, SettingInfo, Settings};
use crate::worker::{Client, ClientAddress};

/// One type of operation.
#[derive(Clone, Debug)]
pub struct OpInfo {
    /// Its name in records: `get_links_list`.
    pub name: &'static str,
    /// What it is called in the tables, which show the 99th percentile of the main operations: those that have one.
    pub short: Option<Short>,
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

/// One test of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Its name: `point-query`.
    pub name: String,
    /// The workload's settings in it.
    pub settings: Settings,
}

/// What an engine is called in a test of a suite, in records, tables and claims: `innodb/point-query`; by its own name
/// where there is no suite.
pub fn engine_in_test(engine: &str, test: Option<&str>) -> String {
    test.map_or_else(|| engine.to_owned(), |test| format!("{engine}/{test}"))
}

/// A workload: `linkbench`.
pub trait Workload: Send + Sync {
    /// The name in experiments.
    fn name(&self) -> &'static str;

    /// One line for `rumba workloads`.
    fn about(&self) -> &'static str;

    /// Its settings.
    fn settings(&self) -> &'static [SettingInfo];

    /// The families it has an adapter for, of SQL each dialect. Engines of others are refused when the
    /// experiment is read.
    fn families(&self) -> &'static [Family];

    /// The tests of a suite that these settings ask for, in order; none where the workload is one by itself. They run
    /// one after the other over what [`Workload::bind`] of the settings themselves loads.
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
#[derive(Clone, Copy, Debug)]
pub struct LoadStage {
    /// What it does: `rows`, `index`.
    pub name: &'static str,
    /// Whether several loaders share it; otherwise one does it.
    pub parallel: bool,
    /// Its types of operations; each operation is a batch of rows.
    pub ops: &'static [OpInfo],
}

/// What a workload counts of its data, by name, in the workload's own units. It
/// goes with the data from the process that loaded it to those that use it.
pub type State = BTreeMap<String, u64>;

/// A workload with its settings taken.
pub trait Bound: Send + Sync {
    /// What an instance of a family is to hold; asked for those of [`Workload::families`] alone.
    fn schema(&self, family: Family) -> Schema<'_>;

    /// The types of operations of its mix.
    fn ops(&self) -> &'static [OpInfo];

    /// The stages of its load, in order.
    fn load_stages(&self) -> &'static [LoadStage];

    /// About how many rows the load writes (its progress is shown against this).
    fn expected_rows(&self) -> u64;

    /// About how many bytes of keys and payloads the load writes, index entries
    /// included: what `space_amp` divides by until the loaders have counted them.
    fn expected_logical_bytes(&self) -> u64;

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

    /// Proves that the data is consistent after the run.
    ///
    /// # Errors
    /// Whatever the engine said; an inconsistency is not an error but a failed [`Check`].
    fn verify(&self, session: Session) -> Result<Vec<Check>, EngineError>;
}

/// One proven (or disproven) property of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The property: `every count equals its visible links`.
    pub name: String,
    /// How many things were looked at.
    pub examined: u64,
    /// How many of them broke the property.
    pub wrong: u64,
    /// The first few that did, in words.
    pub examples: Vec<String>,
}
