//! The options: their definitions, and the given values.

mod built_in;
mod database;
mod general;
mod set;
mod value;

use std::borrow::Cow;

pub use built_in::{CPU, FILEIO, MEMORY, MUTEX, THREADS};
pub use database::{DATABASE, MYSQL, PGSQL, SQLITE};
pub use general::{BEFORE_1_1, GENERAL, LOG_OPERATIONS, LOG_TEXT, RANDOM, RUMBA};
pub use set::{ConfigEntry, OptionSet, SetError, Source};
pub use value::OptionValue;

/// How the value of an option is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `on`, `true`, `1`, or no value; `off`, `false`, `0`.
    Flag,
    /// A decimal number of 32 bits.
    Int,
    /// Bytes, with `K`, `M`, `G` or `T` for powers of 1024.
    Size,
    /// A floating-point number.
    Double,
    /// Any text; empty means none.
    Text,
    /// Texts with commas between.
    List,
    /// The name of an option file, which is read at its position on the command line.
    File,
    /// Numbers separated by commas; a single number means the first. rumba's own.
    Numbers,
    /// The name of a file. rumba's own, because sysbench reads every file as an option file.
    Path,
}

impl Kind {
    /// The part after an option's name in a help text.
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

/// The owner of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// sysbench.
    Sysbench,
    /// sysbench; for random numbers.
    Random,
    /// Only rumba.
    Rumba,
    /// The script that declares it.
    Script,
}

/// The definition of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Without the two dashes; `-` and `_` are the same.
    pub name: Cow<'static, str>,
    /// One line.
    pub help: Cow<'static, str>,
    /// How its value is read.
    pub kind: Kind,
    /// The text of the default. `None` differs from an empty text, which the help shows as `[]`.
    pub default: Option<Cow<'static, str>>,
    /// Its owner.
    pub group: Group,
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
        }
    }

    /// The name by which scripts find it in `sysbench.opt`.
    pub fn key(&self) -> String {
        key(&self.name)
    }
}

/// A name in the form used for comparison, and for sysbench's errors.
pub(crate) fn key(name: &str) -> String {
    name.replace('-', "_")
}

const fn option(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    of(Group::Sysbench, name, kind, default, help)
}

/// An option that sysbench does not have.
const fn own(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    of(Group::Rumba, name, kind, default, help)
}

const fn of(
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
    OptionInfo { name: Cow::Borrowed(name), help: Cow::Borrowed(help), kind, default, group }
}

/// A test that needs no script.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// As it is named on the command line.
    pub name: &'static str,
    /// A descriptive name.
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
    /// The name for `--db-driver`.
    pub name: &'static str,
    /// A descriptive name.
    pub title: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
}

/// The drivers, in the order of the help.
pub static DRIVERS: [Driver; 3] = [
    Driver { name: "mysql", title: "MySQL driver", options: MYSQL },
    Driver { name: "pgsql", title: "PostgreSQL driver", options: PGSQL },
    Driver { name: "sqlite", title: "SQLite driver, without a server", options: SQLITE },
];

#[cfg(test)]
mod tests;
