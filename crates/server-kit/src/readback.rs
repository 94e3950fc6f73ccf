//! What is in force after the start, compared with what was asked for.

use rumba_core::error::EngineError;
use rumba_core::units::parse_bytes;

/// By how much a server may round a number that it was told.
const ROUNDING: f64 = 0.1;

/// How a value in force stands to what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It is the same, however it is written.
    Same,
    /// It is a number that the server has rounded.
    Rounded,
    /// The server says another value than was asked for.
    Other,
}

/// Compares a value in force with what was asked for.
pub fn compare(asked: &str, found: &str) -> Match {
    let (asked, found) = (asked.trim(), found.trim());
    if asked.eq_ignore_ascii_case(found) || (asked == "NULL" && found.is_empty()) {
        return Match::Same;
    }
    if let (Some(asked), Some(found)) = (number(asked), number(found)) {
        return match (asked - found).abs() {
            0.0 => Match::Same,
            apart if apart <= asked.abs() * ROUNDING => Match::Rounded,
            _ => Match::Other,
        };
    }
    match (as_switch(asked), as_switch(found)) {
        (Some(asked), Some(found)) if asked == found => Match::Same,
        // A list of words in another order, or with the words that one of them stands for.
        _ if is_within(asked, found) => Match::Same,
        _ => Match::Other,
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().or_else(|| parse_bytes(text).ok().map(|bytes| bytes as f64))
}

fn is_within(asked: &str, found: &str) -> bool {
    let has = |word: &str| found.split(',').any(|known| known.trim().eq_ignore_ascii_case(word.trim()));
    asked.contains(',') && asked.split(',').all(has)
}

/// A switch in any of the words that servers take for one.
pub fn as_switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// The error for a setting that another value is in force for.
pub fn refused(call: &'static str, name: &str, asked: &str, found: &str) -> EngineError {
    let message = format!(
        "{name} was asked to be {asked} and is {found}: the server changed or ignored it. \
         Ask for a value that it takes; the server's log may say why"
    );
    EngineError::failed(call, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_however_they_are_written() {
        for (asked, found) in
            [("64M", "67108864"), ("ON", "1"), ("READ-COMMITTED", "read-committed"), ("0.5", "0.500000")]
        {
            assert_eq!(compare(asked, found), Match::Same, "{asked} {found}");
        }
        assert_eq!(compare("1000000", "1048576"), Match::Rounded);
        assert_eq!(compare("1000000", "134217728"), Match::Other);
        assert_eq!(compare("O_DIRECT", "fsync"), Match::Other);
    }
}
