//! Median, spread and centre of repeats.

use rumba_results::comparison::{Centre, Figure, Spread};
use rumba_results::metric::Metric;
use rumba_results::ratio::LEVEL;

use crate::exact::Inverted;

/// With fewer repeats no interval is useful: with three it would miss their centre in one case of four.
const LEAST_FOR_CENTRE: usize = 4;

/// The median; `None` for an empty slice.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { (sorted[middle - 1] + upper) / 2.0 })
}

/// The spread of numbers; `None` with fewer than two or a smallest that is not above zero.
pub fn spread(numbers: &[f64]) -> Option<Spread> {
    let smallest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if numbers.len() < 2 || smallest <= 0.0 {
        return None;
    }
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(Spread { range: largest / smallest - 1.0, cv: variance.sqrt() / mean })
}

/// The centre of numbers that are distributed symmetrically around it (their logarithms, if all are positive), by
/// inversion of the test of signs. With too few numbers for an interval of [`LEVEL`], it returns their range, which
/// errs least.
pub fn centre(numbers: &[f64]) -> Option<Centre> {
    if numbers.len() < LEAST_FOR_CENTRE {
        return None;
    }
    let is_positive = numbers.iter().all(|number| *number > 0.0);
    let scaled: Vec<f64> = numbers.iter().map(|number| if is_positive { number.ln() } else { *number }).collect();
    let alpha = ((1.0 - LEVEL) / 2.0).max(0.5f64.powi(numbers.len() as i32));
    let mut test = Inverted::one_sample(&scaled);
    let (low, high) = (test.low(alpha)?, test.high(alpha)?);
    let unscaled = |end: f64| if is_positive { end.exp() } else { end };
    Some(Centre { low: unscaled(low), high: unscaled(high), level: 1.0 - 2.0 * alpha })
}

pub fn with_centre(figure: Figure) -> Figure {
    Figure { centre: centre(&figure.numbers()), ..figure }
}

/// The figure of trials that are ordered by repeat; `starts` has the number of trials of each repeat. Its values are
/// the means over these starts. Without numbers of starts each trial is a repeat.
pub fn figure_of_starts(of_trials: Vec<Metric>, starts: &[u32]) -> Figure {
    if starts.is_empty() {
        return figure(of_trials);
    }
    let mut of_trials = of_trials.into_iter();
    let of_repeats: Vec<Vec<Metric>> =
        starts.iter().map(|count| of_trials.by_ref().take(*count as usize).collect()).collect();
    let means = of_repeats.iter().map(|of_starts| mean_of_starts(of_starts));
    Figure { starts: of_repeats.clone(), ..figure(means.collect()) }
}

/// The mean over the starts of a load. It is absent if one start lacks the number, because the others would be a biased
/// selection.
fn mean_of_starts(of_starts: &[Metric]) -> Metric {
    let values: Vec<f64> = of_starts.iter().filter_map(Metric::value).collect();
    match of_starts.iter().find_map(Metric::reason) {
        None => Metric::from(values.iter().sum::<f64>() / values.len() as f64),
        Some(why) if values.is_empty() => Metric::absent(why),
        Some(why) => {
            let lacking = of_starts.len() - values.len();
            Metric::absent(format!("{lacking} of {} starts have none: {why}", of_starts.len()))
        }
    }
}

/// One number over its repeats. Absent values stay absent; the median is absent, with the first reason, only if no
/// repeat has the number.
pub fn figure(values: Vec<Metric>) -> Figure {
    let numbers: Vec<f64> = values.iter().filter_map(Metric::value).collect();
    let median = match median(&numbers) {
        Some(median) => Metric::from(median),
        None => values.first().cloned().unwrap_or_else(|| Metric::absent("no trial has it")),
    };
    Figure { median, spread: spread(&numbers), values, ..Figure::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_needs_two_repeats_and_something_to_divide_by() {
        assert_eq!(spread(&[5.0]), None);
        assert_eq!(spread(&[0.0, 1.0]), None);
        let spread = spread(&[100.0, 110.0]).unwrap();
        assert!((spread.range - 0.1).abs() < 1e-12);
        assert!((spread.cv - 50f64.sqrt() / 105.0).abs() < 1e-12);
    }

    #[test]
    fn few_repeats_use_least_error_interval_and_more_use_verdicts() {
        let of = |count: usize| centre(&(1..=count).map(|number| number as f64).collect::<Vec<_>>());
        assert_eq!(of(3), None);
        let four = of(4).unwrap();
        assert!(
            (four.low - 1.0).abs() < 1e-12 && (four.high - 4.0).abs() < 1e-12,
            "{four:?}: 1 of 16 choices of signs"
        );
        assert_eq!([4, 5, 6, 9].map(|count| of(count).unwrap().level), [0.875, 0.9375, 0.95, 0.95]);
        let nine = of(9).unwrap();
        assert!(nine.low > 1.5 && nine.high < 8.5, "{nine:?}: narrower than the range");
    }

    #[test]
    fn ratio_centre_is_found_on_logarithms_and_zeros_need_none() {
        let tens = centre(&[1.0, 10.0, 100.0, 1000.0, 1e4, 1e5, 1e6]).unwrap();
        // Symmetric around a thousand.
        assert!((tens.low * tens.high - 1e6).abs() < 1e-3, "{tens:?}");
        let zeros = centre(&[0.0, 0.0, 0.0, 0.0]).unwrap();
        assert_eq!((zeros.low, zeros.high), (0.0, 0.0));
    }

    #[test]
    fn starts_of_a_load_are_one_value_absent_if_one_lacks_it() {
        let of = |values: &[f64]| values.iter().map(|value| Metric::Value(*value)).collect::<Vec<_>>();
        let figure = figure_of_starts(of(&[1.0, 3.0, 10.0, 20.0]), &[2, 2]);
        assert_eq!((figure.numbers(), figure.median), (vec![2.0, 15.0], Metric::Value(8.5)));
        let mut lacking = of(&[1.0, 3.0, 10.0]);
        lacking.push(Metric::absent("no device"));
        let figure = figure_of_starts(lacking, &[2, 2]);
        assert_eq!(figure.values[1], Metric::absent("1 of 2 starts have none: no device"));
        assert!(figure.lacking().is_some(), "no verdict rests on it");
    }

    #[test]
    fn a_repeat_without_the_number_does_not_count_as_zero() {
        let figure = figure(vec![Metric::absent("no device"), Metric::Value(4.0), Metric::Value(6.0)]);
        assert_eq!(figure.median, Metric::Value(5.0));
        assert_eq!(super::figure(vec![Metric::absent("no device")]).median, Metric::absent("no device"));
    }
}
