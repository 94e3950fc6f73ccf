//! run: drivers execute clients at their pace; a collector counts.

mod active;
pub mod buckets;
pub mod cells;
mod choice;
pub mod conflicts;
mod counters;
pub mod cut;
pub mod descriptors;
pub mod driver;
#[cfg(test)]
mod end_tests;
pub mod group;

pub mod in_flight;
mod lateness;
mod loops;
pub mod pace;
mod poller;
pub mod queue;
pub mod room;
pub mod stats;
pub mod stop;
pub mod tail;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod threads;
pub mod timers;
mod woken;

pub use choice::Driving;
