//! Median, spread, and the bootstrap interval of a ratio.

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
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

/// The percentile bootstrap interval of `median(other) / median(base)`.
///
/// The repeats of each side are drawn again, with replacement and apart from
/// each other, `resamples` times. The median, not the mean, because it is what
/// the tables print and one disturbed repeat moves it least. With few repeats
/// the interval is about the whole range of possible ratios: at three repeats
/// the smallest is the median of 26% of the draws. That is all they can tell.
pub fn ratio_interval(base: &[f64], other: &[f64], resamples: u32, level: f64, seed: u64) -> Option<(f64, f64)> {
    if base.len() < 2 || other.len() < 2 {
        return None;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut draw = base.to_vec();
    let mut draw_other = other.to_vec();
    let mut ratios = Vec::with_capacity(resamples as usize);
    for _ in 0..resamples {
        draw.fill_with(|| base[random.random_range(0..base.len())]);
        draw_other.fill_with(|| other[random.random_range(0..other.len())]);
        let ratio = median_of(&mut draw_other)? / median_of(&mut draw)?;
        if !ratio.is_finite() {
            return None;
        }
        ratios.push(ratio);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    let last = ratios.len().checked_sub(1)?;
    let at = |share: f64| ratios[(share * last as f64).round() as usize];
    Some((at(tail), at(1.0 - tail)))
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

    #[test]
    fn the_same_repeats_always_give_the_same_interval() {
        let (base, other) = ([10.0, 11.0, 12.0, 10.5], [20.0, 21.0, 19.0, 22.0]);
        let interval = ratio_interval(&base, &other, 10_000, 0.95, 7);
        assert_eq!(interval, ratio_interval(&base, &other, 10_000, 0.95, 7));
        let (low, high) = interval.unwrap();
        assert!(low < 1.9 && 1.9 < high && low > 1.5, "{low} {high}");
    }

    #[test]
    fn one_repeat_or_a_base_of_zero_has_no_interval() {
        assert_eq!(ratio_interval(&[1.0], &[1.0, 2.0], 100, 0.95, 1), None);
        assert_eq!(ratio_interval(&[0.0, 0.0], &[1.0, 2.0], 100, 0.95, 1), None);
    }

    /// 300 comparisons of two engines whose true ratio is 2, nine repeats each
    /// with 10% noise: about nine in ten intervals must hold it, and they must
    /// not do so by being as wide as the world.
    #[test]
    fn the_interval_covers_a_known_ratio() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
        // The sum of twelve uniform draws less six is close enough to a normal one.
        let mut normal = || (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let (mut covered, mut width) = (0, 0.0);
        for seed in 0..300 {
            let base: Vec<f64> = (0..9).map(|_| 100.0 * (1.0 + 0.1 * normal())).collect();
            let other: Vec<f64> = (0..9).map(|_| 200.0 * (1.0 + 0.1 * normal())).collect();
            let (low, high) = ratio_interval(&base, &other, 1000, 0.95, seed).unwrap();
            covered += u32::from(low <= 2.0 && 2.0 <= high);
            width += (high - low) / 300.0;
        }
        assert!(covered >= 270, "{covered} of 300");
        assert!(width < 0.6, "{width}");
    }
}
