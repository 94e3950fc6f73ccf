//! The table of one run against another.

use std::fmt::Write as _;

use rumba_core::comparison::{Change, Compared, ComparedRow, Comparison, Part, Side};
use rumba_core::metric::Metric;

use super::grid::{Footnotes, Grid};
use super::notes::failures;
use crate::format::{SizeUnit, counted, ratio, significant};

/// One run against another, ready to print: per engine, clients and metric both
/// medians, their ratio, and its interval over the repeats.
pub fn comparison_table(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (role, side) in [("base ", &comparison.base), ("other", &comparison.other)] {
        let _ = writeln!(text, "{role}  {}  {}  rumba {}", side.name, side.started, side.rumba);
    }
    text.push_str(&conditions(comparison));
    for row in &comparison.rows {
        text.push_str(&compared_row(row, comparison.level));
    }
    if comparison.rows.is_empty() {
        text.push_str("\nNothing to compare: no engine has the same name and number of clients in both.\n");
    } else {
        let _ = writeln!(
            text,
            "\nratio: median of other over median of base; interval: {:.0}% bootstrap of that ratio, the repeats drawn \
             again {} times from a fixed seed; with few repeats it is about their whole range. Within noise: the \
             interval holds 1, or the ratio is less than 1% away from it.",
            comparison.level * 100.0,
            comparison.resamples
        );
    }
    text.push_str(&side_notes("base", &comparison.base));
    text.push_str(&side_notes("other", &comparison.other));
    text
}

fn conditions(comparison: &Comparison) -> String {
    if comparison.conditions.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(vec!["condition".to_owned(), "base".to_owned(), "other".to_owned()]).left(0).left(1);
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    for change in &comparison.conditions {
        grid.push(vec![change.name.clone(), shown(&change.base), shown(&change.other)]);
    }
    format!("\nNot the same in both\n{}", grid.render())
}

fn compared_row(row: &ComparedRow, level: f64) -> String {
    let heads = ["metric", "unit", "base", "other", "ratio", &format!("{:.0}% interval", level * 100.0), "change"];
    let mut grid = Grid::new(heads.iter().map(|&head| head.to_owned()).collect()).left(0).left(1);
    let mut footnotes = Footnotes::default();
    for compared in &row.metrics {
        let mut cell = |metric: &Metric, column: &str, show: &dyn Fn(f64) -> String| {
            footnotes.cell(metric, column, &compared.metric, show)
        };
        let (unit, show) = unit_of(compared);
        let (base, other) = (cell(&compared.base.median, "base", &show), cell(&compared.other.median, "other", &show));
        let ratio_cell = cell(&compared.ratio, "ratio", &ratio);
        let interval = match (&compared.low, &compared.high) {
            (Metric::Value(low), Metric::Value(high)) => format!("{}–{}", ratio(*low), ratio(*high)),
            (low, _) => cell(low, "interval", &ratio),
        };
        grid.push(vec![
            compared.metric.clone(),
            unit,
            base,
            other,
            ratio_cell,
            interval,
            change_word(compared).to_owned(),
        ]);
    }
    let part = match row.part {
        Part::Load => "load",
        Part::Run => "loops",
    };
    let clients = counted(row.clients as usize, "client");
    format!("\n{}, {clients}, {part}\n{}{}", row.engine, grid.render(), footnotes.render())
}

/// The unit that a metric is shown in and how; bytes as MB or GB, the same on both sides.
fn unit_of(compared: &Compared) -> (String, Box<dyn Fn(f64) -> String>) {
    if compared.unit != "B" {
        return (compared.unit.clone(), Box::new(significant));
    }
    let medians = [&compared.base.median, &compared.other.median];
    let unit = SizeUnit::for_largest(medians.into_iter().filter_map(Metric::value).fold(0.0, f64::max));
    (unit.name.to_owned(), Box::new(move |bytes| unit.show(bytes)))
}

fn change_word(compared: &Compared) -> &'static str {
    match compared.change {
        Change::Better => "better",
        Change::Worse => "worse",
        Change::Differs => "differs",
        Change::WithinNoise => "within noise",
        Change::Undecided => "undecided",
    }
}

fn side_notes(role: &str, side: &Side) -> String {
    let mut text = failures(&format!("Did not end as planned in {role}"), &side.unfinished);
    if !side.alone.is_empty() {
        let _ = write!(text, "\nOnly in {role}: {}\n", side.alone.join(", "));
    }
    text
}
