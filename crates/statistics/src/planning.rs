//! How many repeats would decide what these could not.

/// No plan is longer: with so much noise, the noise is the finding.
const MOST: f64 = 1000.0;
/// The chance with which that many repeats decide, if what was seen is true.
const POWER: f64 = 0.9;

/// What is known of a test that has not decided.
pub struct Undecided {
    /// Standard deviation of one repeat, of logarithms.
    pub noise: f64,
    /// What would be decided is this far from what was seen.
    pub distance: f64,
    /// One-sided level.
    pub alpha: f64,
    /// Samples whose noise adds up: 2 when both sides repeat, 1 for differences within repeats.
    pub samples: f64,
    /// The test decides nothing with fewer.
    pub least: u32,
}

/// Repeats of each side with which a test would decide in nine of ten cases if
/// the distance seen is the true one; `None` beyond 1000.
///
/// `n = c·σ²·(z₁₋α + z₀.₉)² / δ² + z₁₋α²/4·c`, with `c` samples: the normal
/// approximation with the correction for an estimated variance.
/// Source: Guenther, Sample size formulas for normal theory t tests, The American Statistician 35 (1981).
pub fn repeats(of: &Undecided) -> Option<u32> {
    let z = normal_quantile(1.0 - of.alpha);
    let wanted = (z + normal_quantile(POWER)) * of.noise / of.distance;
    let correction = if of.samples > 1.0 { z * z / 4.0 } else { z * z / 2.0 };
    let count = if of.noise == 0.0 { 0.0 } else { of.samples * wanted * wanted + correction };
    (count <= MOST).then(|| (count.ceil() as u32).max(of.least))
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

/// The value that a standard normal one stays below with probability `p`, above one half, to 0.0005.
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.23.
fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * (1.0 - p).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
        assert_eq!(repeats(&TWO), Some(22));
        assert_eq!(repeats(&Undecided { distance: 0.5, ..TWO }), Some(4));
        assert_eq!(repeats(&Undecided { noise: 0.0, distance: 0.0, ..TWO }), Some(4));
        assert_eq!(repeats(&Undecided { distance: 0.001, ..TWO }), None);
    }

    #[test]
    fn noise_is_within_sides_and_not_between_them() {
        assert_eq!(pooled_deviation(&[&[1.0, 1.0], &[5.0, 5.0]]), Some(0.0));
        assert_eq!(pooled_deviation(&[&[1.0, 3.0], &[7.0]]), Some(2f64.sqrt()));
        assert_eq!(pooled_deviation(&[&[1.0], &[7.0]]), None);
    }
}
