//! The test behind all verdicts, and the intervals that invert it.
//!
//! Two samples: a value θ of the difference of the means (of logarithms if all figures are positive) is rejected when
//! two tests reject it.
//!
//! - The *permutation test* is exact if both sides are alike except for θ. Then every way of dealing the figures (the
//!   other's less θ) to two sides of the same sizes was equally likely. A deal that swaps `k` of the other, `R`, for
//!   `k` of the base, `S`, reaches at least the observed difference exactly when `mean(R) - mean(S) <= θ`. The means'
//!   differences over all swaps therefore give the p-value at every θ. In order, they also give the ends of every
//!   interval, without a search.
//! - *Welch's test* ([`Welch`]) is valid if one side is noisier than the other. The permutation test then errs too
//!   often: with five times the noise on one side, in 8.7% of one-sided tests of three repeats instead of 5%.
//!
//! Dealing Welch's t instead of the difference does not help. With as many repeats on both sides it orders the deals
//! exactly as the difference does, because the squares around the common mean are the same in every deal. The p-values
//! are then equal.
//!
//! One sample: under the hypothesis that the figures are symmetric around θ, every choice of signs of `figure - θ` was
//! equally likely. The same holds with the means of all subsets.
//!
//! Source: Fisher, The Design of Experiments (1935), section 21; Tritchler, On inverting permutation tests, JASA 79
//! (1984); Janssen, Studentized permutation tests for non-i.i.d. hypotheses, Statistics and Probability Letters 36
//! (1997).

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

#[cfg(doc)]
use rumba_results::starts::Starts;

use crate::welch::{ROUNDING, Welch};

/// The most deals that are enumerated: two sides of nine repeats have 48,620.
const ENUMERATED: f64 = 50_000.0;
/// The number of deals drawn beyond that; because the observed deal is among them, the test keeps its level.
const DRAWN: usize = 10_000;
/// Fixed, so that the same results always give the same report.
const SEED: u64 = 0x72_75_6d_62_61;

/// A test as a function of its parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Inverted {
    /// The values at which the p-value steps: one for each deal.
    steps: Vec<f64>,
    /// Deals that reach the observed difference at every θ: the observed one, and drawn ones that equal it.
    always: usize,
    /// The second test that must reject; `None` for one sample.
    welch: Option<Welch>,
    /// The factor for p-values, and the divisor for levels.
    factor: f64,
}

impl Inverted {
    /// The test of the difference of the means, `other - base`.
    pub fn two_samples(base: &[f64], other: &[f64]) -> Self {
        Self { welch: Some(Welch::of(base, other)), ..Self::dealt(base, other) }
    }

    /// The same test for figures that were checked several times ([`Starts::looks_factor`]).
    pub fn at_looks(self, factor: f64) -> Self {
        Self { factor, ..self }
    }

    fn dealt(base: &[f64], other: &[f64]) -> Self {
        if choose(base.len() + other.len(), base.len()) > ENUMERATED {
            let mut dealer = Dealer::new(base, other);
            return Self::drawn(|random| dealer.deal(random));
        }
        let most = base.len().min(other.len());
        let (from, to) = (subset_sums(base, most), subset_sums(other, most));
        let mut steps = Vec::new();
        for (count, (from, to)) in from.iter().zip(&to).enumerate().skip(1) {
            for given in to {
                steps.extend(from.iter().map(|taken| (given - taken) / count as f64));
            }
        }
        Self { steps, always: 1, welch: None, factor: 1.0 }
    }

    /// The test of the mean of differences that are symmetric around it.
    pub fn one_sample(differences: &[f64]) -> Self {
        if 2f64.powi(i32::try_from(differences.len()).unwrap_or(i32::MAX)) > ENUMERATED {
            return Self::drawn(|random| {
                let (mut sum, mut count) = (0.0, 0.0);
                for difference in differences.iter().filter(|_| random.random_bool(0.5)) {
                    (sum, count) = (sum + difference, count + 1.0);
                }
                (count > 0.0).then(|| sum / count)
            });
        }
        let sums = subset_sums(differences, differences.len());
        let means =
            |(count, sums): (usize, &Vec<f64>)| -> Vec<f64> { sums.iter().map(|sum| sum / count as f64).collect() };
        Self { steps: sums.iter().enumerate().skip(1).flat_map(means).collect(), always: 1, welch: None, factor: 1.0 }
    }

    fn drawn(mut draw: impl FnMut(&mut Xoshiro256PlusPlus) -> Option<f64>) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let steps: Vec<f64> = (0..DRAWN).filter_map(|_| draw(&mut random)).collect();
        Self { always: 1 + DRAWN - steps.len(), steps, welch: None, factor: 1.0 }
    }

    fn deals(&self) -> f64 {
        (self.steps.len() + self.always) as f64
    }

    /// The number of steps outside of a one-sided interval with an error of at most `alpha`; `None` if there are too
    /// few deals for such an interval.
    fn outside(&self, alpha: f64) -> Option<usize> {
        let allowed = (alpha * self.deals() + ROUNDING).floor() as usize;
        allowed.checked_sub(self.always).filter(|rank| *rank < self.steps.len())
    }

    /// The smallest value that the test against larger ones does not reject at this level.
    pub fn low(&mut self, alpha: f64) -> Option<f64> {
        let alpha = alpha / self.factor;
        let rank = self.outside(alpha)?;
        let low = *self.steps.select_nth_unstable_by(rank, f64::total_cmp).1;
        Some(self.welch.as_ref().map_or(low, |welch| low.min(welch.low(alpha))))
    }

    /// The largest value that the test against smaller ones does not reject at this level.
    pub fn high(&mut self, alpha: f64) -> Option<f64> {
        let alpha = alpha / self.factor;
        let rank = self.steps.len() - 1 - self.outside(alpha)?;
        let high = *self.steps.select_nth_unstable_by(rank, f64::total_cmp).1;
        Some(self.welch.as_ref().map_or(high, |welch| high.max(welch.high(alpha))))
    }

    /// The two-sided p-value of this value.
    pub fn p(&self, value: f64) -> f64 {
        (2.0 * self.p_of_no_more(value).min(self.p_of_no_less(value))).min(1.0)
    }

    /// The one-sided p-value of this value and all smaller ones.
    pub fn p_of_no_more(&self, value: f64) -> f64 {
        let p = self.share(|step| step <= value + ROUNDING);
        let p = self.welch.as_ref().map_or(p, |welch| p.max(welch.p_of_no_more(value)));
        (self.factor * p).min(1.0)
    }

    /// The one-sided p-value of this value and all larger ones.
    pub fn p_of_no_less(&self, value: f64) -> f64 {
        let p = self.share(|step| step >= value - ROUNDING);
        let p = self.welch.as_ref().map_or(p, |welch| p.max(welch.p_of_no_less(value)));
        (self.factor * p).min(1.0)
    }

    /// The share of deals that reach the observed difference, if those with such a step do.
    fn share(&self, reaches: impl Fn(f64) -> bool) -> f64 {
        let reached = self.steps.iter().filter(|step| reaches(**step)).count();
        (reached + self.always) as f64 / self.deals()
    }
}

/// The sums of all subsets of up to `most` members, grouped by their size. The limit matters: thirty numbers have a
/// billion subsets, but a side of three needs only some thousands.
fn subset_sums(numbers: &[f64], most: usize) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0]];
    for number in numbers {
        if sums.len() <= most {
            sums.push(Vec::new());
        }
        for count in (1..sums.len()).rev() {
            let (fewer, these) = sums.split_at_mut(count);
            these[0].extend(fewer[count - 1].iter().map(|sum| sum + number));
        }
    }
    sums
}

/// Deals the figures of two sides at random.
struct Dealer {
    figures: Vec<f64>,
    base: usize,
    base_sum: f64,
    places: Vec<usize>,
}

impl Dealer {
    fn new(base: &[f64], other: &[f64]) -> Self {
        let figures: Vec<f64> = base.iter().chain(other).copied().collect();
        let places = (0..figures.len()).collect();
        Self { figures, base: base.len(), base_sum: base.iter().sum(), places }
    }

    /// A random deal, as its step; `None` for the observed deal. The order that the last deal left does not change the
    /// probabilities.
    fn deal(&mut self, random: &mut Xoshiro256PlusPlus) -> Option<f64> {
        let (mut kept, mut given, mut count) = (0.0, 0.0, 0.0);
        for place in 0..self.base {
            let drawn = random.random_range(place..self.places.len());
            self.places.swap(place, drawn);
            let figure = self.figures[self.places[place]];
            if self.places[place] < self.base {
                kept += figure;
            } else {
                (given, count) = (given + figure, count + 1.0);
            }
        }
        (count > 0.0).then(|| (given - (self.base_sum - kept)) / count)
    }
}

/// The mean; `None` for an empty slice.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn choose(all: usize, some: usize) -> f64 {
    (0..some).map(|taken| (all - taken) as f64 / (taken + 1) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::normal;

    /// The definition: deal all figures again, and count the deals that reach the observed difference.
    fn p_by_dealing(base: &[f64], other: &[f64], shift: f64) -> (f64, f64) {
        let all: Vec<f64> = base.iter().copied().chain(other.iter().map(|figure| figure - shift)).collect();
        let difference = |mask: u32| {
            let side = |taken: u32| {
                let of_side = all.iter().enumerate().filter(|(place, _)| mask >> place & 1 == taken);
                mean(&of_side.map(|(_, figure)| *figure).collect::<Vec<_>>()).unwrap()
            };
            side(0) - side(1)
        };
        let seen = difference((1 << base.len()) - 1);
        let deals: Vec<f64> =
            (0..1u32 << all.len()).filter(|mask| mask.count_ones() as usize == base.len()).map(difference).collect();
        let share = |reached: &dyn Fn(f64) -> bool| {
            deals.iter().filter(|deal| reached(**deal)).count() as f64 / deals.len() as f64
        };
        (share(&|deal| deal >= seen - 1e-9), share(&|deal| deal <= seen + 1e-9))
    }

    #[test]
    fn few_repeats_against_many_are_as_many_deals_and_no_more() {
        // The larger side has a billion subsets, in 8 GB.
        let many: Vec<f64> = (0..30).map(f64::from).collect();
        let test = Inverted::two_samples(&[-3.0, -2.0, -1.0], &many);
        assert_eq!(test.deals(), 5456.0);
        assert!((test.p(0.0) - 2.0 / 5456.0).abs() < 1e-12);
        assert_eq!(Inverted::two_samples(&many, &[-3.0, -2.0, -1.0]).deals(), 5456.0);
    }

    #[test]
    fn p_value_is_the_larger_of_permutation_and_welch() {
        let (base, other) = ([1.0, 1.4, 0.7, 1.1], [1.9, 1.3, 2.2]);
        let (test, welch) = (Inverted::two_samples(&base, &other), Welch::of(&base, &other));
        let mut larger = [0, 0];
        for shift in [-1.0, 0.0, 0.3, 0.55, 0.8, 1.5, 3.0] {
            let (greater, less) = p_by_dealing(&base, &other, shift);
            let (of_welch, expected) = (welch.p_of_no_more(shift), greater.max(welch.p_of_no_more(shift)));
            assert!((test.p_of_no_more(shift) - expected).abs() < 1e-12, "{shift}");
            assert!((test.p_of_no_less(shift) - less.max(welch.p_of_no_less(shift))).abs() < 1e-12, "{shift}");
            larger[usize::from(of_welch > greater)] += 1;
        }
        assert!(larger[0] > 0 && larger[1] > 0, "each test decides somewhere: {larger:?}");
    }

    #[test]
    fn the_interval_holds_exactly_what_the_test_does_not_reject() {
        let even = ([1.0, 1.4, 0.7, 1.1, 1.2], [1.9, 1.3, 2.2, 1.7, 1.5]);
        // All noise is on one side, so Welch's interval is the wider one.
        let uneven = ([1.0, 1.01, 0.99, 1.02, 1.0], [1.9, 1.3, 2.2, 1.7, 1.5]);
        for (base, other) in [even, uneven] {
            let mut test = Inverted::two_samples(&base, &other);
            let (low, high) = (test.low(0.025).unwrap(), test.high(0.025).unwrap());
            assert!(test.p_of_no_more(low - 1e-6) <= 0.025 && test.p_of_no_more(low + 1e-6) > 0.025);
            assert!(test.p_of_no_less(high + 1e-6) <= 0.025 && test.p_of_no_less(high - 1e-6) > 0.025);
        }
    }

    #[test]
    fn three_repeats_decide_at_5_percent_one_sided_only() {
        let mut test = Inverted::two_samples(&[1.0, 1.1, 1.2], &[5.0, 5.1, 5.2]);
        assert_eq!((test.low(0.025), test.high(0.025)), (None, None));
        assert!((test.low(0.05).unwrap() - 3.8).abs() < 1e-9, "1 of 20 deals");
        let mut four = Inverted::two_samples(&[1.0; 4], &[2.0; 4]);
        assert_eq!((four.low(0.025), four.high(0.025)), (Some(1.0), Some(1.0)), "1 of 70 deals");
        assert!((four.p(0.0) - 2.0 / 70.0).abs() < 1e-12);
    }

    /// The permutation test alone has an error rate of 8.7% for engines that differ only in their noise.
    #[test]
    fn fivefold_noise_on_one_side_keeps_the_error_at_5_percent() {
        const DRAWS: u32 = 20_000;
        let most = 0.05 + 3.0 * (0.05 * 0.95 / f64::from(DRAWS)).sqrt();
        for repeats in [3, 4, 5, 6] {
            for noise in [[1.0, 5.0], [5.0, 1.0]] {
                let mut random = Xoshiro256PlusPlus::seed_from_u64(repeats);
                let mut side =
                    |deviation: f64| -> Vec<f64> { (0..repeats).map(|_| deviation * normal(&mut random)).collect() };
                let (mut rejected, mut by_dealing_alone) = (0, 0);
                for _ in 0..DRAWS {
                    let (base, other) = (side(noise[0]), side(noise[1]));
                    let rejects = |test: Inverted| u32::from(test.p_of_no_more(0.0) <= 0.05 + ROUNDING);
                    rejected += rejects(Inverted::two_samples(&base, &other));
                    by_dealing_alone += rejects(Inverted::dealt(&base, &other));
                }
                let share = |rejected: u32| f64::from(rejected) / f64::from(DRAWS);
                assert!(share(rejected) <= most, "{repeats} repeats, noise {noise:?}: {}", share(rejected));
                let alone = share(by_dealing_alone);
                assert!(alone > most, "{repeats} repeats, noise {noise:?}: the permutation test alone errs in {alone}");
            }
        }
    }

    #[test]
    fn signs_decide_one_sided_from_five_on() {
        assert_eq!(Inverted::one_sample(&[1.0, 2.0, 3.0, 4.0]).low(0.05), None, "1 of 16");
        assert_eq!(Inverted::one_sample(&[1.0, 2.0, 3.0, 4.0, 5.0]).low(0.05), Some(1.0), "1 of 32");
    }

    #[test]
    fn many_repeats_are_sampled_and_agree_with_the_normal_interval() {
        let base: Vec<f64> = (0..30).map(|step| f64::from(step % 7)).collect();
        let other: Vec<f64> = base.iter().map(|figure| figure + 10.0).collect();
        let mut test = Inverted::two_samples(&base, &other);
        let (low, high) = (test.low(0.025).unwrap(), test.high(0.025).unwrap());
        // Two standard errors of the difference: 1.96 * 2.0 * sqrt(2 / 30).
        assert!((low - 9.0).abs() < 0.15 && (high - 11.0).abs() < 0.15, "{low} {high}");
        let signs: Vec<f64> = (0..40).map(|step| 5.0 + f64::from(step % 5)).collect();
        let mut test = Inverted::one_sample(&signs);
        assert!((test.low(0.025).unwrap() - 6.56).abs() < 0.15);
    }
}
