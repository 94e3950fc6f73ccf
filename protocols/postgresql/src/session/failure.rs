//! Server errors as what a worker needs to know of them.

use std::sync::atomic::Ordering::Relaxed;

use rumba_core::error::EngineError;

use super::PgCounts;
use crate::PgError;
use crate::codec::message::Refusal;

/// A mistake of the caller's, or something that this session cannot do.
#[cold]
pub(super) fn call_failed(call: &'static str, message: &str) -> EngineError {
    EngineError::Failed { call, message: message.to_owned() }
}

/// What a call failed with, on the way from or to the server.
#[cold]
pub(super) fn pg_failed(call: &'static str, error: &PgError) -> EngineError {
    if let PgError::Server { sqlstate, .. } = error
        && is_disk_full(sqlstate.as_bytes())
    {
        return EngineError::DiskFull(format!("{call}: {error}"));
    }
    EngineError::failed(call, error.to_string())
}

/// Another transaction stood in the way, or the row is there already: what
/// happens on the load path, and allocates nothing. A row that is there already
/// is told as such only where it ended no transaction, for here it does.
pub(super) fn usual(sqlstate: &[u8], in_block: bool, counts: &PgCounts) -> Option<EngineError> {
    match sqlstate {
        b"23505" if !in_block => Some(EngineError::Duplicate),
        b"40P01" => {
            counts.deadlocks.fetch_add(1, Relaxed);
            Some(EngineError::Conflict("deadlock (SQLSTATE 40P01)"))
        }
        b"40001" => {
            counts.serialization_failures.fetch_add(1, Relaxed);
            Some(EngineError::Conflict("serialization failure (SQLSTATE 40001)"))
        }
        b"55P03" => {
            counts.lock_timeouts.fetch_add(1, Relaxed);
            Some(EngineError::Conflict("lock timeout (SQLSTATE 55P03)"))
        }
        _ => None,
    }
}

/// A statement that the server refused.
#[cold]
pub(super) fn refused(refusal: &Refusal<'_>, sql: &str) -> EngineError {
    let error = PgError::refused(refusal);
    let remedy = match &refusal.sqlstate {
        b"23505" => "; an error ends the transaction here: INSERT … ON CONFLICT, or roll back",
        b"25P02" => "; a statement before failed, and nothing is taken until ROLLBACK",
        _ => "",
    };
    let message = format!("{error}{remedy}{}", in_statement(sql));
    if is_disk_full(&refusal.sqlstate) {
        return EngineError::DiskFull(message);
    }
    EngineError::failed("execute", message)
}

/// The statement that an error is about, cut to what can be read.
pub(super) fn in_statement(sql: &str) -> String {
    const LONGEST: usize = 200;
    match sql.char_indices().nth(LONGEST) {
        Some((end, _)) => format!(", in: {} …", &sql[..end]),
        None => format!(", in: {sql}"),
    }
}

fn is_disk_full(sqlstate: &[u8]) -> bool {
    sqlstate == b"53100"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_transaction_caused_is_told_from_what_nothing_can_help() {
        let counts = PgCounts::default();
        let conflict = |sqlstate: &[u8]| usual(sqlstate, true, &counts).is_some_and(|error| error.is_conflict());
        assert!(conflict(b"40P01") && conflict(b"40001") && conflict(b"55P03"));
        assert!(!conflict(b"42601") && !conflict(b"23505"));
        assert_eq!(usual(b"23505", false, &counts), Some(EngineError::Duplicate));
        assert_eq!(counts.deadlocks.load(Relaxed), 1);
        assert_eq!((counts.serialization_failures.into_inner(), counts.lock_timeouts.into_inner()), (1, 1));
    }

    #[test]
    fn a_full_device_and_the_statement_are_told() {
        let refusal = |sqlstate: &[u8; 5]| Refusal {
            severity: b"ERROR",
            sqlstate: *sqlstate,
            message: b"could not extend file",
            detail: b"",
            hint: b"Check free disk space.",
        };
        assert!(matches!(refused(&refusal(b"53100"), "INSERT"), EngineError::DiskFull(_)));
        let told = refused(&refusal(b"42601"), "SELEC 1").to_string();
        let wanted = "execute: server error 42601: could not extend file; hint: Check free disk space., in: SELEC 1";
        assert_eq!(told, wanted);
    }
}
