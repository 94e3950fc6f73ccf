//! LinkBench for rumba: Facebook's social graph of nodes and typed links, in the published variants 2011 and 2017 of
//! the benchmark.
//!
//! The port is the graph's own ten operations (`graph`), with one adapter per session family (`kv_graph`, `sql_graph`,
//! `document_graph`) and an oracle.
//! `load` writes the graph, `requests` is the operation mix, `tally` counts the writes, and `verify` checks the content
//! and the agreement of the tables.
//! `writer` passes writes on to the graph and records them in the ledger. After a kill, `recovered` looks for them
//! (`acid`).
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
mod writer;

use rumba_engine_api::engine::{Family, Schema};
use rumba_engine_api::setting::{SettingError, SettingInfo, Settings};
use rumba_engine_api::workload::{Bound, Workload};

pub use conformance::conformance;
pub use settings::MIX;

/// The LinkBench workload.
pub struct LinkBench;

/// The schema that LinkBench needs from an instance of a family, for any settings.
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
        rumba_workload_kit::FAMILIES
    }

    /// For documents, LinkBench runs without transactions if the server has none, as the published runs did. Each
    /// document is complete then, but a count may differ from its links, which verification reports.
    fn needs_transactions(&self, of: Family) -> bool {
        of != Family::Document
    }

    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(bound::LinkBenchBound::new(settings)?))
    }
}
