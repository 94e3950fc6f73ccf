//! Simulated figures of two engines, and how often the verdicts on them err.
//!
//! The trials alternate, A B B A …. The logarithm of a trial's figure is the engine's value plus a disturbance of the
//! host, a stationary AR(1) process over the trials in the order of running. docs/method.md has the rates of more runs.

use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_results::metric::Better;
use rumba_results::ratio::Change;
use rumba_results::starts::{FIRST_LOOK, Starts};

use crate::testing::normal;

const SEED: u64 = 0x000a_11ce;
/// The permitted error rate of a verdict.
const LEVEL: f64 = 0.05;
/// Rounding of a share of deals.
const ROUNDING: f64 = 1e-9;

/// Below the 97.5% quantile of every t distribution.
const LEAST_T: f64 = 1.9;

/// Welch's t of the logarithms, without its sign.
fn welch_t(base: &[f64], other: &[f64]) -> f64 {
    let moments = |side: &[f64]| {
        let count = side.len() as f64;
        let mean = side.iter().map(|figure| figure.ln()).sum::<f64>() / count;
        let squares: f64 = side.iter().map(|figure| (figure.ln() - mean).powi(2)).sum();
        (mean, squares / (count - 1.0) / count)
    };
    let ((base, of_base), (other, of_other)) = (moments(base), moments(other));
    (base - other).abs() / (of_base + of_other).sqrt()
}

/// The order of the two engines' trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// A B B A …, as rumba runs the repeats of one experiment.
    Interleaved,
    /// A A … B B …, as two runs one after the other.
    OneAfterTheOther,
}

/// The distribution of a trial's disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Normal,
    /// The exponential of a standard normal value, scaled to a mean of 0 and a deviation of 1: rare large disturbances,
    /// all in one direction (skewness 6).
    Skewed,
}

impl Shape {
    fn of(self, normal: f64) -> f64 {
        match self {
            Shape::Normal => normal,
            Shape::Skewed => {
                let (mean, variance) = (0.5f64.exp(), 1f64.exp() * (1f64.exp() - 1.0));
                (normal.exp() - mean) / variance.sqrt()
            }
        }
    }
}

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Repeats of each engine.
    repeats: [usize; 2],
    /// Relative standard deviation of a repeat of each engine.
    noise: [f64; 2],
    /// The distribution of one disturbance.
    shape: Shape,
    /// Correlation of the disturbances of neighbouring trials.
    correlation: f64,
    /// The second engine's figure over the first's.
    ratio: f64,
    /// The order of running.
    order: Order,
}

/// The share of all draws in which a test finds a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shares {
    /// The verdict says better or worse.
    two_sided: f64,
    /// A claim that the second engine's figure is larger holds.
    one_sided: f64,
}

impl Cell {
    /// Two equal engines.
    fn alike(repeats: usize, noise: f64, correlation: f64) -> Self {
        Self {
            repeats: [repeats; 2],
            noise: [noise; 2],
            shape: Shape::Normal,
            correlation,
            ratio: 1.0,
            order: Order::Interleaved,
        }
    }

    /// The share of draws in which the tests find a difference.
    fn shares(self, draws: u32) -> Shares {
        let mut random = self.random();
        let (mut two_sided, mut one_sided) = (0, 0);
        for _ in 0..draws {
            let [base, other] = self.draw(&mut random);
            let change = crate::ratios::test(&base, &other, Better::More, 1.0).change;
            two_sided += u32::from(matches!(change, Change::Better | Change::Worse));
            one_sided += u32::from(crate::ratios::p_greater(&base, &other) <= LEVEL + ROUNDING);
        }
        let share = |count: u32| f64::from(count) / f64::from(draws);
        Shares { two_sided: share(two_sided), one_sided: share(one_sided) }
    }

    /// The share of draws in which a verdict is better or worse after some number of repeats, from the first test to
    /// the last repeat. This is the error rate of a run that ends once it is decided. P-values are multiplied by
    /// `looks`.
    fn ever_decided(self, draws: u32, looks: f64) -> f64 {
        let mut random = self.random();
        let [most, _] = self.repeats;
        let ever = (0..draws).filter(|_| {
            let [base, other] = self.draw(&mut random);
            (FIRST_LOOK as usize..=most).any(|repeats| {
                let (base, other) = (&base[..repeats], &other[..repeats]);
                let decides = || crate::ratios::test(base, other, Better::More, looks).change;
                // Welch's test has to reject as well, and never does below this t. Then the deals need not be counted.
                welch_t(base, other) > LEAST_T && matches!(decides(), Change::Better | Change::Worse)
            })
        });
        ever.count() as f64 / f64::from(draws)
    }

    /// The share of draws in which the verdict says better or worse.
    fn decided(self, draws: u32) -> f64 {
        self.shares(draws).two_sided
    }

    /// The same draws for every cell with as many repeats.
    fn random(self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(SEED ^ (self.repeats[0] + 100 * self.repeats[1]) as u64)
    }

    /// The figures of both engines.
    fn draw(self, random: &mut Xoshiro256PlusPlus) -> [Vec<f64>; 2] {
        let mut normal = || normal(random);
        let mut disturbance = normal();
        let mut sides = [Vec::new(), Vec::new()];
        for trial in 0..2 * self.repeats[0].max(self.repeats[1]) {
            let side = match self.order {
                Order::Interleaved => (trial % 2) ^ (trial / 2 % 2),
                Order::OneAfterTheOther => trial / self.repeats[0],
            };
            if sides[side].len() == self.repeats[side] {
                continue;
            }
            let level = if side == 1 { self.ratio } else { 1.0 };
            sides[side].push(level * (self.noise[side] * self.shape.of(disturbance)).exp());
            disturbance =
                self.correlation * disturbance + (1.0 - self.correlation * self.correlation).sqrt() * normal();
        }
        sides
    }
}

const SKEWED: fn(usize) -> Cell = |repeats| Cell { shape: Shape::Skewed, ..Cell::alike(repeats, 0.05, 0.0) };

fn uneven(repeats: usize, noise: [f64; 2]) -> Cell {
    Cell { noise, ..Cell::alike(repeats, 0.0, 0.0) }
}

type Simulation = (&'static str, fn(usize) -> Cell);

/// Where each verdict errs in at most 5% of runs.
const PROMISED: [Simulation; 6] = [
    ("noise 5%, c 0", |n| Cell::alike(n, 0.05, 0.0)),
    ("c 0.5", |n| Cell::alike(n, 0.05, 0.5)),
    ("c 0.9", |n| Cell::alike(n, 0.05, 0.9)),
    ("2% and 10%", |n| uneven(n, [0.02, 0.10])),
    ("10% and 2%", |n| uneven(n, [0.10, 0.02])),
    ("skewed", SKEWED),
];

/// The largest share that this many draws of an error rate of 5% can be expected to reach.
fn allowed(draws: u32) -> f64 {
    LEVEL + 3.0 * (LEVEL * (1.0 - LEVEL) / f64::from(draws)).sqrt()
}

#[test]
fn few_repeats_of_similar_engines_differ_insignificantly() {
    for (repeats, most) in [(2, 0.0), (3, 0.0), (4, 2.0 / 70.0), (5, 12.0 / 252.0)] {
        let share = Cell::alike(repeats, 0.05, 0.0).decided(2000);
        assert!(share <= most + 0.015, "{repeats} repeats: {share}");
    }
    assert!(Cell::alike(5, 0.05, 0.9).decided(500) < 0.02, "taking turns cancels what the host does slowly");
}

#[test]
fn unequal_and_skewed_noise_keep_the_significance_level() {
    for (name, cell) in PROMISED {
        for repeats in [3, 4, 5] {
            let Shares { two_sided, one_sided } = cell(repeats).shares(20_000);
            let most = allowed(20_000);
            assert!(two_sided <= most && one_sided <= most, "{name}: {two_sided}, {one_sided}");
        }
    }
}

#[test]
fn runs_until_decided_keep_the_significance_level() {
    let looks = Starts::looks_factor(&[Starts { at_most: Some(6), ..Starts::default() }]);
    for (name, cell) in PROMISED {
        let share = cell(6).ever_decided(2000, looks);
        assert!(share <= allowed(2000), "{name}: {share}");
    }
}

#[test]
fn sides_of_unequal_size_err_little_more_often() {
    for repeats in [[4, 3], [5, 4], [6, 4], [8, 4], [6, 3]] {
        let shares = Cell { repeats, ..uneven(0, [0.02, 0.10]) }.shares(5000);
        assert!(shares.two_sided < 0.07 && shares.one_sided < 0.07, "{repeats:?}: {shares:?}");
    }
}

#[test]
fn five_repeats_detect_a_5_percent_change() {
    assert!(Cell { ratio: 1.05, ..Cell::alike(5, 0.01, 0.0) }.decided(500) > 0.9);
}

#[test]
fn sequential_runs_err_where_alternating_runs_do_not() {
    let after = Cell { order: Order::OneAfterTheOther, ..Cell::alike(6, 0.05, 0.9) };
    assert!(after.decided(500) > 0.15);
}
