//! The options of scripts on sysbench's command line.

use crate::cli::command_line::Given;
use crate::cli::options::{self, OptionInfo, Origin};
use crate::cli::{OptionSet, Refusal};

use crate::declared::Kind;
use crate::failure::ScriptError;
use crate::interpreter::Interpreter;
use crate::setup::OptionValue;

/// Adds the options that a script declares.
///
/// # Errors
/// A mistake in its table.
pub fn declare(script: &Interpreter, options: &mut OptionSet) -> Result<(), ScriptError> {
    for own in script.declared()? {
        let info = OptionInfo::of_script(&own.name, &own.help, kind(own.kind), own.default.as_deref());
        let wrong = |_| ScriptError::Load(format!("the default of option {} is neither on nor off", own.name));
        options.declare(info).map_err(wrong)?;
    }
    Ok(())
}

/// Whether a script accepts this value for one of its options.
///
/// # Errors
/// Any error that the script's function for it raised.
pub fn takes(script: &Interpreter, given: &Given) -> Result<bool, Refusal> {
    script.takes(&given.name, given.value.as_deref()).map_err(|error| Refusal::Fatal(error.to_string()))
}

/// The options' values for scripts.
///
/// # Errors
/// A value should be a number and is not.
pub fn values(options: &OptionSet) -> Result<Vec<(String, OptionValue)>, Refusal> {
    let value = |(name, info): (String, &OptionInfo)| {
        let value = match options.value(&info.name) {
            // It is refused later, unless the script declares an option of this name.
            Err(_) if info.origin == Origin::Rumba => return Ok((name, OptionValue::Nil)),
            found => found?,
        };
        let value = match value {
            options::OptionValue::Flag(flag) => OptionValue::Flag(flag),
            options::OptionValue::Number(number) => OptionValue::Number(number),
            options::OptionValue::Text(text) => OptionValue::Text(text),
            options::OptionValue::List(list) => OptionValue::List(list),
            options::OptionValue::Nothing => OptionValue::Nil,
        };
        Ok((name, value))
    };
    options.iter().map(value).collect()
}

fn kind(kind: Kind) -> options::Kind {
    match kind {
        Kind::Flag => options::Kind::Flag,
        Kind::Int => options::Kind::Int,
        Kind::Size => options::Kind::Size,
        Kind::Double => options::Kind::Double,
        Kind::Text => options::Kind::Text,
        Kind::List => options::Kind::List,
        Kind::File => options::Kind::File,
    }
}
