//! The search for the highest rate that keeps a response time: the result of a probe, and the next rate.
//!
//! A closed loop comes first: for a server with a queue, its throughput bounds that of an open loop. From three
//! quarters of it the rate is halved until one is kept; then the gap is bisected until it is 1% wide. If think times
//! limit the load instead of the clients, a higher rate may be kept, and the search looks for it.
//!
//! One probe is one draw of arrivals, and the host does other work meanwhile. A rate therefore bounds the search from
//! above only when two probes have missed it, and the rate at which it ends is probed a second time. If two probes of a
//! rate disagree, a third decides if necessary. A probe that missed and was disturbed is ignored at first.

use rumba_results::metric::Metric;
use rumba_results::ratio::MAIN_SHARE;
use rumba_results::record::{OpStats, Percentiles, PhaseKind, PhaseRecord, Record, Status, TrialPlan};
use rumba_results::search::{Found, Percentile, Probe, Purpose, Search, Searched};

/// The relative gap between the highest rate kept and the lowest missed at which a search ends.
const GAP: f64 = 0.01;
/// The first open loop's rate, relative to the closed loop's throughput.
const FIRST: f64 = 0.75;
/// A search that finds no rate above this share of the closed loop's rate has no result.
const LEAST: f64 = 0.01;
/// The factor for the next rate if the closed loop was no upper bound.
const HIGHER: f64 = 1.25;
/// The most probes; a search that does not converge ends here.
pub const MOST_PROBES: usize = 40;
/// The number of probes that must agree.
const TWICE: usize = 2;
/// The number of disturbed probes of a rate that are ignored; after that, the disturbed host has to be measured as it
/// is.
const DISTURBED: usize = 2;
/// The trial's own warnings that other processes took its CPU.
pub const DISTURBING: [&str; 2] = ["stolen-cpu", "others-cpu"];
/// The largest shortfall of a served rate.
const SLACK: f64 = 0.05;
/// Standard deviations: random arrivals are this far below their expected number in one of 700 probes.
const DEVIATIONS: f64 = 3.0;

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// A probe at this rate; `None` repeats the closed loop.
    Probe(Option<f64>),
    Ended,
}

/// The state of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A single probe missed it, or was disturbed.
    Open,
    /// As many kept it as missed it, or a single probe kept it, which is enough to try a higher rate.
    Kept,
    /// Two probes kept it, and fewer missed it.
    Confirmed,
    /// Two probes missed it, and fewer kept it.
    Missed,
}

/// The step after these probes, which are in the order in which they ran.
pub fn next(probes: &[Probe]) -> Next {
    let Some(last) = probes.last() else { return Next::Ended };
    if probes.len() >= MOST_PROBES || last.found == Found::Unknown {
        return Next::Ended;
    }
    let reference = match probes.iter().find(|probe| probe.found == Found::Reference) {
        Some(Probe { ops_per_s: Metric::Value(rate), .. }) => *rate,
        _ if last.found == Found::Disturbed => return Next::Probe(None),
        _ => return Next::Ended,
    };
    if let Some(rate) = last.rate.filter(|rate| standing(probes, *rate) == Standing::Open) {
        return Next::Probe(Some(rate));
    }
    let rate = match (highest(probes), lowest_missed(probes)) {
        (None, None) => reference * FIRST,
        (None, Some(missed)) if missed <= reference * LEAST => return Next::Ended,
        (None, Some(missed)) => missed / 2.0,
        (Some(kept), Some(missed)) if missed / kept - 1.0 > GAP => (kept + missed) / 2.0,
        (Some(kept), Some(_)) if standing(probes, kept) == Standing::Confirmed => return Next::Ended,
        (Some(kept), Some(_)) => kept,
        (Some(kept), None) if reference / kept - 1.0 <= GAP => kept * HIGHER,
        (Some(kept), None) => (kept + reference) / 2.0,
    };
    Next::Probe(Some(rate))
}

fn count(probes: &[Probe], rate: Option<f64>, found: Found) -> usize {
    probes.iter().filter(|probe| probe.rate == rate && probe.found == found).count()
}

fn standing(probes: &[Probe], rate: f64) -> Standing {
    let of = |found| count(probes, Some(rate), found);
    match (of(Found::Kept), of(Found::Missed)) {
        (kept, missed) if missed >= TWICE && missed > kept => Standing::Missed,
        (kept, missed) if kept >= TWICE && kept > missed => Standing::Confirmed,
        (kept, missed) if kept >= missed && kept > 0 => Standing::Kept,
        _ => Standing::Open,
    }
}

fn rates<'a>(probes: &'a [Probe], is: impl Fn(Standing) -> bool + 'a) -> impl Iterator<Item = f64> + 'a {
    probes.iter().filter_map(|probe| probe.rate).filter(move |rate| is(standing(probes, *rate)))
}

fn highest(probes: &[Probe]) -> Option<f64> {
    rates(probes, |standing| matches!(standing, Standing::Kept | Standing::Confirmed)).max_by(f64::total_cmp)
}

fn lowest_missed(probes: &[Probe]) -> Option<f64> {
    rates(probes, |standing| standing == Standing::Missed).min_by(f64::total_cmp)
}

/// Whether two trials are probes of one search.
pub fn is_same_search(one: &TrialPlan, other: &TrialPlan) -> bool {
    let of = |plan: &TrialPlan| (plan.probe.is_some(), plan.engine.name.clone(), plan.clients, plan.repeat);
    one.probe.is_some() && of(one) == of(other)
}

pub fn searches(records: &[&Record]) -> Vec<Searched> {
    let firsts = records.iter().filter(|record| record.plan.probe == Some(1));
    firsts.filter_map(|first| searched(first, records)).collect()
}

fn searched(first: &Record, records: &[&Record]) -> Option<Searched> {
    let search = first.plan.run.search?;
    let mut own: Vec<&&Record> = records.iter().filter(|record| is_same_search(&first.plan, &record.plan)).collect();
    own.sort_by_key(|record| record.plan.probe);
    let mut probes: Vec<Probe> = Vec::new();
    own.iter().for_each(|record| probes.push(probe(record, &search, &probes)));
    // An interrupted trial is not a result of the search.
    let is_cut_off = own.iter().any(|record| matches!(record.status, Status::Running | Status::Interrupted));
    let kept = highest(&probes);
    // The last one, because the first was kept by definition.
    let trial = probes.iter().rfind(|probe| probe.found == Found::Kept && probe.rate == kept).map(|probe| probe.trial);
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
        confirmed: kept.is_some_and(|kept| standing(&probes, kept) == Standing::Confirmed),
        lowest_missed: lowest_missed(&probes).map_or_else(|| why("no rate missed it"), Metric::Value),
        trial,
        ended: next(&probes) == Next::Ended && !is_cut_off,
        probes,
    })
}

/// The reason why the highest rate of a search is not its final result.
pub fn why_open(search: &Searched) -> Option<String> {
    let unknown = search.probes.iter().find(|probe| probe.found == Found::Unknown);
    let gap = match (search.highest.value(), search.lowest_missed.value()) {
        (Some(kept), Some(missed)) => missed / kept - 1.0,
        _ => f64::INFINITY,
    };
    match () {
        () if unknown.is_some() => {
            unknown.map(|probe| format!("a probe of its search cannot be reported: {}", probe.reason))
        }
        () if !search.ended => Some("its search did not end".to_owned()),
        () if gap > GAP => Some(format!("its search ended after {} probes without a limit", search.probes.len())),
        () if !search.confirmed => Some("no second probe confirmed its rate".to_owned()),
        () => None,
    }
}

/// The result of a trial of a search, after these probes.
pub fn probe(record: &Record, search: &Search, before: &[Probe]) -> Probe {
    let rate = record.plan.run.rate;
    let purpose = match before.iter().rfind(|probe| probe.rate == rate).map(|probe| probe.found) {
        None => Purpose::Step,
        Some(Found::Disturbed) => Purpose::Repetition,
        Some(_) => Purpose::Confirmation,
    };
    let disturbed = disturbed(record);
    let Seen { ops_per_s, percentile_ms, mut found, mut reason } = seen(record, search);
    let is_lost = found == Found::Missed || matches!(record.status, Status::Suspended { .. });
    if let Some(by) = disturbed.as_ref().filter(|_| is_lost) {
        reason = format!("{reason}; disturbed: {by}");
        if count(before, rate, Found::Disturbed) < DISTURBED {
            found = Found::Disturbed;
        }
    }
    Probe { trial: record.plan.number, rate, ops_per_s, percentile_ms, purpose, found, reason, disturbed }
}

/// The disturbances of a trial.
fn disturbed(record: &Record) -> Option<String> {
    if let Status::Suspended { phase, cause } = &record.status {
        return Some(format!("{phase} was suspended: {cause}"));
    }
    let reported = record.warnings.iter().filter(|warning| DISTURBING.contains(&warning.code.as_str()));
    let reported: Vec<&str> = reported.map(|warning| warning.message.as_str()).collect();
    (!reported.is_empty()).then(|| reported.join("; "))
}

/// The outcome of a trial, regardless of disturbance.
struct Seen {
    ops_per_s: Metric,
    percentile_ms: Metric,
    found: Found,
    reason: String,
}

impl Seen {
    fn nothing(reason: String) -> Self {
        let (ops_per_s, percentile_ms) = (Metric::absent(&*reason), Metric::absent(&*reason));
        Self { ops_per_s, percentile_ms, found: Found::Unknown, reason }
    }
}

fn seen(record: &Record, search: &Search) -> Seen {
    let loops = match (&record.status, record.phase(PhaseKind::Loops)) {
        (Status::Failed { phase, cause }, _) => return Seen::nothing(format!("it failed in {phase}: {cause}")),
        (Status::Suspended { .. }, _) => return Seen::nothing("it was suspended".to_owned()),
        (Status::Done, Some(loops)) if loops.complete => loops,
        _ => return Seen::nothing("it did not end its loops".to_owned()),
    };
    let (ops_per_s, percentile_ms) = (loops.metrics.ops_per_s.clone(), worst(loops, search.percentile));
    let Some(served_per_s) = ops_per_s.value() else {
        return Seen::nothing(ops_per_s.reason().unwrap_or("nothing was served").to_owned());
    };
    let (found, reason) = match record.plan.run.rate {
        None if served_per_s > 0.0 => (Found::Reference, format!("a closed loop served {served_per_s:.0}/s")),
        None => (Found::Unknown, "a closed loop completed no operation".to_owned()),
        Some(rate) => weigh(loops, search, rate, served_per_s, &percentile_ms),
    };
    Seen { ops_per_s, percentile_ms, found, reason }
}

/// Judges a rate by its loops.
fn weigh(
    loops: &PhaseRecord,
    search: &Search,
    rate: f64,
    served_per_s: f64,
    percentile_ms: &Metric,
) -> (Found, String) {
    let slack = SLACK.max(DEVIATIONS / (rate * loops.seconds).sqrt());
    let left = loops.backlog.as_ref().map_or(0, |backlog| backlog.open + backlog.not_begun);
    let (name, limit_ms) = (search.percentile.name(), search.limit_ms);
    match percentile_ms {
        _ if left > 0 => (Found::Missed, format!("{left} operations were not served")),
        _ if served_per_s < rate * (1.0 - slack) => (Found::Missed, format!("{served_per_s:.0}/s were served")),
        Metric::Value(ms) if *ms < limit_ms => (Found::Kept, format!("{name} was {ms:.3} ms")),
        Metric::Value(ms) => (Found::Missed, format!("{name} was {ms:.3} ms")),
        Metric::Absent { absent } => (Found::Unknown, format!("there is no {name}: {absent}; make the loops longer")),
    }
}

/// The largest percentile among the main types of operations.
fn worst(loops: &PhaseRecord, percentile: Percentile) -> Metric {
    let all: f64 = loops.op_types.values().map(|op| op.count as f64).sum();
    let main = loops.op_types.values().filter(|op| op.count > 0 && op.count as f64 >= MAIN_SHARE * all);
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
    use rand::{RngExt as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rumba_results::record::Backlog;
    use rumba_results::warning::Warning;

    use super::*;
    use crate::summarise;
    use crate::testing::{record, results};

    fn probed(rate: Option<f64>, found: Found) -> Probe {
        Probe {
            trial: 1,
            rate,
            ops_per_s: Metric::Value(rate.unwrap_or(1000.0)),
            percentile_ms: Metric::Value(1.0),
            purpose: Purpose::Step,
            found,
            reason: String::new(),
            disturbed: None,
        }
    }

    /// Runs a search whose probes return this result; returns the probes.
    fn search_with(mut found: impl FnMut(f64) -> Found) -> Vec<Probe> {
        let mut probes = vec![probed(None, Found::Reference)];
        while let Next::Probe(Some(rate)) = next(&probes) {
            probes.push(probed(Some(rate), found(rate)));
        }
        probes
    }

    /// Searches a known limit on an undisturbed host.
    fn search(limit: f64) -> Vec<Probe> {
        search_with(|rate| if rate < limit { Found::Kept } else { Found::Missed })
    }

    #[test]
    fn search_finds_any_limit_within_1_percent_in_few_probes() {
        for limit in [1000.0, 930.0, 751.0, 740.0, 610.0, 333.0, 101.0, 17.0, 1900.0] {
            let probes = search(limit);
            let (kept, missed) = (highest(&probes).unwrap(), lowest_missed(&probes).unwrap());
            assert!(kept < limit && limit <= missed && missed / kept <= 1.0 + GAP, "{limit}: {kept} to {missed}");
            assert_eq!(standing(&probes, kept), Standing::Confirmed, "{limit}");
            assert!(probes.len() <= 28, "{limit}: {} probes", probes.len());
        }
    }

    #[test]
    fn search_without_a_finding_ends() {
        let nothing = search(0.0);
        assert!(highest(&nothing).is_none() && nothing.len() < 20);
        assert_eq!(next(&[probed(None, Found::Reference), probed(Some(750.0), Found::Unknown)]), Next::Ended);
        assert_eq!(next(&[probed(None, Found::Unknown)]), Next::Ended);
        assert_eq!(next(&[]), Next::Ended);
        assert_eq!(next(&[probed(None, Found::Disturbed)]), Next::Probe(None), "a closed loop that was suspended");
        assert_eq!(search_with(|_| Found::Disturbed).len(), MOST_PROBES, "on any host");
    }

    #[test]
    fn one_probe_bounds_nothing_and_a_third_settles_disagreement() {
        let rate = 750.0;
        let after = |found: &[Found]| {
            let mut probes = vec![probed(None, Found::Reference)];
            probes.extend(found.iter().map(|found| probed(Some(rate), *found)));
            (standing(&probes, rate), next(&probes))
        };
        use Found::{Disturbed, Kept, Missed};
        let (again, higher, lower) = (Next::Probe(Some(rate)), Next::Probe(Some(875.0)), Next::Probe(Some(rate / 2.0)));
        assert_eq!(after(&[Missed]), (Standing::Open, again));
        assert_eq!(after(&[Missed, Missed]), (Standing::Missed, lower));
        assert_eq!(after(&[Missed, Kept]), (Standing::Kept, higher), "what a host adds is never less time");
        assert_eq!(after(&[Disturbed]), (Standing::Open, again));
        assert_eq!(after(&[Disturbed, Disturbed, Missed]), (Standing::Open, again));
        assert_eq!(after(&[Kept]), (Standing::Kept, higher));

        // The final rate is probed a second time, and can be lost by that.
        let at_end = |found: &[Found]| {
            let mut probes = vec![probed(None, Found::Reference), probed(Some(500.0), Kept)];
            probes.extend([Missed, Missed].map(|found| probed(Some(rate * 1.005), found)));
            probes.extend(found.iter().map(|found| probed(Some(rate), *found)));
            (highest(&probes), lowest_missed(&probes), next(&probes))
        };
        assert_eq!(at_end(&[Kept]), (Some(rate), Some(rate * 1.005), again));
        assert_eq!(at_end(&[Kept, Disturbed]).2, again);
        assert_eq!(at_end(&[Kept, Kept]).2, Next::Ended);
        assert_eq!(at_end(&[Kept, Missed]).2, again);
        assert_eq!(at_end(&[Kept, Missed, Kept]), (Some(rate), Some(rate * 1.005), Next::Ended));
        let lost = (Some(500.0), Some(rate), Next::Probe(Some((500.0 + rate) / 2.0)));
        assert_eq!(at_end(&[Kept, Missed, Missed]), lost);
    }

    /// A rate that was missed once bounded the search, so that two in three such searches ended too low.
    #[test]
    fn a_host_that_spoils_one_probe_in_ten_spoils_hardly_a_search() {
        const SEARCHES: u64 = 1000;
        let is_found = |seed: u64| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let limit = random.random_range(300.0..950.0);
            let probes = search_with(|rate| {
                let is_spoilt = random.random_range(0.0..1.0) < 0.1;
                if rate < limit && !is_spoilt { Found::Kept } else { Found::Missed }
            });
            highest(&probes).is_some_and(|kept| (kept / limit - 1.0).abs() < 0.03)
        };
        let found = (0..SEARCHES).filter(|seed| is_found(*seed)).count();
        assert!(found >= 900, "{found} of {SEARCHES}");
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
        let found = |record: &Record| probe(record, &search, &[]).found;
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
        let few = probe(&few, &search, &[]);
        assert!(few.found == Found::Unknown && few.reason.contains("make the loops longer"), "{}", few.reason);
    }

    #[test]
    fn disturbed_probe_is_repeated_twice_and_then_counts() {
        let search = Search { percentile: Percentile::P99, limit_ms: 10.0 };
        let mut disturbed = trial(2, Some(900.0), 899.0, 30.0);
        disturbed.warnings.push(Warning::new("others-cpu", "other processes used 40% of the CPU", "end them"));
        let mut probes = vec![probe(&trial(1, None, 1000.0, 1.0), &search, &[])];
        for _ in 0..3 {
            assert_eq!(next(&probes), Next::Probe(Some(if probes.len() == 1 { 750.0 } else { 900.0 })));
            probes.push(probe(&disturbed, &search, &probes));
        }
        use {Found::*, Purpose::*};
        let reported: Vec<_> = probes.iter().map(|probe| (probe.purpose, probe.found)).collect();
        assert_eq!(reported, [(Step, Reference), (Step, Disturbed), (Repetition, Disturbed), (Repetition, Missed)]);
        let last = &probes[3];
        assert!(last.reason.starts_with("p99 was 30.000 ms; disturbed: other processes used 40%"), "{}", last.reason);
        // A disturbed probe that still met the limit counts as kept.
        for op in disturbed.phases.iter_mut().flat_map(|phase| phase.op_types.values_mut()) {
            op.response.p99_ms = Metric::Value(9.0);
        }
        let kept = probe(&disturbed, &search, &probes);
        assert_eq!((kept.purpose, kept.found, kept.reason.as_str()), (Confirmation, Kept, "p99 was 9.000 ms"));
        assert!(kept.disturbed.is_some());
    }

    #[test]
    fn suspended_probe_is_repeated_and_ends_search_if_always_so() {
        let search = Search { percentile: Percentile::P99, limit_ms: 10.0 };
        let mut suspended = trial(1, None, 1000.0, 1.0);
        suspended.status = Status::Suspended { phase: PhaseKind::Loop(1), cause: "the server was stopped".to_owned() };
        let mut probes: Vec<Probe> = Vec::new();
        for goes_on in [Next::Probe(None), Next::Probe(None), Next::Ended] {
            probes.push(probe(&suspended, &search, &probes));
            assert_eq!(next(&probes), goes_on);
        }
        let reason = &probes[2].reason;
        assert!(reason.contains("loop 1 was suspended: the server was stopped"), "{reason}");
    }

    #[test]
    fn search_row_shows_the_highest_sustained_rate_only() {
        let missed = (Some(875.0), 875.0, 20.0);
        let rates = [(None, 1000.0, 1.0), (Some(750.0), 750.0, 5.0), missed, missed, (Some(812.0), 812.0, 9.0)];
        let probes = (1..).zip(rates).map(|(number, (rate, served, p99_ms))| trial(number, rate, served, p99_ms));
        let summary = summarise(&results(probes.collect()));
        let row = summary.row("a", 8).unwrap();
        assert_eq!(row.run.as_ref().unwrap().trials, [5]);
        assert_eq!(row.run.as_ref().unwrap().median("ops_per_s"), Metric::Value(812.0));
        let found = &summary.searches[0];
        assert_eq!(
            (found.highest.value(), found.lowest_missed.value(), found.trial),
            (Some(812.0), Some(875.0), Some(5))
        );
        assert_eq!((found.probes.len(), found.ended, found.confirmed), (5, false, false));
        let run = row.run.as_ref().unwrap();
        assert_eq!(run.notes, ["repeat 1: its search did not end; the figures are of loops"]);
        assert!(run.partial, "what it has found until now decides nothing");
    }

    #[test]
    fn unfinished_search_moves_no_median_of_finished_ones() {
        let of = |repeat: u32, rates: &[(Option<f64>, f64, f64)]| {
            let numbered = rates.iter().zip(1..).map(|((rate, served, p99_ms), number)| {
                let mut trial = trial(number, *rate, *served, *p99_ms);
                trial.plan.repeat = repeat;
                trial
            });
            numbered.collect::<Vec<_>>()
        };
        let (reference, missed) = ((None, 1000.0, 1.0), (Some(750.0), 750.0, 20.0));
        let kept = |rate: f64| (Some(rate), rate, 5.0);
        let mut ended = vec![reference, missed, missed];
        let mut probes: Vec<Probe> = Vec::new();
        loop {
            probes.clear();
            let search = Search { percentile: Percentile::P99, limit_ms: 10.0 };
            of(1, &ended).iter().for_each(|record| probes.push(probe(record, &search, &probes)));
            let Next::Probe(Some(rate)) = next(&probes) else { break };
            ended.push(kept(rate));
        }
        let trials = ended.len() as u32;
        let unconfirmed = [&ended[..ended.len() - 1], &[]].concat();
        let unknown =
            [&ended[..ended.len() - 1], &[(ended[ended.len() - 1].0, ended[ended.len() - 1].1, f64::NAN)]].concat();
        for (other, why) in
            [(unconfirmed, "its search did not end"), (unknown, "a probe of its search cannot be reported")]
        {
            let mut records = [of(1, &ended), of(2, &other)].concat();
            for record in records.iter_mut().filter(|record| record.plan.run.rate.is_some()) {
                let loops = record.phases.iter_mut().filter(|phase| phase.phase == PhaseKind::Loops);
                for op in loops.flat_map(|phase| phase.op_types.values_mut()) {
                    if op.response.p99_ms.value().is_none_or(f64::is_nan) {
                        op.response.p99_ms = Metric::absent("90 samples are too few");
                    }
                }
            }
            let summary = summarise(&results(records));
            let run = summary.rows[0].run.as_ref().unwrap();
            assert_eq!((run.trials.as_slice(), run.partial), ([trials].as_slice(), false), "{why}");
            let reported = format!("repeat 2 is not in the figures: {why}");
            assert!(run.notes.iter().any(|note| note.starts_with(&reported)), "{:?}", run.notes);
        }
    }
}
