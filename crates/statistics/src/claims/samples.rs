//! Converts an inequality to the repeats that a test compares.
//!
//! - Some inequalities can be written with every engine on one side only. Examples are `a >= 10 * b`, `a / b >= 2` and
//!   `a / b <= c / d`. Then each side has a value for each of its repeats, and the two-sample test applies
//!   ([`Inverted`]): three repeats decide at a one-sided 5%. A divisor is moved to the other side only if it is above
//!   zero in every repeat, because one below zero would reverse the inequality.
//! - The others (an engine against a number, or on both sides) are evaluated within each repeat, and the signs of the
//!   differences are permuted: five repeats decide.
//!
//! Logarithms are compared if all values are positive, so that the test is about a ratio; otherwise the values
//! themselves.

use rumba_results::claim::Verdict;
use rumba_results::ratio::SAME_MARGIN;
use rumba_results::starts::{Scope, Starts};

use super::figures::{Absent, Figures, Which, rows_of};
use super::language::{Number, Operator, Relation};
use crate::exact::{Inverted, mean};
use crate::planning::{Undecided, more_repeats, pooled_deviation};
use crate::welch::ROUNDING;

/// The error rate of a verdict, for each of its two directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alphas {
    /// The error rate of "holds".
    pub holds: f64,
    /// The error rate of "fails".
    pub fails: f64,
}

/// The repeats of both sides.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// One side each, from separate rows.
    Sides { left: Vec<f64>, right: Vec<f64> },
    /// Left minus right within each repeat.
    Differences(Vec<f64>),
}

/// The samples of an exact test of an inequality.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    values: Values,
    /// Whether the values are logarithms.
    logs: bool,
    /// The loads behind the repeats of each side; one entry if both sides are compared within each repeat.
    starts: Vec<Starts>,
}

impl Samples {
    /// The repeats of `left` and `right`; at most one of them is a plain number.
    ///
    /// # Errors
    /// The reason why there are none, or why one of them has no value, because the others alone support no conclusion.
    pub fn of(figures: Figures<'_>, left: &Number, right: &Number) -> Result<Self, Absent> {
        let as_written = [vec![left], vec![right]];
        if are_apart(&as_written) {
            return Self::of_sides(figures, &as_written);
        }
        let moved = Moved::of(left, right);
        if are_apart(&moved.sides) && moved.means_the_same(figures) {
            let samples = Self::of_sides(figures, &moved.sides)?;
            if samples.logs {
                return Ok(samples);
            }
        }
        Self::of_pairs(figures, left, right)
    }

    /// Sides without a common row, each the product of its factors.
    fn of_sides(figures: Figures<'_>, sides: &[Vec<&Number>; 2]) -> Result<Self, Absent> {
        let (left, right) = (products(figures, &sides[0])?, products(figures, &sides[1])?);
        let starts = vec![figures.starts(&sides[0], left.len()), figures.starts(&sides[1], right.len())];
        let all_positive = positive(&left) && positive(&right);
        let (left, right) = if all_positive { (logs(&left), logs(&right)) } else { (left, right) };
        Ok(Self { values: Values::Sides { left, right }, logs: all_positive, starts })
    }

    /// Both sides within each repeat.
    fn of_pairs(figures: Figures<'_>, left: &Number, right: &Number) -> Result<Self, Absent> {
        let both =
            |which| -> Result<(f64, f64), Absent> { Ok((figures.number(left, which)?, figures.number(right, which)?)) };
        let pairs = in_each_repeat(figures, &[left, right], both)?;
        let all_positive = pairs.iter().all(|(left, right)| *left > 0.0 && *right > 0.0);
        let difference = |(left, right): &(f64, f64)| if all_positive { left.ln() - right.ln() } else { left - right };
        let starts = vec![figures.starts(&[left, right], pairs.len())];
        Ok(Self { values: Values::Differences(pairs.iter().map(difference).collect()), logs: all_positive, starts })
    }

    /// The other's repeats against a base's, times a factor: `other < 0.95 * base`; with the loads behind each side.
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

    /// The test in words, with the loads over which it generalises.
    pub fn test(&self) -> String {
        let test = match &self.values {
            Values::Sides { left, right } => {
                format!("permutation and Welch tests, {} and {} repeats", left.len(), right.len())
            }
            Values::Differences(differences) => format!("sign-flip test, {} repeats", differences.len()),
        };
        test + &Starts::words(&self.starts)
    }

    /// The scope of a verdict over them.
    pub fn scope(&self) -> Scope {
        Starts::scope(&self.starts)
    }

    fn inverted(&self) -> Inverted {
        let test = match &self.values {
            Values::Sides { left, right } => Inverted::two_samples(right, left),
            Values::Differences(differences) => Inverted::one_sample(differences),
        };
        test.at_looks(Starts::looks_factor(&self.starts))
    }

    /// The interval of left over right, with an error of at most `alpha` at each end; `None` with too few repeats, or
    /// if there is no ratio.
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

    /// The margins within which two sides count as equal.
    fn margins(&self) -> (f64, f64) {
        if self.logs {
            let most = (1.0 + SAME_MARGIN).ln() + ROUNDING;
            (-most, most)
        } else {
            (-ROUNDING, ROUNDING)
        }
    }

    /// The mean difference of left and right, of logarithms if those are compared.
    pub fn seen(&self) -> Option<f64> {
        match &self.values {
            Values::Sides { left, right } => Some(mean(left)? - mean(right)?),
            Values::Differences(differences) => mean(differences),
        }
    }

    /// How many more repeats of each side would probably decide an undecided verdict.
    pub fn more_repeats(&self, relation: Relation, alphas: Alphas) -> Option<u32> {
        let seen = self.seen()?;
        let (noise, samples) = match &self.values {
            Values::Sides { left, right } => (pooled_deviation(&[left, right])?, 2.0),
            Values::Differences(differences) => (pooled_deviation(&[differences])?, 1.0),
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
        let alpha = alpha / Starts::looks_factor(&self.starts);
        let undecided = Undecided { noise, distance, alpha, samples, least: least(samples, alpha) };
        more_repeats(&undecided, self.fewest())
    }
}

/// A missing end is below no bound.
fn below(end: Option<f64>, bound: f64) -> bool {
    end.is_some_and(|end| end <= bound)
}

fn within(test: &mut Inverted, alpha: f64, (lower, upper): (f64, f64)) -> bool {
    test.low(alpha) >= Some(lower) && below(test.high(alpha), upper)
}

/// Both sides count, so each has half the level.
fn beyond(test: &mut Inverted, alpha: f64, (lower, upper): (f64, f64)) -> bool {
    test.low(alpha / 2.0) > Some(upper) || below(test.high(alpha / 2.0), lower)
}

/// The fewest repeats with which a one-sided test can reject at this level; `samples` is 1 within repeats.
pub fn least(samples: f64, alpha: f64) -> u32 {
    let deals = |repeats: u32| match samples > 1.0 {
        true => (1..=repeats).map(|taken| f64::from(repeats + taken) / f64::from(taken)).product(),
        false => 2f64.powi(repeats as i32),
    };
    (2..).find(|repeats| alpha * deals(*repeats) >= 1.0 - ROUNDING).unwrap_or(2)
}

/// Whether an inequality is tested within each repeat, because its engines cannot be written on one side each.
pub fn are_within_repeats(left: &Number, right: &Number) -> bool {
    let is_constant = rows_of([left, right]).is_empty();
    !is_constant && !are_apart(&[vec![left], vec![right]]) && !are_apart(&Moved::of(left, right).sides)
}

/// Whether both sides read rows, without a common one.
fn are_apart(sides: &[Vec<&Number>; 2]) -> bool {
    let [left, right] = sides.each_ref().map(|side| rows_of(side.iter().copied()));
    !left.is_empty() && !right.is_empty() && left.is_disjoint(&right)
}

/// An inequality with the divisors of each side as factors of the other.
#[derive(Default)]
struct Moved<'a> {
    /// The factors of the left and of the right.
    sides: [Vec<&'a Number>; 2],
    /// Those that were moved to the other side.
    divisors: Vec<&'a Number>,
}

impl<'a> Moved<'a> {
    fn of(left: &'a Number, right: &'a Number) -> Self {
        let mut moved = Self::default();
        moved.factors(left, 0, 0);
        moved.factors(right, 1, 1);
        moved
    }

    fn factors(&mut self, number: &'a Number, written: usize, side: usize) {
        match number {
            Number::Two(Operator::Times, left, right) => {
                self.factors(left, written, side);
                self.factors(right, written, side);
            }
            Number::Two(Operator::Over, left, right) => {
                self.factors(left, written, side);
                self.factors(right, written, 1 - side);
            }
            other => {
                self.sides[side].push(other);
                self.divisors.extend((side != written).then_some(other));
            }
        }
    }

    /// Whether the rewritten inequality is equivalent: every divisor is above zero in every repeat.
    fn means_the_same(&self, figures: Figures<'_>) -> bool {
        let is_above_zero = |divisor: &&Number| match rows_of([*divisor]).is_empty() {
            true => figures.number(divisor, Which::Medians).is_ok_and(|value| value > 0.0),
            false => products(figures, &[*divisor]).is_ok_and(|values| positive(&values)),
        };
        self.divisors.iter().all(is_above_zero)
    }
}

/// The product of numbers in every repeat that all their rows have.
fn products(figures: Figures<'_>, numbers: &[&Number]) -> Result<Vec<f64>, Absent> {
    in_each_repeat(figures, numbers, |which| numbers.iter().map(|number| figures.number(number, which)).product())
}

/// Evaluates a function in every repeat that all rows read by these numbers have.
///
/// # Errors
/// There is no such repeat, or one has no value, for example because it divides by zero. The remaining repeats would be
/// a selected sample, as with an absent figure.
fn in_each_repeat<T>(
    figures: Figures<'_>,
    numbers: &[&Number],
    value: impl Fn(Which) -> Result<T, Absent>,
) -> Result<Vec<T>, Absent> {
    let of_each: Vec<_> = figures.repeats(numbers).into_iter().map(|repeat| value(Which::Repeat(repeat))).collect();
    let (all, without) = (of_each.len(), of_each.iter().filter(|value| value.is_err()).count());
    if all == 0 {
        return Err("no repeat has all that it reads".to_owned());
    }
    let values: Result<Vec<T>, Absent> = of_each.into_iter().collect();
    values.map_err(|why| format!("{without} of {all} repeats have no value: {why}"))
}

fn positive(values: &[f64]) -> bool {
    values.iter().all(|value| *value > 0.0 && value.is_finite())
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}
