//! What results come to: figures over repeats, and one run against another.
//!
//! The lab computes these values from records, the report prints them; neither
//! needs the other. An absent figure carries the reason why there is none.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::charged::CHARGED;
use crate::claim::Judgement;
use crate::comparability::Unequal;
use crate::counted::{Counted, rule_of};
use crate::course::{Course, Trends};
use crate::engine::EngineFacts;
pub use crate::figure::{Centre, Figure, Spread};
use crate::metric::{METRICS, Metric, MetricInfo};
use crate::rate::{Rate, rate_info};
use crate::ratio::{Ratio, VerdictCount};
use crate::record::Status;
pub use crate::remark::{About, Remark, TrialName};
use crate::search::Searched;
use crate::starts::{Scope, Starts};
use crate::workload::{ResponseLimit, Short, engine_in_test};
use crate::written::WrittenChange;

/// The description of a metric of a phase or of a whole trial; that of its rule for all that
/// follow one.
pub fn metric_info(name: &str) -> Option<&'static MetricInfo> {
    let listed = METRICS.iter().chain(CHARGED).find(|info| info.name == name);
    listed.or_else(|| info_by_rule(name))
}

/// The metrics among figures that are listed nowhere but follow a rule, with their description: what the engine counted,
/// and what the workload reports.
pub fn metrics_by_rule(figures: &PhaseFigures) -> impl Iterator<Item = (&str, &'static MetricInfo)> {
    let names = figures.metrics.keys().map(String::as_str);
    names.filter_map(|name| Some((name, info_by_rule(name)?)))
}

fn info_by_rule(name: &str) -> Option<&'static MetricInfo> {
    rule_of(name).map(|rule| &rule.info).or_else(|| rate_info(name))
}

/// One type of operation over the repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpFigures {
    /// What tables call it, of a main operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
    /// What its rate is called, where the workload's specification reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How it kept to the time that it may take, where the workload's specification sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<KeptFigures>,
    /// Operations that succeeded.
    pub count: Figure,
    /// Operations given up after their retries.
    pub errors: Figure,
    /// Rollbacks that were tried again.
    pub retries: Figure,
    /// Percentiles of the time from the actual start, by name: `p99_ms`.
    pub service: BTreeMap<String, Figure>,
    /// Percentiles of the time from the intended start, by name: `p99_ms`.
    pub response: BTreeMap<String, Figure>,
}

/// A limit of the response time over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptFigures {
    /// What was to be kept: so many percent within so many seconds.
    #[serde(flatten)]
    pub limit: ResponseLimit,
    /// Of 100 operations, how many succeeded within it: one that was given up did not.
    pub within_percent: Figure,
}

/// The load, or all loops, of an engine over its repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseFigures {
    /// The trials that the figures come from, by number; those that started from the load of one repeat follow each other.
    pub trials: Vec<u32>,
    /// Which repeat each value of a figure is of.
    #[serde(default)]
    pub repeats: Vec<u32>,
    /// How many of the trials each value is the mean of; empty where each value is of one trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<u32>,
    /// By value, the number of the trial that loaded its data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<u32>,
    /// What a reader must know about them: a trial that did not end its loops.
    pub notes: Vec<String>,
    /// That no repeat came to its end, so that these are figures of what ended of them: nothing is decided by them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// By the metric's stable name; of [`CHARGED`] the load has `…_with_settle`, the loops have
    /// `…_with_drain`, and what the engine's counters make ([`crate::counted`]).
    pub metrics: BTreeMap<String, Figure>,
    /// Per type of operation.
    pub op_types: BTreeMap<String, OpFigures>,
}

impl PhaseFigures {
    /// The median of a metric; absent, with the reason, where there is none.
    pub fn median(&self, metric: &str) -> Metric {
        self.metrics.get(metric).map_or_else(Metric::default, |figure| figure.median.clone())
    }

    /// A trial's own value of a figure; `None` where the figures are not of this trial.
    pub fn of_trial<'a>(&self, figure: &'a Figure, trial: u32) -> Option<&'a Metric> {
        let place = self.trials.iter().position(|number| *number == trial)?;
        match figure.starts.is_empty() {
            true => figure.values.get(place),
            false => figure.starts.iter().flatten().nth(place),
        }
    }

    /// The numbers of a figure, one of each load: where several repeats are starts of one load, their mean.
    pub fn numbers_of_loads(&self, figure: &Figure) -> Vec<f64> {
        let mut of_loads: Vec<(u32, f64, f64)> = Vec::new();
        for (load, value) in self.loads.iter().zip(&figure.values) {
            let Some(value) = value.value() else { continue };
            match of_loads.iter_mut().find(|(known, ..)| known == load) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1.0),
                None => of_loads.push((*load, value, 1.0)),
            }
        }
        of_loads.into_iter().map(|(_, sum, count)| sum / count).collect()
    }

    /// The metrics that counters make by this rule.
    pub fn counted_by<'a>(&'a self, rule: &'a Counted) -> impl Iterator<Item = &'a str> {
        self.metrics.keys().map(String::as_str).filter(|name| rule.what(name).is_some())
    }
}

/// One engine with one number of clients: all its repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The engine's name in the experiment: `rocksdb.zstd`; with the test of a suite behind it: `innodb/point-query`.
    pub engine: String,
    /// The test of a suite, as it stands behind the engine's name; `None` where the workload is one by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The engine's registered name: `rocksdb`.
    pub registered: String,
    /// What the engine is, where its records say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<EngineFacts>,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Why its build decides nothing about rates, times and CPU: it checks assertions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertions: Option<String>,
    /// Other engines of this run that are this one under another name: same build, effective settings, limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_as: Vec<SameEngine>,
    /// The load; `None` when no trial ended it.
    pub load: Option<PhaseFigures>,
    /// All loops together; `None` when no trial ended one.
    pub run: Option<PhaseFigures>,
    /// Properties of the data that a repeat broke; its numbers are then worth nothing.
    pub broken: Vec<String>,
    /// Repeats whose data failed its verification, or did not come through it: they are in no figure of this row.
    #[serde(default)]
    pub unsound: Vec<Unsound>,
    /// Repeats of which a part did not come to its end: it is in no figure beside those that did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Repeats whose load or run was suspended: that part of them is in no figure of this row.
    #[serde(default)]
    pub suspended: Vec<Suspended>,
    /// How many loads the repeats of the run started from. With fewer loads than repeats a verdict holds for this load only.
    #[serde(default)]
    pub loads: u32,
    /// The most repeats that the run could have had, if it was to end once every headline is decided; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_most_repeats: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Another engine of the run that differs in its name alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SameEngine {
    /// Its name in the experiment, with the test of a suite behind it.
    pub engine: String,
    /// Why a comparison of the two is void, with the settings that were meant to differ.
    pub reason: String,
}

/// What became of the proof of a repeat's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// It found that the data is not consistent, or that a promise is not kept.
    #[default]
    Failed,
    /// It did not come to its end: whether the data is consistent is not known.
    CutOff,
}

/// A repeat whose data failed its verification, or did not come through it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsound {
    /// Its trial's number.
    pub trial: u32,
    /// Which repeat of its engine and clients it is, from 1.
    pub repeat: u32,
    /// Whether the proof found something or was cut off.
    #[serde(default)]
    pub proof: Proof,
    /// What is wrong with the data, or what cut the proof off.
    pub reason: String,
}

impl Unsound {
    /// What is said of the repeat: `failed its verification: …`.
    pub fn words(&self) -> String {
        let verb = match self.proof {
            Proof::Failed => "failed",
            Proof::CutOff => "did not end",
        };
        format!("{verb} its verification: {}", self.reason)
    }
}

/// A repeat whose load or run did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its trial's number.
    pub trial: u32,
    /// Which repeat of its engine and clients it is, from 1.
    pub repeat: u32,
    /// Which part of it did not.
    pub part: Part,
    /// What is missing: `1 of 2 loops ended`.
    pub reason: String,
}

/// A repeat whose load or run was suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suspended {
    /// Its trial's number.
    pub trial: u32,
    /// Which repeat of its engine and clients it is, from 1.
    pub repeat: u32,
    /// Which part of it is in no figure.
    pub part: Part,
    /// The first phase of that part that was suspended, for how long and why: `loop 1, for 10.0 s: …`.
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

    /// What the repeats of a part started from: of a load each repeat is itself another.
    pub fn starts(&self, part: Part) -> Starts {
        let (phase, loads) = match part {
            Part::Load => (&self.load, None),
            Part::Run => (&self.run, Some(self.loads)),
        };
        let repeats = phase.as_ref().map_or(0, |phase| phase.repeats.len() as u32);
        Starts { repeats, loads: loads.unwrap_or(repeats), at_most: self.at_most_repeats }
    }

    /// Whether a proof found something that is not so: it weighs more than one that was cut off.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty() || self.unsound.iter().any(|unsound| unsound.proof == Proof::Failed)
    }

    /// Whether a part has figures, and no repeat came to its end.
    pub fn is_partial(&self, part: Part) -> bool {
        self.part(part).is_some_and(|figures| figures.partial)
    }

    /// Why no verdict may rest on the figures of a part.
    pub fn why_not_judged(&self, part: Part) -> Option<String> {
        let ending = match part {
            Part::Load => "its load and settle",
            Part::Run => "its loops and came through its verification",
        };
        let partial = || format!("no repeat of {} ended {ending}", self.engine);
        self.why_unsound().or_else(|| self.is_partial(part).then(partial))
    }

    /// Why a trial's part is in no figure, or stands in one for want of a whole one.
    pub fn why_left_out(&self, trial: u32, part: Part) -> Option<&str> {
        let found = self.left_out.iter().find(|one| one.trial == trial && one.part == part);
        found.map(|one| one.reason.as_str())
    }

    /// What is wrong with the data of a repeat: `repeat 2 of innodb failed its verification: …`.
    pub fn why_unsound(&self) -> Option<String> {
        let found = self.unsound.iter().find(|unsound| unsound.proof == Proof::Failed);
        let first = found.or(self.unsound.first())?;
        Some(format!("repeat {} of {} {}", first.repeat, self.engine, first.words()))
    }

    /// Why a part has no figures although repeats ended it: `repeat 2 of innodb was suspended in loop 1, …`.
    pub fn why_suspended(&self, part: Part) -> Option<String> {
        let first = self.suspended.iter().find(|suspended| suspended.part == part)?;
        Some(format!("repeat {} of {} was suspended in {}", first.repeat, self.engine, first.reason))
    }
}

/// The engines of one run against one of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Relative {
    /// The engine that the others are divided by.
    pub baseline: String,
    /// Every other engine with every number of clients that the baseline has too.
    pub rows: Vec<RelativeRow>,
    /// How many headline verdicts these rows have.
    #[serde(default)]
    pub headline_verdicts: VerdictCount,
}

/// One engine over the baseline with the same number of clients: the loops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelativeRow {
    /// The engine's name in the experiment, with the test of a suite behind it.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Why nothing is decided though there are figures: a repeat's data failed its verification, or did not come through
    /// it, or no repeat came to its end.
    pub unsound: Option<String>,
    /// Conditions that the two do not have alike; `one` is this engine and `other` the baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparability: Vec<Unequal>,
    /// What an operation costs and how fast it is.
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
    /// The trial; of its fields each is one of the JSON's.
    #[serde(flatten)]
    pub name: TrialName,
    /// Why: it failed, was interrupted, was suspended, or never told its end.
    pub status: Status,
}

/// How steady a trial's loops were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// The trial; of its fields each is one of the JSON's.
    #[serde(flatten)]
    pub name: TrialName,
    /// The loops' start in seconds since the trial's.
    pub start_s: f64,
    /// Length in seconds of the steps that were looked at: an interval's, longer in very long runs.
    pub step_s: f64,
    /// How many there are; missing ones are not counted.
    pub steps: u32,
    /// By the metric's stable name: `ops_per_s` and `wkb_per_op`.
    pub courses: BTreeMap<String, Course>,
}

/// What results come to: one row per engine and number of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// By clients, then in the experiment's order of engines.
    pub rows: Vec<Row>,
    /// Trials that failed, were interrupted or never ended; nothing is put in their place.
    pub unfinished: Vec<Unfinished>,
    /// The records' own warnings and those that follow from their figures.
    pub remarks: Vec<Remark>,
    /// The experiment's claims with their verdicts.
    #[serde(default)]
    pub claims: Vec<Judgement>,
    /// How many of the claims have a verdict by a test.
    #[serde(default)]
    pub claim_verdicts: VerdictCount,
    /// The engines against each other, with each of them as the baseline.
    #[serde(default)]
    pub relative: Vec<Relative>,
    /// Per trial that has loops: whether they were steady.
    #[serde(default)]
    pub steadiness: Vec<Steadiness>,
    /// Per row that has repeats: the change over the loops that they share.
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
    /// The row that one of this test and number of clients is set against.
    pub fn row_of_baseline(&self, baseline: &str, row: &Row) -> Option<&Row> {
        self.row(&engine_in_test(baseline, row.test.as_deref()), row.clients)
    }

    /// The engines in the experiment's order, without tests.
    pub fn engines_alone(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.engine_alone()) {
                names.push(row.engine_alone());
            }
        }
        names
    }

    /// The row of an engine with this number of clients.
    pub fn row(&self, engine: &str, clients: u32) -> Option<&Row> {
        self.rows.iter().find(|row| row.engine == engine && row.clients == clients)
    }

    /// One engine over another with the same number of clients.
    pub fn relative(&self, baseline: &str, engine: &str, clients: u32) -> Option<&RelativeRow> {
        let against = self.relative.iter().find(|relative| relative.baseline == baseline)?;
        against.rows.iter().find(|row| row.engine == engine && row.clients == clients)
    }

    /// The numbers of clients of all rows that have this row's load, ascending: several where
    /// their loops started from copies of one load, which is then to be shown once, with the first.
    pub fn clients_of_load(&self, row: &Row) -> Vec<u32> {
        let same = |other: &&Row| {
            let trials = |row: &Row| row.load.as_ref().map(|load| load.trials.clone());
            other.engine == row.engine && (other.clients == row.clients || trials(other) == trials(row))
        };
        self.rows.iter().filter(same).map(|row| row.clients).collect()
    }

    /// The engines in the experiment's order.
    pub fn engines(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.engine.as_str()) {
                names.push(&row.engine);
            }
        }
        names
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
    /// The load, and the settle where a metric charges it.
    Load,
    /// All loops together, and the drain where a metric charges it.
    Run,
}

/// One metric of one engine in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// The other over the base, its interval and verdict.
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
    /// All numbers of clients that this is about: several where their loops started from one load in both runs.
    #[serde(default)]
    pub all_clients: Vec<u32>,
    /// Whether it is about the load or the loops.
    pub part: Part,
    /// What the base's repeats started from.
    #[serde(default)]
    pub base_starts: Starts,
    /// What the other's repeats started from.
    #[serde(default)]
    pub other_starts: Starts,
    /// Whether its trials went in turns with the other run's; if not, the host's drift is part of every ratio.
    #[serde(default)]
    pub in_turns: bool,
    /// Why nothing is decided though there are figures: a repeat's data failed its verification, or did not come through it.
    pub unsound: Option<String>,
    /// Conditions that the two do not have alike; `one` is the other run's engine and `other` the base's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparability: Vec<Unequal>,
    /// The metrics that at least one run has.
    pub metrics: Vec<Compared>,
    /// Of loops: what the change of the bytes written came from, where there is one and the engine counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenChange>,
}

impl ComparedRow {
    /// What its verdicts hold for.
    pub fn scope(&self) -> Scope {
        Starts::scope(&[self.base_starts, self.other_starts])
    }
}

/// An engine whose figures the base has and the other has not: nothing is known of what became of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// The engine's name in the base.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Whether it is about the load or the loops.
    pub part: Part,
    /// Why the other has no figures of it: it did not run, or failed in every repeat.
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
    /// Trials that did not end as planned; nothing is put in their place.
    pub unfinished: Vec<Unfinished>,
}

/// A condition that is not the same in both runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionChange {
    /// Its name; an engine's own are `ENGINE: name`, or `all engines: name` where each became the same.
    pub name: String,
    /// In the base; `None` when it does not name it.
    pub base: Option<String>,
    /// In the other; `None` when it does not name it.
    pub other: Option<String>,
}

/// One run against another, engine by engine and metric by metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The run whose figures the others are divided by.
    pub base: Side,
    /// The run whose figures are divided.
    pub other: Side,
    /// Conditions that differ: the first suspects.
    pub conditions: Vec<ConditionChange>,
    /// Engines and clients that both runs have.
    pub rows: Vec<ComparedRow>,
    /// Engines and clients of which the base alone has figures.
    #[serde(default)]
    pub unmatched: Vec<Unmatched>,
    /// Whether trials of both ran in turns; if not, what the host did between the runs is part of every ratio.
    pub interleaved: bool,
    /// The confidence level of the intervals: 0.95.
    pub level: f64,
    /// A whole interval within this of 1 is called the same: 0.01.
    pub margin: f64,
    /// How many headline verdicts the rows have.
    #[serde(default)]
    pub headline_verdicts: VerdictCount,
}
