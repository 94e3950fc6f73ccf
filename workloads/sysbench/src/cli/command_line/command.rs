//! The commands of a test.

use crate::cli::refusal::Refusal;

/// A command, as it was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Create the files or tables that the test needs.
    Prepare,
    /// Run it and report.
    Run,
    /// Remove everything that `prepare` created.
    Cleanup,
    /// Print the test's own help: that of the script, or the list of its options.
    Help,
    /// A command that the script defines, including `prepare`, `prewarm` and `warmup` of the bundled ones.
    Own(OwnCommand),
}

/// A command of `sysbench.cmdline.commands`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCommand {
    /// Its name.
    pub name: String,
    /// Whether it has `sysbench.cmdline.PARALLEL_COMMAND`: then every thread runs it, if there are several.
    pub is_parallel: bool,
}

/// The commands that a test or script offers.
#[derive(Clone, Debug, Default)]
pub struct Available {
    /// Its own commands. They take precedence, so that a script may define its own `prepare` or `run` among them.
    pub own: Vec<OwnCommand>,
    /// A function `prepare`.
    pub prepare: bool,
    /// A function `cleanup`.
    pub cleanup: bool,
    /// Whether there is a `help` function, or an options table, even an empty one.
    pub help: bool,
}

impl Command {
    /// The command that a word names for a test. Every test has `run`.
    ///
    /// # Errors
    /// No test has this command, or this test does not have it.
    pub fn choose(test: &str, word: &str, available: &Available) -> Result<Self, Refusal> {
        if let Some(own) = available.own.iter().find(|own| own.name == word) {
            return Ok(Command::Own(own.clone()));
        }
        let (command, name, has_it) = match word {
            "prepare" => (Command::Prepare, "prepare", available.prepare),
            "cleanup" => (Command::Cleanup, "cleanup", available.cleanup),
            "help" => (Command::Help, "help", available.help),
            "run" => (Command::Run, "run", true),
            _ => return Err(Refusal::UnknownCommand(word.to_owned())),
        };
        let refusal = || Refusal::NotImplemented { test: short_name(test).to_owned(), command: name };
        has_it.then_some(command).ok_or_else(refusal)
    }
}

/// A test's name in messages: without its folder.
pub fn short_name(test: &str) -> &str {
    test.trim_end_matches('/').rsplit('/').next().unwrap_or(test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, is_parallel: bool) -> OwnCommand {
        OwnCommand { name: name.to_owned(), is_parallel }
    }

    #[test]
    fn script_has_the_functions_that_it_defines() {
        let available = Available { own: vec![own("prepare", true), own("warmup", true)], ..Available::default() };
        let choose = |word| Command::choose("/x/oltp.lua", word, &available);
        assert_eq!(choose("prepare"), Ok(Command::Own(own("prepare", true))));
        assert_eq!(choose("warmup"), Ok(Command::Own(own("warmup", true))));
        assert_eq!(choose("run"), Ok(Command::Run));
        assert_eq!(
            choose("cleanup").unwrap_err().to_string(),
            "'oltp.lua' test does not implement the 'cleanup' command."
        );
        assert_eq!(choose("cmd3").unwrap_err().to_string(), "Unknown command: cmd3");
    }

    #[test]
    fn a_built_in_test_has_help_and_run() {
        let available = Available { help: true, ..Available::default() };
        let choose = |word| Command::choose("cpu", word, &available);
        assert_eq!(choose("help"), Ok(Command::Help));
        assert_eq!(choose("run"), Ok(Command::Run));
        assert_eq!(choose("prepare").unwrap_err().to_string(), "'cpu' test does not implement the 'prepare' command.");
    }
}
