//! The declarations of a script: its options and its commands.

use std::path::PathBuf;

use mlua::{Table, Value};

use crate::cli::options::{Kind, OptionInfo};
use crate::failure::ScriptError;
use crate::interpreter::Interpreter;
use crate::setup::Measures;

impl Interpreter {
    /// The options that the script declares, by name.
    ///
    /// # Errors
    /// A mistake in its table.
    pub fn declared(&self) -> Result<Vec<OptionInfo>, ScriptError> {
        let options: Value = self.cmdline("options")?;
        let options = match options {
            Value::Nil => return Ok(Vec::new()),
            Value::Table(options) => options,
            other => return Err(wrong(&format!("wrong type for sysbench.cmdline.options: {}", other.type_name()))),
        };
        let mut declared = Vec::new();
        for pair in options.pairs::<Value, Value>() {
            let Ok((Value::String(name), Value::Table(definition))) = pair else {
                return Err(self.misdeclared("wrong table structure in sysbench.cmdline.options"));
            };
            declared.push(one(&name.to_string_lossy(), &definition)?);
        }
        declared.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(declared)
    }

    /// Whether the script accepts a value for one of its options. The fourth part of an option's declaration may be a
    /// function that decides this.
    ///
    /// # Errors
    /// Any error that the function raised.
    pub fn takes(&self, option: &str, value: Option<&str>) -> Result<bool, ScriptError> {
        let takes: mlua::Function = self.cmdline("takes")?;
        let place = format!("sysbench.cmdline.options.{option}");
        takes.call::<bool>((option, value)).map_err(|error| ScriptError::Hook { place, words: plain(&error) })
    }

    /// Whether the script has a command of this name, and whether all clients run it.
    ///
    /// # Errors
    /// A mistake in its table.
    pub fn command(&self, name: &str) -> Result<Option<Command>, ScriptError> {
        let commands: Value = self.cmdline("commands")?;
        let Value::Table(commands) = commands else { return Ok(None) };
        let Ok(Value::Table(command)) = commands.get::<Value>(name) else { return Ok(None) };
        if command.get::<Value>(1).map_err(reported)?.is_nil() {
            return Ok(None);
        }
        let is_parallel = command.get::<Value>(2).map_err(reported)? == Value::Boolean(true);
        Ok(Some(Command { is_parallel }))
    }

    /// The tests of a script that declares them: the option that chooses one, and its values. The declaration is
    /// `sysbench.cmdline.suite = { option = "micro_test", tests = { "point-pk" } }`, which sysbench does not know.
    ///
    /// # Errors
    /// A mistake in its table.
    pub fn suite(&self) -> Result<Option<(String, Vec<String>)>, ScriptError> {
        let suite: Value = self.cmdline("suite")?;
        let Value::Table(suite) = suite else { return Ok(None) };
        let option: String = suite.get("option").map_err(reported)?;
        let tests: Table = suite.get("tests").map_err(reported)?;
        let tests = tests.sequence_values::<String>().collect::<mlua::Result<Vec<String>>>().map_err(reported)?;
        Ok(Some((option, tests)))
    }

    /// The operations and counters that the script declares: `rumba.operations = { "browse", "checkout" }`.
    ///
    /// # Errors
    /// A mistake in one of these lists.
    pub fn measures(&self) -> Result<Measures, ScriptError> {
        let rumba: Value = self.lua().globals().raw_get("rumba").map_err(reported)?;
        let Value::Table(rumba) = rumba else { return Ok(Measures::default()) };
        let names = |list: &str| names(list, rumba.raw_get(list).map_err(reported)?);
        Ok(Measures { operations: names("operations")?, counters: names("counters")? })
    }

    /// Runs a command; returns whether it succeeded.
    pub fn call_command(&self, name: &str) -> Result<bool, ScriptError> {
        let call: mlua::Function = self.cmdline("call_command")?;
        let place = "sysbench.cmdline.call_command".to_owned();
        call.call::<bool>(name).map_err(|error| ScriptError::Hook { place, words: plain(&error) })
    }

    /// The files of the modules that the script has required so far, by module name; bundled modules have no file.
    ///
    /// # Errors
    /// A mistake in the table of modules.
    pub fn required(&self) -> Result<Vec<PathBuf>, ScriptError> {
        let package: Table = self.lua().globals().get("package").map_err(reported)?;
        let loaded: Table = package.get("loaded").map_err(reported)?;
        let [of_lua, of_c] = ["path", "cpath"].map(|path| package.get::<String>(path).map_err(reported));
        let path = format!("{};{}", of_lua?, of_c?);
        let search: mlua::Function = package.get("searchpath").map_err(reported)?;
        let mut names = Vec::new();
        for pair in loaded.pairs::<String, Value>() {
            names.push(pair.map_err(reported)?.0);
        }
        names.sort_unstable();
        let file = |name: &String| search.call::<Option<String>>((name.as_str(), path.as_str())).map_err(reported);
        Ok(names.iter().map(file).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(PathBuf::from).collect())
    }

    /// A mistake in the table of options, in sysbench's form, which names its own code.
    fn misdeclared(&self, problem: &str) -> ScriptError {
        let place = "sysbench.cmdline.read_cmdline_options".to_owned();
        let script = self.setup().script.name().to_owned();
        ScriptError::Hook { place, words: format!("[string \"sysbench.cmdline.lua\"]: {script}: {problem}") }
    }

    fn cmdline<T: mlua::FromLua>(&self, name: &str) -> Result<T, ScriptError> {
        let sysbench: Table = self.lua().globals().get("sysbench").map_err(reported)?;
        sysbench.get::<Table>("cmdline").and_then(|cmdline| cmdline.get(name)).map_err(reported)
    }
}

/// A script's own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Whether each client runs it, in a separate interpreter.
    pub is_parallel: bool,
}

fn one(name: &str, definition: &Table) -> Result<OptionInfo, ScriptError> {
    let help = match definition.get::<Value>(1).map_err(reported)? {
        Value::String(help) => help.to_string_lossy(),
        _ => return Err(wrong(&format!("nil description for option {name}"))),
    };
    let default: Value = definition.get(2).map_err(reported)?;
    let by_default = match &default {
        Value::Boolean(_) => Some(Kind::Flag),
        Value::Integer(_) | Value::Number(_) => Some(Kind::Double),
        Value::Table(_) => Some(Kind::List),
        Value::Nil | Value::String(_) => Some(Kind::Text),
        _ => None,
    };
    let kind = match definition.get::<Option<f64>>(3).map_err(reported)? {
        Some(number) => of_number(number),
        None => by_default,
    };
    let kind = kind.ok_or_else(|| wrong(&format!("cannot determine type for option {name}")))?;
    if !matches!(definition.get::<Value>(4).map_err(reported)?, Value::Nil | Value::Function(_)) {
        return Err(wrong(&format!("the validator of option {name} is not a function")));
    }
    let default = match default {
        Value::Boolean(flag) => Some(if flag { "on" } else { "off" }.to_owned()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.to_string_lossy()),
        Value::Table(list) => {
            let list: Vec<String> = list.sequence_values::<String>().collect::<mlua::Result<_>>().map_err(reported)?;
            Some(list.join(","))
        }
        _ => None,
    };
    Ok(OptionInfo::of_script(name, &help, kind, default.as_deref()))
}

/// The most names in a list. Each operation has histograms on every thread.
const MOST_NAMES: usize = 32;

/// The operation type of events that a script has not named.
pub(crate) const EVENT: &str = "event";

/// The names in `rumba.operations` or `rumba.counters`, which are also parts of the names of metrics.
fn names(list: &str, value: Value) -> Result<Vec<String>, ScriptError> {
    let mistake = |problem: &str| wrong(&format!("rumba.{list}: {problem}"));
    let table = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(table) => table,
        other => return Err(mistake(&format!("a list of names, not a {}", other.type_name()))),
    };
    let names: mlua::Result<Vec<String>> = table.sequence_values::<String>().collect();
    let names = names.map_err(|_| mistake("every name must be a string"))?;
    if names.len() > MOST_NAMES {
        return Err(mistake(&format!("{} names; at most {MOST_NAMES} are possible", names.len())));
    }
    for (place, name) in names.iter().enumerate() {
        let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase()) || !name.bytes().all(is_inside) {
            let rule = "use lower-case letters, digits and underscores, and begin with a letter";
            return Err(mistake(&format!("invalid name '{name}'; {rule}")));
        }
        if name == EVENT || names[..place].contains(name) {
            return Err(mistake(&format!("'{name}' is already taken; use another name")));
        }
    }
    Ok(names)
}

/// The kind for a number of api.lua's `ARG_…`.
fn of_number(number: f64) -> Option<Kind> {
    let kinds = [Kind::Flag, Kind::Int, Kind::Size, Kind::Double, Kind::Text, Kind::List, Kind::File];
    kinds.get((number as usize).checked_sub(1)?).copied()
}

fn wrong(words: &str) -> ScriptError {
    ScriptError::Load(words.to_owned())
}

fn reported(error: mlua::Error) -> ScriptError {
    ScriptError::Load(plain(&error))
}

/// An error's own message, without the trace that mlua appends.
pub(crate) fn plain(error: &mlua::Error) -> String {
    match error {
        mlua::Error::RuntimeError(words) => words.split("\nstack traceback:").next().unwrap_or_default().to_owned(),
        mlua::Error::CallbackError { cause, .. } => plain(cause),
        other => other.to_string(),
    }
}
