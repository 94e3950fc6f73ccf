//! The options of scripts on sysbench's command line.

use crate::cli::command_line::Given;
use crate::cli::options::{Group, OptionInfo, OptionValue};
use crate::cli::{OptionSet, Refusal};

use crate::failure::ScriptError;
use crate::interpreter::Interpreter;

/// Adds the options that a script declares.
///
/// # Errors
/// A mistake in its table.
pub fn declare(script: &Interpreter, options: &mut OptionSet) -> Result<(), ScriptError> {
    for own in script.declared()? {
        let wrong = format!("the default of option {} is neither on nor off", own.name);
        options.declare(own).map_err(|_| ScriptError::Load(wrong))?;
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
    let value = |(name, info): (String, &OptionInfo)| match options.value(&info.name) {
        // It is refused later, unless the script declares an option of this name.
        Err(_) if info.group == Group::Rumba => Ok((name, OptionValue::Nothing)),
        found => Ok((name, found?)),
    };
    options.iter().map(value).collect()
}
