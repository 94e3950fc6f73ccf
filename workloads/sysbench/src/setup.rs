//! What all interpreters of a run have in common.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::host::Host;
use crate::random::{Shapes, Unique};

/// An option's value, as a script finds it in `sysbench.opt`.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// A table of strings.
    List(Vec<String>),
    /// Nothing.
    Nil,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// A file, or else a module of `LUA_PATH` or of those that are bundled.
    Named(String),
    /// A text that has been read, such as standard input.
    Text {
        /// What messages call it.
        name: String,
        /// What it says.
        text: Vec<u8>,
    },
}

impl Script {
    /// What messages call it.
    pub fn name(&self) -> &str {
        match self {
            Script::Named(name) | Script::Text { name, .. } => name,
        }
    }
}

/// How many events there are to run.
#[derive(Debug)]
pub struct Events {
    left: Option<AtomicU64>,
}

impl Events {
    /// At most so many; 0 bounds nothing.
    pub fn at_most(events: u64) -> Self {
        Self { left: (events > 0).then(|| AtomicU64::new(events)) }
    }

    /// Takes one; false when there is none any more.
    #[inline]
    pub fn take(&self) -> bool {
        let Some(left) = &self.left else { return true };
        left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A run of a script.
pub struct Setup {
    /// What is run.
    pub script: Script,
    /// The values of all options, by name, words joined by `_`.
    pub options: Vec<(String, OptionValue)>,
    /// The words of the command line, the program's name first.
    pub argv: Vec<String>,
    /// The command: `prepare`, `run`.
    pub command: Option<String>,
    /// What `sysbench.version` says.
    pub version: String,
    /// A command to LuaJIT, such as `off`.
    pub luajit_command: Option<String>,
    /// What the script prints is left out.
    pub is_quiet: bool,
    /// Who runs it.
    pub host: Arc<dyn Host>,
    /// The seed of all that is drawn.
    pub seed: u64,
    /// The shapes of what is drawn.
    pub shapes: Shapes,
    /// Numbers that no two clients draw.
    pub unique: Unique,
    /// How many events there are.
    pub events: Events,
}

impl Setup {
    /// What `--thread-stack-size` says; 0 where it is not among the options.
    pub(crate) fn stack_bytes(&self) -> usize {
        match self.options.iter().find(|(name, _)| name == "thread_stack_size") {
            Some((_, OptionValue::Number(bytes))) => *bytes as usize,
            _ => 0,
        }
    }

    /// The script's own directory, if it is a file.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.script {
            Script::Named(name) => Some(PathBuf::from(name)).filter(|path| path.is_file()),
            Script::Text { .. } => None,
        }
    }
}
