//! Drives the stall clock with given times and given samples.

use rumba_results::metric::Metric;
use rumba_results::record::{RunPlan, Spent};
use rumba_results::samples;

use super::snapshot::Process;
use super::*;

fn plan(stall_s: f64, rate: Option<f64>) -> TrialPlan {
    let run = RunPlan { warmup_s: 1.0, loops: 2, loop_s: 20.0, rate, stall_s, ..samples::run_plan() };
    TrialPlan { clients: 2, run, ..samples::trial_plan() }
}

fn started(phase: PhaseKind) -> Event {
    Event::PhaseStarted { phase, seconds: None, rows: None }
}

fn interval(phase: PhaseKind, ops: u64, written: f64) -> Event {
    let spent = Spent { process_write_bytes: Metric::Value(written), ..Spent::default() };
    Event::Interval(Box::new(Interval { ops, spent, ..samples::interval(phase, 0.0) }))
}

/// A trial whose process uses this many CPU seconds in its own code per second.
struct Trial {
    clock: Clock,
    begun: Instant,
    own_cpu: f64,
}

impl Trial {
    fn new(stall_s: f64, rate: Option<f64>) -> Self {
        let begun = Instant::now();
        Self { clock: Clock::new(&plan(stall_s, rate), begun), begun, own_cpu: 0.0 }
    }

    fn take(&mut self, second: u64, event: &Event) -> Option<Said> {
        self.clock.take(event, self.begun + Duration::from_secs(second))
    }

    /// Checks at every second of a span; returns the reports and their times.
    fn silent(&mut self, seconds: std::ops::RangeInclusive<u64>) -> Vec<(u64, Said)> {
        let (begun, own_cpu) = (self.begun, self.own_cpu);
        let process = |second: u64| Process {
            pid: 1,
            name: "server".to_owned(),
            state: 'S',
            user_s: own_cpu * second as f64,
            system_s: 0.0,
            major_faults: 0,
            threads: 1,
            at_locks: None,
        };
        let look = |second| Snapshot {
            at: begun + Duration::from_secs(second),
            processes: vec![process(second)],
            memory: None,
            host_memory_wait_us: None,
            device: None,
        };
        let mut said = Vec::new();
        for second in seconds {
            let reported = self.clock.look(begun + Duration::from_secs(second), || look(second));
            said.extend(reported.map(|reported| (second, reported)));
        }
        said
    }
}

fn codes(said: &[(u64, Said)]) -> Vec<(u64, &str)> {
    let code = |said: &Said| match said {
        Said::Warning(warning) if warning.code == "stall" => "warned",
        Said::Warning(_) => "over",
        Said::Stalled(cause) if cause.starts_with("stalled: no operation ended for") => "failed",
        Said::Stalled(_) => "failed without its name",
    };
    said.iter().map(|(second, said)| (*second, code(said))).collect()
}

#[test]
fn stall_is_reported_once_at_10_s_and_bound_fails_the_trial() {
    let mut trial = Trial::new(60.0, None);
    trial.take(0, &started(PhaseKind::Loop(1)));
    assert_eq!(trial.take(5, &interval(PhaseKind::Loop(1), 10, 0.0)), None);
    // Bytes alone, without a completed operation, are no progress.
    assert_eq!(trial.take(7, &interval(PhaseKind::Loop(1), 0, 1e9)), None);
    assert_eq!(codes(&trial.silent(5..=65)), [(15, "warned"), (65, "failed")]);
}

#[test]
fn stall_continues_across_loops_and_its_end_is_reported() {
    let mut trial = Trial::new(60.0, None);
    trial.take(0, &started(PhaseKind::Warmup));
    assert_eq!(trial.silent(0..=6), []);
    assert_eq!(trial.take(6, &started(PhaseKind::Loop(1))), None);
    assert_eq!(codes(&trial.silent(7..=20)), [(10, "warned")]);
    let over = trial.take(21, &interval(PhaseKind::Loop(1), 1, 0.0)).unwrap();
    assert_eq!(codes(&[(21, over)]), [(21, "over")]);
    assert_eq!(codes(&trial.silent(21..=31)), [(31, "warned")], "each stall has a warning");
}

#[test]
fn a_load_is_at_work_while_it_computes_or_writes() {
    let mut trial = Trial::new(60.0, None);
    trial.take(0, &started(PhaseKind::Load));
    trial.own_cpu = 0.5;
    assert_eq!(trial.silent(0..=100), [], "an index is being built");
    trial.own_cpu = 0.0;
    for second in 101..200 {
        assert_eq!(trial.take(second, &interval(PhaseKind::Load, 0, 2e6)), None);
        assert_eq!(trial.silent(second..=second), []);
    }
    assert_eq!(codes(&trial.silent(200..=259)), [(209, "warned"), (259, "failed")]);
    let mut trial = Trial::new(60.0, None);
    trial.own_cpu = 0.5;
    trial.take(0, &started(PhaseKind::Loop(1)));
    assert_eq!(codes(&trial.silent(0..=12)), [(10, "warned")], "in a loop, work without an operation is none");
}

#[test]
fn phases_without_operations_are_left_alone() {
    let mut trial = Trial::new(60.0, None);
    for phase in [PhaseKind::Settle, PhaseKind::Drain, PhaseKind::Verify] {
        trial.take(0, &started(phase));
        assert_eq!(trial.silent(0..=300), [], "{phase}");
    }
    trial.take(300, &started(PhaseKind::Warmup));
    assert_eq!(codes(&trial.silent(300..=312)), [(310, "warned")], "the silence begins with the phase");
}

#[test]
fn resumed_run_after_a_full_stop_has_not_stalled() {
    let mut trial = Trial::new(60.0, None);
    trial.take(0, &started(PhaseKind::Loop(1)));
    assert_eq!(trial.silent(0..=3), []);
    assert_eq!(codes(&trial.silent(300..=310)), [(307, "warned")], "three seconds were silent before");
}

#[test]
fn loop_end_reported_after_next_loop_began_ends_no_stall() {
    // The request for the engine's counters returned after the stall.
    let ended = samples::phase(PhaseKind::Loop(1), 5.0);
    let mut trial = Trial::new(60.0, None);
    trial.take(0, &started(PhaseKind::Loop(1)));
    trial.take(5, &started(PhaseKind::Loop(2)));
    assert_eq!(trial.take(6, &Event::PhaseEnded(Box::new(ended))), None);
    assert_eq!(codes(&trial.silent(6..=12)), [(10, "warned")]);
}

#[test]
fn stall_bound_may_be_short_or_off_and_scales_with_low_rate() {
    let mut short = Trial::new(6.0, None);
    short.take(0, &started(PhaseKind::Loop(1)));
    assert_eq!(codes(&short.silent(0..=6)), [(3, "warned"), (6, "failed")]);
    let mut never = Trial::new(0.0, None);
    never.take(0, &started(PhaseKind::Loop(1)));
    assert_eq!(codes(&never.silent(0..=1000)), [(10, "warned")]);
    let mut slow = Trial::new(60.0, Some(0.1));
    slow.take(0, &started(PhaseKind::Loop(1)));
    assert_eq!(codes(&slow.silent(0..=300)), [(150, "warned"), (300, "failed")]);
}

#[test]
fn stall_across_loop_end_belongs_to_the_loop_it_cut_off() {
    // A server that hangs does not answer the request for its counters at a loop's end, so the next loop begins late.
    let stalled = || Stalled { phase: PhaseKind::Loop(1), cause: "stalled".to_owned(), since: Instant::now() };
    let mut watch = StallWatch { stalled: Some(stalled()), ..StallWatch::new(&plan(12.0, None)) };
    assert_eq!(watch.take(&started(PhaseKind::Loop(2))), None);
    assert_eq!(watch.stalled(), Some((PhaseKind::Loop(2), "stalled".to_owned())));
    let watch = StallWatch { stalled: Some(stalled()), ..StallWatch::new(&plan(12.0, None)) };
    assert_eq!(watch.stalled().map(|(phase, _)| phase), Some(PhaseKind::Loop(1)));
}
