//! The JSON of `rumba report --json`, and its schema.

use std::collections::BTreeMap;

use rumba_engine_api::engine::{EngineConfig, EngineFacts};
use rumba_engine_api::setting::Settings;
use rumba_results::build::Build;
use rumba_results::comparison::{CHARGED, Comparison, Part, PhaseFigures, Proof, Summary, Suspended};
use rumba_results::counted::metrics_of_record;
use rumba_results::fleet::ClientHost;
use rumba_results::gate::Gated;
use rumba_results::metric::Metric;
use rumba_results::prices::PRICED;
use rumba_results::record::{FORMAT, PhaseKind, PhaseRecord, Record, RunPlan, Status, TrialPart};
use rumba_results::results::Results;
use rumba_results::tally::tallies_of_record;
use rumba_results::warning::Warning;
use schemars::JsonSchema;
use serde::Serialize;

use crate::server::in_server;
use crate::written::{PhaseWritten, written};

/// Results for other programs. A metric is a number, or `{"absent": "the reason"}` if there is none.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "rumba report")]
pub struct Document {
    /// The version of this format, increased when a field changes its meaning.
    pub format: u32,
    /// The experiment's name.
    pub experiment: String,
    /// The publication that it reproduces, if any.
    pub source: Option<String>,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of rumba that ran it.
    pub rumba: String,
    /// The build of it, with its commit; `null` in results of versions that did not store it.
    pub build: Option<Build>,
    /// The experiment as run, TOML.
    pub experiment_toml: String,
    /// The host and everything that is common to all trials, by name.
    pub conditions: BTreeMap<String, String>,
    /// The trials in the order of running.
    pub trials: Vec<TrialDocument>,
    /// Figures over the repeats: per engine and number of clients, all values and their median.
    pub summary: Summary,
    /// For a run that holds a base and another: their comparison, as `rumba compare --json` has it.
    pub comparison: Option<Comparison>,
    /// Warnings about the host and about parity between the engines.
    pub warnings: Vec<Warning>,
    /// Missing parts: trials not run, truncated files.
    pub missing: Vec<String>,
}

/// How a trial ended, in one word.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusWord {
    /// Cut off while it ran.
    Running,
    /// As planned.
    Done,
    /// It failed; the values measured so far are kept.
    Failed,
    /// Stopped by its user.
    Interrupted,
    /// It ran to its end and was suspended meanwhile; `suspended` of its phases has the details.
    Suspended,
}

/// The reason why a trial failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Failure {
    /// The phase it failed in.
    pub phase: PhaseKind,
    /// The cause, for people.
    pub cause: String,
}

/// The server that an engine ran in; its version is the trial's.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServerDocument {
    /// The requested server: a release, a base directory, a DSN without its password.
    #[serde(rename = "asked")]
    pub requested: Option<String>,
    /// Its origin: its program's path, or its address.
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
    /// The engine as the experiment configures it.
    pub engine_settings: EngineConfig,
    /// Facts about the engine; `null` in records without them.
    pub engine_facts: Option<EngineFacts>,
    /// The effective settings, by the engine's own names.
    pub effective_settings: BTreeMap<String, String>,
    /// The workload's name.
    pub workload: String,
    /// The workload's settings.
    pub workload_settings: Settings,
    /// Its run settings.
    pub run: RunPlan,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Which repeat, from 1; for a trial that only loads, which load of this engine.
    pub repeat: u32,
    /// Which of its phases it ran.
    pub part: TrialPart,
    /// The number of the trial from whose data it started, as a copy; `null` when it loaded its own.
    pub loaded_by: Option<u32>,
    /// How it ended.
    pub status: StatusWord,
    /// The reason for a failure.
    pub failure: Option<Failure>,
    /// When it began, RFC 3339.
    pub started: String,
    /// The build of rumba that ran it, which may differ from the first trial's after `--resume`.
    pub build: Option<Build>,
    /// The engine's version.
    pub version: Option<String>,
    /// The path of an embedded engine's library.
    pub library: Option<String>,
    /// The server, when the engine runs in one.
    pub server: Option<ServerDocument>,
    /// Conditions of this trial, by name.
    pub conditions: BTreeMap<String, String>,
    /// The hosts of the clients; absent if they ran in the trial's own process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<ClientHost>,
    /// CPU microseconds per operation of rumba itself on this host: the workload over an engine that keeps no data.
    pub harness_cpu_us_per_op: Metric,
    /// The phases as they ended; `loops` is all loops together.
    pub phases: Vec<PhaseRecord>,
    /// Metrics that include the settle in the load or the drain in the operations, by name.
    pub charged: BTreeMap<String, Metric>,
    /// Bytes written by purpose in warmup and in each loop, by the engine's own counters.
    pub written: Vec<PhaseWritten>,
    /// The trial's own warnings and those that follow from its figures. Warnings about all repeats together are in the
    /// summary's `remarks`.
    pub warnings: Vec<Warning>,
}

/// Results as a JSON value that follows `docs/report.schema.json`; `comparison` is that of the run's own sides.
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

/// One run compared with another, for other programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "rumba compare")]
pub struct ComparisonDocument {
    /// The version of this format, increased when a field changes its meaning.
    pub format: u32,
    /// The comparison; each of its fields is a field of the JSON.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The result of each `--fail-if`, engine by engine.
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

/// A schema with an id that contains the format's version and no address; validators distinguish schemas by it.
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
            .then(|| ServerDocument { requested: plan.engine.server.clone(), source: record.source.clone() }),
        conditions: record.conditions.clone(),
        hosts: record.hosts.clone(),
        harness_cpu_us_per_op: record.harness_cpu_us_per_op.clone(),
        phases: record.phases.clone(),
        charged: charged_metrics(record).map(|name| (name.clone(), charged(record, summary, &name))).collect(),
        written: written(record),
        warnings: of_trial.map(|remark| remark.warning.clone()).collect(),
    }
}

/// How a trial ended, in one word, and the reason for a failure.
pub fn status_word(status: &Status) -> (StatusWord, Option<Failure>) {
    match status {
        Status::Running => (StatusWord::Running, None),
        Status::Done => (StatusWord::Done, None),
        Status::Interrupted => (StatusWord::Interrupted, None),
        Status::Suspended { .. } => (StatusWord::Suspended, None),
        Status::Failed { phase, cause } => (StatusWord::Failed, Some(Failure { phase: *phase, cause: cause.clone() })),
    }
}

/// The names of the metrics that include deferred work, of those made from counters of the engine and of the workload,
/// and of those that the workload reports.
pub fn charged_metrics(record: &Record) -> impl Iterator<Item = String> {
    let by_rule = metrics_of_record(record).into_iter().chain(record.rates()).chain(tallies_of_record(record));
    let is_priced = record.plan.run.prices.is_some();
    let listed = CHARGED.iter().map(|info| info.name).filter(move |name| is_priced || !PRICED.contains(name));
    listed.map(str::to_owned).chain(by_rule)
}

/// A trial's own figure that includes deferred work, from the load or the loops of its row.
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
