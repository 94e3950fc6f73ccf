//! Ratios of figures: exact interval, verdict, and the repeats still needed.

use rumba_results::comparison::{Figure, metric_info};
use rumba_results::metric::{Better, Metric};
use rumba_results::ratio::{Change, LEVEL, Ratio, SAME_MARGIN, VerdictCount, discoveries};
use rumba_results::starts::Starts;

use crate::exact::{Inverted, mean};
use crate::planning::{Undecided, more_repeats, pooled_deviation};
use crate::welch::ROUNDING;

/// The fewest repeats of each side with which a two-sided test at 5% can reject.
pub const LEAST_REPEATS: u32 = 4;

/// The ratio of two figures with these loads behind their repeats, with the verdict of this metric alone.
pub fn ratio(
    metric: &str,
    unit: &str,
    headline: bool,
    (base, other): (&Figure, &Figure),
    starts: [Starts; 2],
) -> Ratio {
    let medians = match (base.median.value(), other.median.value()) {
        (Some(base), Some(other)) if base > 0.0 && other >= 0.0 => Metric::from(other / base),
        (Some(0.0), Some(_)) => Metric::absent("the base is zero"),
        (Some(_), Some(_)) => Metric::absent("a median is below zero, so there is no ratio"),
        (None, _) => base.median.clone(),
        _ => other.median.clone(),
    };
    // A percentile has no MetricInfo; less time is better.
    let better = metric_info(metric).map_or(Better::Less, |info| info.better);
    let absent = base.median.reason().or(other.median.reason()).map(str::to_owned);
    let (base_lacks, other_lacks) = (base.lacking(), other.lacking());
    let lacking = base_lacks.map(|why| format!("of the base, {why}"));
    let lacking = lacking.or_else(|| other_lacks.map(|why| format!("of the other, {why}")));
    let tested = match &lacking {
        Some(why) if absent.is_none() => Tested::undecided(why),
        _ => test(&base.numbers(), &other.numbers(), better, Starts::looks_factor(&starts)),
    };
    let end = |end: Result<f64, String>| Metric::from(absent.clone().map_or(end, Err));
    Ratio {
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        headline,
        ratio: medians,
        low: end(tested.low),
        high: end(tested.high),
        change: tested.change,
        scope: Starts::scope(&starts),
        p: tested.p,
        more_repeats: tested.more_repeats,
        lacking: lacking.filter(|_| absent.is_none()),
    }
}

/// The result of testing two sets of repeats.
pub struct Tested {
    /// The smallest ratio that is not rejected, or the reason why there is none.
    pub low: Result<f64, String>,
    /// The largest.
    pub high: Result<f64, String>,
    /// The verdict.
    pub change: Change,
    /// The two-sided p-value.
    pub p: Option<f64>,
    /// How many more repeats would probably decide it.
    pub more_repeats: Option<u32>,
}

impl Tested {
    fn undecided(why: &str) -> Self {
        let why = why.to_owned();
        Self { low: Err(why.clone()), high: Err(why), change: Change::Undecided, p: None, more_repeats: None }
    }
}

/// Tests repeats of the other against repeats of the base; `looks` is [`Starts::looks_factor`], or 1 if the number of
/// repeats was fixed.
pub fn test(base: &[f64], other: &[f64], better: Better, looks: f64) -> Tested {
    if base.len() < 2 || other.len() < 2 {
        let seen = !base.is_empty() && !other.is_empty();
        let change = if seen { Change::SingleRun } else { Change::Undecided };
        return Tested { change, ..Tested::undecided("no interval with one repeat") };
    }
    if base.iter().chain(other).any(|number| *number <= 0.0) {
        return of_differences(base, other, better, looks);
    }
    let (base, other) = comparable(base, other);
    let mut test = Inverted::two_samples(&base, &other).at_looks(looks);
    let alpha = (1.0 - LEVEL) / 2.0;
    let (low, high) = (test.low(alpha).map(f64::exp), test.high(alpha).map(f64::exp));
    let change = change(better, low, high);
    let more_repeats = if change == Change::Undecided { more(&base, &other, alpha / looks, SAME_MARGIN) } else { None };
    let end = |end: Option<f64>| end.ok_or_else(|| unbounded(base.len(), other.len()));
    Tested { low: end(low), high: end(high), change, p: Some(test.p(0.0)), more_repeats }
}

/// The one-sided p-value that the other's figures are no more than the base's, which claims use.
pub fn p_greater(base: &[f64], other: &[f64]) -> f64 {
    let (base, other) = comparable(base, other);
    Inverted::two_samples(&base, &other).p_of_no_more(0.0)
}

/// The values to test: logarithms if all figures are positive, so that the test compares ratios; otherwise the figures.
fn comparable(base: &[f64], other: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let in_logs = base.iter().chain(other).all(|number| *number > 0.0);
    let values = |numbers: &[f64]| -> Vec<f64> {
        numbers.iter().map(|number| if in_logs { number.ln() } else { *number }).collect()
    };
    (values(base), values(other))
}

/// The two-sided p-value that the other's figures are at most the base's times this factor, and at least the base's
/// divided by it. With a factor of 1 it equals that of [`test`] with as many `looks`. If a figure is zero or less, the
/// differences are tested as there, and the factor has no effect on a base of zero.
pub fn p_beyond(base: &[f64], other: &[f64], factor: f64, looks: f64) -> f64 {
    let against = |end: fn(f64, f64) -> f64| {
        // Below zero the quotient is the larger one.
        let moved: Vec<f64> = base.iter().map(|number| end(number * factor, number / factor)).collect();
        let (moved, other) = comparable(&moved, other);
        Inverted::two_samples(&moved, &other).at_looks(looks)
    };
    let (more, less) = (against(f64::max).p_of_no_more(0.0), against(f64::min).p_of_no_less(0.0));
    (2.0 * more.min(less)).min(1.0)
}

fn unbounded(base: usize, other: usize) -> String {
    format!("unbounded: {base} and {other} repeats are too few for a {:.0}% interval", LEVEL * 100.0)
}

/// A figure of zero or less has no logarithm and no ratio: the differences are tested.
fn of_differences(base: &[f64], other: &[f64], better: Better, looks: f64) -> Tested {
    let mut test = Inverted::two_samples(base, other).at_looks(looks);
    let alpha = (1.0 - LEVEL) / 2.0;
    let change = match (test.low(alpha), test.high(alpha)) {
        (Some(low), Some(high)) if low == 0.0 && high == 0.0 => Change::Same,
        (Some(low), _) if low > ROUNDING => direction(better, true),
        (_, Some(high)) if high < -ROUNDING => direction(better, false),
        _ => Change::Undecided,
    };
    let why = "a repeat is zero or less, so there is no interval of the ratio: the differences were tested";
    // Differences have no margin for "the same": only equal figures without noise count.
    let more_repeats = if change == Change::Undecided { more(base, other, alpha / looks, 0.0) } else { None };
    Tested { change, p: Some(test.p(0.0)), more_repeats, ..Tested::undecided(why) }
}

/// The verdict of an interval; a missing end is unbounded.
fn change(better: Better, low: Option<f64>, high: Option<f64>) -> Change {
    let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY));
    match () {
        () if low >= 1.0 - SAME_MARGIN - ROUNDING && high <= 1.0 + SAME_MARGIN + ROUNDING => Change::Same,
        () if low > 1.0 + ROUNDING => direction(better, true),
        () if high < 1.0 - ROUNDING => direction(better, false),
        () => Change::Undecided,
    }
}

fn direction(better: Better, more: bool) -> Change {
    match better {
        Better::Neither => Change::Differs,
        Better::More if more => Change::Better,
        Better::Less if !more => Change::Better,
        _ => Change::Worse,
    }
}

/// How many more repeats of each side would decide at the observed noise and difference. A decision is that the two
/// differ, or that they are the same within this margin. `None` if neither would be found.
fn more(base: &[f64], other: &[f64], alpha: f64, margin: f64) -> Option<u32> {
    let noise = pooled_deviation(&[base, other])?;
    let seen = (mean(other)? - mean(base)?).abs();
    let have = base.len().min(other.len());
    let plan = |distance: f64| {
        let undecided = Undecided { noise, distance, alpha, samples: 2.0, least: LEAST_REPEATS };
        (distance > 0.0 || noise == 0.0).then(|| more_repeats(&undecided, have)).flatten()
    };
    let differ = plan(seen);
    let same = plan(margin - seen).filter(|_| seen < margin);
    [differ, same].into_iter().flatten().min()
}

/// The number of headline ratios that have, or could have had, a verdict; too few repeats never err.
pub fn headline_verdicts<'a>(ratios: impl Iterator<Item = &'a Ratio>) -> VerdictCount {
    let could_err = |ratio: &Ratio| {
        let is_decided = !matches!(ratio.change, Change::Undecided | Change::SingleRun);
        let has_interval = ratio.low.value().is_some() || ratio.high.value().is_some();
        ratio.p.is_some() && ratio.lacking.is_none() && ratio.change != Change::Void && (is_decided || has_interval)
    };
    VerdictCount::of(ratios.filter(|ratio| ratio.headline && could_err(ratio)).count())
}

/// Applies the false discovery rate to verdicts of metrics that are not headlines. A verdict of better, worse or
/// differs becomes undecided unless the procedure of Benjamini and Hochberg rejects it among all of them. Metrics of
/// one trial are positively correlated, under which the procedure keeps its rate.
pub fn discover<'a>(ratios: impl Iterator<Item = &'a mut Ratio>) {
    let mut details: Vec<&mut Ratio> = ratios.filter(|ratio| !ratio.headline && ratio.p.is_some()).collect();
    let bound = discoveries(details.iter().filter_map(|ratio| ratio.p));
    for ratio in &mut details {
        let moved = matches!(ratio.change, Change::Better | Change::Worse | Change::Differs);
        if moved && ratio.p > Some(bound) {
            ratio.change = Change::Undecided;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::statistics::figure;
    use crate::testing::{normal, worse_ratio};

    fn tested(base: &[f64], other: &[f64]) -> Tested {
        test(base, other, Better::More, 1.0)
    }

    fn change_of(base: &[f64], other: &[f64]) -> Change {
        tested(base, other).change
    }

    #[test]
    fn repeats_that_lack_the_figure_leave_it_undecided() {
        let of = |values: &[f64]| figure(values.iter().map(|value| Metric::Value(*value)).collect());
        let mut chosen = of(&[1.0, 1.01, 1.02, 1.03, 1.04]);
        chosen.values[4] = Metric::absent("12 operations were open");
        let base = of(&[2.0, 2.01, 2.02, 2.03, 2.04]);
        let judged = ratio("get_node.p99_ms", "ms", true, (&base, &chosen), [Starts::default(); 2]);
        let why = Some("of the other, 1 of 5 repeats have none: 12 operations were open");
        assert_eq!((judged.change, judged.p, judged.low.reason()), (Change::Undecided, None, why));
        assert!(judged.ratio.value().is_some(), "the ratio of what there is is shown");
        assert_eq!(
            ratio("get_node.p99_ms", "ms", true, (&chosen, &base), [Starts::default(); 2]).change,
            Change::Undecided
        );
    }

    #[test]
    fn four_separated_repeats_decide_and_three_do_not() {
        let (slow, fast) = ([100.0, 101.0, 99.0, 100.5], [200.0, 199.0, 203.0, 201.0]);
        assert_eq!(change_of(&slow, &fast), Change::Better);
        assert_eq!(change_of(&fast, &slow), Change::Worse);
        assert_eq!(test(&slow, &fast, Better::Less, 1.0).change, Change::Worse);
        assert_eq!(test(&slow, &fast, Better::Neither, 1.0).change, Change::Differs);
        let three = tested(&slow[..3], &fast[..3]);
        assert_eq!((three.change, three.more_repeats), (Change::Undecided, Some(1)));
        assert_eq!(three.low.unwrap_err(), "unbounded: 3 and 3 repeats are too few for a 95% interval");
    }

    /// Without a correction, checking after each of five to eight repeats errs in more than 5% of runs.
    #[test]
    fn a_run_that_looks_after_each_repeat_keeps_its_level() {
        const RUNS: u32 = 1000;
        let err = |looks: f64| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
            let mut side = || -> Vec<f64> { (0..8).map(|_| (0.05 * normal(&mut random)).exp()).collect() };
            let wrong = (0..RUNS).filter(|_| {
                let (base, other) = (side(), side());
                (5..=8).any(|repeats| {
                    let change = test(&base[..repeats], &other[..repeats], Better::More, looks).change;
                    matches!(change, Change::Better | Change::Worse)
                })
            });
            wrong.count() as f64 / f64::from(RUNS)
        };
        let (plain, corrected) =
            (err(1.0), err(Starts::looks_factor(&[Starts { at_most: Some(8), ..Starts::default() }; 2])));
        assert!(plain > 0.06, "{plain}");
        assert!(corrected <= 0.05, "{corrected}");
    }

    /// At most 20 repeats are 16 checks, so p-values are multiplied by 5.3.
    #[test]
    fn a_run_that_may_stop_early_needs_more_to_decide() {
        let (slow, fast) = ([100.0, 101.0, 99.0, 100.5], [200.0, 199.0, 203.0, 201.0]);
        let at_most = |most| Starts::looks_factor(&[Starts { repeats: 4, loads: 4, at_most: Some(most) }; 2]);
        let early = test(&slow, &fast, Better::More, at_most(20));
        assert_eq!(early.change, Change::Undecided, "four repeats have a p-value of 2/70 at best");
        assert!((early.p.unwrap() - at_most(20) * 2.0 / 70.0).abs() < 1e-9);
        let five = |side: [f64; 4]| [side.as_slice(), &[side[0]]].concat();
        assert_eq!(test(&five(slow), &five(fast), Better::More, at_most(20)).change, Change::Better);
    }

    #[test]
    fn one_repeat_is_single_run_however_far_apart() {
        let once = tested(&[100.0], &[900.0, 901.0, 902.0]);
        assert_eq!((once.change, once.p, once.more_repeats), (Change::SingleRun, None, None));
        assert_eq!(tested(&[], &[1.0]).change, Change::Undecided);
    }

    #[test]
    fn sameness_is_proven_and_not_only_unrefuted() {
        assert_eq!(change_of(&[100.0; 4], &[100.0; 4]), Change::Same);
        assert_eq!(change_of(&[100.0; 4], &[100.9; 4]), Change::Same);
        assert_eq!(change_of(&[100.0; 4], &[101.2; 4]), Change::Better);
        let noisy = tested(&[100.0, 104.0, 97.0, 101.0], &[100.5, 103.0, 98.0, 99.0]);
        assert_eq!(noisy.change, Change::Undecided);
        assert_eq!(noisy.more_repeats, None, "more than twenty");
    }

    #[test]
    fn zeros_are_tested_without_a_ratio() {
        assert_eq!(change_of(&[0.0; 4], &[0.0; 4]), Change::Same);
        let more = tested(&[0.0, 0.0, 0.1, 0.0], &[3.0, 4.0, 3.0, 5.0]);
        assert_eq!(more.change, Change::Better);
        assert!(more.low.unwrap_err().contains("a repeat is zero"));
        assert_eq!(tested(&[0.0; 3], &[3.0; 3]).more_repeats, Some(1));
        // A tie counts even if the sums differ in their last digit.
        let ties = tested(&[0.0, 0.1 + 0.2, 0.3, 0.3, 0.3], &[0.0, 0.3, 0.3, 0.3, 0.3]);
        assert_eq!(ties.change, Change::Undecided);
    }

    #[test]
    fn p_value_beyond_a_factor_grows_unless_a_side_is_zero() {
        let base = [100.0, 101.0, 99.0, 100.5];
        let times = |factor: f64| base.map(|number| number * factor);
        for other in [times(1.3), times(1.001), [0.0, 1.0, 2.0, 300.0]] {
            assert_eq!(Some(p_beyond(&base, &other, 1.0, 1.0)), tested(&base, &other).p, "{other:?}");
        }
        let least = 2.0 / 70.0;
        for (factor, p) in [(1.3, least), (1.0 / 1.3, least), (1.04, 1.0), (0.96, 1.0)] {
            let beyond = p_beyond(&base, &times(factor), 1.05, 1.0);
            assert!((beyond - p).abs() < 1e-9, "{factor}: {beyond}");
        }
        assert!(p_beyond(&base, &times(1.055), 1.05, 1.0) > least, "it is not beyond it in every deal");
        for (base, other) in [([0.0; 4], [3.0, 4.0, 3.0, 5.0]), (base, [0.0; 4])] {
            assert!((p_beyond(&base, &other, 1.05, 1.0) - least).abs() < 1e-9, "{base:?} {other:?}");
        }
        assert_eq!(p_beyond(&[0.0; 4], &[0.0; 4], 1.05, 1.0), 1.0);
        assert_eq!(p_beyond(&[-100.0; 4], &[-98.0; 4], 1.05, 1.0), 1.0, "it is within 5%");
    }

    #[test]
    fn more_repeats_are_suggested_only_if_noise_and_gap_support_it() {
        let against_itself = tested(&[0.0, 0.002, 0.001], &[0.0, 0.002, 0.001]);
        assert_eq!((against_itself.change, against_itself.more_repeats), (Change::Undecided, None));
        assert_eq!(tested(&[0.0, 0.0, 0.3], &[0.0, 0.0, 0.301]).more_repeats, None, "beyond twenty");
        let noisy = tested(&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0]).more_repeats.unwrap();
        assert!(noisy > 10, "one deviation apart: {noisy}");
        // A fourth repeat that is also zero decides: the same.
        assert_eq!(tested(&[0.0; 3], &[0.0; 3]).more_repeats, Some(1));
    }

    #[test]
    fn the_ratio_is_of_the_medians_and_an_absence_keeps_its_reason() {
        let of = |numbers: &[f64]| figure(numbers.iter().map(|number| Metric::Value(*number)).collect());
        let ratio_of =
            |base: &Figure, other: &Figure| ratio("ops_per_s", "1/s", true, (base, other), [Starts::default(); 2]);
        let twice = ratio_of(&of(&[10.0; 4]), &of(&[20.0; 4]));
        assert_eq!((twice.ratio, twice.change), (Metric::Value(2.0), Change::Better));
        assert!((twice.low.value().unwrap() - 2.0).abs() < 1e-9);
        let absent = ratio_of(&figure(vec![Metric::absent("no device")]), &of(&[1.0]));
        assert_eq!((absent.ratio, absent.low), (Metric::absent("no device"), Metric::absent("no device")));
        assert_eq!(ratio_of(&of(&[0.0; 4]), &of(&[1.0; 4])).ratio, Metric::absent("the base is zero"));
        // Data that shrinks twice as fast is not twice as much growth.
        for (base, other) in [(-10.0, -20.0), (-5.0, 10.0), (5.0, -10.0)] {
            let below = ratio_of(&of(&[base; 4]), &of(&[other; 4]));
            assert!(below.ratio.reason().unwrap().contains("below zero"), "{below:?}");
        }
    }

    #[test]
    fn a_detail_needs_more_than_its_own_level_among_many() {
        let detail = |p: f64| Ratio { p: Some(p), ..worse_ratio("rss_bytes") };
        let mut one_of_many: Vec<Ratio> = (0..9).map(|_| detail(0.6)).chain([detail(0.03)]).collect();
        one_of_many.push(Ratio { headline: true, ..detail(0.03) });
        discover(one_of_many.iter_mut());
        assert_eq!(one_of_many[9].change, Change::Undecided, "0.03 among ten is chance");
        assert_eq!(one_of_many[10].change, Change::Worse, "a headline stands alone");
        let mut all: Vec<Ratio> = (0..9).map(|_| detail(0.03)).chain([detail(0.6)]).collect();
        discover(all.iter_mut());
        assert_eq!(all[0].change, Change::Worse);
    }
}
