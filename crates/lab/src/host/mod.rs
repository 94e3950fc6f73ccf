//! The host: the facts that are needed to trust a number, and the settings that spoil one.
//!
//! [`Facts::gather`] reads; [`Facts::conditions`] and [`Facts::warnings`] judge the facts; the caller prints.

pub mod block;
mod conditions;
mod cpus;
pub mod diskstats;
mod facts;
pub(crate) mod links;
mod memory_limit;
pub mod mounts;
pub mod parse;
pub(crate) mod plain;
pub mod processes;
mod warnings;

use std::path::Path;

pub(crate) use cpus::allowed_cpus;
pub(crate) use memory_limit::{memory_limit, usable_memory};
pub(crate) use processes::threads;

pub use facts::{Facts, Machine, Storage};

/// The text of a small file, trimmed; `None` when it is unreadable or empty.
fn text_of(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
