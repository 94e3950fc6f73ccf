//! The errors of a test at its start or in its run, in sysbench's words.

use std::fmt;
use std::io;

use crate::cli::log::Rank;
use rumba_engine_api::error::EngineError;

/// The call that [`EngineError`]s of a client's events name.
pub const FAILED: &str = "built-in test";

/// Lines for the log. When displayed, they have their prefixes, but no end of the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    lines: Vec<(Rank, String)>,
}

impl Failure {
    pub(crate) fn fatal(words: impl Into<String>) -> Self {
        Self { lines: vec![(Rank::Fatal, words.into())] }
    }

    /// A fatal error with the system's message.
    pub(crate) fn system(words: &str, error: &io::Error) -> Self {
        Self::fatal(format!("{words} {}", errno(error)))
    }

    /// The same, with another line.
    #[must_use]
    pub(crate) fn and(mut self, rank: Rank, words: impl Into<String>) -> Self {
        self.lines.push((rank, words.into()));
        self
    }

    /// The lines to log, in this order.
    pub fn lines(&self) -> impl Iterator<Item = (Rank, &str)> {
        self.lines.iter().map(|(rank, words)| (*rank, words.as_str()))
    }

    /// The failure of a built-in test's client; `None` for other errors.
    pub fn of_client(error: &EngineError) -> Option<Self> {
        let words = match error {
            EngineError::Failed { call: FAILED, message } => message,
            EngineError::DiskFull(words) => words.strip_prefix(FAILED)?.strip_prefix(": ")?,
            _ => return None,
        };
        Some(Self { lines: words.lines().map(|line| (Rank::Fatal, line.to_owned())).collect() })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (rank, words)) in self.lines.iter().enumerate() {
            let end = if number > 0 { "\n" } else { "" };
            write!(f, "{end}{}{words}", rank.prefix())?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// A client's error has only the messages, which are all fatal while events run.
impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        let lines: Vec<&str> = failure.lines.iter().map(|(_, words)| words.as_str()).collect();
        EngineError::failed(FAILED, lines.join("\n"))
    }
}

/// The end of sysbench's messages: `errno = 2 (No such file or directory)`.
fn errno(error: &io::Error) -> String {
    let words = error.to_string();
    let Some(code) = error.raw_os_error() else { return words };
    let words = words.strip_suffix(&format!(" (os error {code})")).unwrap_or(&words);
    format!("errno = {code} ({words})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_words_come_back_even_if_the_device_is_full() {
        for code in [5, 28] {
            let failure = Failure::system("Failed to write file!", &io::Error::from_raw_os_error(code))
                .and(Rank::Fatal, "and more");
            assert_eq!(Failure::of_client(&failure.clone().into()), Some(failure));
        }
        assert_eq!(Failure::of_client(&EngineError::conflict("other")), None);
    }
}
