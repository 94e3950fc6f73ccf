//! A single page that opens from disk: the built template of `web/` with the data inside.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rumba_results::comparison::{CHARGED, Row, Summary, metrics_by_rule};
use rumba_results::fleet::ClientHost;
use rumba_results::metric::{Better, METRICS, MetricInfo};
use rumba_results::record::{Interval, OpStats, PhaseKind, PhaseRecord, Record, Status, TrialPart};
use rumba_results::results::{Results, Trial};
use rumba_results::waits::waits_by_event;
use rumba_results::warning::Warning;
use serde::Serialize;

use crate::compact::compact;
use crate::flame::{Flame, Profile, flames};
use crate::gauges::{Gauges, gauges, points};
use crate::labels::Labels;
use crate::opening::{Opening, opening};
use crate::server::in_server;
use crate::tables::ending;
use crate::timeline::{Timeline, round, timeline};
use crate::verdict::repeats_from;
use crate::verdict::{Verdict, verdicts};

/// `web/` built by `npm run build`; `npm run asset` copies it here.
const TEMPLATE: &str = include_str!("../assets/page.html");
/// The placeholder of the data: the whole content of the page's data island.
const DATA: &str = "{\"rumba\":\"data\"}";
const TITLE: &str = "<title>rumba</title>";

/// The data of the page; `web/src/data.ts` mirrors it.
#[derive(Serialize)]
struct PageData<'a> {
    name: &'a str,
    /// The name and the compared versions.
    title: &'a str,
    /// The engines' names on the page, where these are not their own.
    labels: &'a BTreeMap<String, String>,
    source: Option<&'a str>,
    started: &'a str,
    rumba: &'a str,
    experiment: &'a str,
    conditions: &'a BTreeMap<String, String>,
    warnings: &'a [Warning],
    missing: &'a [String],
    /// The parts that the page reads.
    summary: serde_json::Value,
    baseline: Option<&'a str>,
    /// Engines that keep no data: they are no measure for the others, and are hidden by default.
    keep_nothing: Vec<&'a str>,
    verdicts: Vec<Verdict>,
    /// The text at the top of the page.
    opening: Opening,
    /// The loads behind the repeats, to follow their number: ` from one load of each engine`.
    repeats_from: String,
    metrics: Vec<MetricData<'a>>,
    trials: Vec<TrialData<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flames: Vec<Flame<'a>>,
    /// The addresses at which the page of an unfinished run gets updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<&'a LivePage<'a>>,
}

/// Addresses, relative to the page's own, from which the page of an unfinished run is updated.
#[derive(Serialize)]
pub struct LivePage<'a> {
    /// Returns the current [`page_data`].
    pub data: &'a str,
    /// Reports events as server-sent events; without it, the page polls `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<&'a str>,
    /// Stops the run on a POST request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<&'a str>,
    /// The list of past results.
    pub library: &'a str,
}

/// The description of a metric.
#[derive(Serialize)]
pub struct MetricData<'a> {
    name: &'a str,
    unit: &'static str,
    better: &'static str,
    help: &'static str,
}

#[derive(Serialize)]
struct TrialData<'a> {
    number: u32,
    engine: &'a str,
    registered: &'a str,
    clients: u32,
    repeat: u32,
    ended: Option<String>,
    workload: &'a str,
    version: Option<&'a str>,
    /// The origin of the engine.
    source: Option<&'a str>,
    /// The requested server, if the engine runs in one.
    server: Option<&'a str>,
    /// Unknown for an existing server, or if the engine's own setting has no equivalent in bytes.
    cache_bytes: Option<u64>,
    /// The same in words.
    cache: String,
    /// May be `not known` for an existing server.
    durability: String,
    /// The engine's own settings that define these, by the common setting that each overrides.
    set_by: BTreeMap<&'static str, String>,
    /// The effective compression if it is known, or else the requested one.
    compression: Option<&'a str>,
    reads: Option<String>,
    settings: BTreeMap<&'a str, String>,
    effective_settings: &'a [(String, String)],
    workload_settings: BTreeMap<&'a str, String>,
    conditions: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hosts: &'a [ClientHost],
    run: &'a rumba_results::record::RunPlan,
    phases: Vec<PhaseData<'a>>,
    spectrum: BTreeMap<&'a str, Vec<(f64, f64)>>,
    /// The number of unfinished operations, for types whose spectrum ends there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    censored: BTreeMap<&'a str, u64>,
    /// Waits of clients in the loops by the engine's own names, microseconds per operation, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<(String, f64)>,
    timeline: Timeline,
    gauges: Gauges,
}

#[derive(Serialize)]
struct PhaseData<'a> {
    phase: PhaseKind,
    seconds: f64,
    ops: u64,
    debt_start: &'a [rumba_engine_api::engine::Gauge],
    debt_end: &'a [rumba_engine_api::engine::Gauge],
    checks: &'a [rumba_engine_api::check::Check],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    promises: &'a [rumba_engine_api::acid::Promise],
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<&'a rumba_engine_api::acid::Recovery>,
}

/// Results as one self-contained page: no network, no other file.
pub fn html(results: &Results, summary: &Summary) -> String {
    html_with(results, summary, &[])
}

/// The same with the CPU profiles of the trials that were sampled.
pub fn html_with(results: &Results, summary: &Summary, profiles: &[Profile]) -> String {
    page(results, summary, &page_data(results, summary, profiles, None))
}

/// The page of an unfinished run, which fetches updates from the addresses in `live`.
pub fn live_html(results: &Results, summary: &Summary, profiles: &[Profile], live: &LivePage<'_>) -> String {
    page(results, summary, &page_data(results, summary, profiles, Some(live)))
}

/// The data of the page, as JSON. While the run continues (`live`), a trial without an end does not count as cut off.
pub fn page_data(results: &Results, summary: &Summary, profiles: &[Profile], live: Option<&LivePage<'_>>) -> String {
    let labels = Labels::of(results, summary);
    let labelled = labels.applied(summary);
    let mut verdicts = verdicts(summary);
    for (verdict, labelled) in verdicts.iter_mut().zip(crate::verdict::verdicts(&labelled)) {
        verdict.left_out = labelled.left_out;
    }
    let mut data = PageData {
        name: &results.name,
        title: &labels.title(&results.name, summary),
        labels: labels.by_name(),
        source: results.source.as_deref(),
        started: &results.started,
        rumba: &results.rumba,
        experiment: &results.experiment,
        conditions: &results.conditions,
        warnings: &results.warnings,
        missing: &results.missing,
        summary: read_by_page(summary),
        baseline: summary.default_baseline(),
        keep_nothing: keep_nothing(summary),
        verdicts,
        opening: opening(results, &labelled),
        repeats_from: repeats_from(summary),
        metrics: metrics_data(summary),
        trials: trials_data(results, summary),
        flames: flames(profiles),
        live,
    };
    if live.is_some() {
        let goes_on = |number: u32| {
            let mut trials = results.trials.iter().map(|trial| &trial.record);
            trials.any(|record| record.plan.number == number && record.status == Status::Running)
        };
        data.trials.iter_mut().filter(|trial| goes_on(trial.number)).for_each(|trial| trial.ended = None);
    }
    compact(&data).expect("plain values with text keys always serialise")
}

/// The summary without the parts of ratios that the page does not read or takes as given: most of a large page is ratios.
fn read_by_page(summary: &Summary) -> serde_json::Value {
    let mut value = serde_json::to_value(summary).unwrap_or_default();
    let relative = value["relative"].as_array_mut().into_iter().flatten();
    let rows = relative.filter_map(|relative| relative["rows"].as_array_mut()).flatten();
    for ratio in rows.filter_map(|row| row["metrics"].as_array_mut()).flatten().filter_map(|it| it.as_object_mut()) {
        ratio.retain(|name, value| match name.as_str() {
            "unit" | "p" => false,
            "scope" => value != "loads",
            "low" | "high" | "more_repeats" => value.is_number(),
            _ => true,
        });
    }
    value
}

fn page(results: &Results, summary: &Summary, data: &str) -> String {
    filled(&Labels::of(results, summary).title(&results.name, summary), data)
}

/// The page with this title and these data.
pub fn filled(title: &str, data: &str) -> String {
    let title = format!("<title>{} – rumba</title>", escape_text(title));
    TEMPLATE.replacen(TITLE, &title, 1).replacen(DATA, &escape_island(data), 1)
}

fn keep_nothing(summary: &Summary) -> Vec<&str> {
    let nothing = |engine: &&str| summary.rows.iter().any(|row| row.engine == *engine && row.keeps_nothing());
    summary.engines().into_iter().filter(nothing).collect()
}

/// JSON that cannot end its script element or open a comment in it. A `<` occurs only inside a JSON string, where an
/// escape may replace it.
fn escape_island(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The listed metrics, those that the engines' own counters make, and those that the workload reports.
fn metrics_data(summary: &Summary) -> Vec<MetricData<'_>> {
    let by_rule: BTreeMap<&str, &MetricInfo> =
        summary.rows.iter().filter_map(|row| row.run.as_ref()).flat_map(metrics_by_rule).collect();
    let listed = METRICS.iter().chain(CHARGED).map(|info| metric_data(info.name, info));
    listed.chain(by_rule.into_iter().map(|(name, info)| metric_data(name, info))).collect()
}

/// The description of a metric for the page.
pub fn metric_data<'a>(name: &'a str, info: &MetricInfo) -> MetricData<'a> {
    let better = match info.better {
        Better::More => "more",
        Better::Less => "less",
        Better::Neither => "neither",
    };
    MetricData { name, unit: info.unit, better, help: info.help.trim() }
}

/// The trials that ran, then the loads from which they started. A load is listed once for each number of clients,
/// because each is shown with its load.
fn trials_data<'a>(results: &'a Results, summary: &'a Summary) -> Vec<TrialData<'a>> {
    let is_load = |trial: &&Trial| trial.record.plan.part == TrialPart::Load;
    let points = points(results.trials.iter());
    let runs = results.trials.iter().filter(|trial| !is_load(trial));
    let mut all: Vec<TrialData<'a>> = runs.map(|trial| trial_data(trial, points)).collect();
    for load in results.trials.iter().filter(is_load) {
        // Engines with the same load settings share one load, which has the name of the first engine.
        let started_from = |engine: &str| {
            let of_engine = |trial: &&Trial| trial.record.plan.engine.name == engine;
            results
                .trials
                .iter()
                .filter(of_engine)
                .any(|run| run.record.plan.loaded_by == Some(load.record.plan.number))
        };
        let is_shown = |row: &&Row| row.engine == load.record.plan.engine.name || started_from(&row.engine);
        for (shown, row) in summary.rows.iter().filter(is_shown).enumerate() {
            let mut data = trial_data(load, points);
            (data.engine, data.clients) = (&row.engine, row.clients);
            // The end of a trial is reported only once.
            data.ended = data.ended.filter(|_| shown == 0);
            all.push(data);
        }
    }
    all
}

fn trial_data(trial: &Trial, points: usize) -> TrialData<'_> {
    let record = &trial.record;
    let (plan, engine) = (&record.plan, &record.plan.engine);
    let done = record.status == Status::Done;
    let (cache, durability) = (plan.given_cache(), plan.given_durability());
    let set_by = [("cache", cache.by), ("durability", durability.by)];
    let facts = plan.facts.as_ref();
    TrialData {
        number: plan.number,
        engine: &engine.name,
        registered: &engine.engine,
        clients: plan.clients,
        repeat: plan.repeat,
        ended: (!done).then(|| ending(&record.status)),
        workload: &plan.workload,
        version: record.version.as_deref(),
        source: record.source.as_deref(),
        server: in_server(record).then(|| engine.server.as_deref().unwrap_or("the usual one")),
        cache_bytes: cache.value,
        cache: cache.reported,
        durability: durability.reported,
        set_by: set_by.into_iter().filter_map(|(common, by)| Some((common, by?))).collect(),
        compression: facts.and_then(|facts| facts.compression.as_deref()).or(engine.compression.as_deref()),
        reads: facts.and_then(|facts| facts.reads).map(|reads| reads.to_string()),
        settings: shown(&engine.settings),
        effective_settings: &record.effective_settings,
        workload_settings: shown(&plan.workload_settings),
        conditions: &record.conditions,
        hosts: &record.hosts,
        run: &plan.run,
        phases: record.phases.iter().map(phase_data).collect(),
        spectrum: spectrum(record),
        censored: censored(record),
        waits: waits(record),
        timeline: timeline(&shown_intervals(trial), &trial.course),
        gauges: gauges(trial, points),
    }
}

fn waits(record: &Record) -> Vec<(String, f64)> {
    waits_by_event(std::iter::once(record)).into_iter().map(|(event, us)| (event, round(us))).collect()
}

/// The load is shown separately from the loops. A settle in a trial that did not load belongs to neither.
fn shown_intervals(trial: &Trial) -> Cow<'_, [Interval]> {
    if trial.record.plan.part != TrialPart::Run {
        return Cow::Borrowed(&trial.intervals);
    }
    trial.intervals.iter().filter(|interval| interval.phase != PhaseKind::Settle).cloned().collect()
}

fn shown(settings: &rumba_engine_api::setting::Settings) -> BTreeMap<&str, String> {
    settings.0.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect()
}

/// Deferred work of all loops together and of the drain; the gauges have that of single loops.
fn phase_data(phase: &PhaseRecord) -> PhaseData<'_> {
    let (debt_start, debt_end) = match phase.phase {
        PhaseKind::Loop(_) => ([].as_slice(), [].as_slice()),
        _ => (phase.debt_start.as_slice(), phase.debt_end.as_slice()),
    };
    PhaseData {
        phase: phase.phase,
        seconds: round(phase.seconds),
        ops: phase.ops,
        debt_start,
        debt_end,
        checks: &phase.checks,
        promises: &phase.promises,
        recovery: phase.recovery.as_ref(),
    }
}

/// With fewer operations beyond it, a percentile is not reliable.
const BEYOND: u64 = 10;

/// All loops together, or the last loop of a partial trial.
fn loops(record: &Record) -> Option<&PhaseRecord> {
    record.phase(PhaseKind::Loops).or_else(|| record.loops().last())
}

/// The spectrum of each type of operation. It ends where there are too few operations beyond a percentile, or where
/// some of them are unfinished, because their times are truncated.
fn spectrum(record: &Record) -> BTreeMap<&str, Vec<(f64, f64)>> {
    let Some(run) = loops(record) else { return BTreeMap::new() };
    let points = |op: &OpStats| {
        let least = BEYOND.max(not_ended(run, op)) as f64;
        let timed = (op.count + op.errors + op.ended_late + op.open) as f64;
        let is_known = |percentile: f64| (1.0 - percentile / 100.0) * timed >= least;
        let known = op.spectrum.iter().filter(|(percentile, _)| is_known(*percentile));
        known.map(|(percentile, ms)| (*percentile, round(*ms))).collect()
    };
    run.op_types.iter().map(|(name, op)| (name.as_str(), points(op))).collect()
}

/// The types with so many unfinished operations that a percentile has too few samples beyond it.
fn censored(record: &Record) -> BTreeMap<&str, u64> {
    let Some(run) = loops(record) else { return BTreeMap::new() };
    let of = run.op_types.iter().map(|(name, op)| (name.as_str(), not_ended(run, op)));
    of.filter(|(_, count)| *count > BEYOND).collect()
}

/// Operations of a type that were still open at the end, and arrivals that may have become one.
fn not_ended(run: &PhaseRecord, op: &OpStats) -> u64 {
    op.open + run.backlog.as_ref().map_or(0, |backlog| backlog.not_begun)
}
