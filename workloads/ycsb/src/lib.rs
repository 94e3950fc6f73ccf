//! The core workloads A to F of YCSB, the Yahoo! Cloud Serving Benchmark: reads, updates, inserts, scans and
//! read-modify-writes of records of ten fields.
//!
//! `stream` draws a client's operations, with `choice` of the record; `store` is what a database does with them, with an
//! adapter for keys and values (`kv_store`, `record`), one for SQL (`sql_store`, `sql_text`) and one for documents
//! (`document_store`), each held against an `oracle` by `conformance`. `value` makes fields that say who wrote them, of
//! `lengths` that are drawn; `tally` and `watched` remember what was acknowledged, `short_scans` which scans returned less
//! than they asked for, and `verify` holds the table against both; of what clients were told before a kill there is a
//! `journal`, which `recovered` holds against what is left.
#![warn(missing_docs)]

mod bound;
mod choice;
mod conditions;
mod conformance;
mod document_store;
mod inserted;
mod journal;
mod keys;
mod kv_store;
mod lengths;
mod load;
mod oracle;
mod profile;
mod record;
mod recovered;
mod settings;
mod short_scans;
mod sql_store;
mod sql_text;
mod store;
mod stream;
mod tally;
mod value;
mod verify;
mod watched;
mod zipf;

use rumba_core::engine::{Family, Schema};
use rumba_core::setting::{SettingError, SettingInfo, Settings};
use rumba_core::sql::Dialect;
use rumba_core::workload::{Bound, Test, Workload};

pub use conformance::conformance;

const FAMILIES: &[Family] = &[
    Family::KeyValue,
    Family::Sql(Dialect::Sqlite),
    Family::Sql(Dialect::MySql),
    Family::Sql(Dialect::PostgreSql),
    Family::Document,
];

/// The YCSB workload.
pub struct Ycsb;

/// What YCSB needs an instance of a family to hold, whatever its settings.
pub fn schema(family: Family) -> Schema<'static> {
    if family == Family::KeyValue { Schema::KeyValue(&kv_store::SPACES) } else { Schema::BySession }
}

impl Workload for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn about(&self) -> &'static str {
        "the core workloads A to F of YCSB: reads, updates, inserts, scans and read-modify-writes of records by their key"
    }

    fn settings(&self) -> &'static [SettingInfo] {
        settings::SETTINGS
    }

    fn families(&self) -> &'static [Family] {
        FAMILIES
    }

    /// Every operation writes one record.
    fn needs_transactions(&self, _of: Family) -> bool {
        false
    }

    fn tests(&self, settings: &Settings) -> Result<Vec<Test>, SettingError> {
        settings::tests(settings)
    }

    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(bound::YcsbBound::new(settings)?))
    }
}
