//! Where a transaction can be made to stand still, or to end otherwise than it would: for the tests of clause 3. Clients
//! of the mix have none of this but a look at an empty option.

use rumba_core::error::EngineError;

/// A place in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A new order has read the price of an item: its cents. Where all are read at once, that of the first.
    Price,
    /// A delivery has looked for the oldest order of a district, which is told; what it found, or 0.
    Oldest(u32),
    /// An order status has read a customer's last order: its number, or 0.
    Newest,
    /// All is done but the commit.
    End,
    /// A new order has looked for an item that does not exist, and all is done but the rollback (2.4.2.3).
    Rollback,
}

/// What a transaction is to do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// To go on.
    GoOn,
    /// To read the same again.
    Again,
    /// To roll back, at the end.
    RollBack,
}

/// What a transaction asks at each point; it stands still until it is answered.
pub type Stop = Box<dyn FnMut(Point, i64) -> Word + Send>;

/// The stops of a store: none, but in a test.
#[derive(Default)]
pub struct Stops(Option<Stop>);

impl Stops {
    /// Asks at every point from now on.
    pub fn set(&mut self, stop: Stop) {
        self.0 = Some(stop);
    }

    /// Whether anything is asked.
    pub fn are_set(&self) -> bool {
        self.0.is_some()
    }

    /// Whether what was just read is to be read again.
    pub fn again(&mut self, point: Point, seen: i64) -> bool {
        self.0.as_mut().is_some_and(|stop| stop(point, seen) == Word::Again)
    }

    /// What becomes of a transaction that would be committed.
    pub fn end<T>(&mut self, done: Result<T, EngineError>) -> Result<T, EngineError> {
        let word = self.0.as_mut().filter(|_| done.is_ok()).map(|stop| stop(Point::End, 0));
        if word == Some(Word::RollBack) { Err(rolled_back()) } else { done }
    }
}

const ROLLED_BACK: &str = "a test of clause 3";

/// That a transaction was rolled back because its test wants it so.
fn rolled_back() -> EngineError {
    EngineError::failed(ROLLED_BACK, "rolled back")
}

/// Whether it was.
pub fn is_rolled_back(error: &EngineError) -> bool {
    matches!(error, EngineError::Failed { call, .. } if *call == ROLLED_BACK)
}
