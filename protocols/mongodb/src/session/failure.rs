//! Converts server errors for workers.

use std::sync::atomic::Ordering::Relaxed;

use rumba_engine_api::error::EngineError;

use super::MongoCounts;
use crate::codec::reply::Labels;
use crate::error::{code, error_code};

/// The frequent errors: a conflict with another transaction, or a duplicate key. They occur on the load path, so no
/// memory is allocated.
pub(super) fn usual(number: i32, labels: Labels, counts: &MongoCounts) -> Option<EngineError> {
    let code = error_code(number);
    let (why, counter) = match number {
        code::DUPLICATE_KEY | code::DUPLICATE_KEY_ON_UPDATE => return Some(EngineError::Duplicate(code)),
        code::WRITE_CONFLICT => ("write conflict", &counts.write_conflicts),
        code::LOCK_TIMEOUT => ("lock timeout", &counts.lock_timeouts),
        code::SNAPSHOT_TOO_OLD | code::SNAPSHOT_UNAVAILABLE => ("snapshot not available", &counts.transient_errors),
        // For a single write, which was undone: the cache has no space for it at the moment.
        code::TEMPORARILY_UNAVAILABLE => ("temporarily unavailable", &counts.transient_errors),
        code::NO_SUCH_TRANSACTION if labels.transient => ("ended by the server", &counts.transient_errors),
        _ if labels.transient => ("transient error", &counts.transient_errors),
        _ => return None,
    };
    counter.fetch_add(1, Relaxed);
    Some(EngineError::Conflict { why, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_distinguished_from_permanent_errors() {
        let counts = MongoCounts::default();
        let of = |number, transient| usual(number, Labels { transient, ..Labels::default() }, &counts);
        let conflict = |number, transient| of(number, transient).is_some_and(|error| error.is_conflict());
        assert!(conflict(112, false) && conflict(112, true) && conflict(24, true) && conflict(246, true));
        assert!(conflict(365, false), "of a single write, which has no label");
        assert!(conflict(251, true) && !conflict(251, false), "a number that was never given is a mistake");
        assert!(conflict(1, true) && !conflict(1, false));
        assert_eq!(
            of(11000, true),
            Some(EngineError::Duplicate(error_code(11000))),
            "it is there after a rollback too"
        );
        assert_eq!((counts.write_conflicts.into_inner(), counts.lock_timeouts.into_inner()), (2, 1));
        assert_eq!(counts.transient_errors.into_inner(), 4);
    }
}
