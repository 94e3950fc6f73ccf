//! What goes wrong in a script.

use std::fmt;

use rumba_core::error::EngineError;

/// The call that [`EngineError`]s of a script's clients name.
pub const FAILED: &str = "script";

/// A function that a script defines, or leaves out, and that whoever runs it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Before anything else of a run.
    Init,
    /// Makes and fills the tables.
    Prepare,
    /// Takes them away.
    Cleanup,
    /// Tells what the script is about.
    Help,
    /// The beginning of a client.
    ThreadInit,
    /// A client's events.
    ThreadRun,
    /// The end of a client, which has done all its events.
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

    /// Whether it is told the client's number.
    pub(crate) fn is_of_thread(self) -> bool {
        matches!(self, Function::ThreadInit | Function::ThreadRun | Function::ThreadDone)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What goes wrong in a script, in the words of the interpreter: the file, the line, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// There is no such script.
    #[error("Cannot find benchmark '{0}': no such built-in test, file or module")]
    NotFound(String),
    /// It cannot be read, or its first run fails.
    #[error("{0}")]
    Load(String),
    /// The host has no memory for what a client runs on.
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
    /// A function fails that it has put under `sysbench`: a hook, a command, what looks at an option.
    #[error("`{place}' function failed: {words}")]
    Hook {
        /// Where it is found.
        place: String,
        /// With what.
        words: String,
    },
}

impl ScriptError {
    /// Whether a client has failed at its very end, when all its events were done.
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
