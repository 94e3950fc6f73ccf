//! run: drivers execute clients, each on its pace; a collector counts.

pub mod buckets;
pub mod cells;
mod choice;
mod counters;
pub mod descriptors;
pub mod driver;
mod loops;
pub mod pace;
mod poller;
pub mod stats;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod threads;
mod timers;
mod woken;

pub use choice::Driving;
