//! The command line: `sysbench [options]... [testname] [command]`.
//!
//! It is read in two steps. Options known to sysbench itself are applied at once ([`CommandLine::apply`]), because a
//! script needs them to be loaded. The others are resolved once the test or script has declared its options
//! ([`Unresolved::resolve`]), and refused only then.

mod command;
mod config_file;

use std::io;

pub use command::{Available, Command, OwnCommand, short_name};
pub use config_file::{ConfigFile, parse_config};

use crate::cli::options::{Group, Kind, OptionSet, SetError, Source};
use crate::cli::refusal::Refusal;

/// An option as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// All of it, dashes included.
    pub argument: String,
    /// The part before the first `=`.
    pub name: String,
    /// The part after it; `None` without a `=`.
    pub value: Option<String>,
}

impl Given {
    fn of(argument: &str) -> Option<Self> {
        let rest = argument.strip_prefix("--")?;
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (rest, None),
        };
        Some(Self { argument: argument.to_owned(), name: name.to_owned(), value })
    }
}

/// A notice that does not stop the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// 1.0 accepts `--test=NAME` for the test. rumba does so too, because scripts written for 0.5 are still in use.
    #[error(
        "WARNING: the --test option is deprecated. You can pass a script name or path on the command line without any \
         options."
    )]
    TestOption,
    /// An option file could not be read. sysbench continues without it.
    #[error("{path}: {error}")]
    UnreadableConfig {
        /// The file.
        path: String,
        /// The system's message.
        error: String,
    },
    /// A quotation mark in an option file has no closing mark on its line. The rest of the file is not read.
    #[error("unexpected EOL on line {line}")]
    UnterminatedQuote {
        /// Counted from 1.
        line: usize,
    },
}

/// A command line, split into its parts; no option is resolved yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// All words, the program's name first, as scripts see them in `sysbench.cmdline.argv`.
    pub argv: Vec<String>,
    /// The first word that is not an option.
    pub test: Option<String>,
    /// The second.
    pub command: Option<String>,
    /// In their order.
    pub options: Vec<Given>,
    /// The notices for standard error.
    pub notices: Vec<Notice>,
}

/// Splits a command line, the program's name first. A word that begins with two dashes is an option, at any position.
///
/// # Errors
/// A third word that is not an option.
pub fn parse(argv: impl IntoIterator<Item = String>) -> Result<CommandLine, Refusal> {
    let argv: Vec<String> = argv.into_iter().collect();
    let mut line = CommandLine::default();
    let mut words = Vec::new();
    for argument in argv.iter().skip(1) {
        match Given::of(argument) {
            Some(given) => line.options.push(given),
            None if words.len() == 2 => return Err(Refusal::UnrecognizedArgument(argument.clone())),
            None => words.push(argument.clone()),
        }
    }
    line.argv = argv;
    let mut words = words.into_iter();
    // With two words, `test` is one of the script's own options.
    line.test = if words.len() < 2 { line.take_test_option() } else { None };
    line.test = line.test.or_else(|| words.next());
    line.command = words.next();
    Ok(line)
}

impl CommandLine {
    fn take_test_option(&mut self) -> Option<String> {
        let at = self.options.iter().rposition(|given| given.name == "test" && given.value.is_some())?;
        self.notices.push(Notice::TestOption);
        self.options.remove(at).value
    }

    /// Whether the script is read from standard input. It then runs once, as it is, and has no commands; unknown
    /// options are allowed.
    pub fn reads_stdin(&self) -> bool {
        matches!(self.test.as_deref(), None | Some("-"))
    }

    /// Applies the declared options in order, so that the last one with a name counts. `read` reads an option file at
    /// its position.
    pub fn apply(&self, set: &mut OptionSet, read: &mut dyn FnMut(&str) -> io::Result<String>) -> Applied {
        let mut applied = Applied { unresolved: Unresolved::default(), notices: self.notices.clone() };
        for given in &self.options {
            match take(given, set, read) {
                Ok(notices) => applied.notices.extend(notices),
                // A flag that is neither on nor off is deferred too, so that help and version are printed before it is
                // refused.
                Err(_) => applied.unresolved.options.push(given.clone()),
            }
        }
        applied
    }
}

/// The result of applying a command line's options.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The remaining options.
    pub unresolved: Unresolved,
    /// The notices for standard error.
    pub notices: Vec<Notice>,
}

/// The treatment of undeclared options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Refuse them, as 1.1 does.
    Refuse,
    /// Keep them as texts, as 1.0 does for a script that declares no options at all.
    Keep,
}

/// Options that are not declared yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unresolved {
    /// In their order.
    pub options: Vec<Given>,
}

impl Unresolved {
    /// Applies them, now that the test or script has declared its own. `takes` is called for each value of these, which
    /// a script may refuse. The notices are for standard error.
    ///
    /// # Errors
    /// The first option that is still unknown, if unknown ones are refused. Also a flag that is neither on nor off, or
    /// a value that the script does not accept.
    pub fn resolve(
        self,
        set: &mut OptionSet,
        unknown: Unknown,
        read: &mut dyn FnMut(&str) -> io::Result<String>,
        takes: &mut dyn FnMut(&Given) -> Result<bool, Refusal>,
    ) -> Result<Vec<Notice>, Refusal> {
        for given in given_before(set) {
            fetch(&given, takes)?;
        }
        let mut notices = Vec::new();
        for given in self.options {
            match set.info(&given.name).map(|info| info.group) {
                None if unknown == Unknown::Keep => {
                    keep(&given, set)?;
                    continue;
                }
                Some(Group::Script) => fetch(&given, takes)?,
                _ => {}
            }
            notices.extend(take(&given, set, read).map_err(|error| refused(&given, set, &error))?);
        }
        Ok(notices)
    }
}

/// The values given for the script's own options before it declared them, mainly in option files.
fn given_before(set: &OptionSet) -> Vec<Given> {
    let is_given = |(key, info): &(String, &crate::cli::OptionInfo)| {
        info.group == Group::Script && set.source(key) != Some(Source::Default)
    };
    let given = |(key, info): (String, &crate::cli::OptionInfo)| {
        let (name, value) = (info.name.to_string(), set.given(&key));
        let argument = value.as_ref().map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"));
        Given { argument, name, value }
    };
    set.iter().filter(is_given).map(given).collect()
}

/// For sysbench, a value that the script does not accept is like an unknown option.
fn fetch(given: &Given, takes: &mut dyn FnMut(&Given) -> Result<bool, Refusal>) -> Result<(), Refusal> {
    let refusal = || Refusal::InvalidOption { argument: given.argument.clone(), nearest: None };
    takes(given)?.then_some(()).ok_or_else(refusal)
}

fn keep(given: &Given, set: &mut OptionSet) -> Result<(), Refusal> {
    let info = crate::cli::OptionInfo::of_script(&given.name, "", Kind::Text, None);
    let kept = set.declare(info).and_then(|()| set.set(&given.name, given.value.as_deref(), Source::CommandLine));
    kept.map_err(|error| refused(given, set, &error))
}

fn take(
    given: &Given,
    set: &mut OptionSet,
    read: &mut dyn FnMut(&str) -> io::Result<String>,
) -> Result<Vec<Notice>, SetError> {
    set.set(&given.name, given.value.as_deref(), Source::CommandLine)?;
    let is_file = set.info(&given.name).is_some_and(|info| info.kind == Kind::File);
    Ok(match given.value.as_deref() {
        Some(path) if is_file && !path.is_empty() => config_file::take(path, set, read),
        _ => Vec::new(),
    })
}

fn refused(given: &Given, set: &OptionSet, error: &SetError) -> Refusal {
    let nearest = match error {
        SetError::Unknown => set.nearest(&given.name).map(str::to_owned),
        SetError::NotAFlag => None,
    };
    Refusal::InvalidOption { argument: given.argument.clone(), nearest }
}

#[cfg(test)]
mod tests;
