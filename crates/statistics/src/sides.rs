//! A run with a base and another that took turns: split into its sides, and compared.

use rumba_engine_api::workload::engine_in_test;
use rumba_results::comparison::Comparison;
use rumba_results::pair::{Pair, with_side};
use rumba_results::record::Record;
use rumba_results::results::{Results, Trial};

use crate::compare;
use crate::same_engine::same_in;
use crate::validity::void;

/// Compares the other engine of each pair with its base; `None` if the results have no trial of either.
pub fn compare_sides(results: &Results, pairs: &[Pair]) -> Option<Comparison> {
    let base = side(results, pairs, |pair| &pair.base);
    let other = side(results, pairs, |pair| &pair.other);
    if base.trials.is_empty() && other.trials.is_empty() {
        return None;
    }
    let mut comparison = compare(&base, &other);
    let records: Vec<&Record> = results.trials.iter().map(|trial| &trial.record).collect();
    for row in &mut comparison.rows {
        let tests = records.iter().map(|record| record.plan.test.as_deref());
        let is_of = |pair: &&Pair| tests.clone().any(|test| engine_in_test(&pair.name(), test) == row.engine);
        let same = pairs.iter().find(is_of).and_then(|pair| same_pair(&records, pair, &row.engine));
        if let Some(why) = same {
            row.metrics.iter_mut().for_each(|compared| void(&mut compared.ratio, &why));
        }
    }
    Some(comparison)
}

/// The reason why the two engines of a pair are the same, in the test of a row.
fn same_pair(records: &[&Record], pair: &Pair, row: &str) -> Option<String> {
    let tests = records.iter().map(|record| record.plan.test.as_deref());
    let test = tests.into_iter().find(|test| engine_in_test(&pair.name(), *test) == row)?;
    same_in(records, &engine_in_test(&pair.base, test), &engine_in_test(&pair.other, test))
}

/// The trials of one side, with its engines renamed to the compared names.
fn side(results: &Results, pairs: &[Pair], of: impl Fn(&Pair) -> &String) -> Results {
    let renamed = |pair: &Pair| {
        let is_of_pair = |trial: &&Trial| {
            let plan = &trial.record.plan;
            plan.engine.name == engine_in_test(of(pair), plan.test.as_deref())
        };
        let of_pair = results.trials.iter().filter(is_of_pair).cloned();
        let rename = |mut trial: Trial| {
            let plan = &mut trial.record.plan;
            plan.engine.name = engine_in_test(&pair.name(), plan.test.as_deref());
            trial
        };
        of_pair.map(rename).collect::<Vec<Trial>>()
    };
    let mut engines: Vec<&str> = pairs.iter().map(|pair| of(pair).as_str()).collect();
    engines.dedup();
    let engines: Vec<String> = engines.into_iter().map(with_side).collect();
    Results {
        name: format!("{}: {}", results.name, engines.join(", ")),
        source: results.source.clone(),
        started: results.started.clone(),
        rumba: results.rumba.clone(),
        build: results.build.clone(),
        conditions: results.conditions.clone(),
        trials: pairs.iter().flat_map(renamed).collect(),
        ..Results::default()
    }
}

#[cfg(test)]
mod tests {
    use rumba_results::comparison::Part;
    use rumba_results::metric::Metric;
    use rumba_results::ratio::Change;

    use super::*;
    use crate::testing::{record, results};

    fn pair(base: &str, other: &str) -> Pair {
        Pair { base: base.to_owned(), other: other.to_owned() }
    }

    #[test]
    fn each_pair_is_compared_under_one_name_without_other_engines() {
        let mut records = Vec::new();
        for repeat in 1..=4 {
            for (engine, rate) in [("base/a", 100.0), ("other/a", 200.0), ("base/b", 50.0), ("alone", 1.0)] {
                let mut record = record(engine, 8, repeat);
                record.started = format!("2024-01-01T10:{:02}:00Z", records.len());
                record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::Value(rate));
                records.push(record);
            }
        }
        let results = results(records);
        let pairs = [pair("base/a", "other/a"), pair("base/b", "other/a")];
        let comparison = compare_sides(&results, &pairs).unwrap();
        let rows: Vec<_> = comparison.rows.iter().filter(|row| row.part == Part::Run).collect();
        let names: Vec<&str> = rows.iter().map(|row| row.engine.as_str()).collect();
        assert_eq!(names, ["a", "a over b"]);
        assert!(rows.iter().all(|row| row.in_turns));
        let of = |at: usize| rows[at].metrics.iter().find(|metric| metric.ratio.metric == "ops_per_s").unwrap();
        assert_eq!((of(0).ratio.ratio.clone(), of(0).ratio.change), (Metric::Value(2.0), Change::Better));
        assert_eq!(of(1).ratio.ratio, Metric::Value(4.0));
        assert!(comparison.interleaved && comparison.base.alone.is_empty() && comparison.other.alone.is_empty());
        assert!(comparison.base.name.ends_with(": a (base), b (base)"), "{}", comparison.base.name);
        assert!(comparison.other.name.ends_with(": a (other)"), "{}", comparison.other.name);
        assert_eq!(compare_sides(&results, &[pair("gone", "lost")]), None);
    }
}
