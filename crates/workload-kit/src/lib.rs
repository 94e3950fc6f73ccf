//! The shared parts of workloads:
//!
//! - streams of random numbers that depend only on the seed and the client,
//! - transactions over SQL and documents, with counts of their statements,
//! - retries after conflicts, with their number and pauses,
//! - tallies of acknowledged work, and the search for lost writes after a kill,
//! - conformance tests.
#![warn(missing_docs)]

pub mod conformance;
mod counted;
mod documents;
pub mod journal;
mod random;
mod retry;
pub mod tallies;
mod transactions;

pub use counted::CountedKv;
pub use documents::CountedDocuments;
pub use random::{Chance, Random, below, client_seed, stream_seed};
pub use retry::Retry;
pub use transactions::{Part, Together, Transactions};
