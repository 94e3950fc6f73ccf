//! The lab takes an experiment's file to its results. It knows engines and workloads only as traits.
//!
//! [`spec`] → [`plan`] → [`prepare`] → [`provision`] → [`trial`] (load, settle, run, drain, verify) → [`store`].
//! [`runner`] takes an experiment through these steps, and [`conduct`] runs each trial in a separate process.

pub mod builds;
pub mod conduct;
mod engine_files;
pub mod fleet;
pub mod harness;
pub mod host;
pub mod keeper;
pub mod kept;
pub mod leftovers;
pub mod limits;
pub mod meter;
mod parity;
pub mod plan;
pub mod prepare;
pub mod probe;
pub mod provision;
pub mod registry;
pub mod run;
pub mod runner;
pub mod spec;
mod stall;
pub mod store;
pub mod trial;

/// The examples of the documents, compiled and run as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/adding-an-engine.md")]
    mod engine {}
    #[doc = include_str!("../../../docs/adding-a-workload.md")]
    mod workload {}
}
