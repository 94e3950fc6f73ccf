//! Welch's t test of a difference of means, for sides with unequal noise.
//!
//! The degrees of freedom are the mean of those of Welch and Satterthwaite and of the smaller side's own. With three to
//! six repeats those of Welch and Satterthwaite let the test err in up to 5.9% of cases instead of 5%. The reason is
//! that they are estimated from few figures. The smaller side's own keep the level but find less. The mean errs in at
//! most 5.0% if both sides have the same number of repeats, and in at most 5.5% if one has twice as many. `cargo run
//! --release -p xtask -- simulate` prints these rates.
//!
//! Source: Welch, The generalization of Student's problem when several different population variances are involved,
//! Biometrika 34 (1947); Mickey and Brown, Bounds on the distribution functions of the Behrens-Fisher statistic, Annals
//! of Mathematical Statistics 37 (1966).

use crate::student::Student;

/// Sums of the same figures in another order differ by about this.
pub const ROUNDING: f64 = 1e-9;

/// The test at every value of the difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Welch {
    difference: f64,
    standard_error: f64,
    student: Student,
}

impl Welch {
    /// The test of the difference of the means, `other - base`.
    pub fn of(base: &[f64], other: &[f64]) -> Self {
        let (base, other) = (Side::of(base), Side::of(other));
        let variance = base.variance_of_mean + other.variance_of_mean;
        let fewest = base.freedom.min(other.freedom);
        // With equal figures on both sides there is no variance for the weights.
        let estimated = if variance > 0.0 && variance.is_finite() {
            let weighed = |side: &Side| side.variance_of_mean.powi(2) / side.freedom;
            variance.powi(2) / (weighed(&base) + weighed(&other))
        } else {
            fewest
        };
        Self {
            difference: other.mean - base.mean,
            standard_error: variance.sqrt(),
            student: Student::new(f64::midpoint(fewest, estimated)),
        }
    }

    /// The distance from the difference to the ends of the interval with an error of `alpha` on each side.
    fn margin(&self, alpha: f64) -> f64 {
        self.standard_error * self.student.quantile_above(alpha)
    }

    /// The smallest value that the test against larger ones does not reject at this level.
    pub fn low(&self, alpha: f64) -> f64 {
        self.difference - self.margin(alpha)
    }

    /// The largest value that the test against smaller ones does not reject at this level.
    pub fn high(&self, alpha: f64) -> f64 {
        self.difference + self.margin(alpha)
    }

    /// The one-sided p-value of this value and all smaller ones.
    pub fn p_of_no_more(&self, value: f64) -> f64 {
        let beyond = self.difference - value;
        // Equal figures have no noise, and a rounding difference does not count.
        if beyond.abs() <= ROUNDING { 0.5 } else { self.student.above(beyond / self.standard_error) }
    }

    /// The one-sided p-value of this value and all larger ones.
    pub fn p_of_no_less(&self, value: f64) -> f64 {
        1.0 - self.p_of_no_more(value)
    }
}

struct Side {
    mean: f64,
    /// Infinite with a single figure, which has no estimate of noise.
    variance_of_mean: f64,
    freedom: f64,
}

impl Side {
    fn of(figures: &[f64]) -> Self {
        let count = figures.len() as f64;
        let freedom = count - 1.0;
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        let variance_of_mean = if freedom > 0.0 { squares / freedom / count } else { f64::INFINITY };
        Self { mean, variance_of_mean, freedom }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_of_freedom_lie_between_those_of_one_side_and_of_both() {
        let freedom = |base: &[f64], other: &[f64]| Welch::of(base, other).student;
        let even = freedom(&[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0]);
        assert_eq!(even, Student::new(3.0), "halfway between 2 and 4");
        let one_sided = freedom(&[1.0, 1.0, 1.0], &[5.0, 6.0, 7.0]);
        assert_eq!(one_sided, Student::new(2.0), "all noise is on one side");
    }

    #[test]
    fn equal_figures_and_a_single_one_are_no_error() {
        let equal = Welch::of(&[1.0; 4], &[2.0; 4]);
        assert_eq!((equal.low(0.025), equal.high(0.025)), (1.0, 1.0));
        assert_eq!((equal.p_of_no_more(0.0), equal.p_of_no_more(1.0), equal.p_of_no_less(0.0)), (0.0, 0.5, 1.0));
        let single = Welch::of(&[1.0], &[2.0, 3.0]);
        assert_eq!((single.p_of_no_more(0.0), single.low(0.025)), (0.5, f64::NEG_INFINITY));
    }
}
