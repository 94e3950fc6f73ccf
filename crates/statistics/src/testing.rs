//! Small records for this module's tests.

use std::collections::BTreeMap;

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::EngineConfig;
use rumba_results::metric::{Metric, Metrics};
use rumba_results::ratio::{Change, Ratio};
use rumba_results::record::{OpStats, PhaseKind, PhaseRecord, Record, RunPlan, Spent, Status, TrialPlan};
use rumba_results::results::{Results, Trial};
use rumba_results::samples;
use rumba_results::starts::Scope;

/// A phase with these operations and device bytes written; one CPU millisecond per operation.
pub fn phase(phase: PhaseKind, seconds: f64, ops: u64, written: f64) -> PhaseRecord {
    let metrics = Metrics {
        ops_per_s: Metric::from(ops as f64 / seconds),
        wkb_per_op: Metric::from(written / 1024.0).per(ops as f64, "operations"),
        ..Metrics::default()
    };
    let spent = Spent {
        device_write_bytes: Metric::from(written),
        process_write_bytes: Metric::from(written),
        client_cpu_s: Metric::from(ops as f64 * 1e-3),
        background_cpu_s: Metric::from(0.0),
        cpu_s: Metric::from(ops as f64 * 1e-3),
        ..Spent::default()
    };
    let mut get = OpStats { count: ops, ..OpStats::default() };
    get.response.p99_ms = Metric::Value(2.0);
    let op_types = BTreeMap::from([("get_node".to_owned(), get)]);
    PhaseRecord { ops, op_types, metrics, spent, ..samples::phase(phase, seconds) }
}

/// A trial that ended as planned: a load, a warmup, two loops, and negligible deferred work.
pub fn record(engine: &str, clients: u32, repeat: u32) -> Record {
    let engine = EngineConfig::new(engine);
    let run = RunPlan { load_clients: 4, warmup_s: 10.0, loops: 2, loop_s: 10.0, ..samples::run_plan() };
    let phases = vec![
        phase(PhaseKind::Load, 10.0, 100_000, 1e9),
        phase(PhaseKind::Warmup, 10.0, 20_000, 1e8),
        phase(PhaseKind::Loop(1), 10.0, 20_000, 1e8),
        phase(PhaseKind::Loop(2), 10.0, 20_000, 1e8),
        phase(PhaseKind::Loops, 20.0, 40_000, 2e8),
        phase(PhaseKind::Drain, 1.0, 0, 1e6),
    ];
    let plan = TrialPlan { engine, clients, repeat, run, ..samples::trial_plan() };
    Record { version: Some("1.0".to_owned()), ..samples::record(plan, phases) }
}

/// A repeat of an engine for each of these rates.
pub fn at_rates(engine: &str, rates: &[f64]) -> Vec<Record> {
    let at_rate = |(repeat, rate): (u32, &f64)| {
        let mut record = record(engine, 8, repeat);
        record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::Value(*rate));
        record
    };
    (1..).zip(rates).map(at_rate).collect()
}

/// Results of these records, numbered in order.
pub fn results(records: Vec<Record>) -> Results {
    let trials = records.into_iter().zip(1..).map(|(mut record, number)| {
        record.plan.number = number;
        Trial { directory: format!("trials/{number:03}"), record, intervals: Vec::new(), course: Default::default() }
    });
    samples::results(trials.collect())
}

/// Two runs whose trials took turns, a minute each.
pub fn taking_turns(mut base: Results, mut other: Results) -> (Results, Results) {
    for (run, first) in [(&mut base, 0), (&mut other, 1)] {
        for (trial, turn) in run.trials.iter_mut().zip(0..) {
            trial.record.started = format!("2024-01-01T10:{:02}:00Z", 2 * turn + first);
        }
    }
    (base, other)
}

/// Makes the trial's verification fail.
pub fn break_data(record: &mut Record) {
    let check = Check { name: "counts match".to_owned(), examined: 9, wrong: 2, examples: vec!["id 7".to_owned()] };
    let mut verify = phase(PhaseKind::Verify, 1.0, 0, 0.0);
    verify.checks = vec![check];
    record.phases.push(verify);
    let cause = "the data is inconsistent".to_owned();
    record.status = Status::Failed { phase: PhaseKind::Verify, cause };
}

pub fn worse_ratio(metric: &str) -> Ratio {
    Ratio {
        metric: metric.to_owned(),
        unit: "1/s".to_owned(),
        headline: false,
        ratio: Metric::Value(1.2),
        low: Metric::Value(1.1),
        high: Metric::Value(1.3),
        change: Change::Worse,
        scope: Scope::default(),
        p: Some(0.01),
        more_repeats: None,
        lacking: None,
    }
}

/// A standard normal value, by the method of Box and Muller.
pub fn normal(random: &mut impl rand::Rng) -> f64 {
    use rand::RngExt as _;
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
