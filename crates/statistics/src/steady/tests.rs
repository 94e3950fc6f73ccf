use std::ops::RangeInclusive;

use rumba_results::metric::Metric;
use rumba_results::record::{Interval, PhaseKind, Spent};
use rumba_results::samples;

use super::simulated::Noise;
use super::*;
use crate::summarise;
use crate::testing::{record, results};

/// Draws per cell: a rate of 5% has a standard error of 0.5%.
const DRAWS: u32 = 2000;

fn times(n: usize) -> Vec<f64> {
    (0..n).map(|second| second as f64 + 0.5).collect()
}

/// A time series whose levels are the means of its values.
fn course(at: &[f64], values: &[f64], step_s: f64) -> Course {
    super::course(at, values, step_s, |steps| mean(&values[steps]))
}

/// The shares of time series of noise alone that have a significant trend, and a change point.
fn false_alarms(n: usize, phi: f64) -> (f64, f64) {
    let mut noise = Noise::new(7, phi);
    let at = times(n);
    let (mut trends, mut changes) = (0, 0);
    for _ in 0..DRAWS {
        let values = noise.draw(n).iter().map(|value| 1000.0 + 300.0 * value).collect::<Vec<_>>();
        let course = course(&at, &values, 1.0);
        let beyond = |bound: &Metric, side: f64| bound.value().is_some_and(|bound| side * bound > 0.0);
        trends += u32::from(beyond(&course.low, 1.0) || beyond(&course.high, -1.0));
        changes += u32::from(!changes::changes(&at, &values, 0.0).is_empty());
    }
    (f64::from(trends) / f64::from(DRAWS), f64::from(changes) / f64::from(DRAWS))
}

#[test]
fn noise_shows_a_trend_or_change_in_at_most_5_percent_of_runs() {
    for n in [40, 120, 240] {
        for phi in [0.0, 0.5, 0.8, 0.95] {
            let (trends, changes) = false_alarms(n, phi);
            println!("{n:4} seconds, autocorrelation {phi:.2}: trend {trends:.3}, change point {changes:.3}");
            assert!(trends <= 0.05 && changes <= 0.05, "{n} seconds, φ {phi}: trend {trends}, change {changes}");
        }
    }
}

fn share(n: usize, phi: f64, found: impl Fn(&Course) -> bool, signal: impl Fn(f64) -> f64) -> f64 {
    let mut noise = Noise::new(3, phi);
    let at = times(n);
    let draws = 300;
    let hits = (0..draws).filter(|_| {
        let signals = at.iter().map(|at| signal(at / n as f64));
        let values: Vec<f64> = noise.draw(n).iter().zip(signals).map(|(noise, signal)| signal + noise).collect();
        found(&course(&at, &values, 1.0))
    });
    hits.count() as f64 / f64::from(draws)
}

#[test]
fn trends_and_steps_of_known_size_are_detected() {
    // Writes that fall by 15% over three loops of a minute, 10% noise: 17.5, 16.0, 15.1 KB.
    let falls = share(180, 0.5, |course| course.settled == Settled::Falling, |at| 170.0 - 35.0 * at);
    assert!(falls == 1.0, "{falls}");
    let falls = share(180, 0.5, |course| course.settled == Settled::Falling, |at| 17.0 - 3.5 * at);
    assert!(falls > 0.9, "{falls}");
    let steady = share(180, 0.5, |course| course.settled == Settled::Steady, |_| 30.0);
    assert!(steady > 0.95, "{steady}");
    let steps = share(120, 0.5, |course| course.changes.len() == 1, |at| if at < 0.6 { 20.0 } else { 14.0 });
    assert!(steps > 0.85, "{steps}");
}

#[test]
fn a_tiny_sure_trend_is_no_reason_to_warn() {
    let falls = share(120, 0.0, |course| course.high.value().unwrap() < 0.0, |at| 1000.0 - 50.0 * at);
    assert!(falls == 1.0, "it is sure: {falls}");
    let warns = share(120, 0.0, |course| course.settled != Settled::Steady, |at| 1000.0 - 50.0 * at);
    assert!(warns == 0.0, "and it is 5%: {warns}");
}

#[test]
fn steps_are_found_where_they_are_and_a_line_is_none() {
    let mut noise = Noise::new(5, 0.3);
    let levels = |second: f64| {
        if second < 40.0 {
            1000.0
        } else if second < 90.0 {
            1500.0
        } else {
            800.0
        }
    };
    let at = times(150);
    let values: Vec<f64> = noise.draw(150).iter().zip(&at).map(|(noise, at)| levels(*at) + 40.0 * noise).collect();
    let found = course(&at, &values, 1.0).changes;
    let seconds: Vec<f64> = found.iter().map(|change| change.at_s).collect();
    assert_eq!(seconds, [40.0, 90.0]);
    assert!((found[0].before / 1000.0 - 1.0).abs() < 0.02 && (found[1].after / 800.0 - 1.0).abs() < 0.02);
    let line: Vec<f64> = noise.draw(150).iter().zip(&at).map(|(noise, at)| 1000.0 + 5.0 * at + 40.0 * noise).collect();
    assert_eq!(course(&at, &line, 1.0).changes, []);
}

fn interval(start_s: f64, seconds: f64, ops: u64, written: Metric) -> Interval {
    let spent = Spent { device_write_bytes: written, ..Spent::default() };
    Interval { seconds, ops, spent, ..samples::interval(PhaseKind::Loop(1), start_s) }
}

/// Seconds from 100 s on, with these operations and KB written.
pub fn seconds(n: usize, ops: impl Fn(usize) -> f64, kb: impl Fn(usize) -> f64) -> Vec<Interval> {
    let second = |second: usize| {
        let written = Metric::Value(kb(second) * 1024.0);
        interval(100.0 + second as f64, 1.0, ops(second) as u64, written)
    };
    (0..n).map(second).collect()
}

fn courses(intervals: &[Interval]) -> BTreeMap<String, Course> {
    courses_of(&series::loops(intervals))
}

fn wobble(second: usize) -> f64 {
    [0.0, 7.0, -4.0, 3.0, -6.0, 1.0, -1.0][second % 7]
}

#[test]
fn summary_reports_unsteady_metrics_with_figures_and_seconds() {
    let mut found = results(vec![record("a", 8, 1), record("b", 8, 1)]);
    let ops = |second| if second < 35 { 2000.0 + wobble(second) } else { 1200.0 + wobble(second) };
    found.trials[0].intervals = seconds(60, ops, |second| 3.0 * ops(second));
    let falling = |second: usize| 2000.0 * (3.0 - 0.02 * second as f64) + 10.0 * wobble(second);
    found.trials[1].intervals = seconds(60, |second| 2000.0 + wobble(second), falling);
    let summary = summarise(&found);
    let said = |remark: &Remark| (remark.about.engine.clone(), remark.warning.code.clone());
    let said: Vec<(String, String)> = summary.remarks.iter().map(said).collect();
    let expected = [("a", "unsteady"), ("a", "change-point"), ("b", "writes-unsteady")];
    assert_eq!(said, expected.map(|(engine, code)| (engine.to_owned(), code.to_owned())));
    let step = &summary.remarks[1].warning.message;
    assert_eq!(step, "operations/s changed from 2000 to 1200 at 35 s after the loops' start");
    let line = &summary.remarks[2].warning.message;
    assert!(
        line.starts_with("KB written per operation fell over the loops by 49% of their mean, from 3.00 to 1.8"),
        "{line}"
    );
    let steadiness = &summary.steadiness[0];
    assert_eq!((steadiness.start_s, steadiness.steps, steadiness.name.engine.as_str()), (100.0, 60, "a"));
    let read: Steadiness = serde_json::from_value(serde_json::to_value(steadiness).unwrap()).unwrap();
    assert_eq!(&read, steadiness);
}

/// As the mean of the steps' contributions, the first level was 9.31 and the second 17.3.
#[test]
fn level_of_written_bytes_is_bytes_over_ops_at_any_throughput() {
    let levels = |ops: &dyn Fn(usize) -> f64, kb_per_op: &dyn Fn(usize) -> f64, n| {
        let ops = |second| ops(second) + wobble(second);
        let found = courses(&seconds(n, ops, |second| kb_per_op(second) * ops(second)));
        let changes = &found["wkb_per_op"].changes;
        changes.iter().map(|change| [change.at_s, change.before, change.after].map(f64::round)).collect::<Vec<_>>()
    };
    let slower = |second: usize| if second < 35 { 2000.0 } else { 1000.0 };
    assert_eq!(levels(&slower, &|second| if second < 35 { 10.0 } else { 20.0 }, 60), [[35.0, 10.0, 20.0]]);
    // Ten times the throughput with the same bytes per operation is no change of the ratio.
    let faster = |second: usize| if second < 25 { 200.0 } else { 2000.0 };
    assert_eq!(levels(&faster, &|second| if second < 50 { 20.0 } else { 5.0 }, 80), [[50.0, 20.0, 5.0]]);
}

#[test]
fn a_trend_begins_and_ends_at_figures_that_there_can_be() {
    let mut found = results(vec![record("a", 8, 1)]);
    // Every other second writes, with increasing bytes.
    let written = |second: usize| (second % 2) as f64 * (second as f64).powi(2) * 2000.0;
    found.trials[0].intervals = seconds(60, |second| 2000.0 + wobble(second), written);
    let summary = summarise(&found);
    let rising = summary.remarks.iter().find(|remark| remark.warning.code == "writes-unsteady").unwrap();
    let line = &rising.warning.message;
    assert!(line.starts_with("KB written per operation rose over the loops by") && line.contains("from 0"), "{line}");
}

#[test]
fn suspended_missing_or_idle_seconds_break_no_time_series() {
    let mut intervals = seconds(90, |second| 1000.0 + wobble(second), |second| 500.0 + wobble(second));
    // The harness could not end second 20 for ten seconds; 40 to 44 are lost; 60 to 62 were suspended.
    intervals[20] = interval(120.0, 10.0, 10_000, Metric::Value(5000.0 * 1024.0));
    intervals.drain(21..30);
    intervals.drain(31..36);
    for stalled in &mut intervals[46..49] {
        stalled.ops = 0;
    }
    let found = courses(&intervals);
    let throughput = &found["ops_per_s"];
    let expected = 1000.0 * (85.0 - 3.0) / 85.0;
    assert!((throughput.mean.value().unwrap() - expected).abs() < 5.0, "{:?}", throughput.mean);
    assert_eq!(throughput.changes, []);
    assert!(found["wkb_per_op"].trend.value().unwrap().is_finite());
}

#[test]
fn unknown_courses_are_absent_with_a_reason() {
    let few = courses(&seconds(6, |_| 1000.0, |_| 10.0));
    assert_eq!(few["ops_per_s"].mean, Metric::Value(1000.0));
    assert_eq!(few["ops_per_s"].trend.reason().unwrap(), "6 intervals are too few for a trend: it takes 12");
    let dead = courses(&seconds(60, |_| 0.0, |_| 0.0));
    assert_eq!(dead["ops_per_s"].settled, Settled::Undecided);
    assert!(dead["wkb_per_op"].mean.reason().unwrap().contains("no operations"));
    let mut unmetered = seconds(60, |_| 1000.0, |_| 0.0);
    unmetered[7].spent.device_write_bytes = Metric::absent("tmpfs has no device");
    assert_eq!(courses(&unmetered)["wkb_per_op"].mean, Metric::absent("tmpfs has no device"));
    assert!(courses(&[]).is_empty());
}

#[test]
fn an_hour_takes_no_longer_than_a_minute() {
    let hour = courses(&seconds(36_000, |second| 1000.0 + wobble(second), |_| 10.0));
    assert_eq!(hour["ops_per_s"].settled, Settled::Steady);
    let trial = &results(vec![record("a", 8, 1)]).trials[0];
    assert!(steadiness(trial).is_none(), "no loop, no result");
}

/// Whole seconds of any length and order of magnitude, in any number.
fn any_second() -> impl proptest::strategy::Strategy<Value = (f64, u64, f64)> {
    let range = |range: RangeInclusive<f64>| range;
    (range(0.001..=20.0), 0..=u64::from(u32::MAX), range(0.0..=1e12))
}

proptest::proptest! {
    #[test]
    fn no_course_breaks_the_tests(seconds in proptest::collection::vec(any_second(), 0..80)) {
        let mut start_s = 0.0;
        let intervals: Vec<Interval> = seconds.into_iter().map(|(length, ops, written)| {
            start_s += length;
            interval(start_s - length, length, ops, Metric::Value(written))
        }).collect();
        for course in courses(&intervals).values() {
            for figure in [&course.mean, &course.n_eff, &course.trend, &course.low, &course.high] {
                proptest::prop_assert!(figure.value().is_none_or(f64::is_finite));
            }
            proptest::prop_assert!(course.changes.is_sorted_by(|one, other| one.at_s < other.at_s));
        }
    }
}
