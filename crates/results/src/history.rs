//! A history: the same experiment run repeatedly, and the change of each figure from one version or commit to the next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::Part;
use crate::metric::Metric;
use crate::ratio::Ratio;

/// The order of the runs of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// The version of the engine, by its numbers: 9.2 before 10.1.
    Version,
    /// The time of rumba's commit.
    Commit,
    /// When the run began.
    Started,
}

/// One run of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The directory of its results, as given by the user.
    pub directory: String,
    /// The experiment's name.
    pub name: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The commit of rumba that ran it, short; `null` if it is not known.
    pub commit: Option<String>,
    /// The time of that commit, RFC 3339.
    pub committed: Option<String>,
}

/// One figure of an engine in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The run, by its position in `points`, from 0.
    pub point: usize,
    /// The run's label on the axis: a version, a commit, a time.
    pub label: String,
    /// The engine's version.
    pub version: Option<String>,
    /// The number of repeats with the figure.
    pub repeats: u32,
    /// The figure of each of these repeats.
    pub values: Vec<f64>,
    /// The median of the repeats; absent, with the reason, if none has it.
    pub median: Metric,
    /// The ratio to the last run before it that has the figure, with its interval and verdict; `null` for the first.
    pub against: Option<Ratio>,
    /// The reason why figures exist without a verdict: a repeat's data failed its verification, or the verification did
    /// not end.
    pub unsound: Option<String>,
}

/// A change of a figure's level, over all repeats of all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelChange {
    /// The last run of the previous level, by its label.
    pub after: String,
    /// The first run of the new level, by its label.
    pub at: String,
    /// The mean of the repeats before it, since the previous change or the first run, in the metric's unit.
    pub from: f64,
    /// The mean of the repeats from here to the next change or the last run.
    pub to: f64,
    /// How often repeats that are dealt to the runs at random have a change as large, anywhere in the history.
    pub p: f64,
}

/// One figure of an engine over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// The engine's name in the experiments.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Whether it is about the load or the loops.
    pub part: Part,
    /// The metric's stable name, or `OP.p99_ms` for a type of operation.
    pub metric: String,
    /// The unit of the medians.
    pub unit: String,
    /// The order of the runs of this engine.
    pub by: Axis,
    /// The runs that have the engine, in the order of the axis.
    pub steps: Vec<Step>,
    /// The level changes, in the same order.
    pub changes: Vec<LevelChange>,
}

/// Runs of the same experiment, engine by engine and headline metric by headline metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The runs by their start.
    pub points: Vec<Point>,
    /// The figures.
    pub lines: Vec<Line>,
    /// Names of conditions that differ between runs, the first suspects for a change.
    pub differ: Vec<String>,
    /// The confidence level of the intervals: 0.95.
    pub level: f64,
    /// The margin within which a whole interval around 1 counts as the same: 0.01.
    pub margin: f64,
}
