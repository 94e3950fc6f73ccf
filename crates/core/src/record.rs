//! The record: the immutable result of a trial.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acid::{Promise, Recovery};
use crate::arrivals::Arrivals;
use crate::build::Build;
use crate::check::Check;
use crate::common::{Durability, Given};
use crate::engine::{EngineConfig, EngineFacts, Gauge};
use crate::metric::{Metric, Metrics};
pub use crate::phase::PhaseKind;
use crate::rate::Rate;
use crate::search::Search;
use crate::setting::Settings;
pub use crate::spent::Spent;
use crate::statements::StatementTotals;
pub use crate::suspension::Suspension;
use crate::warning::Warning;
use crate::workload::{ResponseLimit, Short};

/// The version of the record's format; it grows when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// Percentiles of one kind of time, milliseconds. A percentile that too few
/// samples support (fewer than ten beyond it) is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Mean of all times, those of operations that were still open among them.
    pub mean_ms: Metric,
    /// 50th percentile, the median.
    pub p50_ms: Metric,
    /// 95th percentile.
    pub p95_ms: Metric,
    /// 99th percentile.
    pub p99_ms: Metric,
    /// 99.9th percentile.
    pub p999_ms: Metric,
    /// The largest, exactly and not to the step of a histogram.
    pub max_ms: Metric,
}

/// What one type of operation did in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpStats {
    /// What tables call it, of a main operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
    /// What its rate is called, where the workload's specification reports one; a metric of that name has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How it kept to the time that it may take, where the workload's specification sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LatencySlo>,
    /// Operations that succeeded.
    pub count: u64,
    /// Operations given up after their retries.
    pub errors: u64,
    /// Rollbacks that were tried again.
    pub retries: u64,
    /// Rows read or written.
    pub rows: u64,
    /// Statements, those of retries and of operations given up among them; of a workload that counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<StatementTotals>,
    /// Operations that were begun or due in the phase and ended, well or not, in its backlog: they are in the
    /// times, the errors and the retries, and not in `count`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_late: u64,
    /// Operations that were still open when the backlog's time was up: in the times with what they had taken until then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open: u64,
    /// Time from the actual start.
    pub service: Percentiles,
    /// Time from the intended start.
    pub response: Percentiles,
    /// Points of the percentile spectrum of the response time: (percentile 0–100, milliseconds).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spectrum: Vec<(f64, f64)>,
}

/// A limit of the response time, and how it was kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySlo {
    /// What was to be kept: so many percent within so many seconds.
    #[serde(flatten)]
    pub limit: ResponseLimit,
    /// Of 100 operations, how many succeeded within it: one that was given up did not.
    pub within_percent: Metric,
}

impl LatencySlo {
    /// Whether as many were within it as must be; `None` where that is not known.
    pub fn is_kept(&self) -> Option<bool> {
        self.within_percent.value().map(|within| within >= self.limit.percent)
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_nothing(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// What became, after the end of the last loop, of the operations that were begun or due in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Backlog {
    /// How long they were served, seconds.
    pub seconds: f64,
    /// Operations that ended in that time, given up or not: in the phase's times, errors and retries, and not in
    /// its `ops`, nor in what is divided by them or by its seconds.
    pub ended: u64,
    /// Operations, begun, that were still open at the end of that time.
    pub open: u64,
    /// Arrivals of an open loop that were due before the loop's end and not begun by the end of that time. Their
    /// types were not drawn.
    pub not_begun: u64,
    /// The longest that one of the open or not begun had waited by then since its intended start, milliseconds.
    pub longest_wait_ms: Metric,
}

/// One interval of one phase: a second unless `run.interval` says otherwise, or less at a phase's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Start, seconds since the trial's start.
    pub start_s: f64,
    /// Length in seconds, as the clock had it: a phase that was stopped or waited for is longer or shorter than
    /// planned.
    pub seconds: f64,
    /// The phase that it is a part of; an interval ends with its phase.
    pub phase: PhaseKind,
    /// Operations that ended in it (load: rows).
    pub ops: u64,
    /// Operations given up in it.
    pub errors: u64,
    /// Retries of the operations that ended in it.
    pub retries: u64,
    /// Statements of the operations that ended in it; of a workload that counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<StatementTotals>,
    /// Per type of operation: operations that ended in it.
    pub counts: BTreeMap<String, u64>,
    /// Median response time over all types, milliseconds.
    pub p50_ms: Metric,
    /// 99th percentile of the response time over all types, milliseconds.
    pub p99_ms: Metric,
    /// Largest response time, milliseconds.
    pub max_ms: Metric,
    /// Seconds of it in which the measurement was suspended; more than its length where the machine slept, which no
    /// clock of the trial counts.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub suspended_s: f64,
    /// What the hardware spent between its start and its end.
    pub spent: Spent,
}

/// What one phase came to: its operations, what they cost, and what the engine put off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// Which: `load`, `loop 2`; `loops` is all of them together.
    pub phase: PhaseKind,
    /// Start, seconds since the trial's start.
    pub start_s: f64,
    /// Length in seconds, as the clock had it: a phase that was stopped or waited for is longer or shorter than
    /// planned.
    pub seconds: f64,
    /// Whether it went to its planned end; a phase that was cut off by a failure
    /// or an interrupt holds what was measured until then, and enters no median.
    pub complete: bool,
    /// That it was suspended: then it is in no median, verdict or claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Operations (load: rows).
    pub ops: u64,
    /// Per type of operation.
    pub op_types: BTreeMap<String, OpStats>,
    /// What transactions were tried again for, in the engine's words with its code, and how often: counted when they
    /// were, where `retries` are counted when their operation ends. Beyond 16 kinds the rest is `others`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conflicts: BTreeMap<String, u64>,
    /// The operations of the phase that had not ended with it: of the last loop, and of all loops together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
    /// The figures by their stable names, each a field of the JSON's own.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// What the hardware spent from its start to its end: what the metrics are made of.
    pub spent: Spent,
    /// Work put off at the start.
    pub debt_start: Vec<Gauge>,
    /// Work put off at the end.
    pub debt_end: Vec<Gauge>,
    /// The engine's own counters at the end.
    pub counters: Vec<Gauge>,
    /// What was proven (verify load, verify and recovery only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What transactions were promised, and how that was kept (isolation only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// What was found after the kill (recovery only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Status {
    /// It is running, or the record was cut off while it was.
    Running,
    /// It went to its planned end; a check of its data that failed is in the phase `verify`.
    Done,
    /// It failed; what was measured stands.
    Failed {
        /// The phase that it was in, begun or about to begin.
        phase: PhaseKind,
        /// Why, in the engine's or the system's words, with a remedy where there is one.
        cause: String,
    },
    /// It was stopped by its user.
    Interrupted,
    /// It went to its end, but the measurement was suspended on the way: the figures of that part count for nothing.
    Suspended {
        /// The first phase in which the measurement stood still.
        phase: PhaseKind,
        /// What was seen, for a person.
        cause: String,
    },
}

/// Which of its phases a trial runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialPart {
    /// All: it loads its data, and runs on it.
    #[default]
    Whole,
    /// Load and settle: what it leaves is kept for the trials that start from it.
    Load,
    /// All but the load: it starts from a copy of what a trial of part `load` has left.
    Run,
}

impl TrialPart {
    /// Whether it is the usual one.
    pub fn is_whole(&self) -> bool {
        *self == TrialPart::Whole
    }
}

/// What a trial is: one cell of an experiment's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialPlan {
    /// Position in the order of running, from 1.
    pub number: u32,
    /// The engine as the experiment asks for it: cache, durability, limits and its own settings.
    pub engine: EngineConfig,
    /// What the engine is; `None` in records of versions that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<EngineFacts>,
    /// The workload's name.
    pub workload: String,
    /// The workload's settings as they were given; what is not here had its default.
    pub workload_settings: Settings,
    /// The test of a suite, which is also the end of the engine's name; `None` without a suite, and of its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Of a suite whose data is aged: the settings of the test that ages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aged_by: Option<Settings>,
    /// Clients of the operation mix; of a trial of part `load`, those of the first
    /// trial that starts from it.
    pub clients: u32,
    /// Which repeat, from 1; of a trial of part `load`, which load of this engine.
    pub repeat: u32,
    /// Which start of its repeat, from 1: with `run.starts` several trials start from one load, and count as one figure.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub start: u32,
    /// Which of its phases it runs.
    #[serde(default, skip_serializing_if = "TrialPart::is_whole")]
    pub part: TrialPart,
    /// The number of the trial of part `load` that it starts from; `None` when it loads its own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_by: Option<u32>,
    /// Which probe of a search for a rate it is, from 1; `None` of all other trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<u32>,
    /// Times, loops, driver and rate: `[run]` with its defaults filled in.
    pub run: RunPlan,
}

impl TrialPlan {
    /// The cache that its engine is given, in bytes ([`EngineConfig::given_cache`]).
    pub fn given_cache(&self) -> Given<u64> {
        self.engine.given_cache(self.facts.as_ref())
    }

    /// What a commit of its engine promises ([`EngineConfig::given_durability`]). In results from before `buffered` was a
    /// level, `no-sync` may be either.
    pub fn given_durability(&self) -> Given<Durability> {
        let given = self.engine.given_durability(self.facts.as_ref());
        let is_either = given.value == Some(Durability::NoSync) && given.by.is_none() && !self.has_buffered_level();
        if is_either { Given { told: "no-sync or buffered".to_owned(), ..given } } else { given }
    }

    /// Whether a crash of the process must lose no acknowledged commit.
    pub fn survives_process_crash(&self) -> bool {
        match self.given_durability().value {
            Some(Durability::NoSync) => self.has_buffered_level(),
            Some(level) => level.survives_process_crash(),
            None => false,
        }
    }

    fn has_buffered_level(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.has_buffered_level)
    }
}

/// How clients are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriverKind {
    /// Whichever suits the engine and the number of clients; docs/performance.md gives the rule.
    #[default]
    Auto,
    /// A thread for each client.
    Threads,
    /// An event loop per core, each with its share of the clients.
    Loops,
}

impl DriverKind {
    /// Every kind, by the name an experiment uses.
    pub const NAMES: [(&'static str, DriverKind); 3] =
        [("auto", DriverKind::Auto), ("threads", DriverKind::Threads), ("loops", DriverKind::Loops)];
}

/// Who serves the arrivals of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// One queue: whichever client is free takes the next arrival.
    Shared,
    /// A queue for each client, with its share of the rate.
    Client,
}

impl QueueKind {
    /// Every kind, by the name an experiment uses.
    pub const NAMES: [(&'static str, QueueKind); 2] = [("shared", QueueKind::Shared), ("client", QueueKind::Client)];
}

/// The time for the backlog where nothing else is said, seconds.
pub const BACKLOG_S: f64 = 30.0;

fn backlog_s() -> f64 {
    BACKLOG_S
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// `[run]` as one trial has it, with its defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPlan {
    /// Parallel loaders.
    pub load_clients: u32,
    /// How clients are executed.
    #[serde(default)]
    pub driver: DriverKind,
    /// The loaded data is aged until the engine is steady, by the mix itself, for at most so many seconds; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<f64>,
    /// The shortest warmup in seconds: the mix runs, and is not measured.
    pub warmup_s: f64,
    /// The warmup goes on until the engine is steady, to at most so many seconds; absent: it ends by the clock.
    #[serde(default)]
    pub warmup_most_s: Option<f64>,
    /// How many loops follow each other, without a pause.
    pub loops: u32,
    /// Length of a loop in seconds.
    pub loop_s: f64,
    /// Open loop: operations per second over all clients, their mean over the loops where `arrivals` has more; closed loop
    /// when absent.
    pub rate: Option<f64>,
    /// Open loop: a rate that is not the same all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Engines with the same build and effective settings are compared nevertheless: an A/A run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aa: bool,
    /// The run ends once every headline is decided, after this many repeats at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_repeats: Option<u32>,
    /// The highest rate is searched for that keeps a response time; `rate` is then what this trial probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Of 100 clients, how many work; the others are connected and idle. All of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_percent: Option<f64>,
    /// Open loop: who serves the arrivals; when absent, what suits the engine: shared for servers, else a queue per client.
    #[serde(default)]
    pub queue: Option<QueueKind>,
    /// How long, after the last loop, what was begun or due in it is served, seconds.
    #[serde(default = "backlog_s")]
    pub backlog_s: f64,
    /// What every stream of random numbers is derived from: the data, each client's operations, the arrivals.
    pub seed: u64,
    /// Whether the data is proven consistent at the end.
    pub verify: bool,
    /// Whether what transactions are promised is proven too: then clients work for so many seconds until the database
    /// is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_s: Option<f64>,
    /// Trials that start from one load, for each number of clients and each test; their mean is one figure.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub starts: u32,
    /// Whether the data directory is kept.
    pub keep_data: bool,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Seconds without an operation's end after which the trial fails; 0 for never.
    #[serde(default)]
    pub stall_s: f64,
}

impl RunPlan {
    /// When operations are due, in words: `closed loop`, `1000/s`.
    pub fn pace(&self) -> String {
        if let Some(search) = &self.search {
            return search.to_string();
        }
        match (&self.arrivals, self.rate) {
            (Some(arrivals), _) => arrivals.to_string(),
            (None, Some(rate)) => format!("{rate}/s"),
            (None, None) => "closed loop".to_owned(),
        }
    }

    /// How many of so many clients work.
    pub fn active(&self, clients: u32) -> u32 {
        active_clients(self.active_percent, clients)
    }
}

/// How many of so many clients work, of which so many percent do; one at least, and all where no share is given.
pub fn active_clients(percent: Option<f64>, clients: u32) -> u32 {
    let Some(percent) = percent else { return clients };
    let active = (f64::from(clients) * percent / 100.0).ceil() as u32;
    active.clamp(1, clients.max(1))
}

/// The immutable result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`FORMAT`] of the rumba that wrote it; of another, results are not read.
    pub format: u32,
    /// What was to be run; it is the same whatever came of it.
    pub plan: TrialPlan,
    /// How it stands: the record is rewritten with each phase.
    pub status: Status,
    /// When it began, RFC 3339.
    pub started: String,
    /// The build of rumba that ran it; absent in records of versions that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// The engine's version, once known.
    pub version: Option<String>,
    /// Where the engine was loaded from.
    pub source: Option<String>,
    /// The settings in force, by the engine's names.
    pub effective_settings: Vec<(String, String)>,
    /// Conditions of this trial, by name.
    pub conditions: BTreeMap<String, String>,
    /// CPU microseconds per operation of rumba itself on this host: the workload, by one client, over an engine that
    /// answers at once and keeps nothing.
    #[serde(default)]
    pub harness_cpu_us_per_op: Metric,
    /// The phases, as they ended.
    pub phases: Vec<PhaseRecord>,
    /// What makes its numbers less trustworthy, in the order in which it was seen.
    pub warnings: Vec<Warning>,
}

impl Record {
    /// The record of a trial of which nothing is known but its plan, and when it was started.
    pub fn of_plan(plan: TrialPlan, started: String) -> Self {
        Self {
            format: FORMAT,
            plan,
            status: Status::Running,
            started,
            build: None,
            version: None,
            source: None,
            effective_settings: Vec::new(),
            conditions: BTreeMap::new(),
            harness_cpu_us_per_op: Metric::default(),
            phases: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The metrics that rates of operations make ([`crate::rate`]).
    pub fn rates(&self) -> BTreeSet<String> {
        let ops = self.phases.iter().flat_map(|phase| phase.op_types.values());
        ops.filter_map(|op| op.rate.as_ref()).flat_map(Rate::metrics).collect()
    }

    /// All that transactions were promised and how that was kept.
    pub fn promises(&self) -> impl Iterator<Item = &Promise> {
        self.phases.iter().flat_map(|phase| &phase.promises)
    }

    /// What was found after the database was killed, if it was.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.phases.iter().find_map(|phase| phase.recovery.as_ref())
    }

    /// The phase of this kind, if it was reached and ended.
    pub fn phase(&self, kind: PhaseKind) -> Option<&PhaseRecord> {
        self.phases.iter().find(|phase| phase.phase == kind)
    }

    /// The phases with operations that were suspended, in order; `loops`, their sum, is none of its own.
    pub fn suspended(&self) -> impl Iterator<Item = (PhaseKind, &Suspension)> {
        let timed = self.phases.iter().filter(|phase| phase.phase.is_timed());
        timed.filter_map(|phase| Some((phase.phase, phase.suspended.as_ref()?)))
    }

    /// Why no figure of the loops may be used: the warmup before them, one of them, or the backlog after them was
    /// suspended.
    pub fn suspended_run(&self) -> Option<(PhaseKind, &Suspension)> {
        self.suspended().find(|(phase, _)| *phase != PhaseKind::Load)
    }

    /// The loops one by one, in order, cut off ones too; not their sum.
    pub fn loops(&self) -> impl Iterator<Item = &PhaseRecord> {
        self.phases.iter().filter(|phase| matches!(phase.phase, PhaseKind::Loop(_)))
    }
}
