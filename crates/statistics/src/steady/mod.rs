//! Tests whether a trial's loops were steady: their trend, their change points, and the number of independent seconds
//! behind them.
//!
//! Loops are not repeats. They follow each other without a pause, and each begins with the state that the last one
//! left. The same is true of their seconds. They show whether a run had settled, but not how far another run would be
//! from it. Every test here keeps its level when seconds depend on each other. Trends that repeats have in common are a
//! separate finding over whole trials: `shared`. Further remarks on a row, and undecided ones, are in `rows`.

mod changes;
mod effective;
mod rows;
mod series;
mod shared;
#[cfg(test)]
pub(crate) mod simulated;
mod trend;

use std::collections::BTreeMap;
use std::ops::Range;

use rumba_results::comparison::{Remark, Steadiness};
use rumba_results::course::{ChangePoint, Course, Settled};
use rumba_results::metric::Metric;
use rumba_results::results::Trial;
use rumba_results::warning::Warning;

use crate::exact::mean;
pub(crate) use rows::of_rows;
pub use rows::undecided;
use series::Series;
pub use series::Served;
pub(crate) use shared::trends;
use trend::{FEWEST_INDEPENDENT, Trend};

/// The smallest trend or step, as a share of the mean, that causes a warning, however significant.
pub const LEAST: f64 = 0.10;
/// The fewest intervals for a trend, regardless of the number of repeats.
pub const FEWEST_INTERVALS: f64 = FEWEST_INDEPENDENT;
/// Below this many KB per operation, writes are too few for a trend.
const WRITES_KB: f64 = 0.05;
/// The metrics with a time series, with their words.
pub const WATCHED: [(&str, &str); 2] = [("ops_per_s", "operations/s"), (WRITTEN, "KB written per operation")];
const WRITTEN: &str = "wkb_per_op";

/// Whether a trial's loops were steady; `None` if it has no second of a loop, or if its number of clients changes.
pub fn steadiness(trial: &Trial) -> Option<Steadiness> {
    if trial.record.plan.run.client_steps.is_some() {
        return None;
    }
    let series = series::series(&series::loops(&trial.intervals))?;
    Some(Steadiness {
        name: trial.record.plan.name(),
        start_s: series.start_s,
        step_s: series.step_s,
        steps: series.seconds.len() as u32,
        courses: courses(&series),
    })
}

/// The time series of throughput and of bytes written over these seconds, by their metrics' stable names.
pub fn courses_of(served: &[Served]) -> BTreeMap<String, Course> {
    series::series(served).map(|series| courses(&series)).unwrap_or_default()
}

fn courses(series: &Series) -> BTreeMap<String, Course> {
    let course = |values: Result<Vec<f64>, String>, of: fn(&[series::Second]) -> Option<f64>| match values {
        Ok(values) => {
            // If a level has no denominator, its values still have a mean.
            let level = |steps: Range<usize>| of(&series.seconds[steps.clone()]).or_else(|| mean(&values[steps]));
            course(&series.times(), &values, series.step_s, level)
        }
        Err(reason) => unknown(Metric::absent(reason.as_str()), &reason),
    };
    BTreeMap::from([
        ("ops_per_s".to_owned(), course(series.ops_per_s(), series::ops_per_s)),
        (WRITTEN.to_owned(), course(series.wkb_per_op(), series::wkb_per_op)),
    ])
}

/// A time series of which only the mean is known.
fn unknown(mean: Metric, reason: &str) -> Course {
    let absent = || Metric::absent(reason);
    let (n_eff, trend, low, high, halves) = (absent(), absent(), absent(), absent(), absent());
    Course { mean, n_eff, trend, low, high, settled: Settled::Undecided, halves, changes: Vec::new() }
}

/// Analyses these values at these times; `level_of` returns the figure of a range of steps.
fn course(at: &[f64], values: &[f64], step_s: f64, level_of: impl Fn(Range<usize>) -> Option<f64>) -> Course {
    let Some(level) = mean(values).filter(|level| *level > 0.0) else {
        return unknown(Metric::from(mean(values).unwrap_or(f64::NAN)), "no operation or write in the loops");
    };
    let n = values.len();
    if (n as f64) < FEWEST_INTERVALS {
        let why = format!("{n} intervals are too few for a trend: it takes {FEWEST_INTERVALS}");
        return unknown(Metric::from(level), &why);
    }
    let found = changes::changes(at, values, LEAST * level);
    let residuals = if found.is_empty() { trend::detrended(at, values) } else { changes::levelled(values, &found) };
    let n_eff = effective::effective(&residuals);
    let Trend { change, margin } = trend::trend(at, values, n_eff, effective::autocorrelation(&residuals));
    let relative = |change: f64| Metric::from(change / level);
    let bound = |side: f64| match margin {
        Some(margin) => relative(change + side * margin),
        None => Metric::absent(format!(
            "the seconds depend on each other and are worth {n_eff:.1} independent ones; it takes {FEWEST_INDEPENDENT}"
        )),
    };
    let (low, high) = (bound(-1.0), bound(1.0));
    let settled = settled(change / level, low.value().zip(high.value()));
    let mut changes = change_points(at, &found, step_s, level_of);
    changes.retain(|change| (change.after - change.before).abs() > LEAST * level);
    Course {
        mean: Metric::from(level),
        n_eff: Metric::from(n_eff),
        trend: relative(change),
        low,
        high,
        settled,
        halves: Metric::from(halves(at, values) / level),
        changes,
    }
}

/// Twice the mean of the second half minus that of the first; for a straight line, the change from its start to its
/// end.
fn halves(at: &[f64], values: &[f64]) -> f64 {
    let middle = (at[0] + at[at.len() - 1]) / 2.0;
    let of = |is_in: fn(f64, f64) -> bool| {
        let half: Vec<f64> =
            at.iter().zip(values).filter(|(at, _)| is_in(**at, middle)).map(|(_, value)| *value).collect();
        mean(&half).unwrap_or_default()
    };
    2.0 * (of(|at, middle| at > middle) - of(|at, middle| at < middle))
}

fn settled(trend: f64, interval: Option<(f64, f64)>) -> Settled {
    match interval {
        Some((low, high)) if low >= -LEAST && high <= LEAST => Settled::Steady,
        Some((low, _)) if low > 0.0 && trend > LEAST => Settled::Rising,
        Some((_, high)) if high < 0.0 && trend < -LEAST => Settled::Falling,
        _ => Settled::Undecided,
    }
}

/// The change points at these steps, with the levels on both sides. A level is computed from the steps between two
/// change points. For a ratio it is the ratio of their sums, which is not the mean of the steps' ratios.
fn change_points(
    at: &[f64],
    found: &[usize],
    step_s: f64,
    level_of: impl Fn(Range<usize>) -> Option<f64>,
) -> Vec<ChangePoint> {
    let bounds: Vec<usize> = [0].into_iter().chain(found.iter().copied()).chain([at.len()]).collect();
    let levels: Vec<f64> = bounds.windows(2).filter_map(|bounds| level_of(bounds[0]..bounds[1])).collect();
    let point = |(split, levels): (&usize, &[f64])| ChangePoint {
        at_s: at[*split] - step_s / 2.0,
        before: levels[0],
        after: levels[1],
    };
    found.iter().zip(levels.windows(2)).map(point).collect()
}

/// Warnings about loops that were not steady.
pub fn remarks(steadiness: &Steadiness) -> Vec<Remark> {
    let courses = WATCHED.iter().filter_map(|(metric, words)| Some((metric, words, steadiness.courses.get(*metric)?)));
    let warnings =
        courses.filter(|(metric, _, course)| is_reported(metric, course)).flat_map(|(metric, words, course)| {
            let trend = trend_of(course, words).map(|message| moved(metric, message));
            trend.into_iter().chain(steps(course, words))
        });
    warnings.map(|warning| Remark { about: steadiness.name.clone().into(), warning }).collect()
}

/// Whether a trend would undermine a figure.
fn is_reported(metric: &str, course: &Course) -> bool {
    course.mean.value().is_some_and(|mean| metric != WRITTEN || mean > WRITES_KB)
}

/// The warning that a metric rose or fell significantly over the loops.
fn moved(metric: &str, message: String) -> Warning {
    if metric == WRITTEN {
        let remedy = "lengthen warmup and loops (warmup_most), and read wkb_per_op_with_drain";
        Warning::new("writes-unsteady", message, remedy)
    } else {
        let remedy = "lengthen the warmup, or let it last until the engine is steady: warmup_most";
        Warning::new("unsteady", message, remedy)
    }
}

fn trend_of(course: &Course, unit: &str) -> Option<String> {
    let verb = match course.settled {
        Settled::Rising => "rose",
        Settled::Falling => "fell",
        Settled::Steady | Settled::Undecided => return None,
    };
    let (mean, trend) = (course.mean.value()?, course.trend.value()?);
    let (low, high) = (course.low.value()?, course.high.value()?);
    // A line through values that grow ever faster begins below zero, which no figure can be.
    let [first, last] = [-0.5, 0.5].map(|side| figure((mean * (1.0 + side * trend)).max(0.0)));
    let (least, most) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    let worth = course.n_eff.value()?;
    Some(format!(
        "{unit} {verb} over the loops by {:.0}% of their mean, from {first} to {last} (95%: {:.0} to {:.0}%; {worth:.0} independent seconds): not a steady state",
        trend.abs() * 100.0,
        least * 100.0,
        most * 100.0,
    ))
}

fn steps(course: &Course, unit: &str) -> Option<Warning> {
    let step = |change: &ChangePoint| {
        format!("from {} to {} at {:.0} s", figure(change.before), figure(change.after), change.at_s)
    };
    let steps: Vec<String> = course.changes.iter().map(step).collect();
    (!steps.is_empty()).then(|| {
        Warning::new(
            "change-point",
            format!("{unit} changed {} after the loops' start", steps.join(", ")),
            "look at the timeline there: a checkpoint, a compaction, a cache that filled up, or another user of the host",
        )
    })
}

/// Three significant digits.
fn figure(value: f64) -> String {
    let decimals = if value == 0.0 { 0.0 } else { (2.0 - value.abs().log10().floor()).clamp(0.0, 4.0) };
    format!("{value:.*}", decimals as usize)
}

#[cfg(test)]
mod tests;
