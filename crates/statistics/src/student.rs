//! Student's t distribution, also with fractional degrees of freedom.
//!
//! Source: Press et al., Numerical Recipes, sections 6.1 (logarithm of the gamma function) and 6.4 (incomplete beta
//! function by a continued fraction).

use std::f64::consts::PI;

/// Student's t distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Student {
    freedom: f64,
    /// The logarithm of the density at zero.
    ln_peak: f64,
}

impl Student {
    /// The distribution with these degrees of freedom, at least one.
    pub fn new(freedom: f64) -> Self {
        let freedom = freedom.max(1.0);
        let ln_peak = ln_gamma((freedom + 1.0) / 2.0) - ln_gamma(freedom / 2.0) - (freedom * PI).ln() / 2.0;
        Self { freedom, ln_peak }
    }

    /// The probability of a value above `t`.
    pub fn above(&self, t: f64) -> f64 {
        if t < 0.0 {
            return 1.0 - self.above(-t);
        }
        let share = self.freedom / (self.freedom + t * t);
        incomplete_beta(self.freedom / 2.0, share, self.ln_peak + (self.freedom * PI).ln() / 2.0) / 2.0
    }

    /// The value above which a share `alpha` of the distribution lies, at most one half.
    ///
    /// Newton's method: the tail is convex, so the steps approach the root from the left and never pass it.
    pub fn quantile_above(&self, alpha: f64) -> f64 {
        /// More steps than any degrees of freedom and any level need.
        const MOST_STEPS: usize = 100;
        let mut t = 0.0;
        for _ in 0..MOST_STEPS {
            let step = (self.above(t) - alpha) / self.density(t);
            t += step;
            if step.abs() <= 1e-10 * t.max(1.0) {
                break;
            }
        }
        t
    }

    fn density(&self, t: f64) -> f64 {
        (self.ln_peak - (self.freedom + 1.0) / 2.0 * (1.0 + t * t / self.freedom).ln()).exp()
    }
}

/// The regularised incomplete beta function `I(x; a, 1/2)`; `ln_scale` is the logarithm of `Γ(a + 1/2) / Γ(a)`.
fn incomplete_beta(a: f64, x: f64, ln_scale: f64) -> f64 {
    const B: f64 = 0.5;
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // Γ(1/2) is the square root of π.
    let front = (ln_scale - PI.ln() / 2.0 + a * x.ln() + B * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side of the mean; the other side is its complement.
    if x < (a + 1.0) / (a + B + 2.0) {
        front * continued_fraction(a, B, x) / a
    } else {
        1.0 - front * continued_fraction(B, a, 1.0 - x) / B
    }
}

/// The continued fraction of the incomplete beta function, by the method of Lentz.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const MOST_TERMS: u32 = 300;
    const SMALLEST: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < SMALLEST { SMALLEST } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = denominator;
    for term in 1..=MOST_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            denominator = 1.0 / away_from_zero(1.0 + coefficient * denominator);
            numerator = away_from_zero(1.0 + coefficient / numerator);
            change = denominator * numerator;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

/// The logarithm of the gamma function of a positive number, by Lanczos' approximation, to ten digits.
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let base = x + 5.5;
    let terms = (1..).map(f64::from).zip(COEFFICIENTS).map(|(place, coefficient)| coefficient / (x + place));
    let series: f64 = 1.000_000_000_190_015 + terms.sum::<f64>();
    (x + 0.5) * base.ln() - base + (2.506_628_274_631_000_5 * series / x).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_published_tables() {
        let table = [
            (1.0, 0.025, 12.7062),
            (2.0, 0.05, 2.919_99),
            (3.0, 0.025, 3.182_45),
            (6.0, 0.025, 2.446_91),
            (10.0, 0.025, 2.228_14),
            (11.0, 0.025, 2.200_99),
            (30.0, 0.025, 2.042_27),
            (1000.0, 0.025, 1.962_34),
            (5.0, 0.0005, 6.868_83),
        ];
        for (freedom, alpha, t) in table {
            let found = Student::new(freedom).quantile_above(alpha);
            assert!((found - t).abs() < 1e-4, "{freedom} degrees of freedom, {alpha}: {found}");
        }
        let between = Student::new(3.5).quantile_above(0.025);
        assert!(between > 2.77645 && between < 3.18245, "between those of 3 and 4: {between}");
    }

    #[test]
    fn tails_and_quantiles_are_inverse_and_symmetric() {
        for freedom in [1.0, 2.3, 7.0, 58.0] {
            let student = Student::new(freedom);
            for alpha in [0.5, 0.2, 0.025, 1e-3, 1e-6] {
                let t = student.quantile_above(alpha);
                assert!((student.above(t) / alpha - 1.0).abs() < 1e-6, "{freedom} {alpha}");
                assert!((student.above(-t) - (1.0 - alpha)).abs() < 1e-9, "{freedom} {alpha}");
            }
            assert_eq!((student.above(f64::INFINITY), student.above(f64::NEG_INFINITY)), (0.0, 1.0));
        }
    }
}
