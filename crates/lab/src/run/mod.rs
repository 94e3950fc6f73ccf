//! run: clients perform operations, each on its pace; a collector counts.

pub mod buckets;
pub mod cells;
pub mod driver;
pub mod pace;
pub mod stats;
