//! Points where a test of clause 3 can make a transaction pause or end differently. Clients of the mix only check an
//! empty option.

use rumba_engine_api::error::{EngineError, Result};

/// A place in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A new order has read the price of an item: its cents. If all items are read at once, the price of the first.
    Price,
    /// A delivery has looked for the oldest order of the given district: the order's number, or 0.
    Oldest(u32),
    /// An order status has read a customer's last order: its number, or 0.
    Newest,
    /// All is done but the commit.
    End,
    /// A new order has looked for a missing item, and everything is done except the rollback (2.4.2.3).
    Rollback,
}

/// The action of a transaction at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Continue.
    GoOn,
    /// Read the same again.
    Again,
    RollBack,
}

/// The callback at each point; the transaction pauses until it returns.
pub type Stop = Box<dyn FnMut(Point, i64) -> Word + Send>;

/// The stops of a store; set only by tests.
#[derive(Default)]
pub struct Stops(Option<Stop>);

impl Stops {
    /// Calls this at every point from now on.
    pub fn set(&mut self, stop: Stop) {
        self.0 = Some(stop);
    }

    /// Whether a callback is set.
    pub fn are_set(&self) -> bool {
        self.0.is_some()
    }

    /// Whether to read the same again.
    pub fn again(&mut self, point: Point, seen: i64) -> bool {
        self.0.as_mut().is_some_and(|stop| stop(point, seen) == Word::Again)
    }

    /// The outcome of a transaction that would be committed.
    pub fn end<T>(&mut self, done: Result<T>) -> Result<T> {
        let word = self.0.as_mut().filter(|_| done.is_ok()).map(|stop| stop(Point::End, 0));
        if word == Some(Word::RollBack) { Err(rolled_back()) } else { done }
    }
}

const ROLLED_BACK: &str = "a test of clause 3";

fn rolled_back() -> EngineError {
    EngineError::failed(ROLLED_BACK, "rolled back")
}

/// Whether it was.
pub fn is_rolled_back(error: &EngineError) -> bool {
    matches!(error, EngineError::Failed { call, .. } if *call == ROLLED_BACK)
}
