//! The errors of a script.

use std::fmt;

use rumba_engine_api::error::EngineError;

/// The call that [`EngineError`]s of a script's clients name.
pub const FAILED: &str = "script";

/// A function that a script may define, and that the runner calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Before anything else of a run.
    Init,
    /// Makes and fills the tables.
    Prepare,
    /// Takes them away.
    Cleanup,
    /// Prints help for the script.
    Help,
    /// The beginning of a client.
    ThreadInit,
    /// A client's events.
    ThreadRun,
    /// The end of a client, after all its events.
    ThreadDone,
    /// The end of a run.
    Done,
}

impl Function {
    /// Its name, as scripts define it.
    pub fn name(self) -> &'static str {
        match self {
            Function::Init => "init",
            Function::Prepare => "prepare",
            Function::Cleanup => "cleanup",
            Function::Help => "help",
            Function::ThreadInit => "thread_init",
            Function::ThreadRun => "thread_run",
            Function::ThreadDone => "thread_done",
            Function::Done => "done",
        }
    }

    /// Whether it receives the client's number.
    pub(crate) fn is_of_thread(self) -> bool {
        matches!(self, Function::ThreadInit | Function::ThreadRun | Function::ThreadDone)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error of a script, in the interpreter's words: the file, the line, and the mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// There is no such script.
    #[error("Cannot find benchmark '{0}': no such built-in test, file or module")]
    NotFound(String),
    /// It cannot be read, or its first run fails.
    #[error("{0}")]
    Load(String),
    /// The host has no memory for a client's stack.
    #[error("no memory for a client's stack: {0}")]
    Stack(String),
    /// A function of it fails.
    #[error("`{function}' function failed: {words}")]
    Call {
        /// Which.
        function: Function,
        /// With what.
        words: String,
    },
    /// A function under `sysbench` fails: a hook, a command, or the check of an option.
    #[error("`{place}' function failed: {words}")]
    Hook {
        /// The name of the function.
        place: String,
        /// The error message.
        words: String,
    },
}

impl ScriptError {
    /// Whether a client has failed at its very end, after all its events.
    pub fn is_of_end(&self) -> bool {
        matches!(self, ScriptError::Call { function: Function::ThreadDone, .. })
    }
}

/// As a client's error.
impl From<ScriptError> for EngineError {
    fn from(error: ScriptError) -> Self {
        EngineError::failed(FAILED, error.to_string())
    }
}
