//! What all interpreters of a run have in common.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

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

    /// What scripts are told that they were run as; nothing of a text, which has no path.
    pub fn path(&self) -> Option<&str> {
        match self {
            Script::Named(name) => Some(name),
            Script::Text { .. } => None,
        }
    }
}

/// How many events there are to run; clones take from the same.
#[derive(Clone, Debug)]
pub struct Events {
    limit: Option<Arc<Limit>>,
}

#[derive(Debug)]
struct Limit {
    left: AtomicU64,
    is_counted: AtomicBool,
}

impl Events {
    /// At most so many; 0 bounds nothing.
    pub fn at_most(events: u64) -> Self {
        let limit = || Arc::new(Limit { left: AtomicU64::new(events), is_counted: AtomicBool::new(true) });
        Self { limit: (events > 0).then(limit) }
    }

    /// Whether those that are taken from now on are counted, as they are until something else is said: those of a
    /// warm-up are not.
    pub fn count(&self, is_counted: bool) {
        if let Some(limit) = &self.limit {
            limit.is_counted.store(is_counted, Relaxed);
        }
    }

    /// Takes one; false when there is none any more.
    #[inline]
    pub fn take(&self) -> bool {
        let Some(limit) = &self.limit else { return true };
        let take_one = || limit.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        !limit.is_counted.load(Relaxed) || take_one()
    }
}

/// A run of a script.
#[derive(Clone)]
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
