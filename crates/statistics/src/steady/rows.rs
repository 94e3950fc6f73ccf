//! Remarks on a row's loops in addition to the significant trends of single trials: trends that its repeats share, and
//! undecided ones. The absence of a significant trend does not prove a steady state. Metrics that the repeats leave
//! undecided together are in the table of shared trends. If there is no interval, the summary gives the reason and no
//! remark is made.

use rumba_results::comparison::{About, Remark, Row, Steadiness};
use rumba_results::course::{Course, Settled, SharedTrend, Trends};
use rumba_results::metric::Metric;
use rumba_results::warning::Warning;

use super::{LEAST, WATCHED, is_reported, moved, shared::FEWEST};

/// The remarks on these rows. The repeats decide together if they are enough for an interval; otherwise each trial
/// decides alone.
pub fn of_rows(rows: &[Row], steadiness: &[Steadiness], trends: &[Trends]) -> Vec<Remark> {
    let of_row = |row: &Row| {
        let run = row.run.as_ref().filter(|run| !run.partial)?;
        let repeats = steadiness.iter().filter(|found| run.trials.contains(&found.name.trial));
        let repeats: Vec<&Steadiness> = repeats.collect();
        let trends = trends.iter().find(|trends| trends.engine == row.engine && trends.clients == row.clients);
        let about = About::repeats(&row.engine, row.clients);
        let of_all = together(&repeats, trends).map(|warning| Remark { about: about.clone(), warning });
        let of_each = repeats.iter().filter_map(|found| {
            let warning = alone(found, trends, repeats.len())?;
            Some(Remark { about: found.name.clone().into(), warning })
        });
        Some(of_all.chain(of_each).collect::<Vec<Remark>>())
    };
    rows.iter().filter_map(of_row).flatten().collect()
}

/// Significant trends that the repeats have in common and that no single trial showed alone.
fn together<'a>(repeats: &'a [&Steadiness], trends: Option<&'a Trends>) -> impl Iterator<Item = Warning> + 'a {
    WATCHED.iter().filter_map(move |(metric, words)| {
        let shared = shared(trends, metric).filter(|shared| shared.settled != Settled::Steady)?;
        let of_each = repeats.iter().filter_map(|found| found.courses.get(*metric));
        let courses: Vec<&Course> = of_each.filter(|course| is_reported(metric, course)).collect();
        // If it was significant in a single trial, that trial reports it.
        let is_news = !courses.is_empty() && courses.iter().all(|course| course.settled != shared.settled);
        let changed = changed(words, [&shared.trend, &shared.low, &shared.high])?;
        let reported = format!("{changed} in {} repeats together: not a steady state", shared.trials.len());
        (is_news && shared.settled != Settled::Undecided).then(|| moved(metric, reported))
    })
}

/// Undecided metrics of a trial, if the repeats together have no result for them.
fn alone(found: &Steadiness, trends: Option<&Trends>, repeats: usize) -> Option<Warning> {
    let metrics = WATCHED.iter().filter(|(metric, _)| shared(trends, metric).is_none());
    let open = metrics.filter_map(|(metric, _)| undecided(metric, found.courses.get(*metric)?));
    let open: Vec<String> = open.collect();
    let remedy = if repeats < FEWEST {
        "run longer loops, or three or more repeats, which show what they share; look at the timeline before the \
         figures"
    } else {
        "run longer loops; look at the timeline before the figures"
    };
    (!open.is_empty()).then(|| {
        let message =
            format!("whether the loops were steady (within {:.0}%) is undecided: {}", 100.0 * LEAST, open.join("; "));
        Warning::new("steadiness-undecided", message, remedy)
    })
}

/// The shared trend of a metric, if the repeats are enough for an interval.
fn shared<'a>(trends: Option<&'a Trends>, metric: &str) -> Option<&'a SharedTrend> {
    trends?.metrics.get(metric).filter(|shared| shared.low.value().is_some())
}

/// An undecided trend in words, with its interval, which is too wide. `None` if it is decided, if there is no interval,
/// or if no figure depends on it.
pub fn undecided(metric: &str, course: &Course) -> Option<String> {
    let (_, words) = WATCHED.iter().find(|(known, _)| *known == metric)?;
    let is_open = course.settled == Settled::Undecided && is_reported(metric, course);
    changed(words, [&course.trend, &course.low, &course.high]).filter(|_| is_open)
}

/// `operations/s changed by -1.8% (95%: -12.0 to +8.5%)`; `None` without an interval.
fn changed(words: &str, change: [&Metric; 3]) -> Option<String> {
    let [trend, low, high] = change.map(|share| share.value().map(|share| 100.0 * share));
    Some(format!("{words} changed by {:+.1}% (95%: {:+.1} to {:+.1}%)", trend?, low?, high?))
}

#[cfg(test)]
mod tests {
    use rumba_results::record::Interval;

    use super::*;
    use crate::steady::tests::seconds;
    use crate::summarise;
    use crate::testing::{record, results};

    /// Operations per second that oscillate over fifteen seconds, so that they are worth almost no independent second.
    fn swaying(second: usize) -> f64 {
        (1000.0 + 300.0 * (second as f64 * 0.42).sin()).floor()
    }

    /// Every other second is half again as fast: a trend of 10% is not detectable in so few seconds.
    fn swinging() -> Vec<Interval> {
        let swing = |second: usize| if second.is_multiple_of(2) { 1000.0 } else { 1500.0 };
        seconds(14, swing, |second| 3.0 * swing(second))
    }

    /// The remarks on an engine whose repeats have these seconds.
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
    fn too_wide_interval_is_reported_per_trial_with_remedy() {
        for repeats in [1, 2] {
            let reported = remarks(vec![swinging(); repeats]);
            assert_eq!(reported.len(), repeats, "{reported:?}");
            for (Remark { about, warning }, repeat) in reported.iter().zip(1..) {
                assert_eq!((warning.code.as_str(), about.repeat), ("steadiness-undecided", Some(repeat)));
                let why = "whether the loops were steady (within 10%) is undecided: operations/s changed by +8.0% (95%: \
                           -7.8 to +23.8%)";
                assert_eq!(warning.message, why, "what is written of each operation stays the same");
                assert!(warning.remedy.contains("three or more repeats"), "{}", warning.remedy);
            }
        }
        // Only two of three repeats have a trend, so that no three share it, and a fourth repeat is not suggested.
        let reported = remarks(vec![swinging(), seconds(6, |_| 1000.0, |_| 3000.0), swinging()]);
        let of: Vec<Option<u32>> = reported.iter().map(|remark| remark.about.repeat).collect();
        assert_eq!(of, [Some(1), Some(3)]);
        assert_eq!(reported[0].warning.remedy, "run longer loops; look at the timeline before the figures");
    }

    /// Nine of ten trials had such a warning, which hid more serious ones.
    #[test]
    fn loops_without_interval_or_in_the_repeats_table_get_no_remark() {
        for repeats in [1, 2, 4] {
            assert_eq!(remarks(vec![sway(); repeats]), [], "their seconds depend on each other");
            let few = seconds(6, |_| 1000.0, |_| 10.0);
            assert_eq!(remarks(vec![few; repeats]), [], "the run says so once");
        }
        assert_eq!(remarks(vec![seconds(60, |_| 1000.0, |_| 3000.0)]), [], "what is steady is not warned of");
        assert_eq!(remarks(vec![Vec::new()]), [], "no second, no course");
    }

    #[test]
    fn repeats_together_decide_if_single_trials_cannot() {
        let slower = |second| if second < 30 { swaying(second) } else { (0.8 * swaying(second)).floor() };
        let reported = remarks(vec![seconds(60, slower, |second| 3.0 * slower(second)); 3]);
        let Remark { about, warning } = &reported[0];
        assert_eq!(
            (reported.len(), warning.code.as_str(), about),
            (1, "unsteady", &About::repeats("a", 8)),
            "{reported:?}"
        );
        assert!(warning.message.ends_with("%) in 3 repeats together: not a steady state"), "{}", warning.message);
        assert!(warning.message.starts_with("operations/s changed by -"), "{}", warning.message);
    }

    #[test]
    fn contradicting_repeats_are_each_reported_if_sure() {
        let line = |trend: f64| {
            let ops = move |second: usize| 1000.0 * (1.0 + trend * (second as f64 / 39.0 - 0.5));
            seconds(40, ops, |_| 9.0)
        };
        let reported = remarks([0.3, -0.3, 0.2, -0.2].map(line).into());
        let codes: Vec<&str> = reported.iter().map(|remark| remark.warning.code.as_str()).collect();
        assert_eq!(codes, ["unsteady", "unsteady", "unsteady", "unsteady"]);
    }
}
