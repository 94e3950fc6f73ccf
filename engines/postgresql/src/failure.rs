//! How to recognize errors in the server's log, and errors of rumba's own statements.

use rumba_engine_api::error::{EngineError, SqlState};
use rumba_protocol_postgresql::PgError;
use rumba_server_kit::failure::LogWords;

/// The rules for the server's log.
pub const LOG_WORDS: LogWords = LogWords { is_error, never_meant: &[], aliases: &[] };

fn is_error(line: &str) -> bool {
    ["FATAL:", "PANIC:", "ERROR:", "HINT:", "DETAIL:", "initdb: error", "postgres: could not"]
        .iter()
        .any(|mark| line.contains(mark))
}

/// The error of a statement.
pub fn failed(call: &'static str, error: &PgError) -> EngineError {
    error.during(call)
}

/// The code for a missing privilege.
pub const DENIED: SqlState = SqlState(*b"42501");

/// Whether the server refused because of a missing privilege.
pub fn is_denied(error: &PgError) -> bool {
    matches!(error, PgError::Server { sqlstate, .. } if *sqlstate == DENIED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offending_setting_is_named() {
        let log = "2026-01-01 LOG:  starting\n2026-01-01 FATAL:  WAL archival cannot be enabled when wal_level is \"minimal\"\n";
        let reported = LOG_WORDS.explain(log, &[("archive_mode", "on"), ("wal_level", "minimal"), ("wal", "1")]);
        assert!(reported.contains("`wal_level`") && !reported.contains("starting"), "{reported}");
    }
}
