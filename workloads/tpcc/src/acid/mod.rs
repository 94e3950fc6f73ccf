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
use crate::store::Store;

/// The setting of the meetings. Each actor and each inspector has its own session, and stays on the thread that
/// requested it.
pub trait Lab: Sync {
    /// The store of its actors.
    type Store: Store;
    /// The inspector's type.
    type Inspector: Inspect;

    /// An actor, which performs transactions.
    fn actor(&self) -> Result<Actor<Self::Store>>;

    /// An inspector, which reads and changes rows by other means than the five transactions.
    fn inspector(&self) -> Result<Self::Inspector>;
}
