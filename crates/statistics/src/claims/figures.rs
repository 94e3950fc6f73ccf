//! The figures for the evaluation of an expression: of one repeat, or the medians of all.

use std::collections::BTreeSet;

use rumba_results::comparison::{Figure, Part, PhaseFigures, Row};
use rumba_results::counted::{NOT_COUNTED, rule_of};
use rumba_results::metric::Metric;
use rumba_results::starts::Starts;

use super::language::{Number, Truth};
use super::names::MetricRef;
use crate::validity::{Read, without_drain};

/// The reason why an expression has no value.
pub type Absent = String;

/// The repeats to evaluate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Medians,
    Repeat(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Figures<'a>(pub &'a [Row]);

/// An engine with a number of clients: a row of the run.
pub type Key<'a> = (&'a str, u32);

impl<'a> Figures<'a> {
    pub fn row(self, (engine, clients): Key<'_>) -> Option<&'a Row> {
        self.0.iter().find(|row| row.engine == engine && row.clients == clients)
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The reason why it has no value: a figure is absent, a divisor is zero, or the result is too large.
    pub fn number(self, number: &Number, which: Which) -> Result<f64, Absent> {
        number.value(&mut |requested| self.figure(requested, which))
    }

    /// Evaluates the expression on medians, regardless of noise, in three-valued logic. A part without a figure is
    /// unknown; a decisive part decides even if another part is unknown.
    ///
    /// # Errors
    /// As [`Figures::number`], of the first part that is missing.
    pub fn truth(self, truth: &Truth) -> Result<bool, Absent> {
        let joined = |parts: &[Truth], decisive: bool| -> Result<bool, Absent> {
            let parts: Vec<Result<bool, Absent>> = parts.iter().map(|part| self.truth(part)).collect();
            if parts.contains(&Ok(decisive)) {
                return Ok(decisive);
            }
            parts.into_iter().find(Result::is_err).unwrap_or(Ok(!decisive))
        };
        match truth {
            Truth::Is(relation, left, right) => {
                Ok(relation.is_so(self.number(left, Which::Medians)?, self.number(right, Which::Medians)?))
            }
            Truth::Not(inner) => Ok(!self.truth(inner)?),
            Truth::All(all) => joined(all, false),
            Truth::Any(any) => joined(any, true),
        }
    }

    fn figure(self, requested: &MetricRef, which: Which) -> Result<f64, Absent> {
        let absent = |why: &str| format!("absent because {} of {}: {why}", requested.metric, requested.engine);
        let row = self.row((&requested.engine, requested.clients)).ok_or_else(|| absent("it has not run"))?;
        let (phase, figure) = find(row, requested).map_err(|why| absent(&why))?;
        let value = match which {
            Which::Medians => &figure.median,
            Which::Repeat(repeat) => {
                let place = phase.repeats.iter().position(|known| *known == repeat);
                place.and_then(|place| figure.values.get(place)).ok_or_else(|| absent("not in this repeat"))?
            }
        };
        match value {
            Metric::Value(value) => Ok(*value),
            Metric::Absent { absent: why } => Err(absent(why)),
        }
    }
}

fn part_of(requested: &MetricRef) -> Part {
    if requested.load { Part::Load } else { Part::Run }
}

/// A figure, and the phase whose repeats have its values.
fn find<'a>(row: &'a Row, requested: &MetricRef) -> Result<(&'a PhaseFigures, &'a Figure), String> {
    let part = part_of(requested);
    let none = || row.why_suspended(part).unwrap_or_else(|| "no repeat came to its end".to_owned());
    let phase = row.part(part).ok_or_else(none)?;
    let found = match &requested.op {
        None => phase.metrics.get(&requested.metric),
        Some(op) => phase.op_types.get(op).ok_or("no operation of this type was run")?.response.get(&requested.metric),
    };
    let why = if rule_of(&requested.metric).is_some() { NOT_COUNTED } else { "it was not measured" };
    found.map(|figure| (phase, figure)).ok_or_else(|| why.to_owned())
}

/// The rows that an expression reads.
pub fn rows_of<'a>(numbers: impl IntoIterator<Item = &'a Number>) -> BTreeSet<Key<'a>> {
    let figures = numbers.into_iter().flat_map(figures_of);
    figures.map(|requested| (requested.engine.as_str(), requested.clients)).collect()
}

/// The figures that an expression reads.
fn figures_of(number: &Number) -> Vec<&MetricRef> {
    match number {
        Number::Plain(_) => Vec::new(),
        Number::Figure(requested) => vec![requested],
        Number::Minus(inner) => figures_of(inner),
        Number::Two(_, left, right) => figures_of(left).into_iter().chain(figures_of(right)).collect(),
    }
}

/// The rows that an expression reads, with the part of each.
pub fn phases_of(number: &Number) -> Vec<(&str, u32, Part)> {
    figures_of(number)
        .into_iter()
        .map(|requested| (requested.engine.as_str(), requested.clients, part_of(requested)))
        .collect()
}

impl Figures<'_> {
    /// The loads behind the repeats that these numbers use; with several rows, the fewest loads.
    pub fn starts(self, numbers: &[&Number], repeats: usize) -> Starts {
        let rows = || numbers.iter().flat_map(|number| phases_of(number));
        let starts = || rows().filter_map(|(engine, clients, part)| Some(self.row((engine, clients))?.starts(part)));
        let repeats = repeats as u32;
        let loads = starts().map(|starts| starts.loads).min().unwrap_or(0).min(repeats);
        Starts { repeats, loads, at_most: starts().filter_map(|starts| starts.at_most).max() }
    }

    /// Checks that no evaluated repeat lacks a figure that these numbers read and others have. Otherwise a verdict
    /// would rest on a biased selection of repeats.
    ///
    /// # Errors
    /// The first such figure.
    pub fn complete(self, numbers: &[&Number]) -> Result<(), Absent> {
        let repeats = self.repeats(numbers);
        numbers.iter().flat_map(|number| figures_of(number)).try_for_each(|requested| {
            let Some((phase, figure)) =
                self.row((&requested.engine, requested.clients)).and_then(|row| find(row, requested).ok())
            else {
                return Ok(());
            };
            let places = phase.repeats.iter().zip(&figure.values).filter(|(repeat, _)| repeats.contains(repeat));
            let values = places.map(|(_, value)| value.clone()).collect();
            match (Figure { values, ..Figure::default() }).lacking() {
                Some(why) => Err(format!("{} of {}: {why}", requested.metric, requested.engine)),
                None => Ok(()),
            }
        })
    }

    /// The repeats that all rows read by these numbers have.
    pub fn repeats(self, numbers: &[&Number]) -> Vec<u32> {
        let mut common: Option<Vec<u32>> = None;
        for (engine, clients, part) in numbers.iter().flat_map(|number| phases_of(number)) {
            let phase = self.row((engine, clients)).and_then(|row| row.part(part));
            let has = phase.map_or(&[][..], |phase| &phase.repeats);
            match &mut common {
                None => common = Some(has.to_vec()),
                Some(common) => common.retain(|repeat| has.contains(repeat)),
            }
        }
        let mut common = common.unwrap_or_default();
        // A trial whose kept load was lost has loaded again, in a separate repeat. Two loads may therefore belong to
        // one repeat, of which the first is read.
        common.sort_unstable();
        common.dedup();
        common
    }
}

/// Figures without the drain to replace those that include it, and the reason.
pub struct WithoutDrain {
    names: Vec<(String, &'static str)>,
    /// The row whose drain is too large a share.
    pub reason: String,
}

impl WithoutDrain {
    /// The same expression with the figures without the drain.
    pub fn apply(&self, number: &Number) -> Number {
        match number {
            Number::Plain(value) => Number::Plain(*value),
            Number::Figure(requested) => {
                let without = self.names.iter().find(|(with, _)| *with == requested.metric);
                let metric = without.map_or_else(|| requested.metric.clone(), |(_, without)| (*without).to_owned());
                Number::Figure(MetricRef { metric, ..requested.clone() })
            }
            Number::Minus(inner) => Number::Minus(Box::new(self.apply(inner))),
            Number::Two(operator, left, right) => {
                Number::Two(*operator, Box::new(self.apply(left)), Box::new(self.apply(right)))
            }
        }
    }
}

impl<'a> Figures<'a> {
    /// The figures that these numbers read: rows, parts and metrics.
    pub fn reads<'b>(self, numbers: &[&'b Number]) -> Vec<Read<'b>>
    where
        'a: 'b,
    {
        let requested = numbers.iter().flat_map(|number| figures_of(number));
        let of = |requested: &'b MetricRef| {
            Some((self.row((&requested.engine, requested.clients))?, part_of(requested), requested.metric.as_str()))
        };
        requested.filter_map(of).collect()
    }

    /// The replacement figures that must agree with these numbers because the drain is too large a share of one of
    /// them.
    pub fn without_drain(self, numbers: &[&Number]) -> Option<WithoutDrain> {
        let (mut names, mut reason) = (Vec::new(), None);
        for (row, _, metric) in self.reads(numbers) {
            if let Some((without, why)) = without_drain(metric, std::iter::once(row)) {
                names.push((metric.to_owned(), without));
                reason.get_or_insert(why);
            }
        }
        Some(WithoutDrain { names, reason: reason? })
    }
}
