//! Whether the repeats of each engine share a trend over their loops.

use rumba_results::comparison::Summary;
use rumba_results::course::{Settled, SharedTrend};

use super::grid::{Footnotes, Grid};
use super::{name_cells, name_heads, row_name};

/// The columns: headings, and the metrics' stable names.
const COLUMNS: [(&str, &str); 2] = [("tps", "ops_per_s"), ("wkb/t", "wkb_per_op")];

/// The trends that repeats share; empty if no row has enough repeats.
pub fn trends(summary: &Summary) -> String {
    let heads = COLUMNS.iter().map(|(head, _)| (*head).to_owned());
    let mut grid = Grid::new(heads.chain(name_heads(summary)).collect());
    let mut footnotes = Footnotes::default();
    for found in summary.trends.iter().filter(|found| found.metrics.values().any(|shared| shared.low.value().is_some()))
    {
        let Some(row) = summary.row(&found.engine, found.clients) else { continue };
        let name = row_name(summary, row, &[row.clients]);
        let cell = |&(head, metric): &(&str, &str)| {
            let Some(shared) = found.metrics.get(metric) else { return "-".to_owned() };
            footnotes.cell(&shared.low, head, &name, |low| words(shared, low))
        };
        grid.push(COLUMNS.iter().map(cell).chain(name_cells(summary, row, &[row.clients])).collect());
    }
    if grid.is_empty() {
        return String::new();
    }
    format!(
        "\nChange over the loops that the repeats share: twice the second half less the first, over the mean (95%)\n{}{}  \
         steady: all of the interval lies within 10%; rising, falling: surely, and by more than 10%\n",
        grid.render(),
        footnotes.render()
    )
}

fn words(shared: &SharedTrend, low: f64) -> String {
    let settled = match shared.settled {
        Settled::Steady => "steady",
        Settled::Rising => "rising",
        Settled::Falling => "falling",
        Settled::Undecided => "undecided",
    };
    let signed = |share: f64| match share * 100.0 {
        percent if percent.abs() < 9.95 => format!("{percent:+.1}"),
        percent => format!("{percent:+.0}"),
    };
    let (trend, high) = (shared.trend.value().unwrap_or_default(), shared.high.value().unwrap_or_default());
    format!("{}% ({} to {}) {settled}", signed(trend), signed(low), signed(high))
}
