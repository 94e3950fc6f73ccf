//! Converts server errors for workers.

use std::sync::atomic::Ordering::Relaxed;

use rumba_engine_api::error::{EngineError, ErrorCode};
use rumba_transport::in_statement;

use super::SessionOptions;
use crate::WireError;
use crate::codec::answer::Refusal;
use crate::error::contains;

/// The error for a caller's mistake or for an operation that this session does not support. With the transport's function
/// of this name, a point select takes four more instructions.
#[cold]
pub(super) fn call_failed(call: &'static str, message: &str) -> EngineError {
    EngineError::Failed { call, message: message.to_owned() }
}

/// The frequent errors: a conflict with another transaction, or a duplicate key. With
/// [`SessionOptions::terse_conflicts`] they occur on the load path, so no memory is allocated.
pub(super) fn usual(refusal: &Refusal<'_>, options: &SessionOptions) -> Option<EngineError> {
    let code = ErrorCode::of_server(refusal.code.into(), refusal.state);
    let counts = &options.counts;
    let conflict = |why| EngineError::Conflict { why, code };
    let usual = match refusal.code {
        1062 | 1586 => EngineError::Duplicate(code),
        1213 => {
            counts.deadlocks.fetch_add(1, Relaxed);
            conflict("deadlock")
        }
        1205 => {
            counts.lock_wait_timeouts.fetch_add(1, Relaxed);
            conflict("lock wait timeout")
        }
        1020 => conflict("a row changed since the transaction began"),
        // MyRocks has no separate error code for a row that changed after the snapshot.
        1030 | 1105 | 1180 | 1296 if contains(refusal.message, b"busy") => {
            conflict("snapshot conflict (the engine reports: busy)")
        }
        _ => return None,
    };
    Some(if options.terse_conflicts { usual } else { with_text(refusal) })
}

/// A frequent error with the server's text, and without the statement: a script knows which it sent.
#[cold]
fn with_text(refusal: &Refusal<'_>) -> EngineError {
    WireError::refused(refusal).during("execute")
}

#[cold]
pub(super) fn refused(refusal: &Refusal<'_>, sql: &[u8]) -> EngineError {
    WireError::refused(refusal).during("execute").followed_by(&in_statement(sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: u16, message: &str) -> Refusal<'_> {
        Refusal { code, state: *b"HY000", message: message.as_bytes() }
    }

    #[test]
    fn conflicts_are_distinguished_from_permanent_errors() {
        let options = SessionOptions { terse_conflicts: true, ..SessionOptions::default() };
        let conflict =
            |code, message| usual(&refusal(code, message), &options).is_some_and(|error| error.is_conflict());
        assert!(conflict(1213, "Deadlock found when trying to get lock"));
        assert!(conflict(1205, "Lock wait timeout exceeded"));
        assert!(conflict(1020, "Record has changed since last read"));
        assert!(conflict(1296, "Got error 16 'Busy' from ROCKSDB"));
        assert!(conflict(1180, "Got error 16 \"Resource busy\" during COMMIT"));
        assert!(!conflict(1180, "Got error 5 \"Input/output error\" during COMMIT"));
        let duplicate = usual(&refusal(1062, "Duplicate entry"), &options);
        assert_eq!(duplicate, Some(EngineError::Duplicate(ErrorCode::of_server(1062, *b"HY000"))));
        let counts = &options.counts;
        assert_eq!((counts.deadlocks.load(Relaxed), counts.lock_wait_timeouts.load(Relaxed)), (1, 1));
    }

    /// Scripts read the server's text of a failed statement, and for these errors found rumba's words.
    #[test]
    fn frequent_errors_keep_the_servers_text_unless_terse() {
        let options = SessionOptions::default();
        for (code, text) in [
            (1062, "Duplicate entry '7' for key 'PRIMARY'"),
            (1213, "Deadlock found when trying to get lock; try restarting transaction"),
            (1205, "Lock wait timeout exceeded; try restarting transaction"),
        ] {
            let error = usual(&refusal(code, text), &options).expect("a frequent error");
            assert_eq!(error.code(), ErrorCode::of_server(code.into(), *b"HY000"));
            assert_eq!(error.to_string(), format!("execute: server error {code} (HY000): {text}"));
        }
        let hostile = usual(&refusal(1062, "Duplicate entry '\x1b[2J' for key 'k'"), &options).expect("a duplicate");
        assert!(hostile.to_string().ends_with(r"Duplicate entry '\u001b[2J' for key 'k'"), "{hostile}");
        let counts = &options.counts;
        assert_eq!((counts.deadlocks.load(Relaxed), counts.lock_wait_timeouts.load(Relaxed)), (1, 1));
    }

    #[test]
    fn full_device_is_recognized_by_error_code_or_message() {
        for (code, message) in [
            (1021, "Disk full (/tmp/x); waiting for someone to free some space..."),
            (1114, "The table 't' is full"),
            (1026, "Error writing file './t.ibd' (Errcode: 28 \"No space left on device\")"),
            (3, "Error writing file '/x' (OS errno: 28)"),
        ] {
            assert!(matches!(refused(&refusal(code, message), b"INSERT"), EngineError::DiskFull(_)), "{message}");
        }
        let error = refused(&refusal(1064, "You have an error"), b"SELEC 1");
        assert_eq!(error.to_string(), "execute: server error 1064 (HY000): You have an error, in: SELEC 1");
        let of_text = refused(&refusal(1064, "You have an error"), b"");
        assert_eq!(of_text.to_string(), "execute: server error 1064 (HY000): You have an error", "it was not prepared");
    }
}
