//! What a trial tells while it runs: a stream of events, one JSON line each.
//!
//! The trial runs in a process of its own, so that a crash of an engine ends
//! that trial alone and the process meters see the engine alone. Whoever
//! started it folds the events into a [`crate::record::Record`] and files.

use serde::{Deserialize, Serialize};

use crate::record::{Interval, PhaseKind, PhaseRecord};
use crate::warning::Warning;
use crate::workload::State;

/// One event of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The instance is open: what it is.
    Provisioned {
        /// The engine's version.
        version: String,
        /// Where it was loaded from.
        source: String,
        /// The settings in force, by the engine's names.
        effective_settings: Vec<(String, String)>,
        /// Conditions known only now, by name.
        conditions: Vec<(String, String)>,
    },
    /// A phase begins.
    PhaseStarted {
        /// What it is.
        phase: PhaseKind,
        /// How long it will last in seconds, where that is known.
        seconds: Option<f64>,
        /// How many rows it will write, where that is known.
        rows: Option<u64>,
    },
    /// A second of a phase has passed.
    Interval(Box<Interval>),
    /// Histograms of the same second, each compressed in the HdrHistogram V2
    /// encoding (base64), nanoseconds, by tag (`get_node.service`).
    Latency {
        /// Start of the interval, seconds since the trial's start.
        start_s: f64,
        /// Length of the interval in seconds.
        seconds: f64,
        /// Tag, largest value in nanoseconds, and encoded histogram.
        histograms: Vec<(String, u64, String)>,
    },
    /// A phase has ended.
    PhaseEnded(Box<PhaseRecord>),
    /// The data is left for another process: what the workload knows of it.
    Loaded {
        /// See [`crate::workload::Bound::state`].
        state: State,
    },
    /// Something that makes the numbers less trustworthy.
    Warning(Warning),
    /// The trial has ended as planned.
    Finished,
    /// The trial was asked to stop and did.
    Interrupted,
    /// The trial has failed; what was measured stands.
    Failed {
        /// The phase it failed in.
        phase: PhaseKind,
        /// The cause, for a person.
        cause: String,
    },
}
