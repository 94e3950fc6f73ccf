//! fleet: the clients of a trial on several hosts.
//!
//! The trial's process coordinates ([`Fleet`]): it keeps the server, the meters and the verification. Each client host
//! has an agent ([`agent::serve`]), which runs its share of the clients with the drivers of [`crate::run`]. Once for each
//! interval, the trial asks all agents for their counts and adds them. The sums are exactly those of one process,
//! because the agents send counts by bucket.
//!
//! `rumba run` holds the listener and starts the agents ([`Gate`]); each trial inherits the listener.

pub mod agent;
mod clients;
pub mod counts;
mod gate;
mod hosts;
mod orders;
mod signs;

pub(crate) use clients::held;
pub use clients::{FleetMade, Phase};
pub use gate::{Door, Gate, GateError, job_line};
pub use hosts::Fleet;
pub use orders::Role;
