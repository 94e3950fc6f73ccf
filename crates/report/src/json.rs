//! The JSON of `rumba report --json`, and its schema.

use std::collections::BTreeMap;

use rumba_core::build::Build;
use rumba_core::comparison::{CHARGED, Comparison, Part, PhaseFigures, Proof, Summary, Suspended};
use rumba_core::counted::metrics_of_record;
use rumba_core::engine::{EngineConfig, EngineFacts};
use rumba_core::gate::Gated;
use rumba_core::metric::Metric;
use rumba_core::record::{FORMAT, PhaseKind, PhaseRecord, Record, RunPlan, Status, TrialPart};
use rumba_core::results::Results;
use rumba_core::setting::Settings;
use rumba_core::warning::Warning;
use schemars::JsonSchema;
use serde::Serialize;

use crate::server::in_server;
use crate::written::{PhaseWritten, written};

/// Results as other programs read them. A metric is a number, or
/// `{"absent": "the reason"}` where there is none.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "rumba report")]
pub struct Document {
    /// The version of this format; it grows when a field changes its meaning.
    pub format: u32,
    /// The experiment's name.
    pub experiment: String,
    /// What it reproduces, if anything.
    pub source: Option<String>,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of rumba that ran it.
    pub rumba: String,
    /// The build of it, with its commit; `null` in results of versions that did not say it.
    pub build: Option<Build>,
    /// The experiment as run, TOML.
    pub experiment_toml: String,
    /// The host and what is common to all trials, by name.
    pub conditions: BTreeMap<String, String>,
    /// The trials in the order of running.
    pub trials: Vec<TrialDocument>,
    /// Figures over the repeats: per engine and number of clients, all values and their median.
    pub summary: Summary,
    /// Of a run that holds a base and another: the one over the other, as `rumba compare --json` has it.
    pub comparison: Option<Comparison>,
    /// Warnings about the host and about parity between the engines.
    pub warnings: Vec<Warning>,
    /// What could not be read: trials not run, files cut off.
    pub missing: Vec<String>,
}

/// How a trial ended, in a word.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusWord {
    /// Cut off while it ran.
    Running,
    /// As planned.
    Done,
    /// It failed; what was measured stands.
    Failed,
    /// Stopped by its user.
    Interrupted,
    /// It went to its end, and was suspended on the way: `suspended` of its phases says where.
    Suspended,
}

/// Why a trial failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Failure {
    /// The phase it failed in.
    pub phase: PhaseKind,
    /// The cause, for a person.
    pub cause: String,
}

/// The server that an engine ran in; its version is the trial's.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServerDocument {
    /// What the experiment asks for: a release, a base directory, a DSN without its password.
    pub asked: Option<String>,
    /// Where it came from: its program's path, or its address.
    pub source: Option<String>,
}

/// One trial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrialDocument {
    /// Its number in the order of running.
    pub number: u32,
    /// Its directory below the results directory.
    pub directory: String,
    /// The engine's name in the experiment.
    pub engine: String,
    /// The engine as the experiment asks for it.
    pub engine_settings: EngineConfig,
    /// What the engine is; `null` of records that do not say it.
    pub engine_facts: Option<EngineFacts>,
    /// The settings in force, by the engine's own names.
    pub effective_settings: BTreeMap<String, String>,
    /// The workload's name.
    pub workload: String,
    /// The workload's settings.
    pub workload_settings: Settings,
    /// How it was run.
    pub run: RunPlan,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Which repeat, from 1; of a trial that only loads, which load of this engine.
    pub repeat: u32,
    /// Which of its phases it ran.
    pub part: TrialPart,
    /// The number of the trial whose data it started from a copy of; `null` when it loaded its own.
    pub loaded_by: Option<u32>,
    /// How it ended.
    pub status: StatusWord,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// When it began, RFC 3339.
    pub started: String,
    /// The build of rumba that ran it: after `--resume` not always the first one's.
    pub build: Option<Build>,
    /// The engine's version.
    pub version: Option<String>,
    /// Where an embedded engine was loaded from.
    pub library: Option<String>,
    /// The server, when the engine runs in one.
    pub server: Option<ServerDocument>,
    /// Conditions of this trial, by name.
    pub conditions: BTreeMap<String, String>,
    /// CPU microseconds per operation of rumba itself on this host: the workload over an engine that keeps nothing.
    pub harness_cpu_us_per_op: Metric,
    /// The phases as they ended; `loops` is all loops together.
    pub phases: Vec<PhaseRecord>,
    /// Metrics that charge the settle to the load and the drain to the operations, by name.
    pub charged: BTreeMap<String, Metric>,
    /// Of warmup and loops one by one: what their bytes were written for, by the engine's own counters.
    pub written: Vec<PhaseWritten>,
    /// The trial's own warnings and those that follow from its figures; what is said of all repeats together is one of
    /// the summary's `remarks`.
    pub warnings: Vec<Warning>,
}

/// Results as a JSON value that follows `docs/report.schema.json`; `comparison` is of the run's own sides.
pub fn json(results: &Results, summary: &Summary, comparison: Option<&Comparison>) -> serde_json::Value {
    let document = Document {
        format: FORMAT,
        experiment: results.name.clone(),
        source: results.source.clone(),
        started: results.started.clone(),
        rumba: results.rumba.clone(),
        build: results.build.clone(),
        experiment_toml: results.experiment.clone(),
        conditions: results.conditions.clone(),
        trials: results.trials.iter().map(|trial| trial_document(&trial.directory, &trial.record, summary)).collect(),
        summary: summary.clone(),
        comparison: comparison.cloned(),
        warnings: results.warnings.clone(),
        missing: results.missing.clone(),
    };
    serde_json::to_value(document).expect("plain values with text keys always serialise")
}

/// One run against another as other programs read it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "rumba compare")]
pub struct ComparisonDocument {
    /// The version of this format; it grows when a field changes its meaning.
    pub format: u32,
    /// The comparison; of its fields each is one of the JSON's.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// What came of each `--fail-if`, engine by engine.
    pub fail_if: Vec<Gated>,
}

/// A comparison as a JSON value that follows `docs/compare.schema.json`.
pub fn comparison_json(comparison: &Comparison, gated: &[Gated]) -> serde_json::Value {
    let document = ComparisonDocument { format: FORMAT, comparison: comparison.clone(), fail_if: gated.to_vec() };
    serde_json::to_value(document).expect("plain values with text keys always serialise")
}

/// The JSON Schema of [`json`]'s value.
pub fn schema() -> serde_json::Value {
    schema_of::<Document>("report")
}

/// The JSON Schema of [`comparison_json`]'s value.
pub fn comparison_schema() -> serde_json::Value {
    schema_of::<ComparisonDocument>("compare")
}

/// A schema under its own name, which says the format's version and no place: validators keep several apart by it.
pub fn schema_of<T: JsonSchema>(name: &str) -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema["$id"] = format!("urn:rumba:schema:{name}:{FORMAT}").into();
    schema
}

fn trial_document(directory: &str, record: &Record, summary: &Summary) -> TrialDocument {
    let plan = &record.plan;
    let (status, failure) = status_word(&record.status);
    let of_trial = summary.remarks.iter().filter(|remark| remark.about.trial == Some(plan.number));
    TrialDocument {
        number: plan.number,
        directory: directory.to_owned(),
        engine: plan.engine.name.clone(),
        engine_settings: plan.engine.clone(),
        engine_facts: plan.facts.clone(),
        effective_settings: record.effective_settings.iter().cloned().collect(),
        workload: plan.workload.clone(),
        workload_settings: plan.workload_settings.clone(),
        run: plan.run.clone(),
        clients: plan.clients,
        repeat: plan.repeat,
        part: plan.part,
        loaded_by: plan.loaded_by,
        status,
        failure,
        started: record.started.clone(),
        build: record.build.clone(),
        version: record.version.clone(),
        library: record.source.clone().filter(|_| !in_server(record)),
        server: in_server(record)
            .then(|| ServerDocument { asked: plan.engine.server.clone(), source: record.source.clone() }),
        conditions: record.conditions.clone(),
        harness_cpu_us_per_op: record.harness_cpu_us_per_op.clone(),
        phases: record.phases.clone(),
        charged: charged_metrics(record).map(|name| (name.clone(), charged(record, summary, &name))).collect(),
        written: written(record),
        warnings: of_trial.map(|remark| remark.warning.clone()).collect(),
    }
}

fn status_word(status: &Status) -> (StatusWord, Option<Failure>) {
    match status {
        Status::Running => (StatusWord::Running, None),
        Status::Done => (StatusWord::Done, None),
        Status::Interrupted => (StatusWord::Interrupted, None),
        Status::Suspended { .. } => (StatusWord::Suspended, None),
        Status::Failed { phase, cause } => (StatusWord::Failed, Some(Failure { phase: *phase, cause: cause.clone() })),
    }
}

/// The names of the metrics that charge work put off, of those that the engine's counters make, and of those that the
/// workload reports.
pub fn charged_metrics(record: &Record) -> impl Iterator<Item = String> {
    let by_rule = metrics_of_record(record).into_iter().chain(record.rates());
    CHARGED.iter().map(|info| info.name.to_owned()).chain(by_rule)
}

/// A trial's own charged figure, found in its row: in the load's figures or in the loops'.
pub fn charged(record: &Record, summary: &Summary, metric: &str) -> Metric {
    let row = summary.row(&record.plan.engine.name, record.plan.clients);
    let parts = row.into_iter().flat_map(|row| [row.load.as_ref(), row.run.as_ref()]).flatten();
    let value = |figures: &PhaseFigures| figures.of_trial(figures.metrics.get(metric)?, record.plan.number).cloned();
    let unsound = row.and_then(|row| row.unsound.iter().find(|unsound| unsound.trial == record.plan.number));
    if let Some(unsound) = unsound {
        return Metric::absent(match unsound.proof {
            Proof::Failed => "its data failed its verification",
            Proof::CutOff => "the verification of its data did not end",
        });
    }
    let (part, of) = if metric.ends_with("_with_settle") { ("load", Part::Load) } else { ("loops", Part::Run) };
    let was_suspended = |suspended: &Suspended| suspended.trial == record.plan.number && suspended.part == of;
    if row.is_some_and(|row| row.suspended.iter().any(was_suspended)) {
        return Metric::absent(format!("its measurement was suspended: {part}"));
    }
    let left_out = row.and_then(|row| row.why_left_out(record.plan.number, of));
    let why = left_out.map_or_else(|| format!("the trial did not end its {part}"), str::to_owned);
    parts.filter_map(value).next().unwrap_or_else(|| Metric::absent(why))
}
