//! `until_decided`: whether a run needs another repeat.

use std::path::Path;

use rumba_engine_api::units::counted;
use rumba_results::ratio::{Change, Ratio};
use rumba_results::results::Results;

use crate::{spec, store};

/// At most this many open headlines are named; the rest are counted.
const NAMED: usize = 3;

/// Whether the results decide every headline and have no trial of this repeat. Shows the open headlines.
pub fn is_decided(results: &Path, repeat: u32, say: &dyn Fn(&str)) -> bool {
    let Ok(read) = store::read(results) else { return false };
    if read.trials.iter().any(|trial| trial.record.plan.repeat >= repeat) {
        return false;
    }
    let (open, repeats) = (open(&read), counted(repeat as usize - 1, "repeat"));
    match open.len() {
        0 => say(&format!("every headline is decided after {repeats}: the run ends")),
        all => {
            let rest = if all > NAMED { format!(" and {} more", all - NAMED) } else { String::new() };
            say(&format!("after {repeats} undecided: {}{rest}", open[..all.min(NAMED)].join(", ")));
        }
    }
    open.is_empty()
}

/// The undecided headlines: of the compared sides, or of all engines over the first.
fn open(results: &Results) -> Vec<String> {
    if let Some(comparison) = rumba_statistics::compare_sides(results, &spec::pairs_of(&results.experiment)) {
        let rows = comparison.rows.iter();
        let named = rows.flat_map(|row| row.metrics.iter().map(|compared| (row.engine.as_str(), &compared.ratio)));
        return undecided(named);
    }
    let summary = rumba_statistics::summarise(results);
    let rows = summary.default_baseline().into_iter().flat_map(|baseline| summary.relative_to(baseline));
    undecided(rows.flat_map(|row| row.metrics.iter().map(|ratio| (row.engine.as_str(), ratio))))
}

fn undecided<'a>(ratios: impl Iterator<Item = (&'a str, &'a Ratio)>) -> Vec<String> {
    // More repeats do not decide a figure that is missing: this server does not report it, or a percentile has too few
    // samples in each repeat.
    let is_open = |ratio: &Ratio| {
        ratio.headline && ratio.has_figure() && matches!(ratio.change, Change::Undecided | Change::SingleRun)
    };
    ratios.filter(|(_, ratio)| is_open(ratio)).map(|(engine, ratio)| format!("{} of {engine}", ratio.metric)).collect()
}

#[cfg(test)]
mod tests {
    use rumba_results::metric::Metric;

    use super::*;

    #[test]
    fn only_a_headline_that_has_a_figure_is_open() {
        let of = |metric: &str, ratio: Metric, headline| Ratio {
            metric: metric.to_owned(),
            unit: String::new(),
            headline,
            ratio,
            low: Metric::absent("undecided"),
            high: Metric::absent("undecided"),
            change: Change::Undecided,
            scope: Default::default(),
            p: None,
            more_repeats: None,
            lacking: None,
        };
        let ratios = [
            of("ops_per_s", 1.1.into(), true),
            of("rkb_per_op", Metric::absent("no device"), true),
            of("rss_bytes", 1.2.into(), false),
        ];
        assert_eq!(undecided(ratios.iter().map(|ratio| ("b", ratio))), ["ops_per_s of b"]);
    }
}
