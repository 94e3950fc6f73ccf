//! Simulated figures of two engines, and the verdicts on them.

use rand::SeedableRng as _;
use rand_distr::{Distribution as _, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_results::metric::Better;
use rumba_results::ratio::Change;
use rumba_results::starts::FIRST_LOOK;

const SEED: u64 = 0x000a_11ce;
/// The permitted error rate of a verdict.
pub const LEVEL: f64 = 0.05;
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
pub enum Order {
    /// A B B A …, as rumba runs the repeats of one experiment.
    Interleaved,
    /// A A … B B …, as two runs one after the other.
    OneAfterTheOther,
}

/// The distribution of a trial's disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
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
pub struct Cell {
    pub repeats: [usize; 2],
    /// Relative standard deviation of a repeat of each engine.
    pub noise: [f64; 2],
    /// The distribution of one disturbance.
    pub shape: Shape,
    /// Correlation of the disturbances of neighbouring trials.
    pub correlation: f64,
    /// The second engine's figure over the first's.
    pub ratio: f64,
    /// The order of running.
    pub order: Order,
    /// The after-effect of the first engine's trial on the next trial, of either engine, in standard deviations.
    pub left_behind: f64,
}

/// The share of all draws in which a test finds a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The verdict says better or worse.
    pub two_sided: f64,
    /// A claim that the second engine's figure is larger holds.
    pub one_sided: f64,
}

impl Cell {
    /// Two equal engines.
    pub fn alike(repeats: usize, noise: f64, correlation: f64) -> Self {
        Self {
            repeats: [repeats; 2],
            noise: [noise; 2],
            shape: Shape::Normal,
            correlation,
            ratio: 1.0,
            order: Order::Interleaved,
            left_behind: 0.0,
        }
    }

    /// The share of draws in which the tests find a difference.
    pub fn shares(self, draws: u32) -> Shares {
        let mut random = self.random();
        let (mut two_sided, mut one_sided) = (0, 0);
        for _ in 0..draws {
            let [base, other] = self.draw(&mut random);
            let change = rumba_statistics::test(&base, &other, Better::More, 1.0).change;
            two_sided += u32::from(matches!(change, Change::Better | Change::Worse));
            one_sided += u32::from(rumba_statistics::p_greater(&base, &other) <= LEVEL + ROUNDING);
        }
        let share = |count: u32| f64::from(count) / f64::from(draws);
        Shares { two_sided: share(two_sided), one_sided: share(one_sided) }
    }

    /// The share of draws in which a verdict is better or worse after some number of repeats, from the first test to
    /// the last repeat. This is the error rate of a run that ends once it is decided. P-values are multiplied by
    /// `looks`.
    pub fn ever_decided(self, draws: u32, looks: f64) -> f64 {
        let mut random = self.random();
        let [most, _] = self.repeats;
        let ever = (0..draws).filter(|_| {
            let [base, other] = self.draw(&mut random);
            (FIRST_LOOK as usize..=most).any(|repeats| {
                let (base, other) = (&base[..repeats], &other[..repeats]);
                let decides = || rumba_statistics::test(base, other, Better::More, looks).change;
                // Welch's test has to reject as well, and never does below this t. Then the deals need not be counted.
                welch_t(base, other) > LEAST_T && matches!(decides(), Change::Better | Change::Worse)
            })
        });
        ever.count() as f64 / f64::from(draws)
    }

    /// The share of draws in which the verdict says better or worse.
    pub fn decided(self, draws: u32) -> f64 {
        self.shares(draws).two_sided
    }

    /// The same draws for every cell with as many repeats.
    pub fn random(self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(SEED ^ (self.repeats[0] + 100 * self.repeats[1]) as u64)
    }

    /// The figures of both engines.
    pub fn draw(self, random: &mut Xoshiro256PlusPlus) -> [Vec<f64>; 2] {
        let mut normal = || -> f64 { StandardNormal.sample(random) };
        let mut disturbance = normal();
        let mut sides = [Vec::new(), Vec::new()];
        let mut last = None;
        for trial in 0..2 * self.repeats[0].max(self.repeats[1]) {
            let side = match self.order {
                Order::Interleaved => (trial % 2) ^ (trial / 2 % 2),
                Order::OneAfterTheOther => trial / self.repeats[0],
            };
            if sides[side].len() == self.repeats[side] {
                continue;
            }
            let level = if side == 1 { self.ratio } else { 1.0 };
            let found = if last == Some(0) { self.left_behind } else { 0.0 };
            sides[side].push(level * (self.noise[side] * (self.shape.of(disturbance) + found)).exp());
            last = Some(side);
            disturbance =
                self.correlation * disturbance + (1.0 - self.correlation * self.correlation).sqrt() * normal();
        }
        sides
    }
}
