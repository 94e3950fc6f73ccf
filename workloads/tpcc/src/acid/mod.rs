//! Tests of the transactions' promises: atomicity (clause 3.2), isolation (3.4), and which acknowledged transactions
//! survive a kill of the database (3.5.3).

mod inspect;
mod isolation;
mod labs;
mod meeting;
mod recovered;
#[cfg(test)]
mod tests;
mod traces;

pub use inspect::{Inspect, Line, Order};
use isolation::isolation;
use recovered::recovered;

use rumba_engine_api::error::Result;

use crate::actor::Actor;

/// The setting of the meetings. Each actor and each inspector has its own session, and stays on the thread that
/// requested it.
pub struct Lab<'a, S, I> {
    /// Makes an actor, which performs transactions.
    actor: &'a (dyn Fn() -> Result<Actor<S>> + Sync),
    /// Makes an inspector, which reads and changes rows by other means than the five transactions.
    inspector: &'a (dyn Fn() -> Result<I> + Sync),
}
