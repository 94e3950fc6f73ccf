//! The table of one run compared with another.

use std::fmt::Write as _;

use rumba_results::comparability::Unequal;
use rumba_results::comparison::{Compared, ComparedRow, Comparison, Part, Side};
use rumba_results::metric::Metric;
use rumba_results::ratio::{Change, Ratio};
use rumba_results::starts::Starts;
use rumba_results::written::{WrittenChange, WrittenKind};

use super::grid::{Footnotes, Grid};
use super::notes::failures;
use crate::format::{counted, interval, ratio, several, shown_in, significant};

/// The share of a change outside of all counters that is worth reporting.
const REST_WORTH: f64 = 0.1;

/// One run compared with another, ready to print: for each engine a table of the headlines with both medians, their
/// ratio, its interval and the verdict; then the differing conditions. With `details`, the tables have every metric.
pub fn comparison_table(comparison: &Comparison, details: bool) -> String {
    let mut text = String::new();
    for row in &comparison.rows {
        text.push_str(&compared_row(row, comparison.level, details));
        if !row.comparability.is_empty() {
            let words: Vec<String> = row.comparability.iter().map(Unequal::words).collect();
            let _ = writeln!(text, "  other and base differ in {}", words.join("; "));
        }
        row.written.iter().for_each(|change| text.push_str(&format!("  {}\n", written(change))));
    }
    if comparison.rows.is_empty() {
        text.push_str("No engine has the same name and number of clients in both runs, so there is no comparison.\n");
    }
    text.push('\n');
    for (role, side) in [("base ", &comparison.base), ("other", &comparison.other)] {
        let _ = writeln!(text, "{role}  {}  {}  rumba {}", side.name, side.started, side.rumba);
    }
    if !comparison.interleaved {
        text.push_str(
            "Not interleaved: the trials of the two runs did not go in turns, so what the host did between them is part of \
             every ratio and in no interval: verdicts err more often than it says (docs/method.md has how often). \
             `rumba ab` takes turns.\n",
        );
    }
    text.push_str(&conditions(comparison));
    if !comparison.rows.is_empty() {
        text.push_str(&legend(comparison, details));
    }
    text.push_str(&side_notes("base", &comparison.base));
    text.push_str(&side_notes("other", &comparison.other));
    text
}

fn legend(comparison: &Comparison, details: bool) -> String {
    let (level, margin) = (comparison.level * 100.0, comparison.margin * 100.0);
    let (of, together) = match comparison.interleaved {
        true => ("", "together"),
        false => (" of runs that take turns", "together, of runs that take turns"),
    };
    let text = format!(
        "\nratio: median of other over median of base; interval: {level:.0}%, all ratios that the permutation and Welch tests \
         over the repeats do not both reject. Better, worse: the interval excludes 1, which errs in at most {:.0}% of \
         cases for each headline metric{of}; same: all of it within {margin:.0}% of 1; single run: one repeat.",
        100.0 - level
    );
    let together_wrong = comparison.headline_verdicts.sentence().map(|sentence| format!(" {sentence}"));
    let text = text + &together_wrong.unwrap_or_default();
    let rate = format!("the verdicts of all others have a false discovery rate of 5% {together}");
    text + &match details {
        true => format!(" Metrics marked * are the headlines; {rate}.\n"),
        false => " --details shows every metric.\n".to_owned(),
    }
}

/// The changes of an engine: `rocksdb, 8 clients, loops, 4 and 4 repeats from one load of each: better ops_per_s 1.20
/// (1.18–1.22); same data_bytes`. Verdicts over runs that did not take turns begin with a note.
pub fn outline(row: &ComparedRow) -> String {
    let who = title(row);
    if let Some(why) = &row.unsound {
        return format!("{who}: undecided, because {why}\n");
    }
    let headlines: Vec<&Ratio> = row.metrics.iter().map(|c| &c.ratio).filter(|ratio| ratio.headline).collect();
    let mut parts = Vec::new();
    for change in Change::ALL {
        let of_change: Vec<String> =
            headlines.iter().filter(|ratio| ratio.change == change).map(|ratio| named(ratio)).collect();
        let word = match change {
            Change::Undecided => "undecided (about so many more repeats would decide)",
            decided => change_word(decided),
        };
        let scope = if is_decided(change) { row.scope().words() } else { "" };
        if !of_change.is_empty() {
            parts.push(format!("{word}{scope} {}", of_change.join(", ")));
        }
    }
    if parts.is_empty() {
        parts.push("no headline metric has figures".to_owned());
    }
    // Without a test there is no verdict that drift could have influenced.
    let is_tested = headlines.iter().any(|ratio| ratio.p.is_some());
    let turns = if row.in_turns || !is_tested { "" } else { "the runs did not take turns: " };
    format!("{who}: {turns}{}\n", parts.join("; "))
}

/// The causes of a change in bytes written: `KB written per operation, with deferred writes, 15.0 to 7.96: doublewrite
/// (6.90 to 0) accounts for 99% of that`.
pub fn written(change: &WrittenChange) -> String {
    let WrittenChange { base, other, kinds, rest } = change;
    let percent = |share: f64| format!("{:.0}%", share.abs() * 100.0);
    let mut reported: Vec<String> = Vec::new();
    for WrittenKind { kind, base, other, share } in kinds {
        let what = format!("{kind} ({} to {})", significant(*base), significant(*other));
        reported.push(match (*share < 0.0, reported.is_empty()) {
            (true, _) => format!("{what} went {} the other way", percent(*share)),
            (false, true) => format!("{what} accounts for {} of that", percent(*share)),
            (false, false) => format!("{what} for {}", percent(*share)),
        });
    }
    if reported.is_empty() {
        reported.push("no counter of the engine explains it".to_owned());
    } else if *rest > REST_WORTH {
        reported.push(format!("{} is in no counter of the engine", percent(*rest)));
    }
    let (base, other) = (significant(*base), significant(*other));
    format!("KB written per operation, with deferred writes, {base} to {other}: {}", reported.join(", "))
}

/// A ratio in an outline: with its interval, or with the number of further repeats that it needs.
fn named(compared: &Ratio) -> String {
    let name = &compared.metric;
    let Some(value) = compared.ratio.value() else { return name.clone() };
    let interval = interval(compared).map(|interval| format!(" ({interval})")).unwrap_or_default();
    let more = compared.more_repeats.map(|more| format!(" ({more})"));
    format!("{name} {}{interval}{}", ratio(value), more.unwrap_or_default())
}

/// `1 client`; `1, 4 clients` for a load that several numbers of clients share.
pub fn clients(row: &ComparedRow) -> String {
    if row.all_clients.len() > 1 {
        several(&row.all_clients) + " clients"
    } else {
        counted(row.clients as usize, "client")
    }
}

/// The scope of verdicts about loops: `, 4 and 4 repeats from one load of each`. Empty for a load, because each repeat
/// is a separate load, and for a single repeat, which has no verdict.
fn starts(row: &ComparedRow) -> String {
    let sides = [row.base_starts, row.other_starts];
    let words = Starts::words(&sides);
    if row.part == Part::Load || words.is_empty() {
        return String::new();
    }
    format!(", {} and {} repeats{words}", sides[0].repeats, sides[1].repeats)
}

pub fn part_word(part: Part) -> &'static str {
    match part {
        Part::Load => "load",
        Part::Run => "loops",
    }
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

/// `rocksdb, 8 clients, loops, 4 and 4 repeats from one load of each`
fn title(row: &ComparedRow) -> String {
    format!("{}, {}, {}{}", row.engine, clients(row), part_word(row.part), starts(row))
}

fn compared_row(row: &ComparedRow, level: f64, details: bool) -> String {
    if row.unsound.is_some() {
        return outline(row);
    }
    let heads = ["metric", "unit", "base", "other", "ratio", &format!("{:.0}% interval", level * 100.0), "change"];
    let mut grid = Grid::new(heads.iter().map(|&head| head.to_owned()).collect()).left(0).left(1);
    let mut footnotes = Footnotes::default();
    for compared in row.metrics.iter().filter(|compared| details || compared.ratio.headline) {
        let mut cell = |metric: &Metric, column: &str, show: &dyn Fn(f64) -> String| {
            footnotes.cell(metric, column, &compared.ratio.metric, show)
        };
        let (unit, show) = unit_of(compared);
        let (base, other) = (cell(&compared.base.median, "base", &show), cell(&compared.other.median, "other", &show));
        let ratio_cell = cell(&compared.ratio.ratio, "ratio", &ratio);
        let interval = interval(&compared.ratio).unwrap_or_else(|| cell(&compared.ratio.low, "interval", &ratio));
        grid.push(vec![
            format!("{}{}", compared.ratio.metric, if details && compared.ratio.headline { " *" } else { "" }),
            unit,
            base,
            other,
            ratio_cell,
            interval,
            verdict_word(&compared.ratio) + &repeats_to_decide(&compared.ratio),
        ]);
    }
    if grid.is_empty() {
        return format!("{}: no headline metric has figures\n", title(row));
    }
    format!("{}\n{}{}\n", title(row), grid.render(), footnotes.render())
}

/// `; 12 more repeats` for an undecided ratio that they would decide.
fn repeats_to_decide(ratio: &Ratio) -> String {
    let more = ratio.more_repeats.filter(|_| ratio.change == Change::Undecided);
    more.map(|more| format!("; {}", counted(more as usize, "more repeat"))).unwrap_or_default()
}

/// The unit and the format of a metric; bytes as MB or GB, the same on both sides.
pub fn unit_of(compared: &Compared) -> (String, Box<dyn Fn(f64) -> String>) {
    let medians = [&compared.base.median, &compared.other.median];
    shown_in(&compared.ratio.unit, medians.into_iter().filter_map(Metric::value))
}

/// Whether it is a finding that the next repeats would confirm.
pub fn is_decided(change: Change) -> bool {
    matches!(change, Change::Better | Change::Worse | Change::Same | Change::Differs)
}

/// A verdict with its scope: `better for this load`.
pub fn verdict_word(tested: &Ratio) -> String {
    let scope = if is_decided(tested.change) { tested.scope.words() } else { "" };
    format!("{}{scope}", change_word(tested.change))
}

pub fn change_word(change: Change) -> &'static str {
    match change {
        Change::Better => "better",
        Change::Worse => "worse",
        Change::Same => "same",
        Change::Differs => "differs",
        Change::Undecided => "undecided",
        Change::SingleRun => "single run",
        Change::Void => "void",
    }
}

fn side_notes(role: &str, side: &Side) -> String {
    let mut text = failures(&format!("Did not end as planned in {role}"), &side.unfinished);
    if !side.alone.is_empty() {
        let _ = write!(text, "\nOnly in {role}: {}\n", side.alone.join(", "));
    }
    text
}
