//! Statistics over records: summaries, comparisons, claims, verdicts. Pure
//! functions from results to the plain values of [`rumba_core::comparison`];
//! no I/O, no clock, no chance (what is drawn is drawn from a fixed seed).

mod against;
mod charge;
pub mod claims;
mod remarks;
mod statistics;
pub mod steady;
mod summary;
#[cfg(test)]
mod testing;

pub use against::{LEVEL, RESAMPLES, compare};
pub(crate) use statistics::median;
pub use summary::summarise;
