//! The record: the immutable result of a trial.

use std::collections::{BTreeMap, BTreeSet};

use rumba_engine_api::acid::{Promise, Recovery};
use rumba_engine_api::check::Check;
use rumba_engine_api::common::{Durability, Given};
use rumba_engine_api::engine::{EngineConfig, EngineFacts, Gauge};
use rumba_engine_api::rate::Rate;
use rumba_engine_api::setting::Settings;
use rumba_engine_api::workload::{ResponseLimit, Short};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::build::Build;
use crate::client_steps::{self, ClientSteps};
use crate::fleet::{ClientHost, FleetPlan};
use crate::metric::{Metric, Metrics};
pub use crate::percentiles::{NamedPercentile, Percentiles};
pub use crate::phase::PhaseKind;
use crate::prices::Prices;
use crate::remark::TrialName;
use crate::search::Search;
pub use crate::spent::Spent;
use crate::statements::StatementTotals;
pub use crate::suspension::Suspension;
use crate::warning::Warning;

/// The version of the record's format, increased when a field changes its meaning.
pub const FORMAT: u32 = 1;

/// Statistics of one type of operation in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpStats {
    /// The short name of a main operation in tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
    /// The name of its rate, if the workload's specification defines one; a metric of that name holds the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The share of operations within the time limit, if the workload's specification sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LatencySlo>,
    /// Operations that succeeded.
    pub count: u64,
    /// Operations given up after their retries.
    pub errors: u64,
    /// Rollbacks that were retried.
    pub retries: u64,
    /// Rows read or written.
    pub rows: u64,
    /// Statements, including those of retries and of operations given up; `None` if the workload does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<StatementTotals>,
    /// Operations that began or were due in the phase and ended, successfully or not, in its backlog. They count in the
    /// times, the errors and the retries, but not in `count`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_late: u64,
    /// Operations that were still open at the end of the backlog phase; their times so far are in the histograms.
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

/// A limit of the response time, and the share of operations within it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySlo {
    /// The required limit: so many percent within so many seconds.
    #[serde(flatten)]
    pub limit: ResponseLimit,
    /// Percent of operations that succeeded within the limit; an operation that was given up counts as a miss.
    pub within_percent: Metric,
}

impl LatencySlo {
    /// Whether enough operations were within it; `None` if that is not known.
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

/// Operations that began or were due in the last loop and had not ended when it did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Backlog {
    /// Duration of the backlog phase, seconds.
    pub seconds: f64,
    /// Operations that ended in that phase, given up or not. They count in the phase's times, errors and retries. They
    /// do not count in its `ops`, nor in metrics that are divided by `ops` or by its seconds.
    pub ended: u64,
    /// Operations that had begun and were still open at the end of that phase.
    pub open: u64,
    /// Arrivals of an open loop that were due before the loop's end and had not begun by the end of that phase. Their
    /// types were not drawn.
    pub not_begun: u64,
    /// The longest wait of these operations since their intended start, milliseconds.
    pub longest_wait_ms: Metric,
}

/// One interval of one phase: a second unless `run.interval` says otherwise, or less at a phase's end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Start, seconds since the trial's start.
    pub start_s: f64,
    /// Length in seconds by the clock: a phase that was stopped or waited for is longer or shorter than planned.
    pub seconds: f64,
    /// Its phase; an interval ends with its phase.
    pub phase: PhaseKind,
    /// Operations that ended in it (load: rows).
    pub ops: u64,
    /// Operations given up in it.
    pub errors: u64,
    /// Retries of the operations that ended in it.
    pub retries: u64,
    /// Statements of the operations that ended in it; `None` if the workload does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<StatementTotals>,
    /// Per type of operation: operations that ended in it.
    pub counts: BTreeMap<String, u64>,
    /// The workload's own counters, by name: their growth in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// Median response time over all types, milliseconds.
    pub p50_ms: Metric,
    /// 99th percentile of the response time over all types, milliseconds.
    pub p99_ms: Metric,
    /// Largest response time, milliseconds.
    pub max_ms: Metric,
    /// Seconds of it in which the measurement was suspended. It can exceed the interval's length if the machine slept,
    /// which the trial's clocks do not count.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub suspended_s: f64,
    /// Clients that were to be active, on average over the interval; only for trials with `client_steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_clients: Option<f64>,
    /// Resources spent between its start and its end.
    pub spent: Spent,
}

/// The results of one phase: its operations, their cost, and the engine's deferred work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// The phase: `load`, `loop 2`; `loops` is all of them together.
    pub phase: PhaseKind,
    /// Start, seconds since the trial's start.
    pub start_s: f64,
    /// Length in seconds by the clock: a phase that was stopped or waited for is longer or shorter than planned.
    pub seconds: f64,
    /// Whether it ran to its planned end. A phase that a failure or an interrupt cut off has the values measured so
    /// far, and enters no median.
    pub complete: bool,
    /// Its suspension, if it was suspended; then it is in no median, verdict or claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Operations (load: rows).
    pub ops: u64,
    /// Per type of operation.
    pub op_types: BTreeMap<String, OpStats>,
    /// Reasons for retried transactions, in the engine's words with its code, and their numbers. They are counted when
    /// they occur, while `retries` are counted when their operation ends. From the 17th
    /// kind on, they count as `others`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conflicts: BTreeMap<String, u64>,
    /// The workload's own counters, by name: their growth in the phase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, u64>,
    /// Operations of the phase that had not ended with it; only for the last loop, and for all loops together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
    /// The figures by their stable names; each is a separate field of the JSON.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Resources spent from its start to its end; the metrics are computed from it.
    pub spent: Spent,
    /// Deferred work at the start.
    pub debt_start: Vec<Gauge>,
    /// Deferred work at the end.
    pub debt_end: Vec<Gauge>,
    /// The engine's own counters at the end.
    pub counters: Vec<Gauge>,
    /// Checks of the data (verify load, verify and recovery only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Transaction guarantees and how the engine kept them (isolation only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// Data found after the kill (recovery only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Status {
    /// It is running, or the record was cut off while it was.
    Running,
    /// It ran to its planned end; a failed check of its data is in the phase `verify`.
    Done,
    /// It failed; the values measured so far are kept.
    Failed {
        /// The phase in progress, or the next one.
        phase: PhaseKind,
        /// The reason, in the engine's or the system's words, with a remedy if one is known.
        cause: String,
    },
    /// It was stopped by its user.
    Interrupted,
    /// It ran to its end, but the measurement was suspended meanwhile: the figures of that part do not count.
    Suspended {
        /// The first suspended phase.
        phase: PhaseKind,
        /// The observed cause, for people.
        cause: String,
    },
}

/// Which of its phases a trial runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialPart {
    /// All phases: it loads its data, and runs on it.
    #[default]
    Whole,
    /// Load and settle; the data is kept for the trials that start from it.
    Load,
    /// All but the load; it starts from a copy of the data of a trial of part `load`.
    Run,
}

impl TrialPart {
    /// Whether it is the usual one.
    pub fn is_whole(&self) -> bool {
        *self == TrialPart::Whole
    }
}

/// The plan of a trial: one cell of an experiment's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialPlan {
    /// Position in the order of running, from 1.
    pub number: u32,
    /// The engine as the experiment configures it: cache, durability, limits and its own settings.
    pub engine: EngineConfig,
    /// Facts about the engine; `None` in records of versions that did not store them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<EngineFacts>,
    /// The workload's name.
    pub workload: String,
    /// The workload's settings as given by the user; all others had their default.
    pub workload_settings: Settings,
    /// The test of a suite, which is also the end of the engine's name; `None` without a suite, and for its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// For a suite with aged data: the settings of the test that ages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aged_by: Option<Settings>,
    /// Clients of the operation mix; for a trial of part `load`, those of the first trial that starts from it.
    pub clients: u32,
    /// Which repeat, from 1; for a trial of part `load`, which load of this engine.
    pub repeat: u32,
    /// Which start of its repeat, from 1. With `run.starts` several trials start from one load and count as one figure.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub start: u32,
    /// Which of its phases it runs.
    #[serde(default, skip_serializing_if = "TrialPart::is_whole")]
    pub part: TrialPart,
    /// The number of the trial of part `load` from which it starts; `None` when it loads its own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_by: Option<u32>,
    /// Which probe of a search for a rate it is, from 1; `None` for all other trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<u32>,
    /// Times, loops, driver and rate: `[run]` with its defaults filled in.
    pub run: RunPlan,
}

impl TrialPlan {
    /// The name under which findings about the trial are reported.
    pub fn name(&self) -> TrialName {
        TrialName { trial: self.number, engine: self.engine.name.clone(), clients: self.clients, repeat: self.repeat }
    }

    /// Its clients in words: `4 clients`, `1→4 clients`.
    pub fn clients_in_words(&self) -> String {
        client_steps::in_words(self.clients, self.run.client_steps.as_ref())
    }

    /// The cache size of its engine, in bytes ([`EngineConfig::given_cache`]).
    pub fn given_cache(&self) -> Given<u64> {
        self.engine.given_cache(self.facts.as_ref())
    }

    /// The durability of its engine's commits ([`EngineConfig::given_durability`]). In results from before `buffered`
    /// was a level, `no-sync` may be either.
    pub fn given_durability(&self) -> Given<Durability> {
        let given = self.engine.given_durability(self.facts.as_ref());
        let is_either = given.value == Some(Durability::NoSync) && given.by.is_none() && !self.has_buffered_level();
        if is_either { Given { reported: "no-sync or buffered".to_owned(), ..given } } else { given }
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
    /// Selects the driver by the engine and the number of clients; docs/performance.md gives the rule.
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

/// How the arrivals of an open loop are assigned to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// One queue: the next free client takes the next arrival.
    Shared,
    /// A queue for each client, with its share of the rate.
    Client,
}

impl QueueKind {
    /// Every kind, by the name an experiment uses.
    pub const NAMES: [(&'static str, QueueKind); 2] = [("shared", QueueKind::Shared), ("client", QueueKind::Client)];
}

/// The default duration of the backlog phase, seconds.
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

/// `[run]` for one trial, with its defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPlan {
    /// Parallel loaders.
    pub load_clients: u32,
    /// How clients are executed.
    #[serde(default)]
    pub driver: DriverKind,
    /// The longest time in seconds for which the mix ages the loaded data until the engine is steady; absent without
    /// ageing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<f64>,
    /// The shortest warmup in seconds: the mix runs, and is not measured.
    pub warmup_s: f64,
    /// The longest warmup in seconds, which continues until the engine is steady; absent if it ends by the clock.
    #[serde(default)]
    pub warmup_most_s: Option<f64>,
    /// The number of loops, which follow each other without a pause.
    pub loops: u32,
    /// Length of a loop in seconds.
    pub loop_s: f64,
    /// Open loop: operations per second over all clients (the mean over the loops with `arrivals`); absent for a closed
    /// loop.
    pub rate: Option<f64>,
    /// Open loop: a variable rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Engines with the same build and effective settings are compared nevertheless: an A/A run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aa: bool,
    /// The CPU's hardware counters are read in the loops, which costs time at each switch between threads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hardware_counters: bool,
    /// Prices of hardware, from which costs are computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The run ends once every headline is decided, after this many repeats at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_repeats: Option<u32>,
    /// The goal of a search for the highest rate that keeps a response time; `rate` is then the rate of this probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// The number of clients that work out of 100; the others are connected and idle. All of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_percent: Option<f64>,
    /// Closed loop: numbers of active clients that change within the trial; the trial's `clients` is the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_steps: Option<ClientSteps>,
    /// Open loop: how arrivals are assigned to clients. If absent, the default of the engine: shared for servers, else
    /// a queue per client.
    #[serde(default)]
    pub queue: Option<QueueKind>,
    /// The longest time after the last loop in which operations that began or were due in it are served, seconds.
    #[serde(default = "backlog_s")]
    pub backlog_s: f64,
    /// The seed of all random streams: the data, each client's operations, the arrivals.
    pub seed: u64,
    /// Whether the data is verified at the end.
    pub verify: bool,
    /// Whether transaction guarantees are tested too: the time in seconds for which clients work until the database is
    /// killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_s: Option<f64>,
    /// Trials that start from one load, for each number of clients and each test; their mean is one figure.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub starts: u32,
    /// Whether the data directory is kept.
    pub keep_data: bool,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Seconds without a completed operation after which the trial fails; 0 for never.
    #[serde(default)]
    pub stall_s: f64,
    /// The hosts of the clients; absent if they run in the trial's own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetPlan>,
}

impl RunPlan {
    /// The schedule of operations, in words: `closed loop`, `1000/s`.
    pub fn pace(&self) -> String {
        if let Some(search) = &self.search {
            return search.to_string();
        }
        match (&self.arrivals, self.rate, &self.client_steps) {
            (Some(arrivals), ..) => arrivals.to_string(),
            (None, Some(rate), _) => format!("{rate}/s"),
            (None, None, Some(steps)) => format!("closed loop, active clients: {steps}"),
            (None, None, None) => "closed loop".to_owned(),
        }
    }

    /// The number of working clients.
    pub fn active(&self, clients: u32) -> u32 {
        active_clients(self.active_percent, clients)
    }
}

/// The number of working clients at this percentage; at least one, and all without a percentage.
pub fn active_clients(percent: Option<f64>, clients: u32) -> u32 {
    let Some(percent) = percent else { return clients };
    let active = (f64::from(clients) * percent / 100.0).ceil() as u32;
    active.clamp(1, clients.max(1))
}

/// The immutable result of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The [`FORMAT`] of the rumba that wrote it; results with another format are not read.
    pub format: u32,
    /// The plan of the trial; it does not depend on the outcome.
    pub plan: TrialPlan,
    /// Its present status: the record is rewritten with each phase.
    pub status: Status,
    /// When it began, RFC 3339.
    pub started: String,
    /// The build of rumba that ran it; absent in records of versions that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// The engine's version, once known.
    pub version: Option<String>,
    /// The origin of the engine.
    pub source: Option<String>,
    /// The effective settings, by the engine's names.
    pub effective_settings: Vec<(String, String)>,
    /// Conditions of this trial, by name.
    pub conditions: BTreeMap<String, String>,
    /// CPU microseconds per operation of rumba itself on this host: the workload with one client over an engine that
    /// answers at once and keeps no data.
    #[serde(default)]
    pub harness_cpu_us_per_op: Metric,
    /// The phases, as they ended.
    pub phases: Vec<PhaseRecord>,
    /// Reasons to trust its numbers less, in the order in which they were observed.
    pub warnings: Vec<Warning>,
    /// The hosts of the clients, if they run on several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<ClientHost>,
}

impl Record {
    /// The record of a trial of which only the plan and the start time are known.
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
            hosts: Vec::new(),
        }
    }

    /// The metrics made from rates of operations ([`rumba_engine_api::rate`]).
    pub fn rates(&self) -> BTreeSet<String> {
        let ops = self.phases.iter().flat_map(|phase| phase.op_types.values());
        ops.filter_map(|op| op.rate.as_ref()).flat_map(Rate::metrics).collect()
    }

    /// All transaction guarantees and how they were kept.
    pub fn promises(&self) -> impl Iterator<Item = &Promise> {
        self.phases.iter().flat_map(|phase| &phase.promises)
    }

    /// The data found after the database was killed, if it was.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.phases.iter().find_map(|phase| phase.recovery.as_ref())
    }

    /// The phase of this kind, if it was reached and ended.
    pub fn phase(&self, kind: PhaseKind) -> Option<&PhaseRecord> {
        self.phases.iter().find(|phase| phase.phase == kind)
    }

    /// The suspended phases with operations, in order; `loops`, their sum, is not counted separately.
    pub fn suspended(&self) -> impl Iterator<Item = (PhaseKind, &Suspension)> {
        let timed = self.phases.iter().filter(|phase| phase.phase.is_timed());
        timed.filter_map(|phase| Some((phase.phase, phase.suspended.as_ref()?)))
    }

    /// The reason why no figure of the loops may be used: the warmup before them, one of them, or the backlog after
    /// them was suspended.
    pub fn suspended_run(&self) -> Option<(PhaseKind, &Suspension)> {
        self.suspended().find(|(phase, _)| *phase != PhaseKind::Load)
    }

    /// The single loops, in order, including ones that were cut off; not their sum.
    pub fn loops(&self) -> impl Iterator<Item = &PhaseRecord> {
        self.phases.iter().filter(|phase| matches!(phase.phase, PhaseKind::Loop(_)))
    }
}
