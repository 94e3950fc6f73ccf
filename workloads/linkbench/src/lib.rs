//! LinkBench for rumba: Facebook's social graph of nodes and typed links, in the
//! two published variants of 2011 and 2017.
//!
//! The port is the graph's own ten operations (`graph`), with one adapter per
//! session family (`kv_graph`, `sql_graph`, `document_graph`) and an oracle. `load` writes the
//! graph, `requests` is the operation mix, `tally` counts what was written, and
//! `verify` proves that it is there and that the tables agree; of what clients were
//! told before a kill there is a `journal`, which `recovered` looks for (`acid`).
#![warn(missing_docs)]

mod acid;
mod bound;
mod choice;
mod conditions;
mod conformance;
mod distribution;
mod document_graph;
mod encoding;
mod graph;
mod hash;
mod journal;
mod kv_graph;
mod load;
mod node_ids;
mod oracle;
mod profile;
mod recovered;
mod requests;
mod settings;
mod sql_graph;
mod sql_stage;
mod sql_text;
mod tails;
mod tally;
mod verify;

use rumba_core::engine::{Family, Schema};
use rumba_core::setting::{SettingError, SettingInfo, Settings};
use rumba_core::sql::Dialect;
use rumba_core::workload::{Bound, Workload};

pub use conformance::conformance;

const FAMILIES: &[Family] = &[
    Family::KeyValue,
    Family::Sql(Dialect::Sqlite),
    Family::Sql(Dialect::MySql),
    Family::Sql(Dialect::PostgreSql),
    Family::Document,
];

/// The LinkBench workload.
pub struct LinkBench;

/// What LinkBench needs an instance of a family to hold, whatever its settings.
pub fn schema(family: Family) -> Schema<'static> {
    match family {
        Family::KeyValue => Schema::KeyValue(&encoding::SPACES),
        _ => Schema::BySession,
    }
}

impl Workload for LinkBench {
    fn name(&self) -> &'static str {
        "linkbench"
    }

    fn about(&self) -> &'static str {
        "a social graph: nodes, typed links and their counts, read and written as Facebook did in 2011 and 2017"
    }

    fn settings(&self) -> &'static [SettingInfo] {
        settings::SETTINGS
    }

    fn families(&self) -> &'static [Family] {
        FAMILIES
    }

    /// Over documents it does without where a server has none, as the published runs did: each document is whole, and a count
    /// may be apart from the links that it counts, which the proof then finds.
    fn needs_transactions(&self, of: Family) -> bool {
        of != Family::Document
    }

    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(bound::LinkBenchBound::new(settings)?))
    }
}
