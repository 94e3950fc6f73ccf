use rumba_engine_api::acid::{Promise, Recovery};
use rumba_engine_api::common::Durability;
use rumba_engine_api::engine::{EngineFacts, Family, Form, Gauge};
use rumba_results::claim::{Claim, Verdict};
use rumba_results::ratio::Change;
use rumba_results::record::Suspension;
use rumba_results::starts::Scope;

use super::*;
use crate::ratios::ratio;
use crate::testing::{break_data, phase, record, results};

fn slower(mut record: Record, ops: u64) -> Record {
    let loops = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
    loops.metrics.ops_per_s = Metric::from(ops as f64);
    record
}

#[test]
fn a_failed_trial_is_listed_and_its_half_run_moves_no_median() {
    let mut failed = record("a", 8, 2);
    let cause = "killed by the memory group".to_owned();
    failed.status = Status::Failed { phase: PhaseKind::Loop(2), cause };
    failed.phases.truncate(3);
    let summary = summarise(&results(vec![record("a", 8, 1), failed]));
    let row = summary.row("a", 8).unwrap();
    assert_eq!(row.run.as_ref().unwrap().trials, [1]);
    assert_eq!(row.run.as_ref().unwrap().notes, ["repeat 2 is not in the figures: 1 of 2 loops ended"]);
    assert_eq!(row.load.as_ref().unwrap().trials, [1, 2], "its load had ended and stands");
    assert_eq!(summary.unfinished.len(), 1);
}

#[test]
fn failed_verification_excludes_load_and_loops_from_figures() {
    let mut broken = slower(record("a", 8, 2), 9000);
    break_data(&mut broken);
    let mut done_but_wrong = broken.clone();
    (done_but_wrong.status, done_but_wrong.plan.repeat) = (Status::Done, 3);
    let mut not_verified = slower(record("a", 8, 4), 9000);
    let cause = "the server is gone".to_owned();
    not_verified.status = Status::Failed { phase: PhaseKind::Verify, cause };
    let summary = summarise(&results(vec![record("a", 8, 1), broken, done_but_wrong, not_verified]));
    let row = summary.row("a", 8).unwrap();
    assert_eq!(row.run.as_ref().unwrap().repeats, [1]);
    assert_eq!(row.load.as_ref().unwrap().repeats, [1]);
    let reasons: Vec<_> = row.unsound.iter().map(|u| (u.repeat, u.proof, u.reason.as_str())).collect();
    let counts = "counts match: not so for 2 of 9";
    let gone = (4, Proof::CutOff, "the server is gone");
    assert_eq!(reasons, [(2, Proof::Failed, counts), (3, Proof::Failed, counts), gone]);
    assert_eq!(row.why_unsound(), Some(format!("repeat 2 of a failed its verification: {counts}")));
}

#[test]
fn a_proof_that_was_cut_off_has_not_found_the_data_broken() {
    for phase in [PhaseKind::VerifyLoad, PhaseKind::Verify, PhaseKind::Isolation, PhaseKind::Recovery] {
        let mut killed = record("a", 8, 2);
        let cause = "the trial's process was ended by signal 9".to_owned();
        killed.status = Status::Failed { phase, cause: cause.clone() };
        let summary = summarise(&results(vec![record("a", 8, 1), killed]));
        let row = summary.row("a", 8).unwrap();
        assert_eq!(row.run.as_ref().unwrap().repeats, [1], "{phase}: it is in no figure all the same");
        assert!(!row.is_broken() && row.unsound[0].proof == Proof::CutOff, "{phase}");
        let reported = format!("repeat 2 of a did not end its verification: {cause}");
        assert_eq!(row.why_unsound(), Some(reported), "{phase}");
    }
}

#[test]
fn a_promise_that_was_broken_is_found_and_not_cut_off() {
    let broken = |kind: PhaseKind, prove: fn(&mut PhaseRecord)| {
        let mut record = record("a", 8, 1);
        let mut proof = phase(kind, 1.0, 0, 0.0);
        prove(&mut proof);
        record.phases.push(proof);
        record.status = Status::Failed { phase: kind, cause: "it is not kept".to_owned() };
        record
    };
    let lost = |phase: &mut PhaseRecord| {
        phase.recovery =
            Some(Recovery { acknowledged: 9, lost: 1, examples: Vec::new(), damage: Vec::new(), open_s: 0.1 });
    };
    let mut durable = broken(PhaseKind::Recovery, lost);
    durable.plan.engine.durability = Durability::Sync;
    let mixed = broken(PhaseKind::Isolation, |phase| {
        let [name, how, seen] = ["isolation", "dirty-read", "a row"].map(str::to_owned);
        phase.promises = vec![Promise { name, short: "i1".to_owned(), outcome: Outcome::Broken, how, seen }];
    });
    for record in [durable, mixed] {
        assert!(summarise(&results(vec![record])).rows[0].is_broken());
    }
    let lossy = |durability, has_buffered_level| {
        let mut lossy = broken(PhaseKind::Recovery, lost);
        lossy.plan.engine.durability = durability;
        lossy.plan.facts = Some(EngineFacts { has_buffered_level, ..facts() });
        summarise(&results(vec![lossy])).rows[0].is_broken()
    };
    assert!(lossy(Durability::NoSync, true), "a commit in the kernel survives the process");
    assert!(!lossy(Durability::NoSync, false), "in older results `no-sync` could mean `buffered`");
    for weaker in [Durability::Buffered, Durability::None] {
        assert!(!lossy(weaker, true), "a loss is allowed, so something else has ended the proof");
    }
}

fn facts() -> EngineFacts {
    EngineFacts::new(Family::KeyValue, Form::BuiltIn)
}

#[test]
fn suspended_phase_is_excluded_and_rest_of_the_trial_counts() {
    let suspend = |mut record: Record, kind: PhaseKind| {
        let phase = record.phases.iter_mut().find(|phase| phase.phase == kind).unwrap();
        phase.suspended = Some(Suspension { seconds: 9.5, cause: "it was stopped".to_owned() });
        record.status = Status::Suspended { phase: kind, cause: "it was stopped".to_owned() };
        slower(record, 10)
    };
    let of = |repeat| record("a", 8, repeat);
    let records = vec![
        of(1),
        suspend(of(2), PhaseKind::Loop(2)),
        suspend(of(3), PhaseKind::Warmup),
        suspend(of(4), PhaseKind::Load),
    ];
    let summary = summarise(&results(records));
    let row = summary.row("a", 8).unwrap();
    assert_eq!(row.run.as_ref().unwrap().repeats, [1, 4]);
    assert_eq!(row.run.as_ref().unwrap().notes, [""; 0], "nothing stands in for it");
    assert_eq!(row.load.as_ref().unwrap().repeats, [1, 2, 3]);
    let reported: Vec<(u32, Part, &str)> =
        row.suspended.iter().map(|one| (one.repeat, one.part, one.reason.as_str())).collect();
    let why = |phase: &str| format!("{phase}, for 9.5 s: it was stopped");
    assert_eq!(reported[0], (2, Part::Run, why("loop 2").as_str()));
    assert_eq!(reported[1], (3, Part::Run, why("warmup").as_str()));
    assert_eq!(reported[2], (4, Part::Load, why("load").as_str()));
    assert!(summary.unfinished.is_empty() && row.unsound.is_empty(), "its data is sound, and it came to its end");
    let alone = summarise(&results(vec![suspend(of(1), PhaseKind::Loop(1))]));
    assert!(alone.row("a", 8).unwrap().run.is_none(), "no other loop of it stands in for the run");
    let mut aged = of(1);
    aged.phases.insert(1, phase(PhaseKind::Age, 5.0, 1000, 1e7));
    let aged = summarise(&results(vec![suspend(aged, PhaseKind::Age)]));
    assert!(aged.rows[0].run.is_some() && aged.rows[0].suspended.is_empty(), "the age has no figures");
}

#[test]
fn unverified_repeat_moves_no_median_and_alone_decides_nothing() {
    let drain = Status::Failed { phase: PhaseKind::Drain, cause: "the server is gone".to_owned() };
    for status in [Status::Running, Status::Interrupted, drain] {
        let mut unverified = slower(record("a", 8, 2), 9000);
        unverified.status = status;
        let summary = summarise(&results(vec![record("a", 8, 1), unverified.clone()]));
        let run = summary.rows[0].run.as_ref().unwrap();
        assert_eq!((run.repeats.as_slice(), run.partial), ([1].as_slice(), false));
        assert_eq!(run.notes, ["repeat 2 is not in the figures: it ended before its data was verified"]);
        assert_eq!(summary.rows[0].why_not_judged(Part::Run), None);

        let alone = summarise(&results(vec![unverified.clone()]));
        let run = alone.rows[0].run.as_ref().unwrap();
        let reported = "repeat 2: it ended before its data was verified; the figures are of loops";
        assert_eq!((run.notes.as_slice(), run.partial), ([reported.to_owned()].as_slice(), true));
        let why = "no repeat of a ended its loops and came through its verification".to_owned();
        assert_eq!(alone.rows[0].why_not_judged(Part::Run), Some(why));
        assert_eq!(alone.rows[0].why_not_judged(Part::Load), None, "its load ended");

        unverified.plan.run.verify = false;
        let unasked = summarise(&results(vec![record("a", 8, 1), unverified.clone()]));
        assert_eq!(unasked.rows[0].run.as_ref().unwrap().repeats, [1, 2], "no verification was requested");
        unverified.plan.run.verify = true;
        unverified.phases.push(phase(PhaseKind::Verify, 1.0, 0, 0.0));
        let verified = summarise(&results(vec![record("a", 8, 1), unverified]));
        assert_eq!(verified.rows[0].run.as_ref().unwrap().repeats, [1, 2], "it came through");
    }
}

#[test]
fn parts_of_runs_decide_no_claim_and_no_ratio() {
    let cut = |mut record: Record| {
        record.status = Status::Failed { phase: PhaseKind::Loop(2), cause: "killed".to_owned() };
        record.phases.truncate(3);
        record
    };
    let of = |engine: &'static str, ops: u64| {
        (1..=5).map(move |repeat| slower(record(engine, 8, repeat), ops + u64::from(repeat)))
    };
    let cut_off = || of("b", 9).map(cut).collect::<Vec<_>>();
    let mut run = results(of("a", 1000).chain(cut_off()).collect());
    let holds = r#"ops_per_s("a") > 2 * ops_per_s("b")"#.to_owned();
    run.claims = vec![Claim { holds, ..Claim::default() }];
    let summary = summarise(&run);
    let claim = &summary.claims[0];
    assert_eq!(claim.verdict, Verdict::Undecided);
    assert_eq!(claim.reason, "no repeat of b ended its loops and came through its verification");
    let relative = &summary.relative[0].rows[0];
    assert!(relative.unsound.is_some() && relative.metrics.iter().all(|ratio| ratio.change == Change::Undecided));
}

#[test]
fn left_out_parts_are_named_with_trial_part_and_reason() {
    let mut unverified = record("a", 8, 2);
    unverified.status = Status::Interrupted;
    let mut unsettled = record("a", 8, 3);
    unsettled.status = Status::Failed { phase: PhaseKind::Settle, cause: "the device is full".to_owned() };
    unsettled.phases.truncate(1);
    let summary = summarise(&results(vec![record("a", 8, 1), unverified, unsettled.clone()]));
    let row = &summary.rows[0];
    let load = row.load.as_ref().unwrap();
    assert_eq!((load.repeats.as_slice(), load.partial), ([1, 2].as_slice(), false));
    assert_eq!(load.notes, ["repeat 3 is not in the figures: it ended before its load was settled"]);
    assert_eq!(row.why_left_out(2, Part::Run), Some("it ended before its data was verified"));
    assert_eq!(row.why_left_out(3, Part::Load), Some("it ended before its load was settled"));
    assert_eq!((row.why_left_out(2, Part::Load), row.why_left_out(1, Part::Run)), (None, None));
    let alone = summarise(&results(vec![unsettled]));
    let why = Some("no repeat of a ended its load and settle".to_owned());
    assert_eq!((alone.rows[0].load.as_ref().unwrap().partial, alone.rows[0].why_not_judged(Part::Load)), (true, why));
}

#[test]
fn run_with_an_interrupted_acid_proof_is_incomplete() {
    let mut killed = record("a", 8, 2);
    killed.plan.run.crash_s = Some(5.0);
    killed.status = Status::Running;
    killed.phases.push(phase(PhaseKind::Verify, 1.0, 0, 0.0));
    let of = |record: &Record| summarise(&results(vec![record.clone()])).rows.remove(0);
    let why = Some("it ended before all that transactions are promised was proven".to_owned());
    assert_eq!(of(&killed).why_left_out(1, Part::Run).map(str::to_owned), why);
    killed.phases.push(phase(PhaseKind::Recovery, 1.0, 0, 0.0));
    assert!(of(&killed).left_out.is_empty());
}

#[test]
fn counter_missing_in_a_repeat_is_zero_and_unsampled_is_unknown() {
    let counting = |repeat: u32, levels: &[f64]| {
        let mut record = record("a", 8, repeat);
        record.phases.insert(1, phase(PhaseKind::Settle, 1.0, 0, 0.0));
        for phase in record.phases.iter_mut().filter(|p| matches!(p.phase, PhaseKind::Settle | PhaseKind::Drain)) {
            phase.counters = vec![Gauge::new("written_flush_bytes", 1024.0)];
            let levels = levels.iter().filter(|_| phase.phase == PhaseKind::Drain);
            phase.counters.extend(levels.map(|bytes| Gauge::new("written_compaction_level4_bytes", *bytes)));
        }
        record
    };
    let mut deaf = counting(3, &[]);
    deaf.phases.iter_mut().for_each(|phase| phase.counters.clear());
    let summary = summarise(&results(vec![counting(1, &[1024.0 * 60_000.0]), counting(2, &[]), deaf]));
    let run = summary.rows[0].run.as_ref().unwrap();
    let values = &run.metrics["compaction_level4_kb_per_op"].values;
    assert_eq!(values, &[Metric::Value(1.0), Metric::Value(0.0), Metric::absent(NOT_COUNTED)]);
}

#[test]
fn headline_metric_missing_from_some_repeats_is_noted() {
    let mut censored = record("a", 8, 2);
    let loops = censored.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
    let get = loops.op_types.get_mut("get_node").unwrap();
    get.response.p99_ms = Metric::absent("30 operations were still open");
    let summary = summarise(&results(vec![record("a", 8, 1), censored]));
    let notes = &summary.rows[0].run.as_ref().unwrap().notes;
    assert_eq!(notes, &["get_node.p99_ms: 1 of 2 repeats have none: 30 operations were still open"]);
}

#[test]
fn a_phase_that_was_cut_off_moves_no_median() {
    let mut cut = record("a", 8, 2);
    cut.status = Status::Interrupted;
    cut.phases.truncate(1);
    cut.phases[0].complete = false;
    let mut last = record("b", 8, 1);
    last.status = Status::Interrupted;
    last.phases.truncate(4);
    last.phases[3].complete = false;
    let summary = summarise(&results(vec![record("a", 8, 1), cut, last]));
    assert_eq!(summary.rows[0].load.as_ref().unwrap().trials, [1]);
    assert_eq!(
        summary.rows[1].run.as_ref().unwrap().notes,
        ["repeat 1: 1 of 2 loops ended; the figures are of loop 1"]
    );
}

/// Trial 1 loads for engine `a`; its runs with these clients and repeats start from it.
fn from_one_load(runs: &[(u32, u32)]) -> Vec<Record> {
    let mut load = record("a", 1, 1);
    load.plan.part = TrialPart::Load;
    load.phases.truncate(1);
    let started = runs.iter().map(|(clients, repeat)| {
        let mut run = record("a", *clients, *repeat);
        (run.plan.part, run.plan.loaded_by) = (TrialPart::Run, Some(1));
        run.phases.remove(0);
        run
    });
    std::iter::once(load).chain(started.collect::<Vec<_>>()).collect()
}

#[test]
fn a_load_that_two_engines_started_from_is_in_the_rows_of_both() {
    let mut records = from_one_load(&[(8, 1)]);
    let mut other = records[1].clone();
    other.plan.engine.name = "b".to_owned();
    records.push(other);
    let summary = summarise(&results(records));
    let rows: Vec<_> = summary.rows.iter().map(|row| (row.engine.as_str(), row.loads)).collect();
    assert_eq!(rows, [("a", 1), ("b", 1)]);
    assert!(summary.rows.iter().all(|row| row.load.as_ref().is_some_and(|load| load.trials == [1])));
}

#[test]
fn repeats_that_load_for_themselves_have_a_load_each() {
    let own = summarise(&results((1..=3).map(|repeat| record("a", 8, repeat)).collect()));
    assert_eq!(own.rows[0].loads, 3);
    let mut mixed = from_one_load(&[(8, 1), (8, 2)]);
    mixed.push(record("a", 8, 3));
    let mixed = summarise(&results(mixed));
    let row = &mixed.rows[0];
    assert_eq!((row.loads, row.load.as_ref().unwrap().trials.len()), (1, 2));
    let why = Some("it loaded for itself, and the others started from a copy");
    assert_eq!(
        (row.run.as_ref().unwrap().repeats.as_slice(), row.why_left_out(4, Part::Run)),
        ([1, 2].as_slice(), why)
    );
    let mut mostly_own = from_one_load(&[(8, 1)]);
    mostly_own.extend([record("a", 8, 2), record("a", 8, 3)]);
    let row = summarise(&results(mostly_own)).rows.remove(0);
    assert_eq!((row.run.as_ref().unwrap().repeats.as_slice(), row.loads), ([2, 3].as_slice(), 2));
    let mut broken = from_one_load(&[(8, 1), (8, 2)]);
    let mut own = record("a", 8, 3);
    break_data(&mut own);
    broken.push(own);
    assert_eq!(summarise(&results(broken)).rows[0].loads, 1, "what is in no figure says nothing of it");
}

#[test]
fn load_without_started_trials_is_shown() {
    let summary = summarise(&results(from_one_load(&[])));
    assert_eq!(summary.rows.len(), 1);
    assert!(summary.rows[0].load.is_some() && summary.rows[0].run.is_none());
    assert_eq!(summary.rows[0].loads, 0);
}

/// Loads 1 and up of engine `a`, with the starts of each; the value of each start is its rate.
fn from_loads(engine: &str, of_loads: &[Vec<f64>], repeat_is_load: bool) -> Vec<Record> {
    let mut records = Vec::new();
    for (load, starts) in (1..).zip(of_loads) {
        for (start, rate) in (1..).zip(starts) {
            let mut run = slower(record(engine, 8, if repeat_is_load { load } else { start }), 1);
            let loops = run.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
            loops.metrics.ops_per_s = Metric::Value(*rate);
            (run.plan.part, run.plan.loaded_by) = (TrialPart::Run, Some(100 * load));
            if repeat_is_load {
                (run.plan.start, run.plan.run.starts) = (start, starts.len() as u32);
            }
            run.phases.remove(0);
            records.push(run);
        }
    }
    records
}

#[test]
fn the_starts_of_a_load_are_one_figure_and_stay_visible() {
    let records = from_loads("a", &[vec![1000.0, 3000.0], vec![4000.0, 6000.0]], true);
    let interleaved = [0, 2, 1, 3].map(|at| records[at].clone()).to_vec();
    let summary = summarise(&results(interleaved));
    let row = &summary.rows[0];
    let run = row.run.as_ref().unwrap();
    let figure = &run.metrics["ops_per_s"];
    assert_eq!(
        (run.repeats.as_slice(), run.loads.as_slice(), row.loads),
        ([1, 2].as_slice(), [100, 200].as_slice(), 2)
    );
    assert_eq!((run.trials.as_slice(), run.starts.as_slice()), ([1, 3, 2, 4].as_slice(), [2, 2].as_slice()));
    assert_eq!(figure.numbers(), [2000.0, 5000.0]);
    assert_eq!(figure.starts.iter().flatten().filter_map(Metric::value).collect::<Vec<_>>(), [1e3, 3e3, 4e3, 6e3]);
    assert_eq!(run.of_trial(figure, 2), Some(&Metric::Value(4000.0)));
    assert_eq!(run.metrics["wkb_per_op_with_drain"].starts.len(), 2);
    assert_eq!(run.op_types["get_node"].response["p99_ms"].starts.len(), 2);
}

#[test]
fn failed_start_is_named_and_other_starts_give_the_load_figure() {
    let mut records = from_loads("a", &[vec![1000.0, 3000.0], vec![4000.0, 6000.0]], true);
    records[3].status = Status::Failed { phase: PhaseKind::Loop(2), cause: "killed".to_owned() };
    records[3].phases.truncate(2);
    let summary = summarise(&results(records));
    let run = summary.rows[0].run.as_ref().unwrap();
    assert_eq!(run.metrics["ops_per_s"].numbers(), [2000.0, 4000.0]);
    assert_eq!(run.notes, ["start 2 of repeat 2 is not in the figures: 1 of 2 loops ended"]);
}

/// The verdict on throughput for two engines whose loads are drawn from one distribution, and whose starts vary around
/// their load by as much. `None` if the verdict is neither better nor worse.
fn moved(noise: &mut steady::simulated::Noise, loads: usize, starts: usize, repeat_is_load: bool) -> Option<Scope> {
    let mut engine = |name: &str| {
        let of_loads = noise.draw(loads).into_iter().map(|load| {
            let starts = noise.draw(starts);
            starts.into_iter().map(|start| 1000.0 * (0.05 * (load + start)).exp()).collect()
        });
        from_loads(name, &of_loads.collect::<Vec<Vec<f64>>>(), repeat_is_load)
    };
    let all = [engine("a"), engine("b")].concat();
    let all: Vec<&Record> = all.iter().collect();
    let rows = rows_of(&all, &[]);
    let of = |engine: &str| rows.iter().find(|row| row.engine == engine).unwrap();
    let tested = ratio(
        "ops_per_s",
        "1/s",
        true,
        (&of("a").run.as_ref().unwrap().metrics["ops_per_s"], &of("b").run.as_ref().unwrap().metrics["ops_per_s"]),
        ["a", "b"].map(|engine| of(engine).starts(Part::Run)),
    );
    matches!(tested.change, Change::Better | Change::Worse).then_some(tested.scope)
}

/// Four starts of one load were tested as four independent repeats. If loads vary as much as starts, a test with an
/// error rate of 3% had 22%, and its verdicts said "sure".
#[test]
fn loads_as_unit_err_in_5_percent_and_starts_state_their_scope() {
    const DRAWS: usize = 2000;
    let share = |loads, starts, repeat_is_load| {
        let mut noise = steady::simulated::Noise::new(7, 0.0);
        let found: Vec<Scope> = (0..DRAWS).filter_map(|_| moved(&mut noise, loads, starts, repeat_is_load)).collect();
        let of = |scope| found.iter().filter(|found| **found == scope).count() as f64 / DRAWS as f64;
        (of(Scope::Loads), of(Scope::ThisLoad))
    };
    let (of_loads, of_this_load) = share(1, 4, false);
    assert!((0.18..0.27).contains(&of_this_load), "{of_this_load}");
    assert_eq!(of_loads, 0.0, "none of them claims to hold for other loads");
    for (loads, starts) in [(4, 1), (4, 2)] {
        let (of_loads, of_this_load) = share(loads, starts, true);
        assert!(of_loads <= 0.05 && of_this_load == 0.0, "{loads} loads, {starts} starts: {of_loads} {of_this_load}");
    }
}
