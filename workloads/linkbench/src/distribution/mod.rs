//! The random distributions of LinkBench. Everything is O(1) in the number of ids: no table grows with the graph.

pub mod degree;
pub mod payload;
pub mod shuffle;
pub mod zipf;
