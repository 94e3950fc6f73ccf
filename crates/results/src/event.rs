//! Events that a trial reports while it runs, one JSON line each.
//!
//! The trial runs in a separate process, so that a crash of an engine ends that trial alone and the process meters see
//! the engine alone. The parent process folds the events into a [`crate::record::Record`] and files.

use rumba_engine_api::workload::State;
use serde::{Deserialize, Serialize};

use crate::engine_samples::EngineSample;
use crate::fleet::ClientHost;
use crate::record::{Interval, PhaseKind, PhaseRecord};
use crate::warning::Warning;

/// One line of a trial's standard output, which the parent process folds into a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The instance is open, with these properties.
    Provisioned {
        /// The engine's version.
        version: String,
        /// The origin of the engine.
        source: String,
        /// The effective settings, by the engine's names.
        effective_settings: Vec<(String, String)>,
        /// Conditions that become known only now, by name.
        conditions: Vec<(String, String)>,
    },
    /// A phase begins; the events until its end belong to it.
    PhaseStarted {
        /// The phase; loops have their number.
        phase: PhaseKind,
        /// The planned duration in seconds, if it is known.
        seconds: Option<f64>,
        /// The expected number of rows, if it is known.
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
    /// A sample of the engine while clients work.
    Looked(Box<EngineSample>),
    /// A phase has ended, as planned or cut off; see [`PhaseRecord::complete`].
    PhaseEnded(Box<PhaseRecord>),
    /// The data is handed to another process, with the workload's knowledge of it.
    Loaded {
        /// See [`rumba_engine_api::workload::Bound::state`].
        state: State,
    },
    /// The hosts of the clients, once these have ended.
    Hosts {
        /// By rank.
        hosts: Vec<ClientHost>,
    },
    /// An observation that reduces the trust in the numbers.
    Warning(Warning),
    /// The trial has ended as planned.
    Finished,
    /// The trial stopped on request.
    Interrupted,
    /// The trial has failed; the values measured so far are kept.
    Failed {
        /// The phase in progress, or the next one.
        phase: PhaseKind,
        /// The reason, in the engine's or the system's words, with a remedy if one is known.
        cause: String,
    },
}
