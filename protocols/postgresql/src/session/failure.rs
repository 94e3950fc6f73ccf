//! Converts server errors for workers.

use std::sync::atomic::Ordering::Relaxed;

use rumba_engine_api::error::{EngineError, ErrorCode, SqlState};
use rumba_transport::in_statement;

use super::PgCounts;
use crate::PgError;
use crate::codec::message::Refusal;
use crate::error::OF_A_POOLER;

/// The frequent errors: a conflict with another transaction, or a duplicate key. They occur on the load path, so no
/// memory is allocated.
pub(super) fn usual(sqlstate: SqlState, counts: &PgCounts) -> Option<EngineError> {
    let code = ErrorCode::of_server(0, sqlstate.0);
    let conflict = |why| Some(EngineError::Conflict { why, code });
    match &sqlstate.0 {
        b"23505" => Some(EngineError::Duplicate(code)),
        b"40P01" => {
            counts.deadlocks.fetch_add(1, Relaxed);
            conflict("deadlock")
        }
        b"40001" => {
            counts.serialization_failures.fetch_add(1, Relaxed);
            conflict("serialization failure")
        }
        b"55P03" => {
            counts.lock_timeouts.fetch_add(1, Relaxed);
            conflict("lock timeout")
        }
        _ => None,
    }
}

#[cold]
pub(super) fn refused(refusal: &Refusal<'_>, sql: &[u8]) -> EngineError {
    let error = PgError::refused(refusal).during("execute");
    let error = match &refusal.sqlstate {
        b"25P02" => error.followed_by("; a statement before failed, and nothing is taken until ROLLBACK"),
        // The server has a statement of this name with other parameters.
        b"08P01" => error.followed_by("; ").followed_by(OF_A_POOLER),
        _ => error,
    };
    error.followed_by(&in_statement(sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_device_error_includes_the_statement() {
        let refusal = |sqlstate: &[u8; 5]| Refusal {
            severity: b"ERROR",
            sqlstate: *sqlstate,
            message: b"could not extend file",
            detail: b"",
            hint: b"Check free disk space.",
        };
        assert!(matches!(refused(&refusal(b"53100"), b"INSERT"), EngineError::DiskFull(_)));
        let reported = refused(&refusal(b"42601"), b"SELEC 1").to_string();
        let wanted = "execute: server error 42601: could not extend file; hint: Check free disk space., in: SELEC 1";
        assert_eq!(reported, wanted);
        assert!(refused(&refusal(b"53300"), b"").to_string().contains("raise the server's max_connections"));
    }

    #[test]
    fn control_characters_of_a_server_are_escaped() {
        let refusal = Refusal {
            severity: b"ERROR",
            sqlstate: *b"22P02",
            message: b"invalid input: \"\x1b[2J\"",
            detail: b"a\rb",
            hint: b"\xe2\x80\xae",
        };
        let error = refused(&refusal, b"").to_string();
        assert_eq!(error, r#"execute: server error 22P02: invalid input: "\u001b[2J"; a\u000db; hint: \u202e"#);
    }

    #[test]
    fn statement_lost_by_a_pooler_has_words_remedy_and_text() {
        for sqlstate in [b"26000", b"42P05", b"08P01"] {
            let message = b"prepared statement \"s\" does not exist";
            let refusal = Refusal { severity: b"ERROR", sqlstate: *sqlstate, message, detail: b"", hint: b"" };
            let error = refused(&refusal, b"SELECT 1").to_string();
            let code = String::from_utf8_lossy(sqlstate);
            for words in [&*code, "does not exist", "--db-ps-mode=disable", ", in: SELECT 1"] {
                assert_eq!(error.matches(words).count(), 1, "{words}: {error}");
            }
        }
    }
}
