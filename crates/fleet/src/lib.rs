//! Clients on several hosts. A coordinator on the instance's host directs one agent on each client host, over TCP.
//!
//! This crate has the connection: frames with bounds, the token, the ranks, the clocks, and the detection of lost hosts.
//! It knows no workload and no count. The lab defines what requests and answers say.
//!
//! - An agent dials the coordinator and introduces itself ([`Hello`]). The coordinator welcomes it or refuses it with a
//!   reason.
//! - The coordinator sends requests, and the agent answers each once, in order. An agent may send notices in between.
//! - Both sides send a sign of life each half second. Silence of [`SILENCE`] or a closed connection means that the other
//!   side is lost.
//! - All times of an agent are by its own monotonic clock. The coordinator knows the offset from the best of
//!   [`PINGS`] pings.

#![deny(missing_docs)]

mod agent;
mod clock;
mod coordinator;
mod error;
mod frame;
mod link;
mod message;
mod token;

pub use agent::{Agent, Dialled, Incoming, dial, dial_again};
pub use clock::{ClockOffset, MonotonicClock};
pub use coordinator::{Arrival, Coordinator, Peer, Received, Terms};
pub use error::FleetError;
pub use frame::MOST_BYTES;
pub use link::SILENCE;
pub use message::{HostFacts, VERSION};
pub use token::{TOKEN_VARIABLE, Token};

/// How many pings measure a clock's offset.
pub const PINGS: u32 = 20;

#[cfg(test)]
mod tests;
