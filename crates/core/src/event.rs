//! What a trial tells while it runs: a stream of events, one JSON line each.
//!
//! The trial runs in a process of its own, so that a crash of an engine ends
//! that trial alone and the process meters see the engine alone. Whoever
//! started it folds the events into a [`crate::record::Record`] and files.

use serde::{Deserialize, Serialize};

use crate::engine_samples::EngineSample;
use crate::record::{Interval, PhaseKind, PhaseRecord};
use crate::warning::Warning;
use crate::workload::State;

/// One line of a trial's standard output: what the process that started it folds into a record.
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
    /// A phase begins: what is told until its end belongs to it.
    PhaseStarted {
        /// The phase, of loops with its number.
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
    /// The engine was looked at while clients work.
    Looked(Box<EngineSample>),
    /// A phase has ended, as planned or cut off: [`PhaseRecord::complete`] says which.
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
        /// The phase that it was in, begun or about to begin.
        phase: PhaseKind,
        /// Why, in the engine's or the system's words, with a remedy where there is one.
        cause: String,
    },
}
