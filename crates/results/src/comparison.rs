//! Comparisons of results: figures over repeats, and one run against another.
//!
//! The lab computes these values from records and the report prints them. An absent figure carries its reason.

use std::collections::BTreeMap;

use rumba_engine_api::engine::EngineFacts;
use rumba_engine_api::rate::Rate;
use rumba_engine_api::workload::{ResponseLimit, Short, engine_in_test};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::charged::CHARGED;
use crate::claim::Judgement;
use crate::comparability::Unequal;
use crate::counted::{Counted, rule_of};
use crate::course::{Course, Trends};
pub use crate::figure::{Centre, Figure, Spread};
use crate::metric::{METRICS, Metric, MetricInfo};
use crate::rate::rate_info;
use crate::ratio::{Ratio, VerdictCount};
use crate::record::Status;
pub use crate::remark::{About, Remark, TrialName};
use crate::search::Searched;
use crate::starts::{Scope, Starts};
use crate::tally::tally_info;
use crate::written::WrittenChange;
use crate::{distinct, entry};

/// The description of a metric of a phase or of a whole trial; for metrics by rule, that of the rule.
pub fn metric_info(name: &str) -> Option<&'static MetricInfo> {
    let listed = METRICS.iter().chain(CHARGED).find(|info| info.name == name);
    listed.or_else(|| info_by_rule(name))
}

/// The metrics that follow a rule instead of being listed, with their description: counters, and the workload's rates.
pub fn metrics_by_rule(figures: &PhaseFigures) -> impl Iterator<Item = (&str, &'static MetricInfo)> {
    let names = figures.metrics.keys().map(String::as_str);
    names.filter_map(|name| Some((name, info_by_rule(name)?)))
}

fn info_by_rule(name: &str) -> Option<&'static MetricInfo> {
    rule_of(name).map(|rule| &rule.info).or_else(|| rate_info(name)).or_else(|| tally_info(name))
}

/// One type of operation over the repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpFigures {
    /// The short name of a main operation in tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
    /// The name of its rate, if the workload's specification defines one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The share of operations within the time limit, if the workload's specification sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<KeptFigures>,
    /// Operations that succeeded.
    pub count: Figure,
    /// Operations given up after their retries.
    pub errors: Figure,
    /// Rollbacks that were retried.
    pub retries: Figure,
    /// Percentiles of the time from the actual start, by name: `p99_ms`.
    pub service: BTreeMap<String, Figure>,
    /// Percentiles of the time from the intended start, by name: `p99_ms`.
    pub response: BTreeMap<String, Figure>,
}

/// A limit of the response time over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptFigures {
    /// The required limit: so many percent within so many seconds.
    #[serde(flatten)]
    pub limit: ResponseLimit,
    /// Percent of operations that succeeded within the limit; an operation that was given up counts as a miss.
    pub within_percent: Figure,
}

/// The load, or all loops, of an engine over its repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseFigures {
    /// The trials behind the figures, by number; those that started from the load of one repeat are adjacent.
    pub trials: Vec<u32>,
    /// The repeat of each value of a figure.
    #[serde(default)]
    pub repeats: Vec<u32>,
    /// The number of trials behind each value, which is their mean; empty if each value is from one trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<u32>,
    /// For each value, the number of the trial that loaded its data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<u32>,
    /// Notes for the reader, for example that a trial did not end its loops.
    pub notes: Vec<String>,
    /// Whether no repeat ended, so that these figures come from unfinished ones and support no verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// By the metric's stable name. From [`CHARGED`], the load has `…_with_settle`, and the loops have `…_with_drain`
    /// and the metrics made from counters of the engine ([`crate::counted`]) and of the workload ([`crate::tally`]).
    pub metrics: BTreeMap<String, Figure>,
    /// Per type of operation.
    pub op_types: BTreeMap<String, OpFigures>,
}

impl PhaseFigures {
    /// The median of a metric; absent, with the reason, if there is none.
    pub fn median(&self, metric: &str) -> Metric {
        self.metrics.get(metric).map_or_else(Metric::default, |figure| figure.median.clone())
    }

    /// A trial's own value of a figure; `None` if this trial is not among them.
    pub fn of_trial<'a>(&self, figure: &'a Figure, trial: u32) -> Option<&'a Metric> {
        let place = self.trials.iter().position(|number| *number == trial)?;
        match figure.starts.is_empty() {
            true => figure.values.get(place),
            false => figure.starts.iter().flatten().nth(place),
        }
    }

    /// The numbers of a figure, one for each load; if several repeats are starts of one load, their mean.
    pub fn numbers_of_loads(&self, figure: &Figure) -> Vec<f64> {
        let mut of_loads: Vec<(u32, Vec<f64>)> = Vec::new();
        for (load, value) in self.loads.iter().zip(&figure.values) {
            let Some(value) = value.value() else { continue };
            entry(&mut of_loads, *load).push(value);
        }
        of_loads.iter().map(|(_, values)| values.iter().sum::<f64>() / values.len() as f64).collect()
    }

    /// The metrics that this rule makes from counters.
    pub fn counted_by<'a>(&'a self, rule: &'a Counted) -> impl Iterator<Item = &'a str> {
        self.metrics.keys().map(String::as_str).filter(|name| rule.what(name).is_some())
    }
}

/// One engine with one number of clients, with all its repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The engine's name in the experiment: `rocksdb.zstd`; followed by the test of a suite: `innodb/point-query`.
    pub engine: String,
    /// The test of a suite, as it appears after the engine's name; `None` if the workload is not a suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The engine's registered name: `rocksdb`.
    pub registered: String,
    /// Facts about the engine, if its records have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<EngineFacts>,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Numbers of active clients that change within each trial; `clients` is the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_steps: Option<crate::client_steps::ClientSteps>,
    /// The reason why its build supports no verdicts on rates, times and CPU: it checks assertions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertions: Option<String>,
    /// Other engines of this run that are the same under another name: same build, effective settings, limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_as: Vec<SameEngine>,
    /// The load; `None` when no trial ended it.
    pub load: Option<PhaseFigures>,
    /// All loops together; `None` when no trial ended one.
    pub run: Option<PhaseFigures>,
    /// Properties of the data that a repeat broke, which makes its numbers void.
    pub broken: Vec<String>,
    /// Repeats whose data failed its verification, or whose verification did not end; excluded from all figures of this
    /// row.
    #[serde(default)]
    pub unsound: Vec<Unsound>,
    /// Repeats in which a part did not end. Their figures are excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Repeats whose load or run was suspended; that part of them is excluded from all figures of this row.
    #[serde(default)]
    pub suspended: Vec<Suspended>,
    /// The number of loads from which the run's repeats started. With fewer loads than repeats, a verdict holds only
    /// for this load.
    #[serde(default)]
    pub loads: u32,
    /// The most repeats that the run could have had, if it ends once every headline is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_repeats: Option<u32>,
}

/// Another engine of the run that differs only in name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SameEngine {
    /// Its name in the experiment, followed by the test of a suite.
    pub engine: String,
    /// The reason why a comparison of the two is void, with the settings that were meant to differ.
    pub reason: String,
}

/// The outcome of the verification of a repeat's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// It found inconsistent data, or a violated guarantee.
    #[default]
    Failed,
    /// It did not end, so that the data's consistency is unknown.
    CutOff,
}

/// A repeat whose data failed its verification, or whose verification did not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsound {
    /// Its trial's number.
    pub trial: u32,
    /// Which repeat of its engine and clients it is, from 1.
    pub repeat: u32,
    /// Whether the verification failed or did not end.
    #[serde(default)]
    pub proof: Proof,
    /// The fault in the data, or what interrupted the verification.
    pub reason: String,
}

impl Unsound {
    /// The outcome in words: `failed its verification: …`.
    pub fn words(&self) -> String {
        let verb = match self.proof {
            Proof::Failed => "failed",
            Proof::CutOff => "did not end",
        };
        format!("{verb} its verification: {}", self.reason)
    }
}

/// A repeat whose load or run did not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its trial's number.
    pub trial: u32,
    /// Which repeat of its engine and clients it is, from 1.
    pub repeat: u32,
    /// The part that did not end.
    pub part: Part,
    /// The missing part: `1 of 2 loops ended`.
    pub reason: String,
}

/// A repeat whose load or run was suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suspended {
    /// Its trial's number.
    pub trial: u32,
    /// Which repeat of its engine and clients it is, from 1.
    pub repeat: u32,
    /// The excluded part.
    pub part: Part,
    /// The first suspended phase of that part, with the duration and the reason: `loop 1, for 10.0 s: …`.
    pub reason: String,
}

impl Row {
    /// The figures of a part.
    pub fn part(&self, part: Part) -> Option<&PhaseFigures> {
        match part {
            Part::Load => self.load.as_ref(),
            Part::Run => self.run.as_ref(),
        }
    }

    /// The loads behind the repeats of a part. For the load itself, each repeat is a separate load.
    pub fn starts(&self, part: Part) -> Starts {
        let (phase, loads) = match part {
            Part::Load => (&self.load, None),
            Part::Run => (&self.run, Some(self.loads)),
        };
        let repeats = phase.as_ref().map_or(0, |phase| phase.repeats.len() as u32);
        Starts { repeats, loads: loads.unwrap_or(repeats), at_most: self.at_most_repeats }
    }

    /// Whether a verification found a fault, which outweighs one that did not end.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty() || self.unsound.iter().any(|unsound| unsound.proof == Proof::Failed)
    }

    /// Whether a part has figures although no repeat ended.
    pub fn is_partial(&self, part: Part) -> bool {
        self.part(part).is_some_and(|figures| figures.partial)
    }

    /// The reason why the figures of a part support no verdict.
    pub fn why_not_judged(&self, part: Part) -> Option<String> {
        let ending = match part {
            Part::Load => "its load and settle",
            Part::Run => "its loops and came through its verification",
        };
        let partial = || format!("no repeat of {} ended {ending}", self.engine);
        self.why_unsound().or_else(|| self.is_partial(part).then(partial))
    }

    /// The reason why a trial's part is in no figure, or is in one because no complete part exists.
    pub fn why_left_out(&self, trial: u32, part: Part) -> Option<&str> {
        let found = self.left_out.iter().find(|one| one.trial == trial && one.part == part);
        found.map(|one| one.reason.as_str())
    }

    /// The fault in a repeat's data: `repeat 2 of innodb failed its verification: …`.
    pub fn why_unsound(&self) -> Option<String> {
        let found = self.unsound.iter().find(|unsound| unsound.proof == Proof::Failed);
        let first = found.or(self.unsound.first())?;
        Some(format!("repeat {} of {} {}", first.repeat, self.engine, first.words()))
    }

    /// The reason why a part has no figures although repeats ended it: `repeat 2 of innodb was suspended in loop 1, …`.
    pub fn why_suspended(&self, part: Part) -> Option<String> {
        let first = self.suspended.iter().find(|suspended| suspended.part == part)?;
        Some(format!("repeat {} of {} was suspended in {}", first.repeat, self.engine, first.reason))
    }
}

/// The engines of one run compared with one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Relative {
    /// The engine that divides the others' figures.
    pub baseline: String,
    /// Every other engine with every number of clients that the baseline has too.
    pub rows: Vec<RelativeRow>,
    /// The number of headline verdicts in these rows.
    #[serde(default)]
    pub headline_verdicts: VerdictCount,
}

/// The loops of one engine compared with the baseline at the same number of clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelativeRow {
    /// The engine's name in the experiment, followed by the test of a suite.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// The reason why figures exist without a verdict. A repeat's data failed its verification, the verification did
    /// not end, or no repeat ended.
    pub unsound: Option<String>,
    /// Conditions that differ between the two; `one` is this engine and `other` the baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparability: Vec<Unequal>,
    /// Cost and speed of an operation.
    pub metrics: Vec<Ratio>,
}

impl RelativeRow {
    /// A metric by its stable name, or `OP.p99_ms`.
    pub fn metric(&self, name: &str) -> Option<&Ratio> {
        self.metrics.iter().find(|ratio| ratio.metric == name)
    }
}

/// A trial that did not end as planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unfinished {
    /// The trial; each of its fields is a field of the JSON.
    #[serde(flatten)]
    pub name: TrialName,
    /// The reason: it failed, was interrupted, was suspended, or never reported its end.
    pub status: Status,
}

/// Whether a trial's loops were steady.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// The trial; each of its fields is a field of the JSON.
    #[serde(flatten)]
    pub name: TrialName,
    /// The loops' start in seconds since the trial's.
    pub start_s: f64,
    /// Length in seconds of the analysed steps: an interval's, longer in very long runs.
    pub step_s: f64,
    /// The number of steps; missing ones are not counted.
    pub steps: u32,
    /// By the metric's stable name: `ops_per_s` and `wkb_per_op`.
    pub courses: BTreeMap<String, Course>,
}

/// The summary of an experiment: one row per engine and number of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// By clients, then in the experiment's order of engines.
    pub rows: Vec<Row>,
    /// Trials that failed, were interrupted or never ended; no values replace theirs.
    pub unfinished: Vec<Unfinished>,
    /// The records' own warnings and those that follow from their figures.
    pub remarks: Vec<Remark>,
    /// The experiment's claims with their verdicts.
    #[serde(default)]
    pub claims: Vec<Judgement>,
    /// The number of claims with a verdict by a test.
    #[serde(default)]
    pub claim_verdicts: VerdictCount,
    /// The engines compared with each other, with each of them as the baseline.
    #[serde(default)]
    pub relative: Vec<Relative>,
    /// For each trial with loops: whether they were steady.
    #[serde(default)]
    pub steadiness: Vec<Steadiness>,
    /// For each row with repeats: the shared change over the loops.
    #[serde(default)]
    pub trends: Vec<Trends>,
    /// The searches for a rate, with all their probes.
    #[serde(default)]
    pub searches: Vec<Searched>,
}

impl Row {
    /// The engine's name without the test.
    pub fn engine_alone(&self) -> &str {
        let test = self.test.as_deref().and_then(|test| self.engine.strip_suffix(test)?.strip_suffix('/'));
        test.unwrap_or(&self.engine)
    }
}

impl Summary {
    /// The row with this test and number of clients.
    pub fn row_of_baseline(&self, baseline: &str, row: &Row) -> Option<&Row> {
        self.row(&engine_in_test(baseline, row.test.as_deref()), row.clients)
    }

    /// The engines in the experiment's order, without tests.
    pub fn engines_alone(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(Row::engine_alone))
    }

    /// The row of an engine with this number of clients.
    pub fn row(&self, engine: &str, clients: u32) -> Option<&Row> {
        self.rows.iter().find(|row| row.engine == engine && row.clients == clients)
    }

    /// One engine compared with another at the same number of clients.
    pub fn relative(&self, baseline: &str, engine: &str, clients: u32) -> Option<&RelativeRow> {
        self.relative_to(baseline).iter().find(|row| row.engine == engine && row.clients == clients)
    }

    /// The engines compared with a baseline; empty if nothing is compared with it.
    pub fn relative_to(&self, baseline: &str) -> &[RelativeRow] {
        self.relative.iter().find(|relative| relative.baseline == baseline).map_or(&[][..], |relative| &relative.rows)
    }

    /// The numbers of clients of all rows that have this row's load, ascending. There are several if their loops
    /// started from copies of one load, which is then shown once, with the first.
    pub fn clients_of_load(&self, row: &Row) -> Vec<u32> {
        let same = |other: &&Row| {
            let trials = |row: &Row| row.load.as_ref().map(|load| load.trials.clone());
            other.engine == row.engine && (other.clients == row.clients || trials(other) == trials(row))
        };
        self.rows.iter().filter(same).map(|row| row.clients).collect()
    }

    /// The engines in the experiment's order.
    pub fn engines(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(|row| row.engine.as_str()))
    }

    /// The numbers of clients, ascending.
    pub fn clients(&self) -> Vec<u32> {
        let mut clients: Vec<u32> = self.rows.iter().map(|row| row.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }
}

/// Which part of a trial a comparison is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The load, including the settle for metrics that include it.
    Load,
    /// All loops together, including the drain for metrics that include it.
    Run,
}

/// One metric of one engine in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The ratio of the other to the base, with interval and verdict.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// The base's figure.
    pub base: Figure,
    /// The other's figure.
    pub other: Figure,
}

/// One engine with one number of clients in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRow {
    /// The engine's name in both experiments.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// All numbers of clients that this covers; several if their loops started from one load in both runs.
    #[serde(default)]
    pub all_clients: Vec<u32>,
    /// Whether it is about the load or the loops.
    pub part: Part,
    /// The loads behind the base's repeats.
    #[serde(default)]
    pub base_starts: Starts,
    /// The loads behind the other's repeats.
    #[serde(default)]
    pub other_starts: Starts,
    /// Whether its trials took turns with the other run's; if not, the host's drift is part of every ratio.
    #[serde(default)]
    pub in_turns: bool,
    /// The reason why figures exist without a verdict: a repeat's data failed its verification, or the verification did
    /// not end.
    pub unsound: Option<String>,
    /// Conditions that differ between the two; `one` is the other run's engine and `other` the base's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparability: Vec<Unequal>,
    /// The metrics that at least one run has.
    pub metrics: Vec<Compared>,
    /// For loops: the causes of the change in bytes written, if it changed and the engine has such counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenChange>,
}

impl ComparedRow {
    /// The scope of its verdicts.
    pub fn scope(&self) -> Scope {
        Starts::scope(&[self.base_starts, self.other_starts])
    }
}

/// An engine with figures only in the base; the reason for their absence is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// The engine's name in the base.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Whether it is about the load or the loops.
    pub part: Part,
    /// The reason why the other has no figures: it did not run, or failed in every repeat.
    pub reason: String,
}

/// One of the two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The experiment's name.
    pub name: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of rumba that ran it.
    pub rumba: String,
    /// Engines (with their clients) that only this run has.
    pub alone: Vec<String>,
    /// Trials that did not end as planned; no values replace theirs.
    pub unfinished: Vec<Unfinished>,
}

/// A condition that differs between the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionChange {
    /// Its name; an engine's own are `ENGINE: name`, or `all engines: name` if the change is the same for each.
    pub name: String,
    /// Its value in the base; `None` if the base does not report it.
    pub base: Option<String>,
    /// Its value in the other; `None` if the other does not report it.
    pub other: Option<String>,
}

/// One run compared with another, engine by engine and metric by metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The run that divides the others' figures.
    pub base: Side,
    /// The run whose figures are divided.
    pub other: Side,
    /// Conditions that differ, the first suspects for a change.
    pub conditions: Vec<ConditionChange>,
    /// Engines and clients that both runs have.
    pub rows: Vec<ComparedRow>,
    /// Engines and clients with figures only in the base.
    #[serde(default)]
    pub unmatched: Vec<Unmatched>,
    /// Whether trials of both runs took turns; if not, the host's drift between the runs is part of every ratio.
    pub interleaved: bool,
    /// The confidence level of the intervals: 0.95.
    pub level: f64,
    /// The margin within which a whole interval around 1 counts as the same: 0.01.
    pub margin: f64,
    /// The number of headline verdicts in the rows.
    #[serde(default)]
    pub headline_verdicts: VerdictCount,
}
