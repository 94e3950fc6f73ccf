//! Plans the number of repeats that would decide an undecided test.

use rumba_results::ratio::MOST_MORE_REPEATS;

/// The longest plan; with more noise, the noise itself is the finding.
const MOST: f64 = 1000.0;
/// The probability that this number of repeats decides, if the observed difference is true.
pub const POWER: f64 = 0.9;

pub struct Undecided {
    /// Standard deviation of one repeat, of logarithms.
    pub noise: f64,
    /// The distance between the observed value and the one to decide.
    pub distance: f64,
    /// One-sided level.
    pub alpha: f64,
    /// Samples whose noise adds up: 2 when both sides repeat, 1 for differences within repeats.
    pub samples: f64,
    /// The fewest repeats with which the test can decide.
    pub least: u32,
}

/// Repeats of each side with which a test would decide in nine of ten cases, if the observed distance is the true one;
/// `None` beyond 1000.
///
/// `n = c·σ²·(z₁₋α + z₀.₉)² / δ² + z₁₋α²/2`, with `c` samples: the normal approximation with a correction for an
/// estimated variance. For two samples Guenther's correction for Student's test is half as large; the permutation and
/// Welch tests together need the larger one, by simulation in the tests.
///
/// Source: Guenther, Sample size formulas for normal theory t tests, The American Statistician 35 (1981).
pub fn repeats(of: &Undecided) -> Option<u32> {
    let z = normal_quantile(1.0 - of.alpha);
    let wanted = (z + normal_quantile(POWER)) * of.noise / of.distance;
    let count = if of.noise == 0.0 { 0.0 } else { of.samples * wanted * wanted + z * z / 2.0 };
    (count <= MOST).then(|| (count.ceil() as u32).max(of.least))
}

/// How many more repeats would decide; `None` beyond [`MOST_MORE_REPEATS`], because the noise is then the finding.
pub fn more_repeats(of: &Undecided, have: usize) -> Option<u32> {
    let more = repeats(of)?.saturating_sub(have as u32).max(1);
    (more <= MOST_MORE_REPEATS).then_some(more)
}

/// The standard deviation of repeats around the mean of their own side, both
/// sides pooled; `None` when no side has two.
pub fn pooled_deviation(sides: &[&[f64]]) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for side in sides.iter().filter(|side| side.len() > 1) {
        let mean = side.iter().sum::<f64>() / side.len() as f64;
        squares += side.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
        freedom += side.len() as f64 - 1.0;
    }
    (freedom > 0.0).then(|| f64::sqrt(squares / freedom))
}

/// The 90% interval of a standard deviation that is estimated with this many degrees of freedom, for normal noise.
///
/// Source: Wilson and Hilferty, The distribution of chi-square, Proceedings of the National Academy of Sciences 17
/// (1931).
pub fn noise_interval(deviation: f64, freedom: f64) -> (f64, f64) {
    let z = normal_quantile(0.95);
    let spread = 2.0 / (9.0 * freedom);
    // The mean square over its expectation, at this many deviations.
    let share = |z: f64| (1.0 - spread + z * spread.sqrt()).powi(3);
    (deviation / share(z).sqrt(), deviation / share(-z).sqrt())
}

/// The quantile of the standard normal distribution at probability `p`, above one half, to 0.0005.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.23.
fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * (1.0 - p).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rumba_results::metric::Better;
    use rumba_results::ratio::Change;

    use super::*;
    use crate::testing::normal;

    const TWO: Undecided = Undecided { noise: 0.05, distance: 0.05, alpha: 0.025, samples: 2.0, least: 4 };

    #[test]
    fn quantiles_of_the_normal_distribution() {
        for (p, expected) in [(0.9, 1.2816), (0.95, 1.6449), (0.975, 1.96), (0.9875, 2.2414)] {
            assert!((normal_quantile(p) - expected).abs() < 5e-4);
        }
    }

    #[test]
    fn repeats_grow_with_the_square_of_noise_over_distance() {
        // A two-sided t test at 5% with 90% power for one standard deviation: 23 of each.
        assert_eq!(repeats(&TWO), Some(23));
        assert_eq!(repeats(&Undecided { distance: 0.5, ..TWO }), Some(4));
        assert_eq!(repeats(&Undecided { noise: 0.0, distance: 0.0, ..TWO }), Some(4));
        assert_eq!(repeats(&Undecided { distance: 0.001, ..TWO }), None);
    }

    #[test]
    fn the_noise_of_few_repeats_is_known_within_wide_bounds() {
        // By tables of chi-square: 4 / 9.488 and 4 / 0.7107.
        let (low, high) = noise_interval(1.0, 4.0);
        assert!((low - 0.649).abs() < 0.005 && (high - 2.372).abs() < 0.05, "{low} {high}");
        let (low, high) = noise_interval(1.0, 60.0);
        assert!(low > 0.85 && high < 1.2, "{low} {high}");
    }

    /// The plan uses the formula, but the test decides.
    #[test]
    fn planned_repeats_find_the_difference_in_nine_of_ten_cases() {
        const DRAWS: u32 = 1000;
        for noise in [[0.02, 0.02], [0.03, 0.03], [0.04, 0.04], [0.01, 0.04]] {
            let both: f64 = noise.iter().map(|noise| noise * noise).sum();
            let planned = Undecided { noise: (both / 2.0).sqrt(), distance: 0.05, ..TWO };
            let count = repeats(&planned).unwrap();
            let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
            let mut side = |deviation: f64, mean: f64| -> Vec<f64> {
                (0..count).map(|_| (mean + deviation * normal(&mut random)).exp()).collect()
            };
            let found = (0..DRAWS).filter(|_| {
                let (base, other) = (side(noise[0], 0.0), side(noise[1], 0.05));
                crate::test(&base, &other, Better::More, 1.0).change == Change::Better
            });
            let share = found.count() as f64 / f64::from(DRAWS);
            assert!((0.87..0.97).contains(&share), "{count} repeats over noise {noise:?}: {share}");
        }
    }

    #[test]
    fn noise_is_within_sides_and_not_between_them() {
        assert_eq!(pooled_deviation(&[&[1.0, 1.0], &[5.0, 5.0]]), Some(0.0));
        assert_eq!(pooled_deviation(&[&[1.0, 3.0], &[7.0]]), Some(2f64.sqrt()));
        assert_eq!(pooled_deviation(&[&[1.0], &[7.0]]), None);
    }
}
