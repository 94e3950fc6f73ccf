//! rumba's words as types and traits: what an engine is, what a workload is,
//! how a client's stream of operations runs, and what a record holds.
//!
//! Nothing here does I/O. Engines and workloads depend on this crate alone;
//! the lab drives them through these traits; the report reads these records.
#![deny(missing_docs)]

pub mod acid;
pub mod bson;
pub mod build;
pub mod check;
pub mod claim;
pub mod comparison;
pub mod conflict;
pub mod counted;
pub mod document;
pub mod engine;
pub mod error;
pub mod event;
pub mod gate;
pub mod history;
pub mod kv;
pub mod limits;
pub mod memory;
pub mod metric;
pub mod pair;
pub mod parity;
pub mod phase;
pub mod printable;
pub mod rate;
pub mod ratio;
pub mod record;
pub mod results;
pub mod server;
pub mod setting;
pub mod sql;
pub mod starts;
pub mod statements;
pub mod units;
pub mod value;
pub mod wait;
pub mod warning;
pub mod worker;
pub mod workload;

/// The known name nearest to a misspelt one, if any is near enough to suggest.
///
/// Similarity is Jaro–Winkler; below 0.75 a suggestion would only confuse.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
