//! Compare: statistics over records. Pure functions from results to the plain
//! values of [`rumba_core::comparison`]; no I/O, no clock, no chance (the
//! bootstrap draws from a fixed seed).

mod against;
mod charge;
mod remarks;
mod statistics;
mod summary;
#[cfg(test)]
pub(crate) mod testing;

pub use against::{LEVEL, RESAMPLES, compare};
pub(crate) use statistics::median;
pub use summary::summarise;
