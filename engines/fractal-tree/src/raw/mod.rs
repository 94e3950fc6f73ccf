//! Safe handles for the library. All `unsafe` of this crate is in this folder; callers see bytes, numbers and
//! [`rumba_engine_api::error::EngineError`]s.

mod environment;
mod ffi;
mod files;
mod library;
mod probe;
mod session;
mod upsert;

pub use environment::{Commit, Environment, EnvironmentOptions, TreeOptions};
pub use library::{Library, install};
pub use session::{Lock, Transactions};
