//! What transactions are promised, put to the test: clause 3.2 (they are whole), 3.4 (they stand apart), and what of those
//! that were acknowledged is there after the database was killed (3.5.3).

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

use rumba_core::error::EngineError;

use crate::actor::Actor;
use crate::store::Store;

/// Where transactions are made to meet: each actor and each inspector has a session of its own, and stays on the thread
/// that asked for it.
pub trait Lab: Sync {
    /// The store of its actors.
    type Store: Store;
    /// Who looks.
    type Inspector: Inspect;

    /// Somebody who performs transactions.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn actor(&self) -> Result<Actor<Self::Store>, EngineError>;

    /// Somebody who looks at rows, and changes them by other means than the five transactions.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn inspector(&self) -> Result<Self::Inspector, EngineError>;
}
