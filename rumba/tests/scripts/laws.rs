//! The laws of sysbench's random numbers, and a test of whether draws follow one.
//!
//! They are derived from the documentation of each distribution in sysbench 1.0.20, and of the zipfian one in 1.1, and
//! not from code that draws. sysbench 1.0.20 was found to follow the same laws.

/// The probability of each number of a range, the lowest first.
pub type Law = Vec<f64>;

/// All numbers are equally likely.
pub fn uniform(numbers: usize) -> Law {
    vec![1.0 / numbers as f64; numbers]
}

/// The mean of this many uniform shares gives the place in the range.
pub fn gaussian(numbers: usize, iterations: u32) -> Law {
    bell(numbers, numbers as f64, iterations)
}

/// A uniform share decides. This percentage of the results is special: the share itself then gives the place in a part
/// of the range around its middle. The part has this percentage of the range, plus one number. The other results are a
/// bell. The range is taken as one number shorter.
pub fn special(numbers: usize, iterations: u32, percent: f64, results_percent: f64) -> Law {
    let span = (numbers - 1) as f64;
    let (others, part) = (1.0 - results_percent / 100.0, span * percent / 100.0);
    let start = (span - part) / 2.0;
    let (from, to) = (start + others * (part + 1.0), start + part + 1.0);
    let met = |number: f64| (to.min(number + 1.0) - from.max(number)).max(0.0) / (part + 1.0);
    let bell = bell(numbers, span, iterations);
    bell.iter().enumerate().map(|(number, share)| others * share + met(number as f64)).collect()
}

/// A share `h` of the numbers has a share `1 - h` of the draws, and within that share recursively.
pub fn pareto(numbers: usize, h: f64) -> Law {
    let power = (1.0 - h).ln() / h.ln();
    let below = |number: usize| (number as f64 / numbers as f64).powf(power);
    (0..numbers).map(|number| below(number + 1) - below(number)).collect()
}

/// Each number is drawn in proportion to a power of its rank.
pub fn zipfian(numbers: usize, exponent: f64) -> Law {
    let weights: Vec<f64> = (1..=numbers).map(|rank| (rank as f64).powf(-exponent)).collect();
    let all: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / all).collect()
}

fn bell(numbers: usize, span: f64, iterations: u32) -> Law {
    let below = |number: usize| sum_is_below((number as f64 / span).min(1.0) * f64::from(iterations), iterations);
    (0..numbers).map(|number| below(number + 1) - below(number)).collect()
}

/// The probability that the sum of this many uniform shares is below a value: the Irwin–Hall distribution.
fn sum_is_below(sum: f64, shares: u32) -> f64 {
    let all = f64::from(shares);
    // The terms grow with the sum and cancel each other, so only the lower half is computed.
    if sum > all / 2.0 {
        return 1.0 - sum_is_below(all - sum, shares);
    }
    let (mut total, mut factor) = (0.0, 1.0);
    for term in (0..shares).map(f64::from).take_while(|term| *term < sum) {
        total += factor * (sum - term).powi(shares as i32);
        factor *= -(all - term) / (term + 1.0);
    }
    total / (1..=shares).map(f64::from).product::<f64>()
}

/// How rarely draws that follow a law are rejected, at both ends of the range. They have a seed, so they are the same
/// each time.
const REJECTED: f64 = 1e-3;

/// The relation of draws to a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    /// They are another's.
    TooFar,
    /// They fit the law, but more closely than random draws ever do.
    TooNear,
}

/// The verdict, with its figures.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    pub verdict: Verdict,
    pub chi_square: f64,
    pub freedom: usize,
}

/// Compares draws with a law, by the counts of each number.
pub fn fit(counts: &[f64], law: &[f64]) -> Fit {
    assert_eq!(counts.len(), law.len());
    let of_all: f64 = law.iter().sum();
    assert!((of_all - 1.0).abs() < 1e-6, "no law: {of_all}");
    let classes = classes(counts, law);
    let chi_square: f64 = classes.iter().map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    let freedom = classes.len() - 1;
    let verdict = match tails(freedom, chi_square) {
        (_, above) if above < REJECTED => Verdict::TooFar,
        (below, _) if below < REJECTED => Verdict::TooNear,
        _ => Verdict::Fits,
    };
    Fit { verdict, chi_square, freedom }
}

/// The observed and the expected counts. Rare neighbours are counted together.
fn classes(counts: &[f64], law: &[f64]) -> Vec<(f64, f64)> {
    const LEAST: f64 = 10.0;
    let draws: f64 = counts.iter().sum();
    let (mut classes, mut open) = (Vec::new(), (0.0, 0.0));
    for (count, share) in counts.iter().zip(law) {
        open = (open.0 + count, open.1 + share * draws);
        if open.1 >= LEAST {
            classes.push(std::mem::take(&mut open));
        }
    }
    let (count, expected) = classes.last_mut().expect("more draws than that");
    (*count, *expected) = (*count + open.0, *expected + open.1);
    classes
}

/// The probabilities that a chi-square with this many degrees of freedom is below and above this value. They are the
/// incomplete gamma functions of half of both, by the series if it is short, and otherwise by Legendre's continued
/// fraction.
fn tails(freedom: usize, chi_square: f64) -> (f64, f64) {
    const ENOUGH: f64 = 1e-12;
    let (a, x) = (freedom as f64 / 2.0, chi_square / 2.0);
    let scale = (a * x.ln() - x - ln_gamma_of_half(freedom)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * ENOUGH {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return (scale * sum, 1.0 - scale * sum);
    }
    let (mut b, mut c) = (x + 1.0 - a, f64::INFINITY);
    let (mut d, mut n, mut step) = (1.0 / b, 0.0, f64::INFINITY);
    let mut fraction = d;
    while (step - 1.0).abs() > ENOUGH {
        n += 1.0;
        b += 2.0;
        let numerator = n * (a - n);
        d = 1.0 / (b + numerator * d);
        c = b + numerator / c;
        step = c * d;
        fraction *= step;
    }
    (1.0 - scale * fraction, scale * fraction)
}

/// The logarithm of the gamma function of half an integer.
fn ln_gamma_of_half(number: usize) -> f64 {
    let of_least = if number.is_multiple_of(2) { 0.0 } else { std::f64::consts::PI.sqrt().ln() };
    // From 1 on, or from a half.
    let steps = (2 - number % 2..number).step_by(2);
    of_least + steps.map(|twice| (twice as f64 / 2.0).ln()).sum::<f64>()
}
