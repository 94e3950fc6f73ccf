//! Compare one run with another: ratios of figures, with exact intervals and verdicts.

use std::collections::{BTreeMap, BTreeSet};

use rumba_core::comparison::{
    CHARGED, Compared, ComparedRow, Comparison, ConditionChange, Figure, Part, PhaseFigures, Row, Side, Summary,
};
use rumba_core::engine::EngineConfig;
use rumba_core::metric::METRICS;
use rumba_core::ratio::{Change, HEADLINE_LOAD, HEADLINE_RUN, LEVEL, MAIN_SHARE, SAME_MARGIN};
use rumba_core::results::Results;
use rumba_core::units::show_bytes;

use crate::ratios::{discover, ratio};
use crate::summary::summarise;

/// Compares `other` with `base`, engine by engine (by the name in the
/// experiment, with the same number of clients) and metric by metric.
pub fn compare(base: &Results, other: &Results) -> Comparison {
    let (base_summary, other_summary) = (summarise(base), summarise(other));
    let mut rows = Vec::new();
    for row in &base_summary.rows {
        let Some(match_row) = other_summary.row(&row.engine, row.clients) else { continue };
        for (part, base, other) in [(Part::Load, &row.load, &match_row.load), (Part::Run, &row.run, &match_row.run)] {
            if let (Some(base), Some(other)) = (base, other) {
                rows.push(compared_row(row, match_row, part, base, other));
            }
        }
    }
    Comparison {
        conditions: condition_changes(base, other),
        rows,
        interleaved: interleaved(base, other),
        level: LEVEL,
        margin: SAME_MARGIN,
        base: side(base, &base_summary, &other_summary),
        other: side(other, &other_summary, &base_summary),
    }
}

/// Whether some trial of each began before some trial of the other. Times are
/// RFC 3339 in UTC, whose order is that of their text.
fn interleaved(base: &Results, other: &Results) -> bool {
    let begun = |results: &Results| -> BTreeSet<String> {
        results.trials.iter().map(|trial| trial.record.started.clone()).collect()
    };
    let (base, other) = (begun(base), begun(other));
    base.first() < other.last() && other.first() < base.last()
}

fn compared_row(row: &Row, match_row: &Row, part: Part, base: &PhaseFigures, other: &PhaseFigures) -> ComparedRow {
    let mut metrics = compared_metrics(part, base, other);
    discover(metrics.iter_mut().map(|compared| &mut compared.ratio));
    let unsound = row.why_unsound().map(|why| format!("in the base, {why}"));
    let unsound = unsound.or_else(|| match_row.why_unsound().map(|why| format!("in the other, {why}")));
    if unsound.is_some() {
        for compared in &mut metrics {
            (compared.ratio.change, compared.ratio.more_repeats) = (Change::Undecided, None);
        }
    }
    ComparedRow { engine: row.engine.clone(), clients: row.clients, part, unsound, metrics }
}

fn side(results: &Results, own: &Summary, others: &Summary) -> Side {
    let alone = own.rows.iter().filter(|row| others.row(&row.engine, row.clients).is_none());
    Side {
        name: results.name.clone(),
        started: results.started.clone(),
        rumba: results.rumba.clone(),
        alone: alone.map(|row| format!("{} with {} clients", row.engine, row.clients)).collect(),
        unfinished: own.unfinished.clone(),
    }
}

fn compared_metrics(part: Part, base: &PhaseFigures, other: &PhaseFigures) -> Vec<Compared> {
    let headline = match part {
        Part::Load => HEADLINE_LOAD,
        Part::Run => HEADLINE_RUN,
    };
    let mut all = Vec::new();
    let mut push = |metric: &str, unit: &str, is_headline: bool, base: &Figure, other: &Figure| {
        if !(base.numbers().is_empty() && other.numbers().is_empty()) {
            let ratio = ratio(metric, unit, is_headline, base, other);
            all.push(Compared { ratio, base: base.clone(), other: other.clone() });
        }
    };
    for info in METRICS.iter().chain(CHARGED) {
        if let (Some(base), Some(other)) = (base.metrics.get(info.name), other.metrics.get(info.name)) {
            push(info.name, info.unit, headline.contains(&info.name), base, other);
        }
    }
    for (op, base_p99, other_p99) in p99s(base, other) {
        let main = part == Part::Run && is_main(base, op);
        push(&format!("{op}.p99_ms"), "ms", main, base_p99, other_p99);
    }
    all
}

/// The 99th percentiles of the response times that both have, by type of operation.
pub(crate) fn p99s<'a>(
    base: &'a PhaseFigures,
    other: &'a PhaseFigures,
) -> impl Iterator<Item = (&'a str, &'a Figure, &'a Figure)> {
    base.op_types.iter().filter_map(|(op, figures)| {
        Some((op.as_str(), figures.response.get("p99_ms")?, other.op_types.get(op)?.response.get("p99_ms")?))
    })
}

/// Whether a type of operation is one of the main ones: [`MAIN_SHARE`] of all.
pub(crate) fn is_main(figures: &PhaseFigures, op: &str) -> bool {
    let count = |figures: &rumba_core::comparison::OpFigures| figures.count.median.value().unwrap_or(0.0);
    let all: f64 = figures.op_types.values().map(count).sum();
    figures.op_types.get(op).is_some_and(|op| count(op) >= MAIN_SHARE * all)
}

/// The conditions of the host and of each engine that are not the same.
///
/// An engine that only one run has is named as such, not condition by condition.
fn condition_changes(base: &Results, other: &Results) -> Vec<ConditionChange> {
    let engines = |results: &Results| -> BTreeSet<String> {
        results.trials.iter().map(|trial| trial.record.plan.engine.name.clone()).collect()
    };
    let both = engines(base).intersection(&engines(other)).cloned().collect();
    let (base, other) = (named_conditions(base, &both), named_conditions(other, &both));
    let mut names: Vec<&String> = base.keys().chain(other.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let nameless = |named: &BTreeMap<String, String>, name: &str| named.get(name).map(|value| without_nodes(value));
    let changed = names.into_iter().filter(|name| nameless(&base, name) != nameless(&other, name));
    changed
        .map(|name| ConditionChange {
            name: name.clone(),
            base: base.get(name).cloned(),
            other: other.get(name).cloned(),
        })
        .collect()
}

/// A condition without the numbers of loop devices: which node a volume was
/// given is chance and no difference.
fn without_nodes(value: &str) -> String {
    let mut parts = value.split("/dev/loop");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("/dev/loop");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// The host's conditions, and of each of these engines what decides its figures.
fn named_conditions(results: &Results, engines: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut named = results.conditions.clone();
    named.insert("rumba".to_owned(), results.rumba.clone());
    for trial in results.trials.iter().filter(|trial| engines.contains(&trial.record.plan.engine.name)) {
        let (engine, record) = (&trial.record.plan.engine, &trial.record);
        let mut note = |name: &str, value: String| named.insert(format!("{}: {name}", engine.name), value);
        note("engine", engine.engine.clone());
        note("limits", limits_of(engine));
        note("cache", show_bytes(engine.cache as f64));
        note("durability", engine.durability.name().to_owned());
        note("compression", engine.compression.clone().unwrap_or_else(|| "the engine's default".to_owned()));
        if let Some(version) = &record.version {
            note("version", version.clone());
        }
        let run = &record.plan.run;
        note("warmup", format!("{} s", run.warmup_s));
        note("loops", format!("{} of {} s", run.loops, run.loop_s));
        note("loaders", run.load_clients.to_string());
        note("rate", run.rate.map_or_else(|| "closed loop".to_owned(), |rate| format!("{rate}/s")));
        note("seed", run.seed.to_string());
        for (name, value) in &engine.settings.0 {
            note(name, value.to_string());
        }
        for (name, value) in &record.plan.workload_settings.0 {
            named.insert(format!("{}: {name}", record.plan.workload), value.to_string());
        }
    }
    named
}

/// What of the host an engine may use, in words.
fn limits_of(engine: &EngineConfig) -> String {
    let memory = engine.limits.memory_bytes.map(|bytes| format!("{} of memory", show_bytes(bytes as f64)));
    let storage = engine.limits.storage.as_ref().map(ToString::to_string);
    let all: Vec<String> = memory.into_iter().chain(storage).collect();
    if all.is_empty() { "none".to_owned() } else { all.join("; ") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::metric::Metric;
    use rumba_core::record::{PhaseKind, Record, Status};

    use super::*;
    use crate::testing::{self, record, results};

    fn runs(rates: &[f64]) -> Results {
        let repeats = rates.iter().zip(1..).map(|(rate, repeat)| {
            let mut record = record("a", 8, repeat);
            for phase in &mut record.phases {
                phase.metrics.ops_per_s = Metric::Value(*rate);
            }
            record
        });
        results(repeats.collect::<Vec<Record>>())
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
    fn one_repeat_is_seen_once() {
        let single = ops(&compare(&runs(&[100.0]), &runs(&[200.0]))).ratio;
        assert_eq!((single.ratio, single.change), (Metric::Value(2.0), Change::SeenOnce));
        assert_eq!(single.low, Metric::absent("no interval with one repeat"));
    }

    #[test]
    fn a_repeat_that_failed_its_verification_leaves_its_engine_undecided() {
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
    fn runs_one_after_the_other_are_not_interleaved() {
        let begun = |starts: &[&str]| {
            let mut results = runs(&vec![100.0; starts.len()]);
            for (trial, start) in results.trials.iter_mut().zip(starts) {
                trial.record.started = format!("2024-01-01T{start}:00Z");
            }
            results
        };
        assert!(compare(&begun(&["10:00", "10:20"]), &begun(&["10:10", "10:30"])).interleaved);
        assert!(!compare(&begun(&["10:00", "10:10"]), &begun(&["10:20", "10:30"])).interleaved);
    }

    #[test]
    fn which_loop_device_a_volume_was_given_is_no_difference() {
        let (mut base, mut other) = (runs(&[1.0]), runs(&[1.0]));
        base.conditions.insert("device".to_owned(), "/dev/loop0: ext4 on a file".to_owned());
        other.conditions.insert("device".to_owned(), "/dev/loop12: ext4 on a file".to_owned());
        assert_eq!(compare(&base, &other).conditions, []);
        other.conditions.insert("device".to_owned(), "/dev/sda1: ext4".to_owned());
        assert_eq!(compare(&base, &other).conditions.len(), 1);
    }

    #[test]
    fn failed_trials_and_lone_engines_are_listed_not_compared() {
        let mut failed = record("b", 8, 1);
        failed.status = Status::Failed { phase: PhaseKind::Load, cause: "the device is full".to_owned() };
        failed.phases.clear();
        let other = results(vec![record("a", 8, 1), failed]);
        let comparison = compare(&runs(&[100.0]), &other);
        assert_eq!(comparison.other.alone, ["b with 8 clients"]);
        assert_eq!(comparison.other.unfinished.len(), 1);
        assert!(comparison.rows.iter().all(|row| row.engine == "a"));
    }

    #[test]
    fn a_condition_that_changed_is_a_suspect() {
        let (base, mut other) = (runs(&[1.0]), runs(&[1.0]));
        other.trials[0].record.version = Some("2.0".to_owned());
        other.conditions.insert("governor".to_owned(), "powersave".to_owned());
        let names: Vec<_> = compare(&base, &other).conditions.into_iter().map(|change| change.name).collect();
        assert_eq!(names, ["a: version", "governor"]);
    }
}
