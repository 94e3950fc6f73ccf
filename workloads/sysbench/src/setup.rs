//! The shared setup of all interpreters of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub use crate::cli::options::OptionValue;
use crate::host::Host;
use crate::random::{Shapes, Unique};

/// The script to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// A file, or else a module of `LUA_PATH` or a bundled one.
    Named(String),
    /// A text that has been read, such as standard input.
    Text {
        /// The name in messages.
        name: String,
        /// The text.
        text: Vec<u8>,
    },
}

impl Script {
    /// The name in messages.
    pub fn name(&self) -> &str {
        match self {
            Script::Named(name) | Script::Text { name, .. } => name,
        }
    }

    /// The path that scripts receive; `None` for a text, which has no path.
    pub fn path(&self) -> Option<&str> {
        match self {
            Script::Named(name) => Some(name),
            Script::Text { .. } => None,
        }
    }
}

/// The number of events left to run; clones share it.
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
    /// At most this many; 0 means no limit.
    pub fn at_most(events: u64) -> Self {
        let limit = || Arc::new(Limit { left: AtomicU64::new(events), is_counted: AtomicBool::new(true) });
        Self { limit: (events > 0).then(limit) }
    }

    /// Whether events taken from now on are counted, which is the default; those of a warmup are not.
    pub fn count(&self, is_counted: bool) {
        if let Some(limit) = &self.limit {
            limit.is_counted.store(is_counted, Relaxed);
        }
    }

    /// Takes one; false if none is left.
    #[inline]
    pub fn take(&self) -> bool {
        let Some(limit) = &self.limit else { return true };
        let take_one = || limit.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        !limit.is_counted.load(Relaxed) || take_one()
    }
}

/// The names of a script's own measurements, as it declares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// The types of its operations, without `event`.
    pub operations: Vec<String>,
    /// Its counters.
    pub counters: Vec<String>,
}

/// A run of a script.
#[derive(Clone)]
pub struct Setup {
    /// The script.
    pub script: Script,
    /// The values of all options by name, with words joined by `_`.
    pub options: Vec<(String, OptionValue)>,
    /// The words of the command line; the first is the program's name.
    pub argv: Vec<String>,
    /// The command: `prepare`, `run`.
    pub command: Option<String>,
    /// The value of `sysbench.version`.
    pub version: String,
    /// A command to LuaJIT, such as `off`.
    pub luajit_command: Option<String>,
    /// Whether the script's output is dropped.
    pub is_quiet: bool,
    /// The script's measurements that are recorded: those that it declares, in an experiment; none elsewhere.
    pub measures: Measures,
    /// The program that runs the script.
    pub host: Arc<dyn Host>,
    /// The seed of all that is drawn.
    pub seed: u64,
    /// The parameters of the random distributions.
    pub shapes: Shapes,
    /// Numbers that no two clients draw.
    pub unique: Unique,
    /// How many events there are.
    pub events: Events,
}

impl Setup {
    /// The value of `--thread-stack-size`; 0 if it is not among the options.
    pub(crate) fn stack_bytes(&self) -> usize {
        match self.options.iter().find(|(name, _)| name == "thread_stack_size") {
            Some((_, OptionValue::Number(bytes))) => *bytes as usize,
            _ => 0,
        }
    }
}
