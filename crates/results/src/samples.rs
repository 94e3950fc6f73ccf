//! Plans and records without any requests or counts: a test fills in the fields that it is about.

use crate::record::{BACKLOG_S, Interval, PhaseKind, PhaseRecord, Record, RunPlan, Status, TrialPart, TrialPlan};
use crate::results::{Results, Trial};
use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::Settings;

/// One loop of a second, and no warmup.
pub fn run_plan() -> RunPlan {
    RunPlan {
        load_clients: 1,
        loops: 1,
        loop_s: 1.0,
        backlog_s: BACKLOG_S,
        seed: 1,
        verify: true,
        starts: 1,
        interval_s: 1.0,
        stall_s: 60.0,
        ..RunPlan::default()
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
    let [name, started, rumba] = ["test", "2024-01-01T00:00:00Z", "0.1.0"].map(str::to_owned);
    Results { name, started, rumba, trials, ..Results::default() }
}

/// A phase that went to its end.
pub fn phase(phase: PhaseKind, seconds: f64) -> PhaseRecord {
    PhaseRecord { phase, seconds, complete: true, ..PhaseRecord::default() }
}

/// A second of a phase.
pub fn interval(phase: PhaseKind, start_s: f64) -> Interval {
    Interval { start_s, seconds: 1.0, phase, ..Interval::default() }
}
