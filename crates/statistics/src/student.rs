//! Student's t distribution, also with fractional degrees of freedom.

use statrs::distribution::{Continuous as _, ContinuousCDF as _, StudentsT};

/// Student's t distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Student(StudentsT);

impl Student {
    /// The distribution with these degrees of freedom, at least one.
    pub fn new(freedom: f64) -> Self {
        // These parameters are valid: `max` also replaces NaN.
        Self(StudentsT::new(0.0, 1.0, freedom.max(1.0)).expect("at least one degree of freedom"))
    }

    /// The probability of a value above `t`.
    pub fn above(&self, t: f64) -> f64 {
        // `statrs` panics on NaN, the t of two sides without noise.
        if t.is_nan() { t } else { self.0.sf(t) }
    }

    /// The value above which a share `alpha` of the distribution lies, at most one half.
    ///
    /// Newton's method: the tail is convex, so the steps approach the root from the left and never pass it. The inverse
    /// of `statrs` loses digits there.
    pub fn quantile_above(&self, alpha: f64) -> f64 {
        /// More steps than any degrees of freedom and any level need.
        const MOST_STEPS: usize = 100;
        let mut t = 0.0;
        for _ in 0..MOST_STEPS {
            let step = (self.above(t) - alpha) / self.0.pdf(t);
            t += step;
            if step.abs() <= 1e-10 * t.max(1.0) {
                break;
            }
        }
        t
    }
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
}
