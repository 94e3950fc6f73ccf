//! Summarise: one row per engine and number of clients, over all repeats.

use std::collections::{BTreeMap, BTreeSet};

use rumba_engine_api::acid::Outcome;
use rumba_engine_api::engine::checks_assertions;
use rumba_results::comparison::{
    Figure, KeptFigures, LeftOut, OpFigures, Part, PhaseFigures, Proof, Row, Steadiness, Summary, Suspended,
    Unfinished, Unsound,
};
use rumba_results::counted::{NOT_COUNTED, rule_of};
use rumba_results::distinct;
use rumba_results::headline::CpuHeadline;
use rumba_results::metric::{METRICS, Metric, TOO_FEW_SAMPLES};
use rumba_results::ratio::VerdictCount;
use rumba_results::record::{NamedPercentile, OpStats, Percentiles, PhaseKind, PhaseRecord, Record, Status, TrialPart};
use rumba_results::results::Results;
use rumba_results::search::Searched;

use crate::charge::{Charged, charged_load, charged_run, counts_alike, ended};
use crate::claims::judge;
use crate::disturbed::of_older_record;
use crate::relative::{headlines, relative};
use crate::remarks::remarks;
use crate::same_engine;
use crate::scaling;
use crate::search::{searches, why_open};
use crate::statistics::{figure_of_starts, with_centre};
use crate::steady;

/// Summarises results: every repeat's figures and their medians, unfinished trials, and the warnings that follow from
/// the figures.
///
/// Loops that did not all end enter a row only when no repeat ended its loops, and the row says so. Half a run must not
/// move the median of whole ones. A trial whose data failed its verification, or whose verification did not end, enters
/// no figure. A load or a run whose measurement was suspended enters none either.
pub fn summarise(results: &Results) -> Summary {
    let all: Vec<&Record> = results.trials.iter().map(|trial| &trial.record).collect();
    let searches = searches(&all);
    let records: Vec<&Record> = all.iter().copied().filter(|record| is_figure(record, &searches)).collect();
    let rows = rows_of(&records, &searches);
    let claims = judge(&results.claims, &rows);
    let is_sound = |record: &Record| record.suspended_run().is_none() && is_figure(record, &searches);
    let went_on = results.trials.iter().filter(|trial| is_sound(&trial.record));
    let steadiness: Vec<Steadiness> = went_on.filter_map(steady::steadiness).collect();
    let unsteady = steadiness.iter().flat_map(steady::remarks);
    // An open loop's rate is the requested one.
    let is_closed = records.iter().all(|record| record.plan.run.rate.is_none());
    let scaling = if is_closed { scaling::remarks(&rows) } else { Vec::new() };
    let trends = steady::trends(&rows, &steadiness);
    let of_rows = steady::of_rows(&rows, &steadiness, &trends);
    let of_records = records.iter().flat_map(|record| remarks(record));
    Summary {
        claim_verdicts: VerdictCount::of(claims.iter().filter(|judged| judged.test.is_some()).count()),
        claims,
        relative: relative(&rows, &records),
        trends,
        rows,
        unfinished: all.iter().filter_map(|record| unfinished(record)).collect(),
        remarks: of_records.chain(unsteady).chain(of_rows).chain(scaling).collect(),
        steadiness,
        searches,
    }
}

/// In a search, the trial with the highest kept rate is the repeat; the other probes only lead to it.
fn is_figure(record: &Record, searches: &[Searched]) -> bool {
    record.plan.probe.is_none() || search_of(record, searches).is_some()
}

/// The search whose result is this trial.
fn search_of<'a>(record: &Record, searches: &'a [Searched]) -> Option<&'a Searched> {
    let is_it = |found: &&Searched| found.trial == Some(record.plan.number) && found.engine == record.plan.engine.name;
    searches.iter().find(is_it)
}

/// The rows of a summary alone: every repeat's figures and their medians, without remarks.
pub fn rows(results: &Results) -> Vec<Row> {
    let all: Vec<&Record> = results.trials.iter().map(|trial| &trial.record).collect();
    let searches = searches(&all);
    rows_of(&all.into_iter().filter(|record| is_figure(record, &searches)).collect::<Vec<_>>(), &searches)
}

fn rows_of(records: &[&Record], searches: &[Searched]) -> Vec<Row> {
    let is_load = |record: &Record| record.plan.part == TrialPart::Load;
    // A load has a separate row only while no trial has started from it.
    let is_row = |record: &&&Record| {
        let engine = &record.plan.engine.name;
        !is_load(record) || !records.iter().any(|other| !is_load(other) && other.plan.engine.name == *engine)
    };
    let of_rows = records.iter().filter(is_row);
    let mut keys = distinct(of_rows.map(|record| (record.plan.clients, record.plan.engine.name.as_str())));
    // A stable sort keeps the experiment's order of engines within one number of clients.
    keys.sort_by_key(|(clients, _)| *clients);
    let rows = keys.into_iter().map(|(clients, engine)| {
        let is_run = |record: &Record| record.plan.clients == clients && record.plan.engine.name == engine;
        // Engines with the same load settings share one load, which has the name of the first engine.
        let started_from = |load: u32| {
            let mut runs = records.iter().filter(|record| !is_load(record) && is_run(record));
            runs.any(|record| record.plan.loaded_by == Some(load))
        };
        let of_row = |record: &&&Record| match is_load(record) {
            true => record.plan.engine.name == engine || started_from(record.plan.number),
            false => is_run(record),
        };
        row(&records.iter().filter(of_row).copied().collect::<Vec<_>>(), searches)
    });
    let mut rows: Vec<Row> = rows.collect();
    same_engine::mark(&mut rows, records);
    rows
}

fn unfinished(record: &Record) -> Option<Unfinished> {
    let ended = matches!(record.status, Status::Done | Status::Suspended { .. });
    (!ended).then(|| Unfinished { name: record.plan.name(), status: record.status.clone() })
}

/// The row of records that differ only in their repeat, and of the loads from which they started; there is at least
/// one.
fn row(records: &[&Record], searches: &[Searched]) -> Row {
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
    let (load, run) = (load_figures(&sound), run_figures(&sound_runs, searches));
    Row {
        engine: plan.engine.name.clone(),
        test: plan.test.clone(),
        registered: plan.engine.engine.clone(),
        facts: plan.facts.clone(),
        clients: plan.clients,
        client_steps: plan.run.client_steps.clone(),
        assertions: records.iter().find_map(|record| assertions(record)),
        same_as: Vec::new(),
        broken: broken(records),
        unsound: unsound.collect(),
        suspended: records.iter().flat_map(|record| suspended(record)).collect(),
        loads: run.figures.as_ref().map_or(0, |run| run.loads.iter().collect::<BTreeSet<_>>().len() as u32),
        at_most_repeats: plan.run.at_most_repeats,
        load: load.figures,
        run: run.figures,
        left_out: [load.left_out, run.left_out].concat(),
    }
}

/// The reason why a trial's build supports no verdicts on rates, times and CPU.
fn assertions(record: &Record) -> Option<String> {
    let version = record.version.as_deref().unwrap_or_default();
    checks_assertions(record.version.as_deref(), &record.effective_settings)
        .then(|| format!("{} runs from a build with assertions ({version}), which is slower", record.plan.engine.name))
}

/// The reason why no figure of this trial may be used: its data failed its verification, or the verification did not
/// end.
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

/// Whether a test of transaction guarantees found a violated one. Any other failure of the test, such as a server
/// crash, shows nothing.
fn breaks_a_promise(record: &Record, phase: &PhaseRecord) -> bool {
    let must_survive = record.plan.survives_process_crash();
    let is_lost = must_survive && phase.recovery.as_ref().is_some_and(|recovery| recovery.lost > 0);
    is_lost || phase.promises.iter().any(|promise| promise.outcome == Outcome::Broken)
}

/// The suspended parts of a trial, each with its first suspended phase.
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

/// The properties that the repeats' data broke, without duplicates.
fn broken(records: &[&Record]) -> Vec<String> {
    let checks = records.iter().flat_map(|record| &record.phases).flat_map(|phase| &phase.checks);
    distinct(checks.filter(|check| check.wrong > 0).map(|check| check.name.clone()))
}

/// A part of a row: its figures, and the repeats that are left out because they did not end.
struct PartOfRow {
    figures: Option<PhaseFigures>,
    left_out: Vec<LeftOut>,
}

impl PartOfRow {
    /// Collects the complete part of each record, or its missing parts. If no record is complete, uses as much as they
    /// have.
    fn of<'a>(
        records: &[&'a Record],
        part: Part,
        whole: impl Fn(&'a Record) -> Result<&'a PhaseRecord, String>,
        most: impl Fn(&'a Record) -> Option<&'a PhaseRecord>,
        charged: fn(&Record) -> Charged,
    ) -> Self {
        let of_each: Vec<_> = records.iter().map(|record| (*record, whole(record))).collect();
        let mut phases: Vec<_> =
            of_each.iter().filter_map(|(record, phase)| Some((*record, *phase.as_ref().ok()?))).collect();
        let (mut notes, mut left_out, partial) = (Vec::new(), Vec::new(), phases.is_empty());
        for (record, why) in of_each.iter().filter_map(|(record, phase)| Some((*record, phase.as_ref().err()?))) {
            let (trial, repeat) = (record.plan.number, record.plan.repeat);
            left_out.push(LeftOut { trial, repeat, part, reason: why.clone() });
            let which = which_repeat(record, part);
            match most(record).filter(|_| partial) {
                Some(phase) => {
                    notes.push(format!("{which}: {why}; the figures are of {}", phase.phase));
                    phases.push((record, phase));
                }
                None if partial => {}
                None => notes.push(format!("{which} is not in the figures: {why}")),
            }
        }
        if phases.is_empty() {
            return Self { figures: None, left_out };
        }
        let starts = group_by_repeat(&mut phases, part);
        let mut summed = with_charged(figures(&phases, starts, part), &phases, charged);
        notes.extend(lacking(&summed, part));
        (summed.notes, summed.partial) = (notes, partial);
        Self { figures: Some(summed), left_out }
    }
}

/// The repeat of a trial in words; with its start if its load has several.
fn which_repeat(record: &Record, part: Part) -> String {
    let plan = &record.plan;
    match part == Part::Run && plan.run.starts > 1 {
        true => format!("start {} of repeat {}", plan.start, plan.repeat),
        false => format!("repeat {}", plan.repeat),
    }
}

/// Groups the trials by repeat, and returns the number of trials of each; empty if each repeat has one start. Each load
/// is a separate repeat.
fn group_by_repeat(phases: &mut [(&Record, &PhaseRecord)], part: Part) -> Vec<u32> {
    if part == Part::Load || phases.iter().all(|(record, _)| record.plan.run.starts == 1) {
        return Vec::new();
    }
    phases.sort_by_key(|(record, _)| record.plan.repeat);
    let of_repeats = phases.chunk_by(|one, other| one.0.plan.repeat == other.0.plan.repeat);
    of_repeats.map(|of_repeat| of_repeat.len() as u32).collect()
}

fn load_figures(records: &[&Record]) -> PartOfRow {
    let is_load = |record: &&Record| ended(record, PhaseKind::Load).is_some_and(|load| load.suspended.is_none());
    let records: Vec<&Record> = records.iter().copied().filter(is_load).collect();
    PartOfRow::of(&records, Part::Load, whole_load, |record| ended(record, PhaseKind::Load), charged_load)
}

/// A suspended run contributes no loop, because later loops began with the work that the engine did meanwhile. Trials
/// that loaded for themselves have warm caches, and pages as the load left them. They are not mixed with trials that
/// started from a copy; the larger group is used.
fn run_figures(records: &[&Record], searches: &[Searched]) -> PartOfRow {
    let records: Vec<&Record> = records.iter().copied().filter(|record| record.suspended_run().is_none()).collect();
    let of = |part: TrialPart| {
        let whole = |record: &&&Record| record.plan.part == part && whole_run(record, searches).is_ok();
        records.iter().filter(whole).count()
    };
    let usual = if of(TrialPart::Whole) > of(TrialPart::Run) { TrialPart::Whole } else { TrialPart::Run };
    let whole = |record| match whole_run(record, searches) {
        Ok(_) if record.plan.part != usual => Err(match usual {
            TrialPart::Whole => "it started from a copy, and the others loaded for themselves",
            _ => "it loaded for itself, and the others started from a copy",
        }
        .to_owned()),
        run => run,
    };
    PartOfRow::of(&records, Part::Run, whole, most_of_run, charged_run)
}

/// The headline figures that some repeats have and others lack.
fn lacking(figures: &PhaseFigures, part: Part) -> impl Iterator<Item = String> {
    // If the host's CPU is missing in some repeats, the other CPU metric has the verdict.
    let cpu = CpuHeadline::of([("", figures)]);
    headlines(figures, part, &cpu)
        .filter_map(|headline| Some(format!("{}: {}", headline.metric, headline.figure.lacking()?)))
}

/// Adds the metrics that span phases. A counter that only some repeats' engines reported is 0 in the others that report
/// counters, because an engine reports nothing for a level that was always empty.
fn with_charged(
    mut figures: PhaseFigures,
    phases: &[(&Record, &PhaseRecord)],
    charged: fn(&Record) -> Charged,
) -> PhaseFigures {
    let mut values: BTreeMap<String, Vec<Metric>> = BTreeMap::new();
    for (place, (record, _)) in phases.iter().enumerate() {
        for (name, metric) in charged(record) {
            let of_name = values.entry(name).or_insert_with_key(|name| {
                let is_counted = |record: &Record| rule_of(name).is_some() && counts_alike(record);
                let nothing =
                    |record| if is_counted(record) { Metric::Value(0.0) } else { Metric::absent(NOT_COUNTED) };
                phases.iter().map(|(record, _)| nothing(*record)).collect()
            });
            of_name[place] = metric;
        }
    }
    let starts = &figures.starts;
    let of_name = values.into_iter().map(|(name, values)| (name, with_centre(figure_of_starts(values, starts))));
    figures.metrics.extend(of_name);
    figures
}

/// The loops that were not cut off.
fn whole_loops(record: &Record) -> impl Iterator<Item = &PhaseRecord> {
    record.loops().filter(|looped| looped.complete)
}

/// The load of a record, if it was settled and its data passed the planned verification.
///
/// # Errors
/// The missing part.
fn whole_load(record: &Record) -> Result<&PhaseRecord, String> {
    let load = ended(record, PhaseKind::Load).ok_or("its load was cut off")?;
    let is_later = |phase: &PhaseRecord| {
        use PhaseKind::{Load, Provision, Settle, VerifyLoad};
        !matches!(phase.phase, Provision | Load | Settle | VerifyLoad)
    };
    let is_done = matches!(record.status, Status::Done | Status::Suspended { .. });
    let is_verified = ended(record, PhaseKind::VerifyLoad).is_some();
    match is_done || is_verified || record.phases.iter().any(is_later) {
        true => Ok(load),
        false if ended(record, PhaseKind::Settle).is_none() => Err("it ended before its load was settled".to_owned()),
        false => Err("it ended before the run began".to_owned()),
    }
}

/// All loops of a record, if all planned loops ended, the planned verification of its data passed, and its search, if
/// any, ended.
///
/// # Errors
/// The missing part.
fn whole_run<'a>(record: &'a Record, searches: &[Searched]) -> Result<&'a PhaseRecord, String> {
    let is_done = matches!(record.status, Status::Done | Status::Suspended { .. });
    let (ended, planned) = (whole_loops(record).count(), record.plan.run.loops);
    let loops = record.phase(PhaseKind::Loops).filter(|_| is_done || ended >= planned as usize);
    let loops = loops.ok_or_else(|| format!("{ended} of {planned} loops ended"))?;
    let has = |proof: PhaseKind| self::ended(record, proof).is_some();
    if !is_done && record.plan.run.verify && !has(PhaseKind::Verify) {
        return Err("it ended before its data was verified".to_owned());
    }
    if !is_done && record.plan.run.crash_s.is_some() && !has(PhaseKind::Recovery) {
        return Err("it ended before all that transactions are promised was proven".to_owned());
    }
    search_of(record, searches).and_then(why_open).map_or(Ok(loops), Err)
}

/// All loops of an incomplete run, if they ended, or else the last one that did.
fn most_of_run(record: &Record) -> Option<&PhaseRecord> {
    let is_last = whole_loops(record).count() >= record.plan.run.loops as usize;
    record.phase(PhaseKind::Loops).filter(|_| is_last).or_else(|| whole_loops(record).last())
}

/// The figures of these phases; `starts` has the number of trials of each repeat.
fn figures(phases: &[(&Record, &PhaseRecord)], starts: Vec<u32>, part: Part) -> PhaseFigures {
    let mut metrics = BTreeMap::new();
    for info in METRICS {
        let value = |(record, phase): &(&Record, &PhaseRecord)| {
            let own = phase.metrics.get(info.name).cloned().unwrap_or_default();
            if own.value().is_some() { own } else { of_older_record(info.name, record, phase).unwrap_or(own) }
        };
        let values = phases.iter().map(value).collect();
        metrics.insert(info.name.to_owned(), with_centre(figure_of_starts(values, &starts)));
    }
    let mut names: Vec<&String> = phases.iter().flat_map(|(_, phase)| phase.op_types.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let op_types = names.into_iter().map(|name| {
        let stats: Vec<_> = phases.iter().map(|(_, phase)| phase.op_types.get(name)).collect();
        (name.clone(), op_figures(&stats, &starts))
    });
    let op_types = op_types.collect();
    let records = || phases.iter().map(|(record, _)| *record);
    let loaded_by = |record: &Record| record.plan.loaded_by.filter(|_| part == Part::Run);
    PhaseFigures {
        trials: records().map(|record| record.plan.number).collect(),
        repeats: firsts(records(), &starts).map(|record| record.plan.repeat).collect(),
        loads: firsts(records(), &starts).map(|record| loaded_by(record).unwrap_or(record.plan.number)).collect(),
        starts,
        notes: Vec::new(),
        partial: false,
        metrics,
        op_types,
    }
}

/// The first trial of each repeat; `starts` has the number of trials of each.
fn firsts<'a>(records: impl Iterator<Item = &'a Record>, starts: &[u32]) -> impl Iterator<Item = &'a Record> {
    let mut left = 0;
    let mut starts = starts.iter();
    records.filter(move |_| {
        let is_first = left == 0;
        if is_first {
            left = starts.next().copied().unwrap_or(1);
        }
        left -= 1;
        is_first
    })
}

/// Lower bounds of a percentile in the repeats that have too few samples for it; empty if none has too few. With
/// several starts, which `starts` counts, the bound is the mean.
fn at_least(
    (name, get): &NamedPercentile,
    trials: &[Option<&Percentiles>],
    figure: &Figure,
    starts: &[u32],
) -> Vec<Metric> {
    let is_short = |value: &Metric| value.reason().is_some_and(|why| why.contains(TOO_FEW_SAMPLES));
    if !figure.values.iter().any(is_short) {
        return Vec::new();
    }
    let lower: Vec<fn(&Percentiles) -> &Metric> = match *name {
        "p999_ms" => vec![|p| &p.p99_ms, |p| &p.p95_ms, |p| &p.p50_ms],
        "p99_ms" => vec![|p| &p.p95_ms, |p| &p.p50_ms],
        "p95_ms" => vec![|p| &p.p50_ms],
        _ => Vec::new(),
    };
    let bound = |trial: &Option<&Percentiles>| match trial {
        Some(percentiles) => {
            let mut known = std::iter::once(get).chain(&lower).map(|get| get(percentiles));
            let known = known.find(|metric| metric.value().is_some());
            known.cloned().unwrap_or_else(|| Metric::absent("no lower percentile has enough samples either"))
        }
        None => Metric::absent("no operation of this type"),
    };
    let bounds = figure_of_starts(trials.iter().map(bound).collect(), starts).values;
    let needed = |(value, bound): (&Metric, Metric)| if is_short(value) { bound } else { Metric::absent("not needed") };
    figure.values.iter().zip(bounds).map(needed).collect()
}

fn op_figures(stats: &[Option<&OpStats>], starts: &[u32]) -> OpFigures {
    let over = |get: &dyn Fn(&OpStats) -> Metric| {
        let value = |op: &Option<&OpStats>| op.map_or_else(|| Metric::absent("no operation of this type"), get);
        figure_of_starts(stats.iter().map(value).collect(), starts)
    };
    let percentiles = |kind: fn(&OpStats) -> &Percentiles| {
        let trials: Vec<Option<&Percentiles>> = stats.iter().map(|op| op.map(kind)).collect();
        let of = |percentile: &NamedPercentile| {
            let mut figure = over(&|op| percentile.1(kind(op)).clone());
            figure.at_least = at_least(percentile, &trials, &figure, starts);
            (percentile.0.to_owned(), figure)
        };
        Percentiles::NAMED.iter().map(of).collect()
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
mod tests;
