//! Statistics over records: summaries, comparisons, claims, verdicts. Pure functions from results to the plain values
//! of [`rumba_results::comparison`], without I/O, clock or true randomness (draws use a fixed seed).

mod against;
mod alike;
mod charge;
pub mod claims;
mod conditions;
mod detection;
mod disturbed;
mod exact;
mod gate;
mod history;
mod planning;
mod ratios;
mod relative;
mod remarks;
pub mod same_engine;
mod scaling;
mod search;
mod sides;
mod statistics;
pub mod steady;
mod student;
mod summary;
#[cfg(test)]
mod testing;
mod validity;
mod welch;
mod written;

pub use against::compare;
pub use detection::detection;
pub use gate::{Drift, Found, Gate, Gated};
pub use history::{Run, history, last_step};
pub use ratios::{LEAST_REPEATS, Tested, p_greater, test};
pub use rumba_results::comparison::Summary;
pub use search::{MOST_PROBES, Next, is_same_search, next, probe, searches};
pub use sides::compare_sides;
pub use summary::{rows, summarise};
