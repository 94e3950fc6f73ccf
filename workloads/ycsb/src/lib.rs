//! The core workloads A to F of YCSB, the Yahoo! Cloud Serving Benchmark: reads, updates, inserts, scans and
//! read-modify-writes of records of ten fields.
//!
//! - `stream` draws a client's operations, with `choice` of the record.
//! - `store` is the port, with adapters for keys and values (`kv_store`, `record`), SQL (`sql_store`, `sql_text`) and
//!   documents (`document_store`). `conformance` compares each with an `oracle`.
//! - `value` makes fields that identify their author, with lengths drawn by `lengths`.
//! - `tally` and `watched` remember acknowledged writes; `short_scans` remembers scans that returned fewer records than
//!   requested. `verify` checks the table against them.
//! - After a kill, `recovered` compares the ledger's file with the remaining data.
#![warn(missing_docs)]

mod bound;
mod choice;
mod conditions;
mod conformance;
mod document_store;
mod inserted;
mod keys;
mod kv_store;
mod lengths;
mod load;
mod oracle;
mod profile;
mod record;
mod recovered;
mod requests;
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

use rumba_engine_api::engine::{Family, Schema};
use rumba_engine_api::setting::{SettingError, SettingInfo, Settings};
use rumba_engine_api::workload::{Bound, Test, Workload};

pub use conformance::conformance;

/// The YCSB workload.
pub struct Ycsb;

/// The schema that YCSB needs from an instance of a family, for any settings.
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
        rumba_workload_kit::FAMILIES
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
