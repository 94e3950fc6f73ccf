//! Refusals before anything runs, in sysbench's words.

use thiserror::Error;

/// The stream of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output: sysbench's log, including fatal errors.
    Out,
    /// Standard error.
    Err,
}

/// Why the run is refused. Its text is the complete output, prefix and empty lines included, except for the last line's
/// end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A third word on the command line.
    #[error("Unrecognized command line argument: {0}")]
    UnrecognizedArgument(String),
    /// An option that neither sysbench nor the test has, or a flag that is neither on nor off.
    #[error("invalid option: {argument}{}", did_you_mean(.nearest.as_deref()))]
    InvalidOption {
        /// As it was given.
        argument: String,
        /// The name that may have been meant. sysbench suggests none.
        nearest: Option<String>,
    },
    /// A value that should be an integer.
    #[error("Invalid value for the '{option}' option: '{value}'")]
    InvalidValue {
        /// With underscores, as sysbench keeps it.
        option: String,
        /// As it was given.
        value: String,
    },
    /// A built-in test without a command.
    #[error("The '{test}' test requires a command argument. See 'sysbench {test} help'")]
    CommandRequired {
        /// The test.
        test: String,
    },
    /// A command that other tests have.
    #[error("'{test}' test does not implement the '{command}' command.")]
    NotImplemented {
        /// The test, without its folder.
        test: String,
        /// `prepare`, `cleanup` or `help`.
        command: &'static str,
    },
    /// A command that no test has.
    #[error("Unknown command: {0}")]
    UnknownCommand(String),
    /// The test is neither built in, nor a file, nor a module.
    #[error("FATAL: Cannot find benchmark '{0}': no such built-in test, file or module")]
    NoSuchTest(String),
    /// Above debug, or below 0.
    #[error("Invalid value for verbosity: {0}")]
    Verbosity(u8),
    /// A value that is out of bounds.
    #[error("FATAL: {0}")]
    Fatal(String),
}

impl Refusal {
    /// A fatal error in sysbench's words.
    pub(crate) fn fatal(text: impl Into<String>) -> Self {
        Refusal::Fatal(text.into())
    }

    /// A value that an option does not have, with what it has.
    pub(crate) fn not_allowed(option: &str, value: &str, allowed: &str) -> Self {
        Self::fatal(format!("Invalid value for --{option}: '{value}'; it is {allowed}"))
    }

    /// The stream that it is printed on. A fatal error is printed at any verbosity.
    pub fn stream(&self) -> Stream {
        match self {
            Refusal::NoSuchTest(_) | Refusal::Verbosity(_) | Refusal::Fatal(_) => Stream::Out,
            _ => Stream::Err,
        }
    }
}

/// On a separate line, so that the line above stays sysbench's.
fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("\ndid you mean --{name}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The streams are those of 1.0.20.
    #[test]
    fn only_log_texts_are_on_standard_output() {
        for refusal in [Refusal::NoSuchTest(String::new()), Refusal::Verbosity(7), Refusal::fatal("no")] {
            assert_eq!(refusal.stream(), Stream::Out, "{refusal}");
        }
        for refusal in [Refusal::UnknownCommand(String::new()), Refusal::UnrecognizedArgument(String::new())] {
            assert_eq!(refusal.stream(), Stream::Err, "{refusal}");
        }
    }
}
