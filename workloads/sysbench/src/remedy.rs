//! The remedies for errors, as in sysbench's drivers.

use crate::cli::OptionSet;
use rumba_engine_api::error::EngineError;

use crate::host::Remedy;

/// The client library's numbers for a connection that is gone.
const LOST: [u32; 4] = [2006, 2011, 2013, 2055];
/// Its numbers for a server that cannot be connected to, and for a host name without an address.
const UNREACHABLE: [u32; 2] = [2002, 2005];
/// After these errors PostgreSQL's driver rolls back and restarts the event: a deadlock, a serialization failure, a
/// duplicate key.
const IGNORED_STATES: [&[u8; 5]; 3] = [b"40P01", b"40001", b"23505"];

/// The errors of a driver after which an event is restarted.
#[derive(Clone, Debug)]
pub struct Ignored {
    driver: &'static str,
    numbers: Numbers,
}

#[derive(Clone, Debug)]
enum Numbers {
    All,
    Listed(Vec<u32>),
}

impl Ignored {
    /// The errors in `--mysql-ignore-errors` or `--sqlite-ignore-errors`.
    pub fn of(options: &OptionSet, driver: &'static str) -> Self {
        let list = match driver {
            "mysql" => options.list("mysql-ignore-errors"),
            "sqlite" => options.list("sqlite-ignore-errors"),
            _ => &[],
        };
        let numbers = match list.iter().any(|word| word == "all") {
            true => Numbers::All,
            false => Numbers::Listed(list.iter().filter_map(|word| word.trim().parse().ok()).collect()),
        };
        Self { driver, numbers }
    }

    /// Whether a lost connection is one of them, which leads to a reconnect.
    pub fn has_lost(&self) -> bool {
        LOST.iter().any(|&number| self.has(number))
    }

    /// The remedy for an error.
    pub fn remedy(&self, error: &EngineError) -> Remedy {
        let code = error.code();
        if self.driver == "pgsql" {
            return match code.sqlstate {
                Some(state) if IGNORED_STATES.contains(&&state.0) => Remedy::RollBackAndRestart,
                _ => Remedy::Fatal,
            };
        }
        // SQLite's error numbers have details in their upper bytes.
        let number = if self.driver == "sqlite" { code.vendor & 0xff } else { code.vendor };
        let is_ignored = match error {
            EngineError::CutOff(_) => self.has_lost(),
            // It was retried for as long as that makes sense; a restarted event would fail at once, endlessly.
            EngineError::Lost(_) => false,
            EngineError::Refused(_) if self.driver == "mysql" && UNREACHABLE.contains(&number) => false,
            _ => self.has(number),
        };
        match (is_ignored, self.driver) {
            (false, _) => Remedy::Fatal,
            (true, "sqlite") => Remedy::RollBackAndRestart,
            (true, _) => Remedy::Restart,
        }
    }

    fn has(&self, number: u32) -> bool {
        match &self.numbers {
            Numbers::All => true,
            Numbers::Listed(list) => list.contains(&number),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::options::Source;
    use rumba_engine_api::error::ErrorCode;

    fn ignored(driver: &'static str, list: &str) -> Ignored {
        let mut options = OptionSet::general();
        options.set(&format!("{driver}-ignore-errors"), Some(list), Source::CommandLine).unwrap();
        Ignored::of(&options, driver)
    }

    fn refused(code: ErrorCode) -> EngineError {
        EngineError::refused("execute", code, "no")
    }

    #[test]
    fn listed_numbers_are_begun_again_and_others_end_the_run() {
        let mysql = ignored("mysql", "1213,2006");
        assert_eq!(mysql.remedy(&refused(ErrorCode::of_vendor(1213))), Remedy::Restart);
        assert_eq!(mysql.remedy(&refused(ErrorCode::of_vendor(1064))), Remedy::Fatal);
        assert!(mysql.has_lost());
        assert_eq!(mysql.remedy(&EngineError::CutOff("gone")), Remedy::Restart);
        assert_eq!(ignored("mysql", "1213").remedy(&EngineError::CutOff("gone")), Remedy::Fatal);
        assert_eq!(mysql.remedy(&EngineError::Lost("gone for good".into())), Remedy::Fatal);
        assert_eq!(ignored("mysql", "all").remedy(&refused(ErrorCode::of_vendor(1064))), Remedy::Restart);
        // SQLITE_BUSY_SNAPSHOT is 517: SQLITE_BUSY with details in the upper byte.
        assert_eq!(ignored("sqlite", "5").remedy(&refused(ErrorCode::of_vendor(517))), Remedy::RollBackAndRestart);
    }

    /// With `all`, the event was restarted endlessly, and each time it failed at once.
    #[test]
    fn an_unreachable_server_ends_the_run_any_is_ignored() {
        for list in ["all", "2002,2005"] {
            for number in UNREACHABLE {
                let unreachable = refused(ErrorCode::of_server(number, *b"HY000"));
                assert_eq!(ignored("mysql", list).remedy(&unreachable), Remedy::Fatal, "{list}: {number}");
            }
        }
    }

    #[test]
    fn postgresql_has_no_list() {
        let postgresql = Ignored::of(&OptionSet::general(), "pgsql");
        assert_eq!(postgresql.remedy(&refused(ErrorCode::of_server(0, *b"40001"))), Remedy::RollBackAndRestart);
        assert_eq!(postgresql.remedy(&refused(ErrorCode::of_server(0, *b"42P01"))), Remedy::Fatal);
    }
}
