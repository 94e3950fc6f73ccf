//! The shared parts of workloads:
//!
//! - the mix of operations, and streams of random numbers that depend only on the seed and the client,
//! - transactions over SQL and documents, with counts of their statements,
//! - retries after conflicts, with their number and pauses,
//! - the ledger of acknowledged writes, and the search for lost ones after a kill,
//! - conformance tests.
#![warn(missing_docs)]

pub mod conformance;
mod counted;
mod documents;
pub mod ledger;
mod mix;
mod partition;
mod random;
mod retry;
mod transactions;

use rumba_engine_api::engine::Family;
use rumba_engine_api::sql::Dialect;

pub use counted::{CountedKv, End, keep_first};
pub use documents::{CountedDocuments, limited};
pub use mix::{Mix, shares};
pub use partition::{Padded, Partition};
pub use random::{Chance, Random, below, client_seed, share, stream_seed};
pub use retry::Retry;
pub use transactions::{Part, Together, Transactions, marked};

/// The families of sessions, for workloads that have an adapter for each.
pub const FAMILIES: &[Family] = &[
    Family::KeyValue,
    Family::Sql(Dialect::Sqlite),
    Family::Sql(Dialect::MySql),
    Family::Sql(Dialect::PostgreSql),
    Family::Document,
];
