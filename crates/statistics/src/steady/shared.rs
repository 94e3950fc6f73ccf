//! The change over the loops that repeats share: a finding over whole trials, like a verdict.

use std::collections::BTreeMap;

use rumba_results::comparison::{Row, Steadiness};
use rumba_results::course::{SharedTrend, Trends};
use rumba_results::metric::Metric;

use super::settled;
use crate::exact::mean;
use crate::student::Student;

/// The fewest repeats: with two the interval is six times as wide as with four.
pub const FEWEST: usize = 3;

/// The shared trends of each row that has repeats.
pub fn trends(rows: &[Row], steadiness: &[Steadiness]) -> Vec<Trends> {
    let of_row = |row: &Row| {
        let run = row.run.as_ref().filter(|run| run.repeats.len() > 1 && !run.partial)?;
        let mut trials: Vec<&Steadiness> =
            steadiness.iter().filter(|found| run.trials.contains(&found.name.trial)).collect();
        trials.sort_by_key(|found| found.name.repeat);
        let names = trials.first()?.courses.keys();
        let metrics: BTreeMap<String, SharedTrend> =
            names.map(|name| (name.clone(), of_metric(name, &trials))).collect();
        Some(Trends { engine: row.engine.clone(), clients: row.clients, metrics })
    };
    rows.iter().filter_map(of_row).collect()
}

/// The shared trend of the repeats, from trials in the order of their repeats; the starts of a repeat count as one
/// change.
fn of_metric(name: &str, trials: &[&Steadiness]) -> SharedTrend {
    let trend = |found: &&Steadiness| Some((found.name.trial, found.courses.get(name)?.halves.value()?));
    let of_repeats = trials.chunk_by(|one, other| one.name.repeat == other.name.repeat);
    let of_repeats = of_repeats.map(|starts| starts.iter().filter_map(trend).unzip::<u32, f64, Vec<_>, Vec<_>>());
    let (trials, trends): (Vec<Vec<u32>>, Vec<f64>) =
        of_repeats.filter_map(|(trials, trends)| Some((trials, mean(&trends)?))).unzip();
    let trials = trials.concat();
    let interval = interval(&trends);
    let bound = |pick: fn((f64, f64)) -> f64| match interval {
        Some(interval) => Metric::from(pick(interval)),
        None => Metric::absent(format!("{} repeats have a trend: it takes {FEWEST}", trends.len())),
    };
    let shared = mean(&trends);
    SharedTrend {
        trials,
        trend: shared.map_or_else(|| Metric::absent("no repeat has a trend"), Metric::from),
        low: bound(|(low, _)| low),
        high: bound(|(_, high)| high),
        settled: settled(shared.unwrap_or_default(), interval),
    }
}

/// The 95% interval of the mean of changes, one for each repeat; `None` with too few.
///
/// Repeats start from copies of one state, each in a separate process, so that their changes are independent draws.
/// This holds however much the seconds within each depend on each other, and for any shape that they have in common.
/// For example, a compaction that occurs in all of them at the same time is in all of their changes. Student's t is
/// therefore valid here, while the test of a single trial must estimate its noise from a few slow waves. The change is
/// that of the halves and not of a straight line. With two compactions, one before the middle and one at the end, the
/// line rises although the second half wrote less than the first.
pub fn interval(trends: &[f64]) -> Option<(f64, f64)> {
    let shared = mean(trends).filter(|_| trends.len() >= FEWEST)?;
    let freedom = trends.len() - 1;
    let square: f64 = trends.iter().map(|trend| (trend - shared).powi(2)).sum();
    let margin = Student::new(freedom as f64).quantile_above(0.025) * (square / (freedom * trends.len()) as f64).sqrt();
    Some((shared - margin, shared + margin))
}

#[cfg(test)]
mod tests {
    use rumba_results::course::Settled;

    use super::*;
    use crate::steady::simulated::Noise;
    use crate::steady::{LEAST, halves};
    use crate::testing::{record, results};

    /// Draws per cell: a rate of 5% has a standard error of 0.3%.
    const DRAWS: u32 = 5000;
    /// Seconds of a repeat's loops.
    const SECONDS: usize = 40;

    /// The shape of a repeat's seconds without their noise, by the share of the loops gone by.
    type Shape = fn(f64) -> f64;

    /// The change of a repeat with this noise around its mean of 1.
    fn drawn(noise: &mut Noise, deviation: f64, shape: impl Fn(f64) -> f64) -> f64 {
        let at: Vec<f64> = (0..SECONDS).map(|second| second as f64 + 0.5).collect();
        let noise = noise.draw(SECONDS);
        let value = |(at, noise): (&f64, f64)| 1.0 + shape(at / SECONDS as f64) + deviation * noise;
        let values: Vec<f64> = at.iter().zip(noise).map(value).collect();
        halves(&at, &values) / mean(&values).unwrap()
    }

    /// The share of intervals of this number of repeats for which `found` is true.
    fn share(repeats: usize, phi: f64, shape: impl Fn(f64) -> f64, found: impl Fn((f64, f64)) -> bool) -> f64 {
        let mut noise = Noise::new(repeats as u64, phi);
        let hits = (0..DRAWS).filter(|_| {
            let trends: Vec<f64> = (0..repeats).map(|_| drawn(&mut noise, 0.05, &shape)).collect();
            found(interval(&trends).unwrap())
        });
        f64::from(hits.count() as u32) / f64::from(DRAWS)
    }

    #[test]
    fn repeats_without_a_trend_have_a_sure_one_in_5_percent_of_rows() {
        // A level, with a stall in the middle of the loops of every repeat.
        let shapes: [(&str, Shape); 2] =
            [("a level", |_| 0.0), ("a stall", |at| if (0.4..0.6).contains(&at) { -0.8 } else { 0.0 })];
        for (name, shape) in shapes {
            for repeats in [3, 4, 8, 12] {
                for phi in [0.0, 0.5, 0.95] {
                    let sure = share(repeats, phi, shape, |(low, high)| low > 0.0 || high < 0.0);
                    println!("{repeats:2} repeats, {name}, autocorrelation {phi:.2}: sure of a trend {sure:.3}");
                    assert!((sure - 0.05).abs() < 0.011, "{repeats} repeats, {name}, φ {phi}: {sure}");
                }
            }
        }
    }

    #[test]
    fn trend_at_the_bound_is_called_steady_in_at_most_2_5_percent() {
        for repeats in [3, 4, 8] {
            for phi in [0.0, 0.5, 0.95] {
                let is_steady = |(low, high)| settled((low + high) / 2.0, Some((low, high))) == Settled::Steady;
                let wrong = share(repeats, phi, |at| LEAST * (at - 0.5), is_steady);
                let right = share(repeats, phi, |_| 0.0, is_steady);
                println!("{repeats} repeats, autocorrelation {phi:.2}: steady {wrong:.3} of 10%, {right:.3} of none");
                assert!(wrong < 0.032, "{repeats} repeats, φ {phi}: {wrong}");
            }
        }
        let steady = share(4, 0.0, |_| 0.0, |(low, high)| low >= -LEAST && high <= LEAST);
        assert!(steady > 0.9, "what is steady is called so: {steady}");
    }

    /// A row with one repeat of an engine for each of these trends.
    fn row_of(trends: &[f64]) -> Vec<Trends> {
        let records = (1..=trends.len()).map(|repeat| record("a", 8, repeat as u32));
        let mut found = results(records.collect());
        for (trial, trend) in found.trials.iter_mut().zip(trends) {
            let ops = |second: usize| 1000.0 * (1.0 + trend * (second as f64 / 39.0 - 0.5));
            trial.intervals = crate::steady::tests::seconds(40, ops, |_| 5000.0);
        }
        crate::summarise(&found).trends
    }

    #[test]
    fn summary_reports_what_the_repeats_of_each_row_share() {
        let steady = row_of(&[0.02, -0.03, 0.01, -0.01]);
        assert_eq!((steady.len(), steady[0].engine.as_str(), steady[0].clients), (1, "a", 8));
        let throughput = &steady[0].metrics["ops_per_s"];
        assert_eq!((throughput.settled, throughput.trials.as_slice()), (Settled::Steady, [1, 2, 3, 4].as_slice()));
        assert!((throughput.trend.value().unwrap() + 0.0025).abs() < 0.002, "{:?}", throughput.trend);
        // Each of these is undecided alone or contradicts another.
        assert_eq!(row_of(&[0.3, -0.3, 0.2, -0.2])[0].metrics["ops_per_s"].settled, Settled::Undecided);
        assert_eq!(row_of(&[-0.21, -0.2, -0.25, -0.22])[0].metrics["ops_per_s"].settled, Settled::Falling);
    }

    #[test]
    fn two_repeats_have_no_interval_and_one_shares_nothing() {
        let two = row_of(&[0.01, 0.02]);
        let throughput = &two[0].metrics["ops_per_s"];
        assert_eq!(throughput.low.reason(), Some("2 repeats have a trend: it takes 3"));
        assert!(throughput.trend.value().is_some() && throughput.settled == Settled::Undecided);
        assert_eq!(row_of(&[0.01]), []);
    }
}
