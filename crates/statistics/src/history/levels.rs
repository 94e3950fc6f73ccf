//! Finds changes in the level of a figure over the runs of a history.
//!
//! The change points within a run require levels of ten seconds. A history has a handful of runs with a handful of
//! repeats, and can change only between runs. The samples are therefore repeats, and the possible change points are the
//! borders of runs. The test is of the same kind as that of a verdict: if nothing had changed, every way of dealing the
//! repeats to the runs was equally likely. The statistic is the maximum over all borders, so that testing many borders
//! does not raise the error rate.

use std::ops::Range;

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_results::history::LevelChange;
use rumba_results::ratio::{LEVEL, SAME_MARGIN};

use crate::exact::mean;
use crate::welch::ROUNDING;

/// The number of deals drawn.
const DRAWN: usize = 9_999;
/// Fixed, so that the same results always give the same report.
const SEED: u64 = 0x68_69_73_74_6f_72_79;

/// The changes, in the order of the runs; `repeats` has those of each run. Binary segmentation: the history is split at
/// the largest change, if it is significant, and each part is tested again.
pub fn changes(labels: &[&str], repeats: &[Vec<f64>]) -> Vec<LevelChange> {
    // A run without the figure is not part of the history.
    let runs: Vec<usize> = (0..repeats.len()).filter(|run| !repeats[*run].is_empty()).collect();
    let is_positive = runs.iter().all(|run| repeats[*run].iter().all(|value| *value > 0.0));
    let scaled = |value: f64| if is_positive { value.ln() } else { value };
    let samples: Vec<Vec<f64>> =
        runs.iter().map(|run| repeats[*run].iter().map(|value| scaled(*value)).collect()).collect();
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut parts = vec![(0, samples.len())];
    while let Some((from, to)) = parts.pop() {
        if let Some((split, p)) = split(&samples[from..to]) {
            found.push((from + split, p));
            parts.extend([(from, from + split), (from + split, to)]);
        }
    }
    found.sort_unstable_by_key(|(split, _)| *split);
    let borders: Vec<usize> =
        [0].into_iter().chain(found.iter().map(|(split, _)| *split)).chain([runs.len()]).collect();
    let level = |from: usize, to: usize| {
        let all: Vec<f64> = runs[from..to].iter().flat_map(|run| repeats[*run].iter().copied()).collect();
        mean(&all).unwrap_or_default()
    };
    let change = |(number, (split, p)): (usize, &(usize, f64))| LevelChange {
        after: labels[runs[split - 1]].to_owned(),
        at: labels[runs[*split]].to_owned(),
        from: level(borders[number], *split),
        to: level(*split, borders[number + 2]),
        p: *p,
    };
    let changes = found.iter().enumerate().map(change);
    changes.filter(|change| !is_positive || (change.to / change.from - 1.0).abs() > SAME_MARGIN).collect()
}

/// The border with the largest change of all windows, and its p-value, if less than 5% of deals have one as large.
fn split(runs: &[Vec<f64>]) -> Option<(usize, f64)> {
    let ends = runs.iter().scan(0, |end, run| {
        *end += run.len();
        Some(*end)
    });
    let ends: Vec<usize> = ends.collect();
    let mut figures: Vec<f64> = runs.concat();
    let (place, seen) = largest(&figures, &ends)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut reached = 1;
    for _ in 0..DRAWN {
        for from in 0..figures.len() - 1 {
            let drawn = random.random_range(from..figures.len());
            figures.swap(from, drawn);
        }
        let dealt = largest(&figures, &ends).map_or(0.0, |(_, statistic)| statistic);
        reached += usize::from(dealt >= seen * (1.0 - ROUNDING));
    }
    let p = reached as f64 / (DRAWN + 1) as f64;
    (p <= 1.0 - LEVEL).then_some((place + 1, p))
}

/// The border within a window with the largest difference of means, relative to the number of figures on both sides;
/// `None` if all figures are equal. The noise of all figures is the same for each deal, so no normalisation is needed.
/// Windows are used because two opposite changes hide each other in the whole.
fn largest(figures: &[f64], ends: &[usize]) -> Option<(usize, f64)> {
    let mut sums = vec![0.0];
    sums.extend(figures.iter().scan(0.0, |sum, figure| {
        *sum += figure;
        Some(*sum)
    }));
    // The first index of a run, which is the end of the run before it.
    let start = |run: usize| if run == 0 { 0 } else { ends[run - 1] };
    let mut most = None;
    for window in windows(ends.len()) {
        let (from, to) = (start(window.start), start(window.end));
        for run in window.start + 1..window.end {
            let border = start(run);
            let (before, after) = ((border - from) as f64, (to - border) as f64);
            let means = (sums[border] - sums[from]) / before - (sums[to] - sums[border]) / after;
            let apart = means.powi(2) * before * after / (before + after);
            if apart > ROUNDING * ROUNDING && most.is_none_or(|(_, largest)| apart > largest) {
                most = Some((run - 1, apart));
            }
        }
    }
    most
}

/// All runs, and windows of halves of them that overlap by halves, down to two neighbours (as within a run).
fn windows(runs: usize) -> impl Iterator<Item = Range<usize>> {
    let lengths = std::iter::successors(Some(runs), |length| Some(length.div_ceil(2)).filter(|next| next < length));
    lengths.filter(|length| *length >= 2).flat_map(move |length| {
        let step = (length / 2).max(1);
        (0..=(runs - length)).step_by(step).map(move |start| start..start + length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

    /// Four repeats of each run around its level, with noise of a percent.
    fn repeats(levels: &[f64], seed: u64) -> Vec<Vec<f64>> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut noise = || 1.0 + 0.02 * (random.random_range(0.0..1.0) - 0.5);
        levels.iter().map(|level| (0..4).map(|_| level * noise()).collect()).collect()
    }

    fn places(levels: &[f64]) -> Vec<(String, String)> {
        let found = changes(&LABELS[..levels.len()], &repeats(levels, 1));
        found.into_iter().map(|change| (change.after, change.at)).collect()
    }

    fn pair(after: &str, at: &str) -> (String, String) {
        (after.to_owned(), at.to_owned())
    }

    #[test]
    fn step_is_named_by_adjacent_runs_and_steady_history_has_none() {
        assert_eq!(places(&[100.0, 100.0, 100.0, 90.0, 90.0, 90.0]), [pair("3", "4")]);
        assert_eq!(places(&[100.0; 8]), []);
        assert_eq!(places(&[100.0, 100.0, 100.0, 80.0, 80.0, 100.0, 100.0, 100.0]), [pair("3", "4"), pair("5", "6")]);
        assert_eq!(places(&[100.0, 95.0]), [pair("1", "2")], "four repeats of each of two runs suffice");
    }

    #[test]
    fn levels_are_means_between_changes_and_skip_empty_runs() {
        let mut repeats = repeats(&[100.0, 100.0, 0.0, 50.0, 50.0], 1);
        repeats[2].clear();
        let found = changes(&LABELS[..5], &repeats);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].after.as_str(), found[0].at.as_str()), ("2", "4"));
        assert!((found[0].from - 100.0).abs() < 1.0 && (found[0].to - 50.0).abs() < 1.0 && found[0].p < 0.01);
    }

    #[test]
    fn change_below_1_percent_is_ignored_and_zeros_are_compared() {
        assert_eq!(changes(&LABELS[..2], &[vec![100.0; 6], vec![100.5; 6]]), []);
        let risen = changes(&LABELS[..2], &[vec![0.0, 0.0, 0.1, 0.0], vec![3.0, 4.0, 3.0, 5.0]]);
        assert_eq!(risen.len(), 1);
    }

    #[test]
    fn at_most_5_percent_of_unchanged_histories_show_a_change() {
        let noisy = |seed: u64| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            (0..6).map(|_| (0..4).map(|_| 100.0 + random.random_range(0.0..40.0)).collect()).collect::<Vec<Vec<f64>>>()
        };
        let wrong = (0..200).filter(|seed| !changes(&LABELS[..6], &noisy(100 + seed)).is_empty()).count();
        // 10 of 200 are expected; more than 19 would be three standard errors above.
        assert!(wrong <= 19, "{wrong} of 200");
    }
}
