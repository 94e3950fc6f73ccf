//! Compares the effective settings after the start with the requested ones.

use rumba_engine_api::error::EngineError;
use rumba_engine_api::units::parse_bytes;

/// The relative rounding that a server may apply to a number.
const ROUNDING: f64 = 0.1;

/// The result of comparing an effective value with the requested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The values are equal, apart from their spelling.
    Same,
    /// The server has rounded the number.
    Rounded,
    /// The server reports another value.
    Other,
}

/// Compares an effective value with the requested one.
pub fn compare(requested: &str, found: &str) -> Match {
    let (requested, found) = (requested.trim(), found.trim());
    if requested.eq_ignore_ascii_case(found) || (requested == "NULL" && found.is_empty()) {
        return Match::Same;
    }
    if let (Some(requested), Some(found)) = (number(requested), number(found)) {
        return match (requested - found).abs() {
            0.0 => Match::Same,
            apart if apart <= requested.abs() * ROUNDING => Match::Rounded,
            _ => Match::Other,
        };
    }
    match (as_switch(requested), as_switch(found)) {
        (Some(requested), Some(found)) if requested == found => Match::Same,
        // A list of words may be in another order, or contain the expansion of one of its words.
        _ if is_within(requested, found) => Match::Same,
        _ => Match::Other,
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().or_else(|| parse_bytes(text).ok().map(|bytes| bytes as f64))
}

fn is_within(requested: &str, found: &str) -> bool {
    let has = |word: &str| found.split(',').any(|known| known.trim().eq_ignore_ascii_case(word.trim()));
    requested.contains(',') && requested.split(',').all(has)
}

/// Parses a switch in any of the servers' spellings.
pub fn as_switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// The error for a setting whose effective value differs.
pub fn refused(call: &'static str, name: &str, requested: &str, found: &str) -> EngineError {
    let message = format!(
        "{name} was set to {requested} and is {found}: the server changed or ignored it. \
         Set a value that the server accepts; its log may give the reason"
    );
    EngineError::failed(call, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_however_they_are_written() {
        for (requested, found) in
            [("64M", "67108864"), ("ON", "1"), ("READ-COMMITTED", "read-committed"), ("0.5", "0.500000")]
        {
            assert_eq!(compare(requested, found), Match::Same, "{requested} {found}");
        }
        assert_eq!(compare("1000000", "1048576"), Match::Rounded);
        assert_eq!(compare("1000000", "134217728"), Match::Other);
        assert_eq!(compare("O_DIRECT", "fsync"), Match::Other);
    }
}
