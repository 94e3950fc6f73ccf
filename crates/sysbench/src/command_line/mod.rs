//! The command line: `sysbench [options]... [testname] [command]`.
//!
//! It is read in two steps. What sysbench itself knows is taken at once ([`CommandLine::apply`]), since a script needs
//! it to be loaded. What is left is asked of the test or script once it has declared its options
//! ([`Unresolved::resolve`]), and only then refused.

mod command;
mod config_file;

use std::io;

pub use command::{Available, Command, OwnCommand, short_name};
pub use config_file::{ConfigFile, parse_config};

use crate::options::{Group, Kind, OptionSet, SetError, Source};
use crate::refusal::Refusal;

/// An option as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// All of it, dashes included.
    pub argument: String,
    /// What is before the first `=`.
    pub name: String,
    /// What is behind it; none if there is none.
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

/// Something to say that stops nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// 1.0 takes `--test=NAME` for the test; so do we, since scripts written for 0.5 are still about.
    #[error("WARNING: the --test option is deprecated: give the name of the test without an option.")]
    TestOption,
    /// A file of options could not be read. sysbench goes on without it.
    #[error("{path}: {error}")]
    UnreadableConfig {
        /// The file.
        path: String,
        /// The system's words.
        error: String,
    },
    /// A quotation mark in a file of options is the only one of its line. What comes below is not read.
    #[error("unexpected EOL on line {line}")]
    UnterminatedQuote {
        /// Counted from 1.
        line: usize,
    },
}

/// A command line, taken apart; nothing in it is known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// All words, the program's name first: what scripts see as `sysbench.cmdline.argv`.
    pub argv: Vec<String>,
    /// The first word that is no option.
    pub test: Option<String>,
    /// The second.
    pub command: Option<String>,
    /// In their order.
    pub options: Vec<Given>,
    /// What is to be printed on standard error.
    pub notices: Vec<Notice>,
}

/// Takes a command line apart, the program's name first. What begins with two dashes is an option, wherever it stands.
///
/// # Errors
/// A third word that is no option.
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
    // With two words, `test` is an option of the script's own.
    line.test = if words.len() < 2 { line.take_test_option() } else { None };
    line.test = line.test.or_else(|| words.next());
    line.command = words.next();
    Ok(line)
}

impl CommandLine {
    /// The name of the test in `--test=NAME`.
    fn take_test_option(&mut self) -> Option<String> {
        let at = self.options.iter().rposition(|given| given.name == "test" && given.value.is_some())?;
        self.notices.push(Notice::TestOption);
        self.options.remove(at).value
    }

    /// Whether the script is to be read from standard input: it runs once, as it is, and has no commands; options that
    /// nobody knows are let be.
    pub fn reads_stdin(&self) -> bool {
        matches!(self.test.as_deref(), None | Some("-"))
    }

    /// Takes the options that are declared, in their order, so that the last one of a name counts; `read` reads a file
    /// of options where its name stands.
    pub fn apply(&self, set: &mut OptionSet, read: &mut dyn FnMut(&str) -> io::Result<String>) -> Applied {
        let mut applied = Applied { unresolved: Unresolved::default(), notices: self.notices.clone() };
        for given in &self.options {
            match take(given, set, read) {
                Ok(notices) => applied.notices.extend(notices),
                // A flag that is neither on nor off waits too, so that help and version are printed before it is
                // refused.
                Err(_) => applied.unresolved.options.push(given.clone()),
            }
        }
        applied
    }
}

/// What became of a command line's options.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// What is left.
    pub unresolved: Unresolved,
    /// What is to be printed on standard error.
    pub notices: Vec<Notice>,
}

/// What to do with options that nobody has declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Refuse them, as 1.1 does.
    Refuse,
    /// Keep them as texts, as 1.0 does for a script that declares no options at all.
    Keep,
}

/// Options that nobody has declared yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unresolved {
    /// In their order.
    pub options: Vec<Given>,
}

impl Unresolved {
    /// Takes them, now that the test or script has declared its own; `takes` is asked about each value of these, which a
    /// script may refuse. The notices are for standard error.
    ///
    /// # Errors
    /// The first that is still unknown, if unknown ones are refused, a flag that is neither on nor off, or a value that
    /// the script does not take.
    pub fn resolve(
        self,
        set: &mut OptionSet,
        unknown: Unknown,
        read: &mut dyn FnMut(&str) -> io::Result<String>,
        takes: &mut dyn FnMut(&Given) -> Result<bool, Refusal>,
    ) -> Result<Vec<Notice>, Refusal> {
        for given in given_before(set) {
            ask(&given, takes)?;
        }
        let mut notices = Vec::new();
        for given in self.options {
            match set.info(&given.name).map(|info| info.group) {
                None if unknown == Unknown::Keep => {
                    keep(&given, set)?;
                    continue;
                }
                Some(Group::Script) => ask(&given, takes)?,
                _ => {}
            }
            notices.extend(take(&given, set, read).map_err(|error| refused(&given, set, &error))?);
        }
        Ok(notices)
    }
}

/// What was given for the script's own options before it declared them: in files of options, above all.
fn given_before(set: &OptionSet) -> Vec<Given> {
    let is_given = |(key, info): &(String, &crate::OptionInfo)| {
        info.group == Group::Script && set.source(key) != Some(Source::Default)
    };
    let given = |(key, info): (String, &crate::OptionInfo)| {
        let (name, value) = (info.name.to_string(), set.given(&key));
        let argument = value.as_ref().map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"));
        Given { argument, name, value }
    };
    set.iter().filter(is_given).map(given).collect()
}

/// To sysbench a value that the script does not take is as an option that it does not have.
fn ask(given: &Given, takes: &mut dyn FnMut(&Given) -> Result<bool, Refusal>) -> Result<(), Refusal> {
    let refusal = || Refusal::InvalidOption { argument: given.argument.clone(), nearest: None };
    takes(given)?.then_some(()).ok_or_else(refusal)
}

fn keep(given: &Given, set: &mut OptionSet) -> Result<(), Refusal> {
    let info = crate::OptionInfo::of_script(&given.name, "", Kind::Text, None);
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
