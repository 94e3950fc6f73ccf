//! A Slurm cluster of three hosts on this machine.

/// The program that runs a script on it.
pub const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/three-hosts");
