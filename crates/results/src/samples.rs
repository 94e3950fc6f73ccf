//! Plans and records without any requests or counts: a test fills in the fields that it is about.

use std::collections::BTreeMap;

use crate::metric::{Metric, Metrics};
use crate::record::{
    BACKLOG_S, DriverKind, Interval, PhaseKind, PhaseRecord, Record, RunPlan, Spent, Status, TrialPart, TrialPlan,
};
use crate::results::{Results, Trial};
use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::Settings;

/// One loop of a second, and no warmup.
pub fn run_plan() -> RunPlan {
    RunPlan {
        load_clients: 1,
        driver: DriverKind::Auto,
        age_s: None,
        warmup_s: 0.0,
        warmup_most_s: None,
        loops: 1,
        loop_s: 1.0,
        rate: None,
        arrivals: None,
        aa: false,
        hardware_counters: false,
        prices: None,
        at_most_repeats: None,
        search: None,
        active_percent: None,
        client_steps: None,
        queue: None,
        backlog_s: BACKLOG_S,
        seed: 1,
        verify: true,
        crash_s: None,
        starts: 1,
        keep_data: false,
        interval_s: 1.0,
        stall_s: 60.0,
        fleet: None,
    }
}

/// A trial of the null engine, by one client.
pub fn trial_plan() -> TrialPlan {
    TrialPlan {
        number: 1,
        engine: EngineConfig::new("null"),
        facts: None,
        workload: "linkbench".to_owned(),
        workload_settings: Settings::default(),
        test: None,
        aged_by: None,
        clients: 1,
        repeat: 1,
        start: 1,
        part: TrialPart::Whole,
        loaded_by: None,
        probe: None,
        run: run_plan(),
    }
}

/// A trial that ended as planned.
pub fn record(plan: TrialPlan, phases: Vec<PhaseRecord>) -> Record {
    Record { status: Status::Done, phases, ..Record::of_plan(plan, "2024-01-01T00:00:00Z".to_owned()) }
}

/// A run with these trials, without facts about its experiment.
pub fn results(trials: Vec<Trial>) -> Results {
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
        trials,
        missing: Vec::new(),
    }
}

/// A phase that went to its end.
pub fn phase(phase: PhaseKind, seconds: f64) -> PhaseRecord {
    PhaseRecord {
        phase,
        start_s: 0.0,
        seconds,
        complete: true,
        suspended: None,
        ops: 0,
        op_types: BTreeMap::new(),
        conflicts: BTreeMap::new(),
        counted: BTreeMap::new(),
        backlog: None,
        metrics: Metrics::default(),
        spent: Spent::default(),
        debt_start: Vec::new(),
        debt_end: Vec::new(),
        counters: Vec::new(),
        checks: Vec::new(),
        promises: Vec::new(),
        recovery: None,
    }
}

/// A second of a phase.
pub fn interval(phase: PhaseKind, start_s: f64) -> Interval {
    Interval {
        start_s,
        seconds: 1.0,
        phase,
        ops: 0,
        errors: 0,
        retries: 0,
        statements: None,
        counts: BTreeMap::new(),
        counted: BTreeMap::new(),
        p50_ms: Metric::default(),
        p99_ms: Metric::default(),
        max_ms: Metric::default(),
        suspended_s: 0.0,
        active_clients: None,
        spent: Spent::default(),
    }
}
