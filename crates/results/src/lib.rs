//! Stored and reported data: records and events of trials, metrics, warnings and comparisons.
//!
//! This crate does no I/O. The lab writes these records; statistics and reports read them. No engine, workload or
//! protocol depends on it.
#![deny(missing_docs)]

pub mod arrivals;
mod baseline;
pub mod build;
pub mod charged;
pub mod claim;
pub mod client_steps;
mod clients_in_words;
pub mod comparability;
pub mod comparison;
pub mod condition;
pub mod counted;
pub mod course;
pub mod detection;
mod distinct;
pub mod engine_name;
pub mod engine_samples;
pub mod event;
pub mod figure;
pub mod fleet;
pub mod gate;
pub mod headline;
pub mod history;
pub mod host_cpu;
pub mod metric;
pub mod pair;
mod percentiles;
pub mod phase;
pub mod prices;
pub mod rate;
pub mod ratio;
pub mod record;
pub mod remark;
pub mod results;
pub mod samples;
pub mod search;
pub mod spent;
pub mod starts;
pub mod statements;
pub mod suspension;
pub mod tally;
pub mod waits;
pub mod warning;
pub mod written;

pub use distinct::{distinct, entry};
