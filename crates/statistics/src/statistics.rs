//! Median and spread of repeats.

use rumba_core::comparison::{Figure, Spread};
use rumba_core::metric::Metric;

/// The median of numbers; `None` of none.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    median_of(&mut sorted)
}

/// The median, ordering the numbers in place.
fn median_of(numbers: &mut [f64]) -> Option<f64> {
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    Some(if numbers.len() % 2 == 1 { upper } else { (numbers[middle - 1] + upper) / 2.0 })
}

/// How far numbers lie apart; `None` with fewer than two or a smallest that is not above zero.
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

/// One number over its repeats: what is absent stays so, and the median is
/// absent, with the first reason given, only when no repeat has the number.
pub fn figure(values: Vec<Metric>) -> Figure {
    let numbers: Vec<f64> = values.iter().filter_map(Metric::value).collect();
    let median = match median(&numbers) {
        Some(median) => Metric::from(median),
        None => values.first().cloned().unwrap_or_else(|| Metric::absent("no trial has it")),
    };
    Figure { median, spread: spread(&numbers), values }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_spread_needs_two_repeats_and_something_to_divide_by() {
        assert_eq!(spread(&[5.0]), None);
        assert_eq!(spread(&[0.0, 1.0]), None);
        let spread = spread(&[100.0, 110.0]).unwrap();
        assert!((spread.range - 0.1).abs() < 1e-12);
        assert!((spread.cv - 50f64.sqrt() / 105.0).abs() < 1e-12);
    }

    #[test]
    fn a_repeat_without_the_number_does_not_count_as_zero() {
        let figure = figure(vec![Metric::absent("no device"), Metric::Value(4.0), Metric::Value(6.0)]);
        assert_eq!(figure.median, Metric::Value(5.0));
        assert_eq!(super::figure(vec![Metric::absent("no device")]).median, Metric::absent("no device"));
    }
}
