//! The exact interval of a share.

/// How often a verdict of a headline may err.
pub const LEVEL: f64 = 0.05;
/// The error probability at each end of an interval of 95%.
const ALPHA: f64 = 0.025;
/// Halvings of the interval from 0 to 1: more than a double has digits.
const STEPS: u32 = 60;

/// The two-sided 95% interval of a share of which `hits` of `all` were seen, by inversion of the binomial test.
///
/// Source: Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial,
/// Biometrika 26 (1934).
pub fn interval(hits: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let low = if hits == 0 { 0.0 } else { solve(|share| at_least(hits, all, share) < ALPHA) };
    let high = if hits == all { 1.0 } else { solve(|share| 1.0 - at_least(hits + 1, all, share) > ALPHA) };
    (low, high)
}

/// The share up to which `is_below` holds.
fn solve(is_below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if is_below(middle) { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The probability of this many hits or more.
fn at_least(hits: u64, all: u64, share: f64) -> f64 {
    let (yes, no) = (share.ln(), (1.0 - share).ln());
    let mut choices: f64 = 0.0;
    let mut sum = 0.0;
    for number in 0..=all {
        if number > 0 {
            choices += ((all - number + 1) as f64 / number as f64).ln();
        }
        if number >= hits {
            sum += (choices + number as f64 * yes + (all - number) as f64 * no).exp();
        }
    }
    sum.min(1.0)
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
