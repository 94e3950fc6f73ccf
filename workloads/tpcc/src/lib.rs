//! TPC-C for rumba, by revision 5.11 of the specification of the Transaction Processing Performance Council.
//! It has nine tables, five transactions in their mix, and the twelve consistency conditions, which check the data
//! after every run.
//!
//! - `draw` makes the inputs of transactions; `store` is the port, with an adapter for SQL (`sql`) and one for keys and
//!   values (`kv`).
//! - `acid` makes transactions meet, and looks for them after a kill.
//! - `conformance` compares the adapters with `oracle`, the tables in memory.
//! - `load` fills the tables in the pieces of `chunk`.
//! - `terminal` is a client of the mix, with the think times of `thoughts`.
//! - `tally` counts the acknowledged work; verification checks the tables against it and against each other.
//!
//! Clauses are those of the specification.
#![warn(missing_docs)]

mod acid;
mod actor;
mod bound;
mod chunk;
mod conformance;
mod content;
mod data_set;
mod deck;
mod draw;
mod entry;
mod kv;
mod load;
mod names;
mod oracle;
mod proof;
mod rules;
mod scale;
mod settings;
mod sql;
mod stage;
mod stop;
mod store;
mod tables;
mod tally;
mod terminal;
mod thoughts;

pub use conformance::{conformance, schema};
use rumba_engine_api::engine::Family;
use rumba_engine_api::setting::{SettingError, SettingInfo, Settings};
use rumba_engine_api::sql::Dialect;
use rumba_engine_api::workload::{Bound, Test, Workload};

const FAMILIES: &[Family] =
    &[Family::KeyValue, Family::Sql(Dialect::Sqlite), Family::Sql(Dialect::MySql), Family::Sql(Dialect::PostgreSql)];

/// The TPC-C workload.
pub struct TpcC;

impl Workload for TpcC {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn about(&self) -> &'static str {
        "TPC-C 5.11: orders, payments and deliveries of a wholesaler, its twelve consistency conditions proven after each run"
    }

    fn settings(&self) -> &'static [SettingInfo] {
        settings::SETTINGS
    }

    fn families(&self) -> &'static [Family] {
        FAMILIES
    }

    fn tests(&self, settings: &Settings) -> Result<Vec<Test>, SettingError> {
        settings::splits(settings)
    }

    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(bound::TpcCBound::new(settings)?))
    }
}
