//! Small records for this module's tests.

use std::collections::BTreeMap;

use rumba_core::check::Check;
use rumba_core::engine::EngineConfig;
use rumba_core::metric::{Metric, Metrics};
use rumba_core::record::{FORMAT, OpStats, PhaseKind, PhaseRecord, Record, RunPlan, Spent, Status, TrialPlan};
use rumba_core::results::{Results, Trial};
use rumba_core::setting::Settings;

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
    PhaseRecord {
        phase,
        start_s: 0.0,
        seconds,
        backlog: None,
        complete: true,
        suspended: None,
        ops,
        op_types: BTreeMap::from([("get_node".to_owned(), get)]),
        conflicts: BTreeMap::new(),
        metrics,
        spent,
        debt_start: Vec::new(),
        debt_end: Vec::new(),
        counters: Vec::new(),
        checks: Vec::new(),
        promises: Vec::new(),
        recovery: None,
    }
}

/// A trial that ended as planned: a load, a warmup, two loops, and no debt to speak of.
pub fn record(engine: &str, clients: u32, repeat: u32) -> Record {
    let engine = EngineConfig::new(engine);
    let run = RunPlan {
        load_clients: 4,
        driver: rumba_core::record::DriverKind::Auto,
        warmup_s: 10.0,
        age_s: None,
        warmup_most_s: None,
        loops: 2,
        loop_s: 10.0,
        rate: None,
        arrivals: None,
        search: None,
        active_percent: None,
        queue: None,
        backlog_s: 30.0,
        seed: 1,
        verify: true,
        crash_s: None,
        keep_data: false,
        interval_s: 1.0,
        stall_s: 60.0,
    };
    let plan = TrialPlan {
        number: 1,
        engine,
        facts: None,
        workload: "linkbench".to_owned(),
        workload_settings: Settings::default(),
        test: None,
        clients,
        repeat,
        part: Default::default(),
        loaded_by: None,
        probe: None,
        run,
    };
    Record {
        format: FORMAT,
        plan,
        status: Status::Done,
        started: "2024-01-01T00:00:00Z".to_owned(),
        build: None,
        version: Some("1.0".to_owned()),
        source: None,
        effective_settings: Vec::new(),
        conditions: BTreeMap::new(),
        harness_cpu_us_per_op: Metric::default(),
        phases: vec![
            phase(PhaseKind::Load, 10.0, 100_000, 1e9),
            phase(PhaseKind::Warmup, 10.0, 20_000, 1e8),
            phase(PhaseKind::Loop(1), 10.0, 20_000, 1e8),
            phase(PhaseKind::Loop(2), 10.0, 20_000, 1e8),
            phase(PhaseKind::Loops, 20.0, 40_000, 2e8),
            phase(PhaseKind::Drain, 1.0, 0, 1e6),
        ],
        warnings: Vec::new(),
    }
}

/// Results of these records, numbered in order.
pub fn results(records: Vec<Record>) -> Results {
    let trials = records.into_iter().zip(1..).map(|(mut record, number)| {
        record.plan.number = number;
        Trial { directory: format!("trials/{number:03}"), record, intervals: Vec::new(), course: Default::default() }
    });
    Results {
        name: "test".to_owned(),
        source: None,
        experiment: String::new(),
        started: "2024-01-01T00:00:00Z".to_owned(),
        rumba: "0.1.0".to_owned(),
        build: None,
        conditions: BTreeMap::new(),
        warnings: Vec::new(),
        claims: Vec::new(),
        trials: trials.collect(),
        missing: Vec::new(),
    }
}

/// The trial's verification finds its data broken.
pub fn break_data(record: &mut Record) {
    let check = Check { name: "counts match".to_owned(), examined: 9, wrong: 2, examples: vec!["id 7".to_owned()] };
    let mut verify = phase(PhaseKind::Verify, 1.0, 0, 0.0);
    verify.checks = vec![check];
    record.phases.push(verify);
    let cause = "the data is inconsistent".to_owned();
    record.status = Status::Failed { phase: PhaseKind::Verify, cause };
}
