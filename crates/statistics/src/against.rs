//! Compare one run with another: ratios of figures, with exact intervals and verdicts.

use std::collections::BTreeMap;

use rumba_engine_api::units::counted;
use rumba_results::comparability::{Unequal, unequal};
use rumba_results::comparison::{
    CHARGED, Compared, ComparedRow, Comparison, Figure, Part, PhaseFigures, Row, Side, Summary, Unfinished, Unmatched,
    metrics_by_rule,
};
use rumba_results::headline::CpuHeadline;
use rumba_results::metric::METRICS;
use rumba_results::ratio::{Change, LEVEL, SAME_MARGIN};
use rumba_results::record::{Status, TrialPart};
use rumba_results::results::Results;
use rumba_results::starts::Starts;

use crate::alike::{called_as, engines};
use crate::conditions::condition_changes;
use crate::ratios::{discover, headline_verdicts, ratio};
use crate::relative::{headline_names, is_main, p99s, setup};
use crate::summary::summarise;
use crate::validity::withhold;
use crate::written::written_change;

/// Compares `other` with `base`, engine by engine (by the name in the
/// experiment, with the same number of clients) and metric by metric.
pub fn compare(base: &Results, other: &Results) -> Comparison {
    let base = &*called_as(base, &engines(other));
    compare_summed((base, &summarise(base)), (other, &summarise(other)))
}

/// The same for summarised runs whose engines have the same names.
pub(crate) fn compare_summed(
    (base, base_summary): (&Results, &Summary),
    (other, other_summary): (&Results, &Summary),
) -> Comparison {
    let (mut rows, mut unmatched) = (Vec::new(), Vec::new());
    for row in &base_summary.rows {
        let match_row = other_summary.row(&row.engine, row.clients);
        for part in [Part::Load, Part::Run] {
            let Some(figures) = row.part(part) else { continue };
            let all_clients = about(row, part, base_summary, other_summary);
            if all_clients.first() != Some(&row.clients) {
                continue;
            }
            match match_row.and_then(|match_row| Some((match_row, match_row.part(part)?))) {
                Some((match_row, figures_of_other)) => {
                    let in_turns = took_turns((base, figures), (other, figures_of_other));
                    let comparability = comparability((base, &row.engine), (other, &match_row.engine));
                    let row = compared_row(row, match_row, part, figures, figures_of_other);
                    rows.push(ComparedRow { all_clients, in_turns, comparability, ..row });
                }
                None => unmatched.push(Unmatched {
                    engine: row.engine.clone(),
                    clients: row.clients,
                    part,
                    reason: why_unmatched(row, match_row, part, other_summary),
                }),
            }
        }
    }
    let tested = rows.iter().filter(|row| row.unsound.is_none());
    Comparison {
        conditions: condition_changes(base, other),
        headline_verdicts: headline_verdicts(tested.flat_map(|row| &row.metrics).map(|compared| &compared.ratio)),
        rows,
        unmatched,
        interleaved: interleaved(base, other),
        level: LEVEL,
        margin: SAME_MARGIN,
        base: side(base, base_summary, other_summary),
        other: side(other, other_summary, base_summary),
    }
}

/// The numbers of clients of a part of a row; for a load, all that started from it in both runs.
fn about(row: &Row, part: Part, base: &Summary, other: &Summary) -> Vec<u32> {
    if part == Part::Run {
        return vec![row.clients];
    }
    let in_base = base.clients_of_load(row);
    let match_of = |clients: &u32| other.row(&row.engine, *clients);
    match match_of(&row.clients).map(|row| other.clients_of_load(row)) {
        Some(in_other) => in_base.into_iter().filter(|clients| in_other.contains(clients)).collect(),
        // The other lacks this number of clients; the load is compared under another number that shares it.
        None if in_base.iter().any(|clients| match_of(clients).is_some()) => Vec::new(),
        None => in_base,
    }
}

/// The reason why the other run has no figures of a row that the base has.
fn why_unmatched(row: &Row, match_row: Option<&Row>, part: Part, other: &Summary) -> String {
    let Some(match_row) = match_row else { return format!("{} did not run in the other", row.engine) };
    if let Some(why) = match_row.why_unsound() {
        return format!("in the other, {why}");
    }
    let what = match part {
        Part::Load => "the load",
        Part::Run => "a loop",
    };
    if let Some(why) = match_row.why_suspended(part) {
        return format!("in the other, {why}");
    }
    let of_row = |unfinished: &&Unfinished| unfinished.name.engine == row.engine;
    let why = other.unfinished.iter().filter(of_row).find_map(|unfinished| match &unfinished.status {
        Status::Failed { phase, cause } => Some(format!(": it failed in {phase}: {cause}")),
        _ => None,
    });
    format!("no repeat of {} ended {what} in the other{}", row.engine, why.unwrap_or_default())
}

/// The start of a trial, and whether it belongs to the other run.
type Start<'a> = (&'a str, bool);

/// Whether the trials of every engine (with its clients) that ran in both took turns.
fn interleaved(base: &Results, other: &Results) -> bool {
    let mut turns: BTreeMap<(&str, u32), [Vec<Start>; 2]> = BTreeMap::new();
    for (results, is_other) in [(base, false), (other, true)] {
        for record in results.trials.iter().map(|trial| &trial.record) {
            // A search counts as one turn, regardless of its number of probes.
            if record.plan.part != TrialPart::Load && record.plan.probe.is_none_or(|probe| probe == 1) {
                let sides = turns.entry((&record.plan.engine.name, record.plan.clients)).or_default();
                sides[usize::from(is_other)].push((&record.started, is_other));
            }
        }
    }
    let both = || turns.values().filter(|sides| sides.iter().all(|side| !side.is_empty()));
    both().next().is_some() && both().all(|sides| in_turns(sides.concat()))
}

/// Whether the trials behind these figures took turns.
fn took_turns(base: (&Results, &PhaseFigures), other: (&Results, &PhaseFigures)) -> bool {
    let mut trials: Vec<Start> = Vec::new();
    for ((results, figures), is_other) in [(base, false), (other, true)] {
        let records = results.trials.iter().map(|trial| &trial.record);
        let own = records.filter(|record| figures.trials.contains(&record.plan.number));
        trials.extend(own.map(|record| (record.started.as_str(), is_other)));
    }
    !trials.is_empty() && in_turns(trials)
}

/// Whether the trials of two sides took turns. In the order of their starts, most neighbours must be of different
/// sides. Among all pairs with one trial of each side, neither side may come first in more than three quarters, which
/// two runs that merely overlap exceed. Times are RFC 3339 in UTC, so that text order is time order.
fn in_turns(mut trials: Vec<Start>) -> bool {
    trials.sort_unstable();
    let turns = trials.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    let (mut bases, mut others, mut base_first) = (0, 0, 0);
    for (_, is_other) in &trials {
        if *is_other {
            others += 1;
            base_first += bases;
        } else {
            bases += 1;
        }
    }
    let pairs = bases * others;
    2 * turns >= trials.len() && 4 * base_first >= pairs && 4 * base_first <= 3 * pairs
}

/// The conditions that differ between the two runs of an engine.
fn comparability(base: (&Results, &str), other: (&Results, &str)) -> Vec<Unequal> {
    let [base, other] =
        [base, other].map(|(results, engine)| setup(results.trials.iter().map(|trial| &trial.record), engine));
    other.zip(base).map_or_else(Vec::new, |(other, base)| unequal(&other, &base))
}

fn compared_row(row: &Row, match_row: &Row, part: Part, base: &PhaseFigures, other: &PhaseFigures) -> ComparedRow {
    let (base_starts, other_starts) = (row.starts(part), match_row.starts(part));
    let mut metrics = compared_metrics(part, base, other, [base_starts, other_starts]);
    metrics.iter_mut().for_each(|compared| withhold(&mut compared.ratio, row, match_row, part));
    discover(metrics.iter_mut().map(|compared| &mut compared.ratio));
    let unsound = row.why_not_judged(part).map(|why| format!("in the base, {why}"));
    let unsound = unsound.or_else(|| match_row.why_not_judged(part).map(|why| format!("in the other, {why}")));
    if unsound.is_some() {
        for compared in &mut metrics {
            (compared.ratio.change, compared.ratio.more_repeats) = (Change::Undecided, None);
        }
    }
    ComparedRow {
        engine: row.engine.clone(),
        clients: row.clients,
        all_clients: vec![row.clients],
        part,
        base_starts,
        other_starts,
        in_turns: false,
        comparability: Vec::new(),
        written: written_change(part, &metrics).filter(|_| unsound.is_none()),
        unsound,
        metrics,
    }
}

fn side(results: &Results, own: &Summary, others: &Summary) -> Side {
    let alone = own.rows.iter().filter(|row| others.row(&row.engine, row.clients).is_none());
    Side {
        name: results.name.clone(),
        started: results.started.clone(),
        rumba: results.rumba.clone(),
        alone: alone.map(|row| format!("{} with {}", row.engine, counted(row.clients as usize, "client"))).collect(),
        unfinished: own.unfinished.clone(),
    }
}

fn compared_metrics(part: Part, base: &PhaseFigures, other: &PhaseFigures, starts: [Starts; 2]) -> Vec<Compared> {
    let headline = headline_names(part);
    let cpu = CpuHeadline::of([("the base", base), ("the other", other)]);
    let mut all = Vec::new();
    let mut push = |metric: &str, unit: &str, is_headline: bool, base: &Figure, other: &Figure| {
        if !(base.numbers().is_empty() && other.numbers().is_empty()) {
            let ratio = ratio(metric, unit, is_headline, (base, other), starts);
            all.push(Compared { ratio, base: base.clone(), other: other.clone() });
        }
    };
    let listed = METRICS.iter().chain(CHARGED).map(|info| (info.name, info.unit));
    for (name, unit) in listed.chain(metrics_by_rule(base).map(|(name, info)| (name, info.unit))) {
        if let (Some(base), Some(other)) = (base.metrics.get(name), other.metrics.get(name)) {
            push(name, unit, headline.contains(&name) && !cpu.excludes(name), base, other);
        }
    }
    for (op, base_p99, other_p99) in p99s(base, other) {
        let main = part == Part::Run && is_main(base, op);
        push(&format!("{op}.p99_ms"), "ms", main, base_p99, other_p99);
    }
    all
}

#[cfg(test)]
mod tests {
    use rumba_results::metric::Metric;

    use super::*;
    use crate::testing::{self, at_rates, record, results};

    fn runs(rates: &[f64]) -> Results {
        results(at_rates("a", rates))
    }

    fn ops(comparison: &Comparison) -> Compared {
        let row = comparison.rows.iter().find(|row| row.part == Part::Run).unwrap();
        row.metrics.iter().find(|compared| compared.ratio.metric == "ops_per_s").unwrap().clone()
    }

    #[test]
    fn the_headlines_carry_verdicts_and_an_interval() {
        let (slow, fast) = (runs(&[100.0, 101.0, 99.0, 100.0]), runs(&[200.0, 199.0, 203.0, 200.0]));
        let up = ops(&compare(&slow, &fast)).ratio;
        assert_eq!((up.ratio.clone(), up.change, up.headline), (Metric::Value(2.0), Change::Better, true));
        assert!(up.low.value().unwrap() > 1.9 && up.high.value().unwrap() < 2.1);
        let comparison = compare(&fast, &slow);
        assert_eq!(ops(&comparison).ratio.change, Change::Worse);
        let metrics = &comparison.rows.iter().find(|row| row.part == Part::Run).unwrap().metrics;
        let headlines: Vec<&str> =
            metrics.iter().filter(|c| c.ratio.headline).map(|c| c.ratio.metric.as_str()).collect();
        let expected = ["ops_per_s", "wkb_per_op_with_drain", "cpu_us_per_op_with_drain", "get_node.p99_ms"];
        assert_eq!(headlines, expected, "what the records have of them");
    }

    #[test]
    fn listed_engine_matches_its_counterpart_of_an_older_version() {
        let named = |name: &str| {
            let mut results = runs(&[100.0, 101.0, 99.0, 100.0]);
            results.trials.iter_mut().for_each(|trial| trial.record.plan.engine.name = name.to_owned());
            results
        };
        let comparison = compare(&named("a.4k"), &named("a[page=4k]"));
        assert!(comparison.rows.iter().all(|row| row.engine == "a[page=4k]") && !comparison.rows.is_empty());
        assert!(comparison.unmatched.is_empty() && comparison.base.alone.is_empty());
        assert!(comparison.conditions.is_empty(), "{:?}", comparison.conditions);
    }

    #[test]
    fn failed_verification_leaves_engine_undecided() {
        let mut other = runs(&[200.0, 201.0, 200.5, 199.0, 9999.0]);
        testing::break_data(&mut other.trials[4].record);
        let comparison = compare(&runs(&[100.0, 101.0, 99.0, 100.0]), &other);
        let compared = ops(&comparison);
        assert_eq!(compared.other.numbers().len(), 4, "it is in no figure");
        assert_eq!(compared.ratio.change, Change::Undecided);
        let why = comparison.rows[0].unsound.as_deref().unwrap();
        assert!(why.starts_with("in the other, repeat 5 of a failed its verification: counts match"), "{why}");
    }

    #[test]
    fn runs_are_interleaved_when_their_trials_go_in_turns() {
        // One letter per minute: the run whose trial began then.
        let begun = |order: &str, run: char| {
            let starts: Vec<usize> =
                order.char_indices().filter(|(_, c)| *c == run).map(|(minute, _)| minute).collect();
            let mut results = runs(&vec![100.0; starts.len()]);
            for (trial, start) in results.trials.iter_mut().zip(starts) {
                trial.record.started = format!("2024-01-01T10:{start:02}:00Z");
            }
            results
        };
        let interleaved = |order: &str| {
            let comparison = compare(&begun(order, 'b'), &begun(order, 'o'));
            let of_rows: Vec<bool> = comparison.rows.iter().map(|row| row.in_turns).collect();
            assert_eq!(of_rows, [comparison.interleaved; 2], "{order}: each row says so of its own trials");
            comparison.interleaved
        };
        for order in ["bobo", "bobobo", "obobob", "boobboob", "bob"] {
            assert!(interleaved(order), "{order}");
        }
        for order in ["bo", "bboo", "bbbooo", "bbobbooo", "bbbobooo", "bboboo", "bbooobb", "ooobbb"] {
            assert!(!interleaved(order), "{order}");
        }
        let (mut base, other) = (begun("bobo", 'b'), begun("bobo", 'o'));
        base.trials.iter_mut().for_each(|trial| trial.record.plan.engine.name = "b".to_owned());
        assert!(!compare(&base, &other).interleaved, "no engine ran in both");
    }

    /// Trial 1 loads; the runs with these clients start from it.
    fn from_one_load(clients: &[u32]) -> Results {
        let mut load = record("a", 1, 1);
        load.plan.part = TrialPart::Load;
        load.phases.truncate(1);
        let started = clients.iter().map(|clients| {
            let mut run = record("a", *clients, 1);
            (run.plan.part, run.plan.loaded_by) = (TrialPart::Run, Some(1));
            run.phases.remove(0);
            run
        });
        results(std::iter::once(load).chain(started).collect())
    }

    #[test]
    fn load_shared_by_several_client_counts_is_compared_once() {
        let loads = |base: &Results, other: &Results| {
            let rows = compare(base, other).rows.into_iter().filter(|row| row.part == Part::Load);
            rows.map(|row| (row.clients, row.all_clients)).collect::<Vec<_>>()
        };
        let kept = from_one_load(&[1, 4]);
        assert_eq!(loads(&kept, &kept), [(1, vec![1, 4])]);
        assert_eq!(compare(&kept, &kept).rows.iter().filter(|row| row.part == Part::Run).count(), 2);
        assert_eq!(loads(&kept, &from_one_load(&[4])), [(4, vec![4])]);
        let lacking = compare(&kept, &from_one_load(&[4])).unmatched;
        assert_eq!(lacking.iter().map(|one| (one.clients, one.part)).collect::<Vec<_>>(), [(1, Part::Run)]);
        let nothing = compare(&kept, &results(Vec::new())).unmatched;
        assert_eq!(nothing.iter().filter(|one| one.part == Part::Load).count(), 1);
        let own = results(vec![record("a", 1, 1), record("a", 4, 1)]);
        assert_eq!(loads(&kept, &own), [(1, vec![1]), (4, vec![4])], "each has a load of its own to compare with");
        assert_eq!(loads(&own, &kept).len(), 2);
    }

    #[test]
    fn loop_device_number_is_no_difference() {
        let (mut base, mut other) = (runs(&[1.0]), runs(&[1.0]));
        base.conditions.insert("device".to_owned(), "/dev/loop0: ext4 on a file".to_owned());
        other.conditions.insert("device".to_owned(), "/dev/loop12: ext4 on a file".to_owned());
        assert_eq!(compare(&base, &other).conditions, []);
        other.conditions.insert("device".to_owned(), "/dev/sda1: ext4".to_owned());
        assert_eq!(compare(&base, &other).conditions.len(), 1);
    }
}
