//! Compare one run with another: ratios of medians, with intervals over repeats.

use std::collections::{BTreeMap, BTreeSet};

use rumba_core::comparison::{
    CHARGED, Change, Compared, ComparedRow, Comparison, ConditionChange, Figure, Part, PhaseFigures, Side, Summary,
    metric_info,
};
use rumba_core::metric::{Better, METRICS, Metric};
use rumba_core::results::Results;

use crate::statistics::ratio_interval;
use crate::summary::summarise;

/// How often the repeats are drawn again.
pub const RESAMPLES: u32 = 10_000;
/// The confidence level of the intervals.
pub const LEVEL: f64 = 0.95;
/// A ratio nearer to one than this is no change, however surely it was measured.
const LEAST_CHANGE: f64 = 0.01;
/// Fixed, so that the same results always give the same report.
const SEED: u64 = 0x72_75_6d_62_61;

/// Compares `other` with `base`, engine by engine (by the name in the
/// experiment, with the same number of clients) and metric by metric.
pub fn compare(base: &Results, other: &Results) -> Comparison {
    let (base_summary, other_summary) = (summarise(base), summarise(other));
    let mut rows = Vec::new();
    for row in &base_summary.rows {
        let Some(match_row) = other_summary.row(&row.engine, row.clients) else { continue };
        for (part, base, other) in [(Part::Load, &row.load, &match_row.load), (Part::Run, &row.run, &match_row.run)] {
            if let (Some(base), Some(other)) = (base, other) {
                let metrics = compared_metrics(base, other);
                rows.push(ComparedRow { engine: row.engine.clone(), clients: row.clients, part, metrics });
            }
        }
    }
    Comparison {
        conditions: condition_changes(base, other),
        rows,
        level: LEVEL,
        resamples: RESAMPLES,
        base: side(base, &base_summary, &other_summary),
        other: side(other, &other_summary, &base_summary),
    }
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

fn compared_metrics(base: &PhaseFigures, other: &PhaseFigures) -> Vec<Compared> {
    let mut all = Vec::new();
    for info in METRICS.iter().chain(CHARGED) {
        if let (Some(base), Some(other)) = (base.metrics.get(info.name), other.metrics.get(info.name)) {
            all.push(compared(info.name.to_owned(), info.unit, base, other));
        }
    }
    for (name, op) in &base.op_types {
        let p99s = (op.response.get("p99_ms"), other.op_types.get(name).and_then(|op| op.response.get("p99_ms")));
        if let (Some(base), Some(other)) = p99s {
            all.push(compared(format!("{name}.p99_ms"), "ms", base, other));
        }
    }
    all.retain(|compared| !(compared.base.numbers().is_empty() && compared.other.numbers().is_empty()));
    all
}

fn compared(metric: String, unit: &str, base: &Figure, other: &Figure) -> Compared {
    // A percentile has no MetricInfo; less time is better.
    let better = metric_info(&metric).map_or(Better::Less, |info| info.better);
    let ratio = match (base.median.value(), other.median.value()) {
        (Some(base), Some(other)) if base != 0.0 => Metric::from(other / base),
        (Some(_), Some(_)) => Metric::absent("the base is zero"),
        (None, _) => base.median.clone(),
        _ => other.median.clone(),
    };
    let interval = interval(base, other, &ratio);
    let end = |end: fn(&(f64, f64)) -> f64| interval.as_ref().map(end).map_err(Clone::clone);
    Compared {
        metric,
        unit: unit.to_owned(),
        low: Metric::from(end(|ends| ends.0)),
        high: Metric::from(end(|ends| ends.1)),
        change: match (&interval, ratio.value()) {
            (Ok((low, high)), Some(ratio)) => change(better, ratio, *low, *high),
            _ => Change::Undecided,
        },
        base: base.clone(),
        other: other.clone(),
        ratio,
    }
}

fn interval(base: &Figure, other: &Figure, ratio: &Metric) -> Result<(f64, f64), String> {
    if let Metric::Absent { absent } = ratio {
        return Err(absent.clone());
    }
    let (base, other) = (base.numbers(), other.numbers());
    if base.len() < 2 || other.len() < 2 {
        return Err("no interval with one repeat".to_owned());
    }
    ratio_interval(&base, &other, RESAMPLES, LEVEL, SEED).ok_or_else(|| "a repeat of the base is zero".to_owned())
}

fn change(better: Better, ratio: f64, low: f64, high: f64) -> Change {
    match better {
        _ if low <= 1.0 && 1.0 <= high => Change::WithinNoise,
        _ if (ratio - 1.0).abs() < LEAST_CHANGE => Change::WithinNoise,
        Better::Neither => Change::Differs,
        Better::More if low > 1.0 => Change::Better,
        Better::Less if high < 1.0 => Change::Better,
        _ => Change::Worse,
    }
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
    let changed = names.into_iter().filter(|name| base.get(*name) != other.get(*name));
    changed
        .map(|name| ConditionChange {
            name: name.clone(),
            base: base.get(name).cloned(),
            other: other.get(name).cloned(),
        })
        .collect()
}

/// The host's conditions, and of each of these engines what decides its figures.
fn named_conditions(results: &Results, engines: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut named = results.conditions.clone();
    named.insert("rumba".to_owned(), results.rumba.clone());
    for trial in results.trials.iter().filter(|trial| engines.contains(&trial.record.plan.engine.name)) {
        let (engine, record) = (&trial.record.plan.engine, &trial.record);
        let mut note = |name: &str, value: String| named.insert(format!("{}: {name}", engine.name), value);
        note("cache", rumba_core::units::show_bytes(engine.cache as f64));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::record::{PhaseKind, Record, Status};

    use super::*;
    use crate::testing::{record, results};

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
        row.metrics.iter().find(|compared| compared.metric == "ops_per_s").unwrap().clone()
    }

    #[test]
    fn a_ratio_beyond_the_noise_is_better_or_worse() {
        let (slow, fast) = (runs(&[100.0, 101.0, 99.0]), runs(&[200.0, 199.0, 203.0]));
        let up = ops(&compare(&slow, &fast));
        assert_eq!((up.ratio.clone(), up.change), (Metric::Value(2.0), Change::Better));
        assert!(up.low.value().unwrap() > 1.9 && up.high.value().unwrap() < 2.1);
        assert_eq!(ops(&compare(&fast, &slow)).change, Change::Worse);
    }

    #[test]
    fn repeats_that_overlap_are_within_noise() {
        let noise = ops(&compare(&runs(&[100.0, 110.0, 90.0]), &runs(&[104.0, 95.0, 112.0])));
        assert_eq!(noise.change, Change::WithinNoise);
    }

    #[test]
    fn a_sure_change_of_less_than_a_percent_is_none() {
        let tiny = ops(&compare(&runs(&[100.0, 100.0]), &runs(&[100.4, 100.4])));
        assert_eq!(tiny.change, Change::WithinNoise);
        let small = ops(&compare(&runs(&[100.0, 100.0]), &runs(&[101.2, 101.2])));
        assert_eq!(small.change, Change::Better);
    }

    #[test]
    fn one_repeat_has_a_ratio_but_no_interval_and_no_verdict() {
        let single = ops(&compare(&runs(&[100.0]), &runs(&[200.0])));
        assert_eq!(single.ratio, Metric::Value(2.0));
        assert_eq!(single.low, Metric::absent("no interval with one repeat"));
        assert_eq!(single.change, Change::Undecided);
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
