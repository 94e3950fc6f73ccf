//! A statement's error, as scripts and users see it.

use std::borrow::Cow;
use std::ffi::c_int;

use rumba_engine_api::error::EngineError;

/// The SQLSTATE of an error without one.
const GENERAL: &str = "HY000";
/// The number in MySQL's client library for a connection that was lost during a query.
const LOST: c_int = 2013;
/// The SQLSTATE for PostgreSQL, whose errors have no numbers.
const LOST_STATE: &str = "08006";

/// The number and the SQLSTATE that a script receives.
pub(crate) fn numbers(driver: &str, error: &EngineError) -> (c_int, String) {
    let code = error.code();
    match error {
        EngineError::CutOff(_) | EngineError::Lost(_) if driver == "pgsql" => (0, LOST_STATE.to_owned()),
        EngineError::CutOff(_) | EngineError::Lost(_) => (LOST, GENERAL.to_owned()),
        _ => {
            let state = code.sqlstate.map_or_else(|| GENERAL.to_owned(), |state| state.to_string());
            (c_int::try_from(code.vendor).unwrap_or(c_int::MAX), state)
        }
    }
}

/// The engine's message, without the name of the call.
pub(crate) fn words(error: &EngineError) -> String {
    match error {
        EngineError::Refused(refusal) => refusal.words.clone(),
        other => other.to_string(),
    }
}

/// The message for an error that ends the run.
pub(crate) fn fatal(driver: &str, error: &EngineError, call: &str, sql: &[u8]) -> String {
    let (number, state) = numbers(driver, error);
    let code = if driver == "pgsql" { state } else { number.to_string() };
    let (words, sql) = (words(error), String::from_utf8_lossy(sql));
    let statement = if words.contains(&*sql) { String::new() } else { format!(" for query '{}'", shortened(&sql)) };
    format!("{call} returned error {code} ({words}){statement}")
}

/// The beginning of a statement, enough to identify it. A statement with many rows would fill the screen.
fn shortened(sql: &str) -> Cow<'_, str> {
    const MOST: usize = 1000;
    match sql.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &sql[..end]).into(),
        None => sql.into(),
    }
}
