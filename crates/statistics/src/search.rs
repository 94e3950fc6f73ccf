//! The search for the highest rate that keeps a response time: what a probe found, and which rate is next.
//!
//! A closed loop comes first: what it serves bounds, of a server with a queue, what an open loop can. From three quarters
//! of it the rate is halved until one is kept; then the gap is bisected until it is 2% wide. Of a load that is bound by
//! something else than its clients (their think times) a higher rate may be kept, and is looked for.

use rumba_core::metric::Metric;
use rumba_core::ratio::MAIN_SHARE;
use rumba_core::record::{OpStats, Percentiles, PhaseKind, PhaseRecord, Record, Status, TrialPlan};
use rumba_core::search::{Found, Percentile, Probe, Search, Searched};

/// The gap between the highest rate kept and the lowest missed at which a search ends, over the first.
const GAP: f64 = 0.02;
/// The first open loop's rate over what the closed loop served.
const FIRST: f64 = 0.75;
/// A search that has found nothing above this share of the closed loop's rate finds nothing.
const LEAST: f64 = 0.01;
/// How much higher is looked where the closed loop was no bound.
const HIGHER: f64 = 1.25;
/// More probes than any search needs: one that does not converge ends.
const MOST: usize = 30;
/// A rate is served when no more than this is lacking.
const SLACK: f64 = 0.05;
/// Random arrivals are so many deviations fewer than expected in one of 700 probes.
const DEVIATIONS: f64 = 3.0;

/// What a search does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// A probe at this rate.
    Rate(f64),
    /// Nothing: it has ended.
    Ended,
}

/// What follows these probes, which are in the order in which they ran.
pub fn next(probes: &[Probe]) -> Next {
    let reference = match probes.first() {
        Some(Probe { found: Found::Reference, ops_per_s: Metric::Value(rate), .. }) => *rate,
        _ => return Next::Ended,
    };
    if probes.len() >= MOST || probes.iter().any(|probe| probe.found == Found::Unknown) {
        return Next::Ended;
    }
    match (highest(probes), lowest_missed(probes)) {
        (None, None) => Next::Rate(reference * FIRST),
        (None, Some(missed)) if missed <= reference * LEAST => Next::Ended,
        (None, Some(missed)) => Next::Rate(missed / 2.0),
        (Some(kept), Some(missed)) if missed / kept - 1.0 <= GAP => Next::Ended,
        (Some(kept), Some(missed)) => Next::Rate((kept + missed) / 2.0),
        (Some(kept), None) if reference / kept - 1.0 <= GAP => Next::Rate(kept * HIGHER),
        (Some(kept), None) => Next::Rate((kept + reference) / 2.0),
    }
}

fn rates(probes: &[Probe], found: Found) -> impl Iterator<Item = f64> + '_ {
    probes.iter().filter(move |probe| probe.found == found).filter_map(|probe| probe.rate)
}

fn highest(probes: &[Probe]) -> Option<f64> {
    rates(probes, Found::Kept).max_by(f64::total_cmp)
}

fn lowest_missed(probes: &[Probe]) -> Option<f64> {
    rates(probes, Found::Missed).min_by(f64::total_cmp)
}

/// Whether two trials are probes of one search.
pub fn is_same_search(one: &TrialPlan, other: &TrialPlan) -> bool {
    let of = |plan: &TrialPlan| (plan.probe.is_some(), plan.engine.name.clone(), plan.clients, plan.repeat);
    one.probe.is_some() && of(one) == of(other)
}

/// Every search of these records.
pub fn searches(records: &[&Record]) -> Vec<Searched> {
    let firsts = records.iter().filter(|record| record.plan.probe == Some(1));
    firsts.filter_map(|first| searched(first, records)).collect()
}

fn searched(first: &Record, records: &[&Record]) -> Option<Searched> {
    let search = first.plan.run.search?;
    let mut own: Vec<&&Record> = records.iter().filter(|record| is_same_search(&first.plan, &record.plan)).collect();
    own.sort_by_key(|record| record.plan.probe);
    let probes: Vec<Probe> = own.iter().map(|record| probe(record, &search)).collect();
    // What was interrupted is not what the search found.
    let is_cut_off = own.iter().any(|record| matches!(record.status, Status::Running | Status::Interrupted));
    let kept = highest(&probes);
    let trial = probes.iter().find(|probe| probe.found == Found::Kept && probe.rate == kept).map(|probe| probe.trial);
    let why = |otherwise: &str| {
        let unknown = probes.iter().find(|probe| probe.found == Found::Unknown);
        Metric::absent(unknown.map_or_else(|| otherwise.to_owned(), |probe| probe.reason.clone()))
    };
    Some(Searched {
        engine: first.plan.engine.name.clone(),
        clients: first.plan.clients,
        repeat: first.plan.repeat,
        search,
        highest: kept.map_or_else(|| why("no rate kept it"), Metric::Value),
        lowest_missed: lowest_missed(&probes).map_or_else(|| why("no rate missed it"), Metric::Value),
        trial,
        ended: next(&probes) == Next::Ended && !is_cut_off,
        probes,
    })
}

/// What a trial of a search found.
pub fn probe(record: &Record, search: &Search) -> Probe {
    let (trial, rate) = (record.plan.number, record.plan.run.rate);
    let of = |ops_per_s: Metric, percentile_ms: Metric, found: Found, reason: String| Probe {
        trial,
        rate,
        ops_per_s,
        percentile_ms,
        found,
        reason,
    };
    let unknown = |reason: String| of(Metric::absent(&*reason), Metric::absent(&*reason), Found::Unknown, reason);
    let loops = match (&record.status, record.phase(PhaseKind::Loops)) {
        (Status::Failed { phase, cause }, _) => return unknown(format!("it failed in {phase}: {cause}")),
        (Status::Suspended { phase, cause }, _) => return unknown(format!("it was suspended in {phase}: {cause}")),
        (Status::Done, Some(loops)) if loops.complete => loops,
        _ => return unknown("it did not end its loops".to_owned()),
    };
    let (served, percentile) = (loops.metrics.ops_per_s.clone(), worst(loops, search.percentile));
    let Some(served_per_s) = served.value() else {
        return unknown(served.reason().unwrap_or("nothing was served").to_owned());
    };
    let Some(rate) = rate else {
        let words = format!("a closed loop served {served_per_s:.0}/s");
        let found = if served_per_s > 0.0 { Found::Reference } else { Found::Unknown };
        return of(served, percentile, found, words);
    };
    let slack = SLACK.max(DEVIATIONS / (rate * loops.seconds).sqrt());
    let left = loops.backlog.as_ref().map_or(0, |backlog| backlog.open + backlog.not_begun);
    let (name, limit_ms) = (search.percentile.name(), search.limit_ms);
    let (found, reason) = match &percentile {
        _ if left > 0 => (Found::Missed, format!("{left} operations were not served")),
        _ if served_per_s < rate * (1.0 - slack) => (Found::Missed, format!("{served_per_s:.0}/s were served")),
        Metric::Value(ms) if *ms < limit_ms => (Found::Kept, format!("{name} was {ms:.3} ms")),
        Metric::Value(ms) => (Found::Missed, format!("{name} was {ms:.3} ms")),
        Metric::Absent { absent } => (Found::Unknown, format!("there is no {name}: {absent}; make the loops longer")),
    };
    of(served, percentile, found, reason)
}

/// The largest of the percentiles of all types of operations that are a share worth a verdict.
fn worst(loops: &PhaseRecord, percentile: Percentile) -> Metric {
    let all: u64 = loops.op_types.values().map(|op| op.count).sum();
    let main = loops.op_types.values().filter(|op| op.count > 0 && op.count as f64 >= MAIN_SHARE * all as f64);
    let mut worst = Metric::absent("no operation ended");
    for OpStats { response, .. } in main {
        match (of_percentiles(response, percentile), worst.value()) {
            (Metric::Value(ms), largest) => worst = Metric::Value(largest.map_or(*ms, |largest| largest.max(*ms))),
            (absent, _) => return absent.clone(),
        }
    }
    worst
}

fn of_percentiles(times: &Percentiles, percentile: Percentile) -> &Metric {
    match percentile {
        Percentile::P50 => &times.p50_ms,
        Percentile::P95 => &times.p95_ms,
        Percentile::P99 => &times.p99_ms,
        Percentile::P999 => &times.p999_ms,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::record::Backlog;

    use super::*;
    use crate::summarise;
    use crate::testing::{record, results};

    fn probed(rate: Option<f64>, found: Found) -> Probe {
        let ops_per_s = Metric::Value(rate.unwrap_or(1000.0));
        Probe { trial: 1, rate, ops_per_s, percentile_ms: Metric::Value(1.0), found, reason: String::new() }
    }

    /// Searches a limit that is known; gives the probes.
    fn search(limit: f64) -> Vec<Probe> {
        let mut probes = vec![probed(None, Found::Reference)];
        while let Next::Rate(rate) = next(&probes) {
            probes.push(probed(Some(rate), if rate < limit { Found::Kept } else { Found::Missed }));
        }
        probes
    }

    #[test]
    fn a_limit_is_found_within_two_percent_in_a_handful_of_probes_wherever_it_is() {
        for limit in [1000.0, 930.0, 751.0, 740.0, 333.0, 101.0, 17.0, 1900.0] {
            let probes = search(limit);
            let (kept, missed) = (highest(&probes).unwrap(), lowest_missed(&probes).unwrap());
            assert!(kept < limit && limit <= missed && missed / kept <= 1.0 + GAP, "{limit}: {kept} to {missed}");
            assert!(probes.len() <= 14, "{limit}: {} probes", probes.len());
        }
    }

    #[test]
    fn a_search_that_finds_nothing_or_does_not_know_ends() {
        let nothing = search(0.0);
        assert!(highest(&nothing).is_none() && nothing.len() < 12);
        assert_eq!(next(&[probed(None, Found::Reference), probed(Some(750.0), Found::Unknown)]), Next::Ended);
        assert_eq!(next(&[probed(None, Found::Unknown)]), Next::Ended);
        assert_eq!(next(&[]), Next::Ended);
    }

    fn trial(number: u32, rate: Option<f64>, served: f64, p99_ms: f64) -> Record {
        let mut record = record("a", 8, 1);
        record.plan.probe = Some(number);
        record.plan.run.rate = rate;
        record.plan.run.search = Some(Search { percentile: Percentile::P99, limit_ms: 10.0 });
        for phase in &mut record.phases {
            phase.metrics.ops_per_s = Metric::Value(served);
            for op in phase.op_types.values_mut() {
                op.response.p99_ms = Metric::Value(p99_ms);
            }
        }
        record
    }

    #[test]
    fn a_probe_keeps_the_limit_only_when_its_rate_was_served_too() {
        let search = Search { percentile: Percentile::P99, limit_ms: 10.0 };
        let found = |record: &Record| probe(record, &search).found;
        assert_eq!(found(&trial(1, None, 1000.0, 1.0)), Found::Reference);
        assert_eq!(found(&trial(2, Some(900.0), 899.0, 9.9)), Found::Kept);
        assert_eq!(found(&trial(2, Some(900.0), 899.0, 10.0)), Found::Missed);
        assert_eq!(found(&trial(2, Some(900.0), 700.0, 1.0)), Found::Missed, "clients that lag behind are no answer");
        let mut open = trial(2, Some(900.0), 899.0, 1.0);
        let loops = open.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
        loops.backlog = Some(Backlog { not_begun: 3, ..Backlog::default() });
        assert_eq!(found(&open), Found::Missed);
        let mut few = trial(2, Some(900.0), 899.0, 1.0);
        for op in few.phases.iter_mut().flat_map(|phase| phase.op_types.values_mut()) {
            op.response.p99_ms = Metric::absent("90 samples are too few");
        }
        let few = probe(&few, &search);
        assert!(few.found == Found::Unknown && few.reason.contains("make the loops longer"), "{}", few.reason);
    }

    #[test]
    fn the_row_of_a_search_has_the_figures_of_the_highest_rate_that_was_kept_alone() {
        let rates =
            [(None, 1000.0, 1.0), (Some(750.0), 750.0, 5.0), (Some(875.0), 875.0, 20.0), (Some(812.0), 812.0, 9.0)];
        let probes = (1..).zip(rates).map(|(number, (rate, served, p99_ms))| trial(number, rate, served, p99_ms));
        let summary = summarise(&results(probes.collect()));
        let row = summary.row("a", 8).unwrap();
        assert_eq!(row.run.as_ref().unwrap().trials, [4]);
        assert_eq!(row.run.as_ref().unwrap().median("ops_per_s"), Metric::Value(812.0));
        let found = &summary.searches[0];
        assert_eq!(
            (found.highest.value(), found.lowest_missed.value(), found.trial),
            (Some(812.0), Some(875.0), Some(4))
        );
        assert_eq!((found.probes.len(), found.ended), (4, false));
    }
}
