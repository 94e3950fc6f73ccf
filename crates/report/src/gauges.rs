//! Gauges of an engine and its data over a trial: size, deferred work, and the engine's own counters. They are sampled
//! about once a second while clients work, and at the end of each phase.

use std::collections::BTreeMap;

use rumba_results::engine_samples::{Column, EngineTimeSeries, Of, SIZE};
use rumba_results::metric::Metric;
use rumba_results::record::{PhaseKind, PhaseRecord};
use rumba_results::results::Trial;
use serde::Serialize;

use crate::packed::{POINTS, Packed};
use crate::timeline::{extremes, round};

/// The most numbers on a page for all trials' gauges together, about 1.3 MB.
const NUMBERS: usize = 480_000;
/// The fewest points of a time series in a drawing.
const FEWEST_POINTS: usize = 60;

/// Values over a trial's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gauges {
    /// Seconds since the trial's start.
    pub at_s: Vec<f64>,
    /// Whether it has samples from while clients worked, and not only from the ends of phases.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub looked: bool,
    /// Values that rise and fall: `size_bytes`, deferred work, and counters that decreased.
    pub levels: BTreeMap<String, Packed>,
    /// Values that only grew, as growth per second since the sample before.
    pub rates: BTreeMap<String, Packed>,
}

/// The most points for the gauges of each of these trials.
pub fn points<'a>(trials: impl Iterator<Item = &'a Trial>) -> usize {
    let columns: usize = trials.map(|trial| trial.course.columns.len()).sum();
    NUMBERS.checked_div(columns).unwrap_or(POINTS).clamp(FEWEST_POINTS, POINTS)
}

/// The gauges of a trial's phases that take time, without values that never changed.
pub fn gauges(trial: &Trial, points: usize) -> Gauges {
    of(&trial.record.phases, &trial.course, points)
}

fn of(phases: &[PhaseRecord], course: &EngineTimeSeries, points: usize) -> Gauges {
    let phases: Vec<&PhaseRecord> = phases.iter().filter(|phase| takes_time(phase.phase)).collect();
    let Seen { at_s, columns } = seen(course, &phases);
    let size = at_s.len().div_ceil((points / 2).max(1));
    let thinned = |values: Vec<Option<f64>>| match at_s.len() <= points {
        true => values,
        false => values.chunks(size).flat_map(extremes_of).collect(),
    };
    let packed = |values: Vec<Option<f64>>| Packed(thinned(values).into_iter().map(|value| value.map(round)).collect());
    let mut all = Gauges { looked: !course.is_empty(), ..Gauges::default() };
    for (name, Values { of_counter, values }) in columns {
        let known = || values.iter().flatten();
        if known().all(|value| Some(value) == known().next()) {
            continue;
        }
        if of_counter && known().zip(known().skip(1)).all(|(before, after)| after >= before) {
            all.rates.insert(name.to_owned(), packed(rates(&at_s, &values)));
        } else {
            all.levels.insert(name.to_owned(), packed(values));
        }
    }
    all.at_s = match at_s.len() <= points {
        true => at_s.into_iter().map(round).collect(),
        false => at_s.chunks(size).flat_map(ends).collect(),
    };
    all
}

/// The values of one column at the sample times.
struct Values {
    of_counter: bool,
    values: Vec<Option<f64>>,
}

/// All values of a trial, in the order of time.
struct Seen<'a> {
    at_s: Vec<f64>,
    columns: BTreeMap<&'a str, Values>,
}

/// The source of a value: a sample, or the end of a phase.
enum GaugeSource {
    Sample(usize),
    End(usize),
}

fn seen<'a>(course: &'a EngineTimeSeries, phases: &[&'a PhaseRecord]) -> Seen<'a> {
    let looks = course.at_s.iter().enumerate().map(|(look, at_s)| (*at_s, GaugeSource::Sample(look)));
    let ends = phases.iter().enumerate().map(|(end, phase)| (phase.start_s + phase.seconds, GaugeSource::End(end)));
    let mut sources: Vec<(f64, GaugeSource)> = looks.chain(ends).collect();
    sources.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut columns: BTreeMap<&str, Values> = BTreeMap::new();
    let count = sources.len();
    let mut put = |name: &'a str, of_counter: bool, at: usize, value: f64| {
        let column = columns.entry(name).or_insert_with(|| Values { of_counter, values: vec![None; count] });
        column.values[at] = Some(value);
    };
    for (at, (_, source)) in sources.iter().enumerate() {
        match source {
            GaugeSource::Sample(look) => {
                let is_known = |column: &&Column| column.of == Of::Size || answered(course, *look);
                for column in course.columns.iter().filter(|column| *look >= column.before).filter(is_known) {
                    put(&column.name, column.of == Of::Counter, at, column.values[look - column.before]);
                }
            }
            GaugeSource::End(end) => {
                let phase = phases[*end];
                phase.metrics.size_bytes.value().into_iter().for_each(|size| put(SIZE, false, at, size));
                phase.debt_end.iter().for_each(|gauge| put(&gauge.name, false, at, gauge.value));
                phase.counters.iter().for_each(|gauge| put(&gauge.name, true, at, gauge.value));
            }
        }
    }
    Seen { at_s: sources.into_iter().map(|(at_s, _)| at_s).collect(), columns }
}

/// Whether the engine answered this sample. A sample of the size alone repeats all other values, and a phase's end may
/// have had newer ones.
fn answered(course: &EngineTimeSeries, look: usize) -> bool {
    let mut of_engine = course.columns.iter().filter(|column| column.of != Of::Size);
    of_engine.any(|column| match look.checked_sub(column.before) {
        None => false,
        Some(0) => true,
        Some(at) => column.values[at] != column.values[at - 1],
    })
}

/// Growth per second since the previous known value.
fn rates(at_s: &[f64], values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut before: Option<(f64, f64)> = None;
    let mut rate = |(at_s, value): (&f64, &Option<f64>)| {
        let value = (*value)?;
        let (then_s, then) = before.replace((*at_s, value))?;
        (*at_s > then_s).then(|| (value - then) / (at_s - then_s))
    };
    at_s.iter().zip(values).map(&mut rate).collect()
}

/// The smallest and the largest of neighbouring values, in their order of time.
fn extremes_of(values: &[Option<f64>]) -> [Option<f64>; 2] {
    let known: Vec<Metric> = values.iter().flatten().map(|value| Metric::from(*value)).collect();
    extremes(&known).map(|metric| metric.value())
}

/// The times of the two points for neighbouring values.
fn ends(at_s: &[f64]) -> [f64; 2] {
    let [first, last] = [at_s.first(), at_s.last()].map(|at_s| at_s.copied().unwrap_or_default());
    [round(first), round((first + last) / 2.0)]
}

/// `loops` covers no additional time, and phases that verify the data are not part of the trial's time series.
fn takes_time(phase: PhaseKind) -> bool {
    use PhaseKind::{Age, Backlog, Drain, Load, Loop, Settle, Warmup};
    matches!(phase, Load | Settle | Age | Warmup | Loop(_) | Backlog | Drain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rumba_engine_api::engine::Gauge;
    use rumba_results::engine_samples::EngineSample;
    use rumba_results::samples;

    use super::*;

    fn phase(phase: PhaseKind, start_s: f64, counters: &[(&str, f64)]) -> PhaseRecord {
        let counters = counters.iter().map(|(name, value)| Gauge::new(*name, *value)).collect();
        let debt_end = vec![Gauge::new("dirty_pages", start_s)];
        PhaseRecord { start_s, counters, debt_end, ..samples::phase(phase, 10.0) }
    }

    fn look(at_s: f64, hits: f64, size_bytes: Option<f64>) -> EngineSample {
        let counters = BTreeMap::from([("hits".to_owned(), hits)]);
        EngineSample { at_s, size_bytes, counters, ..EngineSample::default() }
    }

    fn course(looks: impl IntoIterator<Item = EngineSample>) -> EngineTimeSeries {
        let mut course = EngineTimeSeries::default();
        looks.into_iter().for_each(|look| course.add(look));
        course
    }

    fn packed(values: &[Option<f64>]) -> Packed {
        Packed(values.to_vec())
    }

    #[test]
    fn growing_gauge_is_a_rate_falling_one_a_level_constant_omitted() {
        let (hits, used, still) = ("hits", "used", "still");
        let phases = [
            phase(PhaseKind::Warmup, 0.0, &[(hits, 5.0), (used, 7.0), (still, 3.0)]),
            phase(PhaseKind::Loop(1), 10.0, &[(hits, 105.0), (used, 9.0), (still, 3.0)]),
            phase(PhaseKind::Loops, 10.0, &[(hits, 105.0), (used, 9.0), (still, 3.0)]),
            phase(PhaseKind::Drain, 20.0, &[(hits, 105.0), (used, 8.0), (still, 3.0)]),
        ];
        let found = of(&phases, &EngineTimeSeries::default(), POINTS);
        assert_eq!((found.at_s, found.looked), (vec![10.0, 20.0, 30.0], false));
        assert_eq!(found.rates, BTreeMap::from([(hits.to_owned(), packed(&[None, Some(10.0), Some(0.0)]))]));
        let levels = BTreeMap::from([
            ("dirty_pages".to_owned(), packed(&[Some(0.0), Some(10.0), Some(20.0)])),
            (used.to_owned(), packed(&[Some(7.0), Some(9.0), Some(8.0)])),
        ]);
        assert_eq!(found.levels, levels);
    }

    #[test]
    fn samples_lie_between_phase_ends_and_rates_span_since_the_last() {
        let phases = [phase(PhaseKind::Warmup, 0.0, &[("hits", 20.0)])];
        let looks = [look(1.0, 2.0, Some(100.0)), look(5.0, 10.0, None), look(11.0, 30.0, Some(300.0))];
        let found = of(&phases, &course(looks), POINTS);
        assert_eq!((found.at_s, found.looked), (vec![1.0, 5.0, 10.0, 11.0], true));
        assert_eq!(found.rates["hits"], packed(&[None, Some(2.0), Some(2.0), Some(10.0)]));
        assert_eq!(found.levels["size_bytes"], packed(&[Some(100.0), Some(100.0), None, Some(300.0)]));
    }

    /// The server answered two of the samples. The others, of the size alone, made the counter fall back to an old value.
    #[test]
    fn sample_without_an_answer_does_not_repeat_an_older_counter() {
        let phases =
            [phase(PhaseKind::Warmup, 0.0, &[("hits", 20.0)]), phase(PhaseKind::Loop(1), 10.0, &[("hits", 60.0)])];
        let size_alone = |at_s| EngineSample { at_s, size_bytes: Some(at_s), ..EngineSample::default() };
        let looks = [look(1.0, 2.0, Some(1.0)), size_alone(2.0), size_alone(11.0), look(15.0, 40.0, Some(15.0))];
        let found = of(&phases, &course(looks), POINTS);
        assert_eq!(found.at_s, [1.0, 2.0, 10.0, 11.0, 15.0, 20.0]);
        assert_eq!(found.rates["hits"], packed(&[None, None, Some(2.0), None, Some(4.0), Some(4.0)]));
    }

    #[test]
    fn one_second_burst_stays_visible_and_many_counters_thin_points() {
        let hits = |second: u32| f64::from(second) + if second > 1800 { 5000.0 } else { 0.0 };
        let hour = course((0..3600).map(|second| look(f64::from(second), hits(second), None)));
        let found = of(&[], &hour, POINTS);
        assert!(found.at_s.len() <= POINTS && found.at_s.is_sorted(), "{}", found.at_s.len());
        assert_eq!(found.rates["hits"].0.len(), found.at_s.len());
        assert!(found.rates["hits"].0.contains(&Some(5001.0)));
        assert!(of(&[], &hour, 60).at_s.len() <= 60);
    }
}
