//! The engines of one run compared with one of them, with intervals and verdicts.

use rumba_results::comparability::Unequal;
use rumba_results::comparison::{PhaseFigures, Summary};
use rumba_results::metric::Metric;
use rumba_results::ratio::{Change, MAIN_SHARE};
use rumba_results::starts::Scope;
use rumba_results::{distinct, entry};

use super::columns::{self, Column, Source};
use super::comparison::is_decided;
use super::grid::{Footnotes, Grid};
use super::suite::group_lines;
use super::{name_cells, name_heads, row_name};
use crate::format::{RESOLUTION, interval, ratio};

const THIS_LOAD: &str = "  all of this holds for this load only: the repeats are starts of one load; repeats_from = \"load\" asks others too\n";
const LEGEND: &str =
    "  + better, - worse, = the same within 1%, ? undecided, 1x single run, void the same engine on both sides; below a ratio its 95% interval
  each of these verdicts, about headlines, errs in at most 5% of cases; verdicts about other metrics (page, JSON) have
  a false discovery rate of 5% together
";

/// A verdict as a mark after a ratio.
fn mark(change: Change) -> &'static str {
    match change {
        Change::Better => " +",
        Change::Worse => " -",
        Change::Same => " =",
        Change::Differs => " !",
        Change::Undecided => " ?",
        Change::SingleRun => " 1x",
        Change::Void => " void",
    }
}

/// Every engine compared with the baseline at the same number of clients.
pub fn relative(summary: &Summary, baseline: Option<&str>) -> String {
    let Some(baseline) = baseline.or(summary.default_baseline()) else { return String::new() };
    if summary.rows.iter().filter(|row| row.run.is_some()).count() < 2 || summary.engines_alone().len() < 2 {
        return String::new();
    }
    let columns = columns::relative(
        &summary.rows,
        |source| is_judged(summary, baseline, source),
        |metric| is_headline(summary, baseline, metric),
    );
    let mut grid = Grid::new(columns.iter().map(|column| column.head.clone()).chain(name_heads(summary)).collect());
    let mut footnotes = Footnotes::default();
    let mut more = 0;
    for row in &summary.rows {
        let base = summary.row_of_baseline(baseline, row).and_then(|base| base.run.as_ref());
        let Some(figures) = row.run.as_ref() else { continue };
        let against = summary.relative(baseline, &row.engine, row.clients);
        let tested = |column: &Column| against.and_then(|against| against.metric(&column.source.ratio_name()));
        let cell = |column: &Column| {
            let verdict = tested(column).map_or("", |tested| mark(tested.change));
            let figure = match ratio_to(base, figures, column) {
                // In a row with verdicts, a ratio without one could be mistaken for a verdict.
                Metric::Value(_) if against.is_some() && tested(column).is_none() => rare(),
                figure => figure,
            };
            footnotes.cell(&figure, &column.head, &row_name(summary, row, &[row.clients]), |value| {
                format!("{}{verdict}", ratio(value))
            })
        };
        grid.push(columns.iter().map(cell).chain(name_cells(summary, row, &[row.clients])).collect());
        let intervals: Vec<String> =
            columns.iter().map(|column| tested(column).and_then(interval).unwrap_or_default()).collect();
        if intervals.iter().any(|interval| !interval.is_empty()) {
            grid.push(intervals.into_iter().chain(name_heads(summary).iter().map(|_| String::new())).collect());
        }
        more = columns.iter().filter_map(|column| tested(column)?.more_repeats).fold(more, u32::max);
    }
    if grid.is_empty() {
        return String::new();
    }
    let title = format!("Relative to {baseline} (1.00 is the same; tps: more is better, all else: less is)");
    let this_load = if is_of_one_load(summary, baseline) { THIS_LOAD } else { "" };
    let more = match more {
        0 => String::new(),
        1 => "  1 more repeat of each engine would probably decide the `?` that are not too noisy\n".to_owned(),
        more => format!("  {more} more repeats of each engine would probably decide the `?` that are not too noisy\n"),
    };
    let against = summary.relative.iter().find(|relative| relative.baseline == baseline);
    let together = against.and_then(|against| against.headline_verdicts.sentence());
    let together = together.map(|sentence| format!("  {sentence}\n")).unwrap_or_default();
    let notes = left_undecided(summary, baseline) + &withheld(summary, baseline) + &not_alike(summary, baseline);
    let group = group_lines(summary, baseline);
    format!("\n{title}\n{group}{}{}{LEGEND}{this_load}{together}{more}{notes}", grid.render(), footnotes.render())
}

/// Whether some verdict against the baseline holds for this load only.
fn is_of_one_load(summary: &Summary, baseline: &str) -> bool {
    let mut ratios = summary.relative_to(baseline).iter().flat_map(|row| &row.metrics);
    ratios.any(|ratio| ratio.scope == Scope::ThisLoad && is_decided(ratio.change))
}

/// Whether some engine has a verdict on it against the baseline.
fn is_judged(summary: &Summary, baseline: &str, source: &Source) -> bool {
    let name = source.ratio_name();
    summary.relative_to(baseline).iter().any(|row| row.metric(&name).is_some())
}

/// Whether a metric has its own verdict for some engine.
fn is_headline(summary: &Summary, baseline: &str, metric: &str) -> bool {
    let mut rows = summary.relative_to(baseline).iter();
    rows.any(|row| row.metric(metric).is_some_and(|ratio| ratio.headline))
}

/// The reason why a percentile carries no verdict.
fn rare() -> Metric {
    let least = MAIN_SHARE * 100.0;
    Metric::absent(format!(
        "fewer than {least:.0}% of the baseline's operations are of this type: it carries no verdict"
    ))
}

/// The reasons for withheld verdicts: the same engine twice, a disturbed host, a large drain. Figures that repeats lack
/// are reported in the notes of their engine.
fn withheld(summary: &Summary, baseline: &str) -> String {
    let ratios = summary.relative_to(baseline).iter().flat_map(|row| &row.metrics);
    let lines = ratios.filter(|ratio| ratio.headline).filter_map(|ratio| {
        let is_of_repeats = |why: &&String| why.starts_with("of the base, ") || why.starts_with("of the other, ");
        let why = ratio.lacking.as_ref().filter(|why| !is_of_repeats(why))?;
        let word = if ratio.change == Change::Void { "void" } else { "undecided" };
        Some(format!("  {word} because {why}\n"))
    });
    distinct(lines).concat()
}

/// Engines without a verdict because a repeat's data failed its verification.
fn left_undecided(summary: &Summary, baseline: &str) -> String {
    let reasons = summary.relative_to(baseline).iter().filter_map(|row| row.unsound.as_deref());
    distinct(reasons).into_iter().map(|why| format!("  undecided because {why}\n")).collect()
}

/// Conditions in which engines differ from the baseline, a line for each kind of difference.
fn not_alike(summary: &Summary, baseline: &str) -> String {
    let mut reported: Vec<(String, Vec<&str>)> = Vec::new();
    for against in summary.relative_to(baseline) {
        let Some(row) = summary.row(&against.engine, against.clients) else { continue };
        for words in against.comparability.iter().map(Unequal::words) {
            let engines = entry(&mut reported, words);
            if !engines.contains(&row.engine_alone()) {
                engines.push(row.engine_alone());
            }
        }
    }
    let line = |(words, engines): (String, Vec<&str>)| {
        format!("  not alike with {baseline}, {words}: {}\n", engines.join(", "))
    };
    reported.into_iter().map(line).collect()
}

fn ratio_to(base: Option<&PhaseFigures>, figures: &PhaseFigures, column: &Column) -> Metric {
    let Some(base) = base else { return Metric::absent("the baseline has no figures with this number of clients") };
    match column.median(base) {
        Metric::Value(base) if base < RESOLUTION => {
            Metric::absent(format!("the baseline's figure is below {RESOLUTION}, too small to divide by"))
        }
        Metric::Value(base) => column.median(figures).map(|value| value / base),
        absent => absent,
    }
}
