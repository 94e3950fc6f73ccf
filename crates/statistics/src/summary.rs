//! Summarise: one row per engine and number of clients, over all repeats.

use std::collections::{BTreeMap, BTreeSet};

use rumba_core::acid::Outcome;
use rumba_core::comparison::{
    KeptFigures, OpFigures, Part, PhaseFigures, Proof, Row, Steadiness, Summary, Suspended, Unfinished, Unsound,
};
use rumba_core::counted::NOT_COUNTED;
use rumba_core::engine::Durability;
use rumba_core::metric::{METRICS, Metric};
use rumba_core::record::{OpStats, Percentiles, PhaseKind, PhaseRecord, Record, Status, TrialPart};
use rumba_core::results::Results;
use rumba_core::search::Searched;

use crate::charge::{Charged, charged_load, charged_run, ended};
use crate::claims::judge;
use crate::relative::relative;
use crate::remarks::remarks;
use crate::scaling;
use crate::search::searches;
use crate::statistics::{figure, figure_with_centre};
use crate::steady;
use crate::trial_name::trial_name;

/// Sums results up: every repeat's figures and their medians, what did not
/// end, and the warnings that follow from the figures.
///
/// Loops that did not all end enter a row only when no repeat ended its loops,
/// and the row says so: half a run must not move the median of whole ones.
/// Data that failed its verification, or did not come through it, enters no figure, whatever phases it ended; nor does
/// a load or a run whose measurement was suspended.
pub fn summarise(results: &Results) -> Summary {
    let all: Vec<&Record> = results.trials.iter().map(|trial| &trial.record).collect();
    let searches = searches(&all);
    let records: Vec<&Record> = all.iter().copied().filter(|record| is_figure(record, &searches)).collect();
    let rows = rows_of(&records);
    let claims = judge(&results.claims, &rows);
    let is_sound = |record: &Record| record.suspended_run().is_none() && is_figure(record, &searches);
    let went_on = results.trials.iter().filter(|trial| is_sound(&trial.record));
    let steadiness: Vec<Steadiness> = went_on.filter_map(steady::steadiness).collect();
    let unsteady = steadiness.iter().flat_map(steady::remarks);
    // An open loop's rate is what was asked for.
    let is_closed = records.iter().all(|record| record.plan.run.rate.is_none());
    let scaling = if is_closed { scaling::remarks(&rows) } else { Vec::new() };
    Summary {
        claims,
        relative: relative(&rows),
        trends: steady::trends(&rows, &steadiness),
        rows,
        unfinished: all.iter().filter_map(|record| unfinished(record)).collect(),
        remarks: records.iter().flat_map(|record| remarks(record)).chain(unsteady).chain(scaling).collect(),
        steadiness,
        searches,
    }
}

/// Of a search the highest rate that was kept is the repeat; the other probes led there.
fn is_figure(record: &Record, searches: &[Searched]) -> bool {
    let is_it = |found: &Searched| found.trial == Some(record.plan.number) && found.engine == record.plan.engine.name;
    record.plan.probe.is_none() || searches.iter().any(is_it)
}

/// The rows of a summary alone: every repeat's figures and their medians, without what is said of them.
pub fn rows(results: &Results) -> Vec<Row> {
    let all: Vec<&Record> = results.trials.iter().map(|trial| &trial.record).collect();
    let searches = searches(&all);
    rows_of(&all.into_iter().filter(|record| is_figure(record, &searches)).collect::<Vec<_>>())
}

fn rows_of(records: &[&Record]) -> Vec<Row> {
    let mut keys: Vec<(u32, &str)> = Vec::new();
    let is_load = |record: &Record| record.plan.part == TrialPart::Load;
    for record in records {
        let engine = record.plan.engine.name.as_str();
        let key = (record.plan.clients, engine);
        // A load has a row of its own only while no trial has started from it.
        let started = || records.iter().any(|other| !is_load(other) && other.plan.engine.name == engine);
        let is_row = !is_load(record) || !started();
        if is_row && !keys.contains(&key) {
            keys.push(key);
        }
    }
    // Stable: within one number of clients the experiment's order of engines stays.
    keys.sort_by_key(|(clients, _)| *clients);
    let rows = keys.into_iter().map(|(clients, engine)| {
        let is_run = |record: &Record| record.plan.clients == clients && record.plan.engine.name == engine;
        // Engines that load alike start from one load, which bears the name of the first.
        let started_from = |load: u32| {
            let mut runs = records.iter().filter(|record| !is_load(record) && is_run(record));
            runs.any(|record| record.plan.loaded_by == Some(load))
        };
        let of_row = |record: &&&Record| match is_load(record) {
            true => record.plan.engine.name == engine || started_from(record.plan.number),
            false => is_run(record),
        };
        row(&records.iter().filter(of_row).copied().collect::<Vec<_>>())
    });
    rows.collect()
}

fn unfinished(record: &Record) -> Option<Unfinished> {
    let ended = matches!(record.status, Status::Done | Status::Suspended { .. });
    (!ended).then(|| Unfinished { name: trial_name(record), status: record.status.clone() })
}

/// The row of records that differ in their repeat alone, and of the loads that
/// they started from; there is at least one.
fn row(records: &[&Record]) -> Row {
    let is_run = |record: &&Record| record.plan.part != TrialPart::Load;
    let runs: Vec<&Record> = records.iter().copied().filter(is_run).collect();
    let plan = &runs.first().unwrap_or(&records[0]).plan;
    let is_sound = |record: &&Record| why_unsound(record).is_none();
    let sound: Vec<&Record> = records.iter().copied().filter(is_sound).collect();
    let sound_runs: Vec<&Record> = runs.iter().copied().filter(is_sound).collect();
    let unsound = records.iter().filter_map(|record| {
        let (trial, repeat) = (record.plan.number, record.plan.repeat);
        let (proof, reason) = why_unsound(record)?;
        Some(Unsound { trial, repeat, proof, reason })
    });
    let run = run_figures(&sound_runs);
    Row {
        engine: plan.engine.name.clone(),
        test: plan.test.clone(),
        registered: plan.engine.engine.clone(),
        facts: plan.facts,
        clients: plan.clients,
        load: load_figures(&sound),
        broken: broken(records),
        unsound: unsound.collect(),
        suspended: records.iter().flat_map(|record| suspended(record)).collect(),
        loads: run.as_ref().map_or(0, |run| loads(&runs, run)),
        run,
    }
}

/// How many loads the repeats that are in the figures started from: each its own, or several one.
fn loads(runs: &[&Record], figures: &PhaseFigures) -> u32 {
    let runs = || runs.iter().filter(|record| figures.trials.contains(&record.plan.number));
    let shared: BTreeSet<u32> = runs().filter_map(|record| record.plan.loaded_by).collect();
    let own = runs().filter(|record| record.plan.loaded_by.is_none()).count();
    (shared.len() + own) as u32
}

/// Why no figure of this trial may be used: its data failed its verification, or did not come through it.
fn why_unsound(record: &Record) -> Option<(Proof, String)> {
    let check = record.phases.iter().flat_map(|phase| &phase.checks).find(|check| check.wrong > 0);
    if let Some(check) = check {
        return Some((Proof::Failed, format!("{}: not so for {} of {}", check.name, check.wrong, check.examined)));
    }
    match &record.status {
        Status::Failed {
            phase: phase @ (PhaseKind::VerifyLoad | PhaseKind::Verify | PhaseKind::Isolation | PhaseKind::Recovery),
            cause,
        } => {
            let found = record.phase(*phase).is_some_and(|phase| breaks_a_promise(record, phase));
            Some((if found { Proof::Failed } else { Proof::CutOff }, cause.clone()))
        }
        _ => None,
    }
}

/// Whether a proof of what transactions are promised found a promise that is not kept; what fails otherwise in it, say a
/// server that dies, has shown nothing.
fn breaks_a_promise(record: &Record, phase: &PhaseRecord) -> bool {
    let is_durable = record.plan.engine.durability == Durability::Sync;
    let is_lost = is_durable && phase.recovery.as_ref().is_some_and(|recovery| recovery.lost > 0);
    is_lost || phase.promises.iter().any(|promise| promise.outcome == Outcome::Broken)
}

/// The parts of a trial that were suspended while they were measured, each with its first phase that was.
fn suspended(record: &Record) -> impl Iterator<Item = Suspended> {
    let load = record.suspended().find(|(phase, _)| *phase == PhaseKind::Load).map(|found| (Part::Load, found));
    let run = record.suspended_run().map(|found| (Part::Run, found));
    load.into_iter().chain(run).map(|(part, (phase, suspension))| Suspended {
        trial: record.plan.number,
        repeat: record.plan.repeat,
        part,
        reason: format!("{phase}, for {:.1} s: {}", suspension.seconds, suspension.cause),
    })
}

/// The properties that a repeat's data broke, each once.
fn broken(records: &[&Record]) -> Vec<String> {
    let mut names = Vec::new();
    for check in records.iter().flat_map(|record| &record.phases).flat_map(|phase| &phase.checks) {
        if check.wrong > 0 && !names.contains(&check.name) {
            names.push(check.name.clone());
        }
    }
    names
}

fn load_figures(records: &[&Record]) -> Option<PhaseFigures> {
    let loads: Vec<_> = records.iter().filter_map(|r| ended(r, PhaseKind::Load).map(|load| (*r, load))).collect();
    let loads: Vec<_> = loads.into_iter().filter(|(_, load)| load.suspended.is_none()).collect();
    (!loads.is_empty()).then(|| with_charged(figures(&loads), &loads, charged_load))
}

/// Of a run that was suspended no loop counts: those after it began on what the engine did meanwhile.
fn run_figures(records: &[&Record]) -> Option<PhaseFigures> {
    let records: Vec<&Record> = records.iter().copied().filter(|record| record.suspended_run().is_none()).collect();
    let mut runs: Vec<_> = records.iter().filter_map(|record| Some((*record, whole_run(record)?))).collect();
    let mut notes = Vec::new();
    if runs.is_empty() {
        for record in &records {
            if let Some(last) = whole_loops(record).last() {
                let (repeat, ended, planned) = (record.plan.repeat, whole_loops(record).count(), record.plan.run.loops);
                let looped = last.phase;
                notes.push(format!("repeat {repeat}: {ended} of {planned} loops ended; the figures are of {looped}"));
                runs.push((*record, last));
            }
        }
    } else {
        for record in records.iter().filter(|record| whole_run(record).is_none()) {
            let repeat = record.plan.repeat;
            notes.push(format!("repeat {repeat} did not end its loops and is not in the figures"));
        }
    }
    if runs.is_empty() {
        return None;
    }
    let mut summed = with_charged(figures(&runs), &runs, charged_run);
    summed.notes = notes;
    Some(summed)
}

/// Adds the metrics that span phases. What only some repeats' engines have counted is absent in the others.
fn with_charged(
    mut figures: PhaseFigures,
    phases: &[(&Record, &PhaseRecord)],
    charged: fn(&Record) -> Charged,
) -> PhaseFigures {
    let mut values: BTreeMap<String, Vec<Metric>> = BTreeMap::new();
    for (place, (record, _)) in phases.iter().enumerate() {
        for (name, metric) in charged(record) {
            let of_name = values.entry(name).or_insert_with(|| vec![Metric::absent(NOT_COUNTED); phases.len()]);
            of_name[place] = metric;
        }
    }
    figures.metrics.extend(values.into_iter().map(|(name, values)| (name, figure_with_centre(values))));
    figures
}

/// The loops that were not cut off.
fn whole_loops(record: &Record) -> impl Iterator<Item = &PhaseRecord> {
    record.loops().filter(|looped| looped.complete)
}

/// All loops of a record, when as many ended as were planned.
fn whole_run(record: &Record) -> Option<&PhaseRecord> {
    let loops = record.phase(PhaseKind::Loops)?;
    let ended = whole_loops(record).count();
    (record.status == Status::Done || ended >= record.plan.run.loops as usize).then_some(loops)
}

fn figures(phases: &[(&Record, &PhaseRecord)]) -> PhaseFigures {
    let mut metrics = BTreeMap::new();
    for info in METRICS {
        let value = |phase: &PhaseRecord| phase.metrics.get(info.name).cloned().unwrap_or_default();
        let values = phases.iter().map(|(_, phase)| value(phase)).collect();
        metrics.insert(info.name.to_owned(), figure_with_centre(values));
    }
    let mut names: Vec<&String> = phases.iter().flat_map(|(_, phase)| phase.op_types.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let op_types = names.into_iter().map(|name| {
        let stats: Vec<_> = phases.iter().map(|(_, phase)| phase.op_types.get(name)).collect();
        (name.clone(), op_figures(&stats))
    });
    PhaseFigures {
        trials: phases.iter().map(|(record, _)| record.plan.number).collect(),
        repeats: phases.iter().map(|(record, _)| record.plan.repeat).collect(),
        notes: Vec::new(),
        metrics,
        op_types: op_types.collect(),
    }
}

type Percentile = (&'static str, fn(&Percentiles) -> &Metric);

/// The percentiles by their stable names.
const PERCENTILES: [Percentile; 6] = [
    ("mean_ms", |p| &p.mean_ms),
    ("p50_ms", |p| &p.p50_ms),
    ("p95_ms", |p| &p.p95_ms),
    ("p99_ms", |p| &p.p99_ms),
    ("p999_ms", |p| &p.p999_ms),
    ("max_ms", |p| &p.max_ms),
];

fn op_figures(stats: &[Option<&OpStats>]) -> OpFigures {
    let over = |get: &dyn Fn(&OpStats) -> Metric| {
        let value = |op: &Option<&OpStats>| op.map_or_else(|| Metric::absent("no operation of this type"), get);
        figure(stats.iter().map(value).collect())
    };
    let percentiles = |kind: fn(&OpStats) -> &Percentiles| {
        PERCENTILES.iter().map(|(name, get)| ((*name).to_owned(), over(&|op| get(kind(op)).clone()))).collect()
    };
    OpFigures {
        short: stats.iter().flatten().find_map(|op| op.short.clone()),
        rate: stats.iter().flatten().find_map(|op| op.rate.clone()),
        limit: stats.iter().flatten().find_map(|op| op.limit.clone()).map(|kept| KeptFigures {
            limit: kept.limit,
            within_percent: over(&|op| {
                op.limit.as_ref().map_or_else(Metric::default, |kept| kept.within_percent.clone())
            }),
        }),
        count: over(&|op| Metric::from(op.count as f64)),
        errors: over(&|op| Metric::from(op.errors as f64)),
        retries: over(&|op| Metric::from(op.retries as f64)),
        service: percentiles(|op| &op.service),
        response: percentiles(|op| &op.response),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::acid::{Promise, Recovery};
    use rumba_core::record::Suspension;

    use super::*;
    use crate::testing::{break_data, phase, record, results};

    fn slower(mut record: Record, ops: u64) -> Record {
        let loops = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
        loops.metrics.ops_per_s = Metric::from(ops as f64);
        record
    }

    #[test]
    fn repeats_fold_into_one_row_with_all_values_and_their_median() {
        let repeats = (1..).zip([1000, 3000, 2000]).map(|(repeat, ops)| slower(record("a", 8, repeat), ops));
        let summary = summarise(&results(repeats.collect()));
        let run = summary.row("a", 8).unwrap().run.as_ref().unwrap();
        let figure = &run.metrics["ops_per_s"];
        assert_eq!(figure.median, Metric::Value(2000.0));
        assert_eq!(figure.numbers(), [1000.0, 3000.0, 2000.0]);
        assert_eq!(figure.spread.unwrap().range, 2.0);
        assert_eq!(run.trials, [1, 2, 3]);
        assert_eq!(run.op_types["get_node"].response["p99_ms"].median, Metric::Value(2.0));
    }

    #[test]
    fn rows_go_by_clients_and_keep_the_experiments_order_of_engines() {
        let records = [("b", 8), ("a", 8), ("b", 1), ("a", 1)].map(|(engine, clients)| record(engine, clients, 1));
        let summary = summarise(&results(records.into()));
        let order: Vec<_> = summary.rows.iter().map(|row| (row.clients, row.engine.as_str())).collect();
        assert_eq!(order, [(1, "b"), (1, "a"), (8, "b"), (8, "a")]);
        assert_eq!((summary.engines(), summary.clients()), (vec!["b", "a"], vec![1, 8]));
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
        assert_eq!(row.run.as_ref().unwrap().notes, ["repeat 2 did not end its loops and is not in the figures"]);
        assert_eq!(row.load.as_ref().unwrap().trials, [1, 2], "its load had ended and stands");
        assert_eq!(summary.unfinished.len(), 1);
    }

    #[test]
    fn data_that_failed_its_verification_is_in_no_figure_of_load_or_loops() {
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
            let told = format!("repeat 2 of a did not end its verification: {cause}");
            assert_eq!(row.why_unsound(), Some(told), "{phase}");
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
        // Without the promise of durability a loss is none that is broken: something else has ended the proof.
        let mut lossy = broken(PhaseKind::Recovery, lost);
        lossy.plan.engine.durability = Durability::NoSync;
        assert!(!summarise(&results(vec![lossy])).rows[0].is_broken());
    }

    #[test]
    fn what_was_suspended_is_in_no_figure_and_the_rest_of_the_trial_is() {
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
        let told: Vec<(u32, Part, &str)> =
            row.suspended.iter().map(|one| (one.repeat, one.part, one.reason.as_str())).collect();
        let why = |phase: &str| format!("{phase}, for 9.5 s: it was stopped");
        assert_eq!(told[0], (2, Part::Run, why("loop 2").as_str()));
        assert_eq!(told[1], (3, Part::Run, why("warmup").as_str()));
        assert_eq!(told[2], (4, Part::Load, why("load").as_str()));
        assert!(summary.unfinished.is_empty() && row.unsound.is_empty(), "its data is sound, and it came to its end");
        let alone = summarise(&results(vec![suspend(of(1), PhaseKind::Loop(1))]));
        assert!(alone.row("a", 8).unwrap().run.is_none(), "no other loop of it stands in for the run");
    }

    #[test]
    fn an_interrupted_run_alone_shows_its_last_loop_and_says_so() {
        let mut partial = record("a", 8, 1);
        partial.status = Status::Interrupted;
        partial.phases.truncate(3);
        partial.phases.push(phase(PhaseKind::Loops, 10.0, 1, 1.0));
        let summary = summarise(&results(vec![partial]));
        let run = summary.rows[0].run.as_ref().unwrap();
        assert_eq!(run.notes, ["repeat 1: 1 of 2 loops ended; the figures are of loop 1"]);
        assert_eq!(run.median("ops_per_s"), Metric::Value(2000.0));
        assert!(run.median("wkb_per_op_with_drain").value().is_none());
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
    fn one_load_is_one_repeat_of_the_load_in_every_row_that_started_from_it() {
        let records = from_one_load(&[(1, 1), (8, 1), (1, 2), (8, 2)]);
        let summary = summarise(&results(records));
        assert_eq!(summary.clients(), [1, 8]);
        for row in &summary.rows {
            assert_eq!(row.load.as_ref().unwrap().trials, [1]);
            assert_eq!(row.run.as_ref().unwrap().trials.len(), 2);
            assert_eq!(row.loads, 1, "one load, many starts");
        }
        assert!(summary.unfinished.is_empty());
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
        assert_eq!((mixed.rows[0].loads, mixed.rows[0].load.as_ref().unwrap().trials.len()), (2, 2));
        let mut broken = from_one_load(&[(8, 1), (8, 2)]);
        let mut own = record("a", 8, 3);
        break_data(&mut own);
        broken.push(own);
        assert_eq!(summarise(&results(broken)).rows[0].loads, 1, "what is in no figure says nothing of it");
    }

    #[test]
    fn a_load_that_nothing_has_started_from_yet_is_shown() {
        let summary = summarise(&results(from_one_load(&[])));
        assert_eq!(summary.rows.len(), 1);
        assert!(summary.rows[0].load.is_some() && summary.rows[0].run.is_none());
        assert_eq!(summary.rows[0].loads, 0);
    }

    #[test]
    fn a_trial_that_failed_in_its_load_has_a_row_without_figures() {
        let mut failed = record("a", 8, 1);
        failed.phases.clear();
        let summary = summarise(&results(vec![failed]));
        assert!(summary.rows[0].load.is_none() && summary.rows[0].run.is_none());
    }
}
