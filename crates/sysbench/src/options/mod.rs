//! The options: what is known of each, and the values that were given.

mod built_in;
mod database;
mod general;
mod set;
mod value;

use std::borrow::Cow;

pub use built_in::{CPU, FILEIO, MEMORY, MUTEX, THREADS};
pub use database::{DATABASE, MYSQL, PGSQL, SQLITE};
pub use general::{BEFORE_1_1, GENERAL, LOG_OPERATIONS, LOG_TEXT, RANDOM, RUMBA};
pub use set::{ConfigEntry, OptionSet, SetError, Source, Unclaimed};
pub use value::OptionValue;

/// How the value of an option is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `on`, `true`, `1`, or nothing at all; `off`, `false`, `0`.
    Flag,
    /// A decimal number of 32 bits.
    Int,
    /// Bytes, with `K`, `M`, `G` or `T` for powers of 1024.
    Size,
    /// A floating-point number.
    Double,
    /// Any text; empty is none.
    Text,
    /// Texts with commas between.
    List,
    /// The name of a file of options, which is read where it stands on the command line.
    File,
    /// Numbers with commas between; where one is asked for, the first is meant. rumba's own.
    Numbers,
    /// The name of a file. rumba's own: sysbench reads every file as one of options.
    Path,
}

impl Kind {
    /// What follows an option's name in a help text.
    pub fn form(self) -> &'static str {
        match self {
            Kind::Flag => "[=on|off]",
            Kind::Int | Kind::Double => "=N",
            Kind::Size => "=SIZE",
            Kind::Text => "=STRING",
            Kind::List => "=[LIST,...]",
            Kind::File | Kind::Path => "=FILENAME",
            Kind::Numbers => "=N,...",
        }
    }
}

/// Where in the help an option is, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Of every test.
    General,
    /// Of the random numbers.
    Random,
    /// What is said.
    LogText,
    /// What is said of latencies.
    LogOperations,
    /// Of every database.
    Database,
    /// Of one database driver, by its name.
    Driver(&'static str),
    /// Of a built-in test, by its name.
    BuiltIn(&'static str),
    /// What sysbench does not have.
    Rumba,
    /// What sysbench had before 1.1.
    Before11,
    /// What a script declares.
    Script,
}

/// Which sysbench knows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// 1.0.20 and 1.1, with the same default.
    Sysbench,
    /// 1.1 alone.
    Since11,
    /// 1.0.20 alone.
    Before11,
    /// Both, but 1.0.20 has this default.
    DefaultBefore11(&'static str),
    /// None: rumba's own.
    Rumba,
    /// A script.
    Script,
}

/// What is known of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Without the two dashes; `-` and `_` are the same.
    pub name: Cow<'static, str>,
    /// One line.
    pub help: Cow<'static, str>,
    /// How its value is read.
    pub kind: Kind,
    /// As it would be given. None is not the same as an empty one: the help shows `[]` for that.
    pub default: Option<Cow<'static, str>>,
    /// Where in the help it is.
    pub group: Group,
    /// Which sysbench knows it.
    pub origin: Origin,
}

impl OptionInfo {
    /// An option that a script declares.
    pub fn of_script(name: &str, help: &str, kind: Kind, default: Option<&str>) -> Self {
        Self {
            name: Cow::Owned(name.to_owned()),
            help: Cow::Owned(help.to_owned()),
            kind,
            default: default.map(|text| Cow::Owned(text.to_owned())),
            group: Group::Script,
            origin: Origin::Script,
        }
    }

    /// The name by which scripts find it in `sysbench.opt`.
    pub fn key(&self) -> String {
        key(&self.name)
    }
}

/// A name as it is compared, and as sysbench writes it in errors.
pub(crate) fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// A row of a table, of both sysbenches until something else is said.
const fn option(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    help: &'static str,
) -> OptionInfo {
    let default = match default {
        Some(text) => Some(Cow::Borrowed(text)),
        None => None,
    };
    OptionInfo { name: Cow::Borrowed(name), help: Cow::Borrowed(help), kind, default, group, origin: Origin::Sysbench }
}

/// The same row, of another origin.
const fn from(origin: Origin, mut row: OptionInfo) -> OptionInfo {
    row.origin = origin;
    row
}

/// A test that needs no script.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// As it is named on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Whether it has `prepare` and `cleanup`.
    pub has_files: bool,
    /// Its options.
    pub options: &'static [OptionInfo],
}

/// The tests that need no script, in the order of the help.
pub static BUILT_IN: [BuiltIn; 5] = [
    BuiltIn { name: "fileio", title: "File I/O test", has_files: true, options: FILEIO },
    BuiltIn { name: "cpu", title: "CPU performance test", has_files: false, options: CPU },
    BuiltIn { name: "memory", title: "Memory functions speed test", has_files: false, options: MEMORY },
    BuiltIn { name: "threads", title: "Threads subsystem performance test", has_files: false, options: THREADS },
    BuiltIn { name: "mutex", title: "Mutex performance test", has_files: false, options: MUTEX },
];

impl BuiltIn {
    /// The built-in test of a name.
    pub fn find(name: &str) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|test| test.name == name)
    }
}

/// A way to a database.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// As `--db-driver` has it.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
}

/// The ways to databases, in the order of the help.
pub static DRIVERS: [Driver; 3] = [
    Driver { name: "mysql", title: "MySQL driver", options: MYSQL },
    Driver { name: "pgsql", title: "PostgreSQL driver", options: PGSQL },
    Driver { name: "sqlite", title: "SQLite driver, without a server", options: SQLITE },
];

#[cfg(test)]
mod tests;
