//! What workloads share: streams of random numbers that depend on the seed and on who draws alone, transactions over SQL and
//! documents, what counts statements, how often and after which pause one that conflicted is tried again, what clients were
//! told is done, which of it is missing after a kill, and what conformance tests do alike.
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
