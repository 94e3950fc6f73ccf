//! What is told of a row's loops beside the sure trends of single trials: those that its repeats share, and what is
//! undecided. That no trend is sure makes no steady state.

use rumba_core::comparison::{Remark, Row, Steadiness};
use rumba_core::course::{Course, Settled, SharedTrend, Trends};
use rumba_core::metric::Metric;
use rumba_core::warning::Warning;

use super::{LEAST, WATCHED, is_told, moved};

/// The remarks on these rows. What repeats tell together decides where they are enough for an interval, and else each
/// trial by itself.
pub fn of_rows(rows: &[Row], steadiness: &[Steadiness], trends: &[Trends]) -> Vec<Remark> {
    let of_row = |row: &Row| {
        let run = row.run.as_ref().filter(|run| !run.partial)?;
        let repeats = steadiness.iter().filter(|found| run.trials.contains(&found.name.trial));
        let repeats: Vec<&Steadiness> = repeats.collect();
        let trends = trends.iter().find(|trends| trends.engine == row.engine && trends.clients == row.clients);
        let mut remarks = together(&repeats, trends);
        remarks.extend(repeats.iter().filter_map(|found| alone(found, trends)));
        Some(remarks)
    };
    rows.iter().filter_map(of_row).flatten().collect()
}

/// What the repeats tell together, under the name of the first.
fn together(repeats: &[&Steadiness], trends: Option<&Trends>) -> Vec<Remark> {
    let Some(first) = repeats.first() else { return Vec::new() };
    let (mut warnings, mut open) = (Vec::new(), Vec::new());
    for (metric, words) in WATCHED {
        let of_each = repeats.iter().filter_map(|found| found.courses.get(metric));
        let courses: Vec<&Course> = of_each.filter(|course| is_told(metric, course)).collect();
        let Some(shared) = shared(trends, metric).filter(|_| !courses.is_empty()) else { continue };
        let changed = changed(words, [&shared.trend, &shared.low, &shared.high]).unwrap_or_default();
        let told = format!("{changed} in {} repeats together", shared.trials.len());
        match shared.settled {
            Settled::Undecided => open.push(told),
            // A trial in which it was sure by itself tells of it.
            Settled::Rising | Settled::Falling if courses.iter().all(|course| course.settled != shared.settled) => {
                warnings.push(moved(metric, format!("{told}: not a steady state")));
            }
            _ => {}
        }
    }
    warnings.extend(doubt(&open));
    warnings.into_iter().map(|warning| Remark { name: first.name.clone(), warning }).collect()
}

/// What nobody can tell of a trial, in metrics of which the repeats together tell nothing.
fn alone(found: &Steadiness, trends: Option<&Trends>) -> Option<Remark> {
    let metrics = WATCHED.iter().filter(|(metric, _)| shared(trends, metric).is_none());
    let open = metrics.filter_map(|(metric, _)| undecided(metric, found.courses.get(*metric)?));
    let warning = doubt(&open.collect::<Vec<String>>())?;
    Some(Remark { name: found.name.clone(), warning })
}

/// What the repeats share of a metric, where they are enough for an interval.
fn shared<'a>(trends: Option<&'a Trends>, metric: &str) -> Option<&'a SharedTrend> {
    trends?.metrics.get(metric).filter(|shared| shared.low.value().is_some())
}

/// What cannot be told of a course, in words: with its interval, or why there is none. `None` where it is told, and
/// where there is no figure that a trend would undermine.
pub fn undecided(metric: &str, course: &Course) -> Option<String> {
    let (_, words) = WATCHED.iter().find(|(known, _)| *known == metric)?;
    let is_open = course.settled == Settled::Undecided && is_told(metric, course);
    let why = || format!("{words}: {}", course.low.reason().unwrap_or_default());
    is_open.then(|| changed(words, [&course.trend, &course.low, &course.high]).unwrap_or_else(why))
}

/// `operations/s changed by -1.8% (95%: -12.0 to +8.5%)`; `None` without an interval.
fn changed(words: &str, change: [&Metric; 3]) -> Option<String> {
    let [trend, low, high] = change.map(|share| share.value().map(|share| 100.0 * share));
    Some(format!("{words} changed by {:+.1}% (95%: {:+.1} to {:+.1}%)", trend?, low?, high?))
}

fn doubt(open: &[String]) -> Option<Warning> {
    (!open.is_empty()).then(|| {
        Warning::new(
            "steadiness-undecided",
            format!("whether the loops were steady (within {:.0}%) is undecided: {}", 100.0 * LEAST, open.join("; ")),
            "run longer loops, or three repeats and more, which tell what they share; look at the timeline before the \
             figures",
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::record::Interval;

    use super::*;
    use crate::steady::tests::seconds;
    use crate::summarise;
    use crate::testing::{record, results};

    /// Operations per second that sway over fifteen seconds: so many of these are worth next to no independent one.
    fn swaying(second: usize) -> f64 {
        (1000.0 + 300.0 * (second as f64 * 0.42).sin()).floor()
    }

    /// What is told of an engine whose repeats have these seconds.
    fn remarks(repeats: Vec<Vec<Interval>>) -> Vec<Remark> {
        let records = (1..=repeats.len()).map(|repeat| record("a", 8, repeat as u32));
        let mut results = results(records.collect());
        for (trial, intervals) in results.trials.iter_mut().zip(repeats) {
            trial.intervals = intervals;
        }
        summarise(&results).remarks
    }

    fn sway() -> Vec<Interval> {
        seconds(60, swaying, |second| 3.0 * swaying(second))
    }

    #[test]
    fn loops_of_which_nobody_can_tell_are_not_taken_for_steady_ones() {
        for repeats in [1, 2] {
            let told = remarks(vec![sway(); repeats]);
            assert_eq!(told.len(), repeats, "{told:?}");
            for (remark, repeat) in told.iter().zip(1..) {
                let Remark { name, warning } = remark;
                assert_eq!((warning.code.as_str(), name.repeat), ("steadiness-undecided", repeat));
                let why = "is undecided: operations/s: the seconds depend on each other and are worth ";
                assert!(warning.message.contains(why) && !warning.message.contains("KB"), "{}", warning.message);
            }
        }
        let few = remarks(vec![seconds(6, |_| 1000.0, |_| 10.0)]);
        let why = "whether the loops were steady (within 10%) is undecided: operations/s: 6 intervals are too few for \
                   a trend: it takes 12";
        assert_eq!(few[0].warning.message, why, "writes that are next to none have no trend");
        assert_eq!(remarks(vec![seconds(60, |_| 1000.0, |_| 3000.0)]), [], "what is steady is not warned of");
        assert_eq!(remarks(vec![Vec::new()]), [], "no second, no course");
    }

    #[test]
    fn an_interval_that_reaches_too_far_is_told_with_its_ends() {
        // Every other second is half again as fast: a trend of 10% would not be seen in so few.
        let swing = |second: usize| if second.is_multiple_of(2) { 1000.0 } else { 1500.0 };
        let told = remarks(vec![seconds(14, swing, |second| 3.0 * swing(second))]);
        let message = &told[0].warning.message;
        assert!(message.contains("is undecided: operations/s changed by ") && message.contains("(95%: -"), "{message}");
    }

    #[test]
    fn what_repeats_tell_together_decides_where_single_trials_cannot() {
        assert_eq!(remarks(vec![sway(); 4]), [], "the halves of each are alike");
        let slower = |second| if second < 30 { swaying(second) } else { (0.8 * swaying(second)).floor() };
        let told = remarks(vec![seconds(60, slower, |second| 3.0 * slower(second)); 3]);
        let Remark { name, warning } = &told[0];
        assert_eq!((told.len(), warning.code.as_str(), name.repeat), (1, "unsteady", 1), "{told:?}");
        assert!(warning.message.ends_with("%) in 3 repeats together: not a steady state"), "{}", warning.message);
        assert!(warning.message.starts_with("operations/s changed by -"), "{}", warning.message);
    }

    #[test]
    fn repeats_that_contradict_each_other_leave_it_undecided_though_each_is_sure_of_itself() {
        let line = |trend: f64| {
            let ops = move |second: usize| 1000.0 * (1.0 + trend * (second as f64 / 39.0 - 0.5));
            seconds(40, ops, |_| 9.0)
        };
        let told = remarks([0.3, -0.3, 0.2, -0.2].map(line).into());
        let codes: Vec<&str> = told.iter().map(|remark| remark.warning.code.as_str()).collect();
        assert_eq!(codes, ["unsteady", "unsteady", "unsteady", "unsteady", "steadiness-undecided"]);
        assert!(told[4].warning.message.ends_with("%) in 4 repeats together"), "{}", told[4].warning.message);
    }
}
