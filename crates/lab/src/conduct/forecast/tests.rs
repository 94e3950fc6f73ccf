//! The remaining time is estimated from known durations, and is a lower bound if one is unknown.

use rumba_results::record::{Interval, PhaseRecord, RunPlan};
use rumba_results::samples::{self, trial_plan};

use super::*;

/// Trials of these engines: a load, a warmup of 5 s, two loops of 10 s.
fn plans(engines: &[&str]) -> Vec<TrialPlan> {
    let plan = |(number, engine): (u32, &&str)| {
        let mut plan = trial_plan();
        plan.number = number;
        plan.engine.name = (*engine).to_owned();
        plan.run = RunPlan { warmup_s: 5.0, loops: 2, loop_s: 10.0, ..plan.run };
        plan
    };
    (1..).zip(engines).map(plan).collect()
}

/// A trial that loaded for `load_s`, settled in 2 s, drained in 3, and was verified in 4.
fn done(plan: &TrialPlan, load_s: f64) -> Record {
    let phases = [(PhaseKind::Load, load_s), (PhaseKind::Settle, 2.0), (PhaseKind::Warmup, 5.0)];
    let after = [(PhaseKind::Drain, 3.0), (PhaseKind::Verify, 4.0)];
    let loops = [(PhaseKind::Loop(1), 10.0), (PhaseKind::Loop(2), 10.0), (PhaseKind::Loops, 20.0)];
    let phases = phases.into_iter().chain(loops).chain(after);
    let took = |(phase, seconds)| PhaseRecord { ops: 1, ..samples::phase(phase, seconds) };
    samples::record(plan.clone(), phases.map(took).collect())
}

fn interval(phase: PhaseKind, ops: u64) -> Event {
    Event::Interval(Box::new(Interval { ops, ..samples::interval(phase, 0.0) }))
}

fn started(phase: PhaseKind, seconds: Option<f64>, rows: Option<u64>) -> Event {
    Event::PhaseStarted { phase, seconds, rows }
}

#[test]
fn before_the_first_load_only_warmups_and_loops_are_known() {
    let forecast = Forecast::new(&plans(&["a", "b"]));
    assert_eq!(forecast.left(Instant::now()), TimeLeft { seconds: 50.0, is_whole: false });
}

#[test]
fn forecast_expects_the_last_trial_time_of_the_same_engine() {
    let plans = plans(&["a", "b", "a"]);
    let start = Instant::now();
    let mut forecast = Forecast::new(&plans);
    forecast.begins(&plans[0], start);
    // 8 s between the phases: its process was started, its engine opened.
    forecast.ended(&done(&plans[0], 100.0), start + Duration::from_secs(142));
    let one = 100.0 + 2.0 + 5.0 + 20.0 + 3.0 + 4.0 + 8.0;
    assert_eq!(forecast.left(start), TimeLeft { seconds: 2.0 * one, is_whole: true });
    forecast.begins(&plans[1], start);
    forecast.ended(&done(&plans[1], 500.0), start + Duration::from_secs(534));
    assert_eq!(forecast.left(start), TimeLeft { seconds: one, is_whole: true }, "the load of b is none of a's");
}

#[test]
fn load_forecasts_its_end_by_rate_and_a_loop_by_time() {
    let plans = plans(&["a"]);
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut forecast = Forecast::new(&plans);
    forecast.learn(&done(&plans[0], 1000.0));
    forecast.begins(&plans[0], start);
    forecast.event(&started(PhaseKind::Load, None, Some(1000)), start);
    let after_load = 2.0 + 25.0 + 3.0 + 4.0;
    assert_eq!(forecast.left(at(10)).seconds, 990.0 + after_load, "no row is written yet");
    forecast.event(&interval(PhaseKind::Load, 250), at(20));
    assert_eq!(forecast.left(at(20)), TimeLeft { seconds: 60.0 + after_load, is_whole: true });
    forecast.event(&started(PhaseKind::Loop(1), Some(10.0), None), at(100));
    assert_eq!(forecast.left(at(104)).seconds, 6.0 + 10.0 + 3.0 + 4.0);
    assert_eq!(forecast.left(at(114)).seconds, 10.0 + 3.0 + 4.0, "what takes longer than planned owes nothing");
}

#[test]
fn adaptive_warmup_time_is_unknown_until_one_has_ended() {
    let mut plans = plans(&["a", "a"]);
    plans.iter_mut().for_each(|plan| plan.run.warmup_most_s = Some(60.0));
    let start = Instant::now();
    let mut forecast = Forecast::new(&plans);
    forecast.learn(&done(&plans[0], 1.0));
    forecast.begins(&plans[0], start);
    assert!(forecast.left(start).is_whole);
    assert!(!Forecast::new(&plans).left(start).is_whole);
}

#[test]
fn progress_shows_duration_and_end() {
    let now = "2026-03-04T16:30:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(jiff::tz::TimeZone::UTC);
    let words = |seconds, is_whole| TimeLeft { seconds, is_whole }.words(&now);
    assert_eq!(words(0.2, true), "");
    assert_eq!(words(719.0, true), "about 12m left, until 16:42");
    assert_eq!(words(45.3, false), "at least 45s left, until 16:30");
    assert_eq!(words(8.0 * 3600.0, true), "about 8.0h left, until Thu 00:30");
}
