//! The remedies for errors, as in sysbench's drivers.

use crate::cli::{OptionSet, Refusal};
use rumba_engine_api::error::{EngineError, ErrorCode};

use crate::host::Remedy;

/// The client library's numbers for a connection that is gone.
const LOST: [u32; 4] = [2006, 2011, 2013, 2055];
/// Its numbers for a server that cannot be connected to, and for a host name without an address.
const UNREACHABLE: [u32; 2] = [2002, 2005];
/// PostgreSQL's SQLSTATEs of a connection that is gone: the server shut down or crashed, or ended this session.
const LOST_STATES: [&str; 5] = ["25P03", "57P01", "57P02", "57P03", "57P05"];
/// The SQLSTATE class of connection failures.
const LOST_CLASS: &str = "08";

/// The errors of a driver after which an event is restarted.
#[derive(Clone, Debug)]
pub struct Ignored {
    driver: &'static str,
    codes: Vec<String>,
}

impl Ignored {
    /// The errors in `--mysql-ignore-errors`, `--pgsql-ignore-errors` or `--sqlite-ignore-errors`.
    pub fn of(options: &OptionSet, driver: &'static str) -> Self {
        let list = options.list(&format!("{driver}-ignore-errors"));
        Self { driver, codes: list.iter().map(|word| word.trim().to_owned()).collect() }
    }

    /// Refuses a list with a word that could never match. sysbench accepts any word for MySQL.
    ///
    /// # Errors
    /// The first such word.
    pub fn check(options: &OptionSet) -> Result<(), Refusal> {
        // An extended error number of SQLite is matched by its lowest byte.
        let is_number = |word: &str| word.parse::<u8>().is_ok_and(|code| code > 0);
        let is_state = |word: &str| word.len() == 5 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        check("sqlite", options, is_number, "SQLite's primary result codes, from 1 to 255")?;
        check("pgsql", options, is_state, "SQLSTATEs, such as 57P01")
    }

    /// Whether a lost connection is one of them, which leads to a reconnect.
    pub fn has_lost(&self) -> bool {
        match self.driver {
            "pgsql" => self.has_all() || self.codes.iter().any(|state| is_lost(state)),
            _ => LOST.iter().any(|&number| self.has(ErrorCode::of_vendor(number))),
        }
    }

    /// The remedy for an error.
    pub fn remedy(&self, error: &EngineError) -> Remedy {
        let code = error.code();
        let is_ignored = match error {
            EngineError::CutOff(_) => self.has_lost(),
            // It was retried for as long as that makes sense; a restarted event would fail at once, endlessly.
            EngineError::Lost(_) => false,
            EngineError::Refused(_) if self.driver == "mysql" && UNREACHABLE.contains(&code.vendor) => false,
            _ => self.has(code),
        };
        match (is_ignored, error) {
            (false, _) => Remedy::Fatal,
            // The new connection has no transaction.
            (true, EngineError::CutOff(_)) => Remedy::Restart,
            (true, _) if self.driver == "mysql" => Remedy::Restart,
            (true, _) => Remedy::RollBackAndRestart,
        }
    }

    fn has(&self, code: ErrorCode) -> bool {
        let is_listed = |word: &String| match self.driver {
            "pgsql" => code.sqlstate.is_some_and(|state| word.as_bytes().eq_ignore_ascii_case(&state.0)),
            // SQLite's error numbers have details in their upper bytes.
            "sqlite" => word.parse() == Ok(code.vendor & 0xff),
            _ => word.parse() == Ok(code.vendor),
        };
        self.has_all() || self.codes.iter().any(is_listed)
    }

    fn has_all(&self) -> bool {
        self.codes.iter().any(|word| word == "all")
    }
}

fn is_lost(state: &str) -> bool {
    state.starts_with(LOST_CLASS) || LOST_STATES.iter().any(|lost| lost.eq_ignore_ascii_case(state))
}

fn check(driver: &str, options: &OptionSet, is_code: impl Fn(&str) -> bool, codes: &str) -> Result<(), Refusal> {
    let name = format!("{driver}-ignore-errors");
    match options.list(&name).iter().find(|word| *word != "all" && !is_code(word.trim())) {
        None => Ok(()),
        Some(word) => Err(Refusal::not_allowed(&name, word, &format!("all, or a list of {codes}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::Source;

    fn options(driver: &str, list: &str) -> OptionSet {
        let mut options = OptionSet::general();
        options.set(&format!("{driver}-ignore-errors"), Some(list), Source::CommandLine).unwrap();
        options
    }

    #[test]
    fn listed_errors_restart_the_event_and_others_end_the_run() {
        let refused = |code| EngineError::refused("execute", code, "no");
        let number = |number| refused(ErrorCode::of_vendor(number));
        let state = |state: &[u8; 5]| refused(ErrorCode::of_server(0, *state));
        let (cut_off, lost) = (|| EngineError::CutOff("gone"), || EngineError::Lost("gone for good".into()));
        use Remedy::{Fatal, Restart, RollBackAndRestart};
        for (driver, list, error, remedy) in [
            ("mysql", "1213,2006", number(1213), Restart),
            ("mysql", "1213,2006", number(1064), Fatal),
            ("mysql", "1213,2006", cut_off(), Restart),
            ("mysql", "1213", cut_off(), Fatal),
            ("mysql", "all", number(1064), Restart),
            ("mysql", "all", lost(), Fatal),
            // With `all`, the event was restarted endlessly, and each time it failed at once.
            ("mysql", "all", number(2002), Fatal),
            ("mysql", "2002,2005", number(2005), Fatal),
            // SQLITE_BUSY_SNAPSHOT is 517: SQLITE_BUSY with details in the upper byte.
            ("sqlite", "5", number(517), RollBackAndRestart),
            ("pgsql", "40001", state(b"40001"), RollBackAndRestart),
            ("pgsql", "40001", state(b"23505"), Fatal),
            ("pgsql", "40001", cut_off(), Fatal),
            ("pgsql", "57p01", cut_off(), Restart),
            ("pgsql", "40001,08006", cut_off(), Restart),
            ("pgsql", "all", cut_off(), Restart),
            ("pgsql", "all", state(b"42P01"), RollBackAndRestart),
            ("pgsql", "all", lost(), Fatal),
        ] {
            assert_eq!(Ignored::of(&options(driver, list), driver).remedy(&error), remedy, "{driver} {list}: {error}");
        }
        let usual = Ignored::of(&OptionSet::general(), "pgsql");
        assert_eq!(usual.remedy(&state(b"23505")), RollBackAndRestart);
        assert!(!usual.has_lost());
    }

    #[test]
    fn codes_that_never_match_are_refused() {
        for (driver, list, wrong) in
            [("sqlite", "5,x", "x"), ("sqlite", "517", "517"), ("pgsql", "57P01,1213", "1213"), ("pgsql", "any", "any")]
        {
            let words = Ignored::check(&options(driver, list)).unwrap_err().to_string();
            let start =
                format!("FATAL: Invalid value for --{driver}-ignore-errors: '{wrong}'; it is all, or a list of ");
            assert!(words.starts_with(&start), "{words}");
        }
        for (driver, list) in
            [("sqlite", "all"), ("sqlite", "5,6"), ("sqlite", ""), ("pgsql", "all"), ("pgsql", "08006")]
        {
            assert!(Ignored::check(&options(driver, list)).is_ok(), "{driver} {list}");
        }
    }
}
