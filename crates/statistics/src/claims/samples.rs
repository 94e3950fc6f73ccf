//! From an inequality to the repeats that an exact test compares.
//!
//! - Where the inequality can be written with every engine on one side only
//!   (`a >= 10 * b`; `a / b >= 2`; `a / b <= c / d`), each side has a value for
//!   each of its repeats, and the two-sample permutation test applies: three
//!   repeats decide at a one-sided 5%.
//! - Where it cannot (an engine against a number, or on both sides), both sides
//!   are evaluated within each repeat, and the differences' signs are permuted:
//!   five repeats decide.
//!
//! Logarithms are compared where all values are positive, so that what is tested
//! is a ratio; the values themselves where one is not.

use rumba_core::claim::Verdict;
use rumba_core::ratio::SAME_MARGIN;
use rumba_core::starts::Starts;

use super::figures::{Absent, Figures, Which, rows_of};
use super::language::{Number, Operator, Relation};
use crate::exact::{Inverted, mean};
use crate::planning::{Undecided, pooled_deviation, repeats};

/// Differences of sums of the same figures in another order are no differences.
const ROUNDING: f64 = 1e-9;

/// How often a verdict may be false: each of its two directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alphas {
    /// That it holds although it does not.
    pub holds: f64,
    /// That it fails although it holds.
    pub fails: f64,
}

/// The repeats of both sides.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// A side each, from rows that the other does not have.
    Sides { left: Vec<f64>, right: Vec<f64> },
    /// Left less right within each repeat.
    Differences(Vec<f64>),
}

/// What an exact test of an inequality is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    values: Values,
    /// Whether the values are logarithms.
    logs: bool,
    /// What the repeats of each side started from; one where both are looked at within each repeat.
    starts: Vec<Starts>,
}

impl Samples {
    /// The repeats of `left` and `right`; neither is a plain number on both sides.
    ///
    /// # Errors
    /// Why there are none.
    pub fn of(figures: Figures<'_>, left: &Number, right: &Number) -> Result<Self, Absent> {
        let as_written = [vec![left], vec![right]];
        let moved = quotient(left, right);
        for (sides, only_logs) in [(&as_written, false), (&moved, true)] {
            let rows = sides.each_ref().map(|side| rows_of(side.iter().copied()));
            if rows.iter().any(|rows| rows.is_empty()) || !rows[0].is_disjoint(&rows[1]) {
                continue;
            }
            let [left, right] = sides.each_ref().map(|side| products(figures, side));
            let starts = || [(&sides[0], &left), (&sides[1], &right)].map(|(side, of)| figures.starts(side, of.len()));
            if positive(&left) && positive(&right) {
                let starts = starts().to_vec();
                return Ok(Self {
                    values: Values::Sides { left: logs(&left), right: logs(&right) },
                    logs: true,
                    starts,
                });
            }
            if !only_logs {
                let starts = starts().to_vec();
                return Ok(Self { values: Values::Sides { left, right }, logs: false, starts });
            }
        }
        let pairs = pairs(figures, left, right)?;
        let all_positive = pairs.iter().all(|(left, right)| *left > 0.0 && *right > 0.0);
        let difference = |(left, right): &(f64, f64)| if all_positive { left.ln() - right.ln() } else { left - right };
        let starts = vec![figures.starts(&[left, right], pairs.len())];
        Ok(Self { values: Values::Differences(pairs.iter().map(difference).collect()), logs: all_positive, starts })
    }

    /// The other's repeats against a base's, times a factor: `other < 0.95 * base`; and what each side's started from.
    pub fn scaled(other: &[f64], base: &[f64], factor: f64, starts: [Starts; 2]) -> Self {
        let starts = starts.to_vec();
        let base: Vec<f64> = base.iter().map(|value| value * factor).collect();
        if positive(other) && positive(&base) {
            return Self { values: Values::Sides { left: logs(other), right: logs(&base) }, logs: true, starts };
        }
        Self { values: Values::Sides { left: other.to_vec(), right: base }, logs: false, starts }
    }

    /// The fewest repeats of a side.
    pub fn fewest(&self) -> usize {
        match &self.values {
            Values::Sides { left, right } => left.len().min(right.len()),
            Values::Differences(differences) => differences.len(),
        }
    }

    /// The test in words, with what it generalises over.
    pub fn test(&self) -> String {
        let test = match &self.values {
            Values::Sides { left, right } => {
                format!("permutation test, {} and {} repeats", left.len(), right.len())
            }
            Values::Differences(differences) => format!("sign-flip test, {} repeats", differences.len()),
        };
        test + &Starts::words(&self.starts)
    }

    fn inverted(&self) -> Inverted {
        match &self.values {
            Values::Sides { left, right } => Inverted::two_samples(right, left),
            Values::Differences(differences) => Inverted::one_sample(differences),
        }
    }

    /// The interval of left over right, each end erring in at most `alpha`;
    /// `None` with too few repeats, or where there is no ratio.
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let mut test = self.inverted();
        let ends = (test.low(alpha)?, test.high(alpha)?);
        self.logs.then(|| (ends.0.exp(), ends.1.exp()))
    }

    /// Whether the inequality holds, fails or is undecided at these levels.
    pub fn verdict(&self, relation: Relation, alphas: Alphas) -> Verdict {
        let mut test = self.inverted();
        let (holds, fails) = (alphas.holds, alphas.fails);
        let margins = self.margins();
        let (holds, fails) = match relation {
            Relation::AtLeast => (test.low(holds) >= Some(-ROUNDING), below(test.high(fails), -ROUNDING)),
            Relation::Greater => (test.low(holds) > Some(ROUNDING), below(test.high(fails), ROUNDING)),
            Relation::AtMost => (below(test.high(holds), ROUNDING), test.low(fails) > Some(ROUNDING)),
            Relation::Less => (below(test.high(holds), -ROUNDING), test.low(fails) >= Some(-ROUNDING)),
            Relation::Equal => (within(&mut test, holds, margins), beyond(&mut test, fails, margins)),
            Relation::Unequal => (beyond(&mut test, holds, margins), within(&mut test, fails, margins)),
        };
        match (holds, fails) {
            (true, _) => Verdict::Holds,
            (_, true) => Verdict::Fails,
            _ => Verdict::Undecided,
        }
    }

    /// Between which values two sides count as equal.
    fn margins(&self) -> (f64, f64) {
        if self.logs {
            ((1.0 - SAME_MARGIN).ln() - ROUNDING, (1.0 + SAME_MARGIN).ln() + ROUNDING)
        } else {
            (-ROUNDING, ROUNDING)
        }
    }

    /// How many more repeats of each would probably decide what is undecided.
    pub fn more_repeats(&self, relation: Relation, alphas: Alphas) -> Option<u32> {
        let (noise, seen, samples) = match &self.values {
            Values::Sides { left, right } => (pooled_deviation(&[left, right])?, mean(left)? - mean(right)?, 2.0),
            Values::Differences(differences) => (pooled_deviation(&[differences])?, mean(differences)?, 1.0),
        };
        let (lower, upper) = self.margins();
        let (alpha, distance) = match relation {
            Relation::AtLeast | Relation::Greater if seen >= 0.0 => (alphas.holds, seen),
            Relation::AtMost | Relation::Less if seen <= 0.0 => (alphas.holds, -seen),
            Relation::Equal | Relation::Unequal => {
                let within = (seen - lower).min(upper - seen);
                (alphas.holds.min(alphas.fails), within.abs())
            }
            _ => (alphas.fails, seen.abs()),
        };
        let undecided = Undecided { noise, distance, alpha, samples, least: least(samples, alpha) };
        let needed = repeats(&undecided)?;
        Some(needed.saturating_sub(self.fewest() as u32).max(1))
    }
}

/// An end that is not there is below nothing.
fn below(end: Option<f64>, bound: f64) -> bool {
    end.is_some_and(|end| end <= bound)
}

fn within(test: &mut Inverted, alpha: f64, (lower, upper): (f64, f64)) -> bool {
    test.low(alpha) >= Some(lower) && below(test.high(alpha), upper)
}

/// On either side, so each at half the level.
fn beyond(test: &mut Inverted, alpha: f64, (lower, upper): (f64, f64)) -> bool {
    test.low(alpha / 2.0) > Some(upper) || below(test.high(alpha / 2.0), lower)
}

/// The fewest repeats with which a one-sided test can reject at this level.
fn least(samples: f64, alpha: f64) -> u32 {
    let deals = |repeats: u32| match samples > 1.0 {
        true => (1..=repeats).map(|taken| f64::from(repeats + taken) / f64::from(taken)).product(),
        false => 2f64.powi(repeats as i32),
    };
    (2..).find(|repeats| alpha * deals(*repeats) >= 1.0 - ROUNDING).unwrap_or(2)
}

/// The factors of `left / right`, above and below the line.
fn quotient<'a>(left: &'a Number, right: &'a Number) -> [Vec<&'a Number>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    factors(left, 0, &mut sides);
    factors(right, 1, &mut sides);
    sides
}

fn factors<'a>(number: &'a Number, side: usize, sides: &mut [Vec<&'a Number>; 2]) {
    match number {
        Number::Two(Operator::Times, left, right) => {
            factors(left, side, sides);
            factors(right, side, sides);
        }
        Number::Two(Operator::Over, left, right) => {
            factors(left, side, sides);
            factors(right, 1 - side, sides);
        }
        other => sides[side].push(other),
    }
}

/// The product of numbers in every repeat that has all of them.
fn products(figures: Figures<'_>, numbers: &[&Number]) -> Vec<f64> {
    let in_repeat = |repeat: u32| -> Option<f64> {
        numbers.iter().map(|number| figures.number(number, Which::Repeat(repeat)).ok()).product()
    };
    figures.repeats(numbers).into_iter().filter_map(in_repeat).collect()
}

/// Both sides in every repeat that has them.
fn pairs(figures: Figures<'_>, left: &Number, right: &Number) -> Result<Vec<(f64, f64)>, Absent> {
    let mut absent = None;
    let mut pairs = Vec::new();
    for repeat in figures.repeats(&[left, right]) {
        let which = Which::Repeat(repeat);
        match (figures.number(left, which), figures.number(right, which)) {
            (Ok(left), Ok(right)) => pairs.push((left, right)),
            (Err(why), _) | (_, Err(why)) => absent = Some(why),
        }
    }
    match absent {
        Some(why) if pairs.is_empty() => Err(why),
        _ => Ok(pairs),
    }
}

fn positive(values: &[f64]) -> bool {
    values.iter().all(|value| *value > 0.0)
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}
