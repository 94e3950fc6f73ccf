//! Conflicts that cause a transaction to be retried; each is reported to the counter on the client's thread.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::{Conflict, EngineError};

/// Counts conflicts. It is called on the client's thread for each conflict, and must neither allocate nor wait.
pub trait CountConflicts {
    /// Counts a retry of a transaction for this reason.
    fn count(&self, conflict: Conflict);
}

thread_local! {
    static COUNTER: RefCell<Option<Arc<dyn CountConflicts>>> = const { RefCell::new(None) };
}

/// Counts conflicts of the current thread's clients until the guard is dropped.
#[must_use = "it counts until this is dropped"]
pub fn count_with(counter: Arc<dyn CountConflicts>) -> Counting {
    Counting { before: COUNTER.replace(Some(counter)) }
}

/// A guard for a thread whose conflicts are counted; dropping it restores the previous counter.
pub struct Counting {
    before: Option<Arc<dyn CountConflicts>>,
}

impl Drop for Counting {
    fn drop(&mut self) {
        COUNTER.replace(self.before.take());
    }
}

/// Counts a retry of a transaction for this error.
pub fn tried_again(error: &EngineError) {
    COUNTER.with_borrow(|counter| {
        if let Some(counter) = counter {
            counter.count(Conflict::of(error));
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct ConflictRecorder(Mutex<Vec<&'static str>>);

    impl CountConflicts for ConflictRecorder {
        fn count(&self, conflict: Conflict) {
            self.0.lock().expect("no thread panicked").push(conflict.why);
        }
    }

    #[test]
    fn conflicts_are_received_while_a_counter_is_active() {
        let received = Arc::<ConflictRecorder>::default();
        tried_again(&EngineError::conflict("before"));
        {
            let _counting = count_with(received.clone());
            tried_again(&EngineError::conflict("deadlock"));
            tried_again(&EngineError::CutOff("restarted"));
        }
        tried_again(&EngineError::conflict("after"));
        assert_eq!(*received.0.lock().expect("no thread panicked"), ["deadlock", "connection lost"]);
    }
}
