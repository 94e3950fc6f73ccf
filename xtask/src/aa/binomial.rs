//! The exact interval of a share.

use statrs::distribution::{Beta, ContinuousCDF as _};

/// How often a verdict of a headline may err.
pub const LEVEL: f64 = 0.05;
/// The error probability at each end of an interval of 95%.
const ALPHA: f64 = 0.025;

/// The two-sided 95% interval of a share of which `hits` of `all` were seen, by inversion of the binomial test.
///
/// Source: Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial,
/// Biometrika 26 (1934).
pub fn interval(hits: u64, all: u64) -> (f64, f64) {
    // There is no such distribution for an end of the range.
    let quantile =
        |hits: u64, p: f64| Some(Beta::new(hits as f64, all as f64 + 1.0 - hits as f64).ok()?.inverse_cdf(p));
    (quantile(hits, ALPHA).unwrap_or(0.0), quantile(hits + 1, 1.0 - ALPHA).unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_published_tables() {
        for (hits, all, low, high) in [(0, 20, 0.0, 0.1684), (1, 20, 0.0013, 0.2487), (5, 100, 0.0164, 0.1128)] {
            let (found_low, found_high) = interval(hits, all);
            assert!((found_low - low).abs() < 1e-4 && (found_high - high).abs() < 1e-4, "{found_low} {found_high}");
        }
        assert_eq!(interval(0, 0), (0.0, 1.0));
        assert_eq!(interval(4, 4).1, 1.0);
    }
}
