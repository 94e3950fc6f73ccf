//! Change points: changes of the level of a time series.

use std::ops::Range;

use super::effective::{MOST_DEPENDENT, autocorrelation, effective, redness};
use super::trend::{FEWEST_INDEPENDENT, detrended};

/// An upper bound of the largest statistic of all windows in 95% of time series without a change, by the simulation in
/// the tests. The simulation gives 84 to 91 in time series of minutes, less in shorter ones. The bound is a little
/// higher because the autocorrelation is an estimate. For a single window it is 40.1 (Shao and Zhang, table 1).
const QUANTILE: f64 = 100.0;
/// The number of waves that dominate the statistic's measure of noise.
const WAVES: usize = 16;
/// The fewest intervals of a level.
const SHORTEST: usize = 10;

/// The first second of every new level, ascending.
///
/// Binary segmentation: the time series is split where a change is most certain, and each part is tested again. Changes
/// are searched in the whole time series and in windows of a half and a quarter of it that overlap by halves. The
/// windows are needed because two opposite changes hide each other in the whole. The narrowest window with a change
/// gives its position. If a straight line fits better than a step, it is a trend; a step smaller than `least` is
/// ignored.
///
/// Source: Kovács et al., Seeded binary segmentation, Biometrika 110, 2023.
pub fn changes(at: &[f64], values: &[f64], least: f64) -> Vec<usize> {
    let phi = dependence(values);
    let mut found = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((from, to)) = parts.pop() {
        let in_window = |window: Range<usize>| {
            let split = split(&at[window.clone()], &values[window.clone()], least, phi)?;
            Some(window.start + split)
        };
        if let Some(split) = windows(from, to).into_iter().find_map(in_window) {
            found.push(split);
            parts.extend([(from, split), (split, to)]);
        }
    }
    found.sort_unstable();
    found
}

/// The windows of a part, the narrowest first.
fn windows(from: usize, to: usize) -> Vec<Range<usize>> {
    let mut windows = Vec::new();
    for shares in [4, 2, 1] {
        let length = (to - from) / shares;
        if length >= 2 * SHORTEST {
            let starts = (0..2 * shares - 1).map(|half| from + half * length / 2);
            windows.extend(starts.map(|start| start..(start + length)));
        }
    }
    windows
}

/// The values less the mean of their level.
pub fn levelled(values: &[f64], changes: &[usize]) -> Vec<f64> {
    let ends = changes.iter().copied().chain([values.len()]);
    let starts = [0].into_iter().chain(changes.iter().copied());
    let levels = starts.zip(ends).map(|(from, to)| &values[from..to]);
    levels.flat_map(|level| level.iter().map(move |value| value - mean(level))).collect()
}

/// The change of level in a window, if it is significant; `phi` is the autocorrelation of the whole time series.
fn split(at: &[f64], values: &[f64], least: f64, phi: f64) -> Option<usize> {
    let (split, statistic) = largest(values)?;
    let (before, after) = values.split_at(split);
    let step = levelled(values, &[split]);
    let phi = phi.max(autocorrelation(&step));
    let independent = effective(&step).min(values.len() as f64 * (1.0 - phi) / (1.0 + phi));
    let stands = statistic > QUANTILE * redness(phi, values.len(), WAVES)
        && (mean(after) - mean(before)).abs() > least
        && independent >= FEWEST_INDEPENDENT
        && squares(&step) < squares(&detrended(at, values));
    stands.then_some(split)
}

/// The split with the largest statistic of Shao and Zhang's self-normalised CUSUM (Testing for change points in time
/// series, JASA 105, 2010). It measures the noise by the partial sums on both sides of the split, so that a change does
/// not inflate it. In long time series it is valid under any autocorrelation; in short ones [`redness`] corrects it.
fn largest(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    let level = mean(values);
    let forth = bridges(values.iter().map(|value| value - level));
    let back = bridges(values.iter().rev().map(|value| value - level));
    let statistic = |split: usize| {
        // The total is zero, so that the sum up to here is the bridge itself.
        let (sum, before) = forth[split - 1];
        let (_, after) = back[n - split - 1];
        let noise = before + after;
        // Without any noise every step is significant, and a step of zero is not.
        if noise > 0.0 { n as f64 * sum * sum / noise } else { sum * sum * f64::MAX }
    };
    let splits = SHORTEST..(n + 1).saturating_sub(SHORTEST);
    splits.map(|split| (split, statistic(split))).max_by(|one, other| one.1.total_cmp(&other.1))
}

/// For every first k values: their sum, and the sum of the squares of the bridge S(t) − t/k · S(k) over t = 1..k.
fn bridges(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let (mut sum, mut square, mut weighted, mut weights) = (0.0, 0.0, 0.0, 0.0);
    let bridge = |(index, value): (usize, f64)| {
        let k = (index + 1) as f64;
        sum += value;
        square += sum * sum;
        weighted += k * sum;
        weights += k * k;
        let slope = sum / k;
        (sum, (square - 2.0 * slope * weighted + slope * slope * weights).max(0.0))
    };
    values.enumerate().map(bridge).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

/// The autocorrelation from one second to the next, from the squared differences over two seconds and over one, whose
/// ratio is 1 + φ in an AR(1) series. The largest tenth of both is left out, so that changes of level do not affect it.
fn dependence(values: &[f64]) -> f64 {
    let over = |seconds: usize| {
        let later = values.iter().skip(seconds);
        let mut squares: Vec<f64> = values.iter().zip(later).map(|(now, later)| (later - now).powi(2)).collect();
        squares.sort_unstable_by(f64::total_cmp);
        squares.truncate(squares.len() - squares.len() / 10);
        mean(&squares)
    };
    let one = if values.len() > 2 { over(1) } else { 0.0 };
    if one > 0.0 { (over(2) / one - 1.0).clamp(0.0, MOST_DEPENDENT) } else { 0.0 }
}
