//! What workloads share: streams of random numbers that depend on the seed and on who draws alone, transactions over documents and
//! SQL, what counts statements, and how often and after which pause one that conflicted is tried again.
#![warn(missing_docs)]

mod counted;
mod documents;
mod random;
mod retry;
mod transactions;

pub use counted::CountedKv;
pub use documents::CountedDocuments;
pub use random::{Chance, Random, below, client_seed, stream_seed};
pub use retry::Retry;
pub use transactions::Transactions;
