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

pub use counted::{CountedKv, End, keep_first};
pub use documents::CountedDocuments;
pub use mix::{Mix, shares};
pub use partition::Partition;
pub use random::{Chance, Random, below, client_seed, stream_seed};
pub use retry::Retry;
pub use transactions::{Part, Together, Transactions};
