//! The history of a benchmark: tables for a terminal, Markdown, CSV and JSON.

use std::fmt::Write as _;

use rumba_engine_api::printable::on_a_line;
use rumba_results::comparison::Part;
use rumba_results::gate::Gated;
use rumba_results::history::{Axis, History, LevelChange, Line, Step};
use rumba_results::ratio::{Change, Ratio};
use rumba_results::record::FORMAT;
use rumba_results::starts::Scope;
use schemars::JsonSchema;
use serde::Serialize;

use crate::csv::{Lines, both, number, word};
use crate::format::{counted, interval, ratio, shown_in};
use crate::json::schema_of;
use crate::tables::comparison::{change_word, is_decided, part_word, verdict_word};
use crate::tables::grid::Grid;
use crate::tables::markdown::{escaped, folded, list, table};

/// A history for other programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "rumba history")]
pub struct HistoryDocument {
    /// The version of this format, increased when a field changes its meaning.
    pub format: u32,
    /// The history; each of its fields is a field of the JSON.
    #[serde(flatten)]
    pub history: History,
    /// The result of each `--fail-if` for each engine's last run, compared with the last one before it that has the
    /// figure.
    pub fail_if: Vec<Gated>,
}

/// The heading of the verdicts on the last runs.
const LAST: &str = "The last run of each engine over the one before it, with which it did not take turns";

/// A history as a JSON value that follows `docs/history.schema.json`.
pub fn history_json(history: &History, gated: &[Gated]) -> serde_json::Value {
    let document = HistoryDocument { format: FORMAT, history: history.clone(), fail_if: gated.to_vec() };
    serde_json::to_value(document).expect("plain values with text keys always serialise")
}

/// The JSON Schema of [`history_json`]'s value.
pub fn history_schema() -> serde_json::Value {
    schema_of::<HistoryDocument>("history")
}

/// The changes in the last step, then a table for each engine and metric.
pub fn history_table(history: &History) -> String {
    let mut text = format!("{}\n", counted(history.points.len(), "run"));
    for point in &history.points {
        let commit = point.commit.as_deref().unwrap_or("commit not known");
        let directory = on_a_line(&point.directory);
        let _ = writeln!(text, "  {}  {}  {commit}  {directory}", point.started, point.name);
    }
    let moved = moved(history);
    if !moved.is_empty() {
        let _ = write!(text, "\nChanges of level over all runs\n{}", indented(&moved));
    }
    let last = last(history);
    let _ = write!(text, "\n{LAST}\n{}", indented(&last));
    history.lines.iter().for_each(|line| text.push_str(&line_table(line, history.level)));
    if !history.differ.is_empty() {
        let _ = write!(text, "\nNot the same in all runs\n{}", indented(&history.differ));
    }
    text.push_str(&legend(history));
    text
}

/// The same for a pull request: the changes first, then a table for each engine.
pub fn history_markdown(history: &History, gated: &[Gated]) -> String {
    let worse = history.lines.iter().filter(|line| change_of(line) == Some(Change::Worse)).count();
    let better = history.lines.iter().filter(|line| change_of(line) == Some(Change::Better)).count();
    let mut text =
        format!("### {}: {worse} worse and {better} better in the last\n", counted(history.points.len(), "run"));
    text.push_str(&list("Fails", gated.iter().filter(|gated| gated.verdict.closes()).map(Gated::line)));
    text.push_str(&list("Changes of level", moved(history).into_iter()));
    text.push_str(&list(LAST, last(history).into_iter()));
    for rows in history.lines.chunk_by(|one, other| whose(one) == whose(other)) {
        text.push_str(&engine_table(rows));
    }
    text.push_str(&list("Not the same in all runs", history.differ.iter().cloned()));
    text.push_str(&folded("Every step with its interval", &history_table(history)));
    text
}

/// The columns of [`history_csv`].
const COLUMNS: &str = "engine,clients,part,metric,unit,axis,step,label,version,commit,committed,started,directory,\
    repeats,median,absent,ratio,ratio_absent,low,high,interval_absent,change,scope,p,level_changes_here,\
    undecided_because";

/// Every step of every figure.
pub fn history_csv(history: &History) -> String {
    let mut rows = Lines::new(COLUMNS);
    for line in &history.lines {
        for (number_of_step, step) in line.steps.iter().enumerate() {
            let point = &history.points[step.point];
            let mut cells = vec![line.engine.clone(), line.clients.to_string(), word(line.part)];
            cells.extend([line.metric.clone(), line.unit.clone(), axis_word(line.by).to_owned()]);
            cells.extend([(number_of_step + 1).to_string(), step.label.clone()]);
            cells.extend([&step.version, &point.commit, &point.committed].map(|text| text.clone().unwrap_or_default()));
            cells.extend([point.started.clone(), point.directory.clone(), step.repeats.to_string()]);
            cells.extend(both(&step.median));
            cells.extend(against(step.against.as_ref()));
            cells.push(line.changes.iter().any(|change| change.at == step.label).to_string());
            cells.push(step.unsound.clone().unwrap_or_default());
            rows.push(cells);
        }
    }
    rows.text()
}

/// Ratio, interval and verdict as cells; empty for the first run.
fn against(tested: Option<&Ratio>) -> Vec<String> {
    let Some(tested) = tested else { return vec![String::new(); 8] };
    let ([value, why], [low, unbounded]) = (both(&tested.ratio), both(&tested.low));
    let (high, p) = (number(tested.high.value()), number(tested.p));
    vec![value, why, low, high, unbounded, word(tested.change), word(tested.scope), p]
}

/// `rocksdb, 8 clients, loops`.
fn whose(line: &Line) -> String {
    format!("{}, {}, {}", line.engine, counted(line.clients as usize, "client"), part_word(line.part))
}

/// The verdict of the last run compared with the one before it.
fn change_of(line: &Line) -> Option<Change> {
    line.steps.last()?.against.as_ref().map(|tested| tested.change)
}

/// The metrics whose level changed, in words.
pub fn moved(history: &History) -> Vec<String> {
    let of_line = |line: &Line| {
        let show = shown(line).1;
        let in_words = |change: &LevelChange| {
            let LevelChange { after, at, from, to, p } = change;
            let factor = if *from > 0.0 { format!(", × {}", ratio(to / from)) } else { String::new() };
            let figures = format!("{} to {}{factor}", show(*from), show(*to));
            format!("{}: {} between {after} and {at}: {figures} (p = {p:.4})", whose(line), line.metric)
        };
        line.changes.iter().map(in_words).collect::<Vec<String>>()
    };
    history.lines.iter().flat_map(of_line).collect()
}

/// The verdicts on each engine's last run, a line each.
pub fn last(history: &History) -> Vec<String> {
    let mut lines = Vec::new();
    for rows in history.lines.chunk_by(|one, other| whose(one) == whose(other)) {
        let mut parts = Vec::new();
        for change in Change::ALL {
            let of_change = rows.iter().filter(|line| change_of(line) == Some(change));
            let named: Vec<String> = of_change.map(named).collect();
            if !named.is_empty() {
                let tested = rows.iter().filter_map(|line| line.steps.last()?.against.as_ref());
                let scopes = tested.filter(|tested| tested.change == change).map(|tested| tested.scope);
                let is_of_one_load = is_decided(change) && scopes.clone().any(|scope| scope == Scope::ThisLoad);
                let scope = if is_of_one_load { Scope::ThisLoad } else { Scope::Loads };
                parts.push(format!("{}{} {}", change_word(change), scope.words(), named.join(", ")));
            }
        }
        let lost = rows.iter().filter(|line| line.steps.last().is_some_and(|step| step.repeats == 0));
        let lost: Vec<&str> = lost.map(|line| line.metric.as_str()).collect();
        if let (false, Some(step)) = (lost.is_empty(), rows.first().and_then(|line| line.steps.last())) {
            let why = step.median.reason().unwrap_or("no repeat has it");
            parts.push(format!("no figure of {} ({why})", lost.join(", ")));
        }
        if parts.is_empty() {
            parts.push("there is none before it".to_owned());
        }
        lines.push(format!("{}: {}", whose(&rows[0]), parts.join("; ")));
    }
    lines
}

/// `ops_per_s 0.90 (0.88–0.92)`.
fn named(line: &Line) -> String {
    let tested = line.steps.last().and_then(|step| step.against.as_ref());
    let value = tested.and_then(|tested| tested.ratio.value()).map(|value| format!(" {}", ratio(value)));
    let interval = tested.and_then(interval).map(|interval| format!(" ({interval})"));
    format!("{}{}{}", line.metric, value.unwrap_or_default(), interval.unwrap_or_default())
}

/// One figure over the runs.
fn line_table(line: &Line, level: f64) -> String {
    let (unit, show) = shown(line);
    let heads = [axis_word(line.by), "repeats", &unit, "ratio", &format!("{:.0}% interval", level * 100.0), "verdict"];
    let mut grid = Grid::new(heads.iter().map(|&head| head.to_owned()).collect()).left(0);
    let mut why = Vec::new();
    for step in &line.steps {
        let tested = step.against.as_ref();
        let is_new = line.changes.iter().any(|change| change.at == step.label);
        let verdict = tested.map_or_else(String::new, verdict_word);
        grid.push(vec![
            step.label.clone(),
            step.repeats.to_string(),
            step.median.value().map_or_else(|| "-".to_owned(), &show),
            tested.and_then(|tested| tested.ratio.value()).map_or_else(|| "-".to_owned(), ratio),
            tested.and_then(interval).unwrap_or_else(|| "-".to_owned()),
            if is_new { format!("{verdict}, the level changes here") } else { verdict },
        ]);
        let reason = step.median.reason().or(step.unsound.as_deref());
        why.extend(reason.map(|reason| format!("{}: {reason}", step.label)));
    }
    format!("\n{}: {}\n{}{}", whose(line), line.metric, grid.render(), indented(&why))
}

/// All metrics of an engine, a row for each run.
fn engine_table(rows: &[Line]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let shown: Vec<_> = rows.iter().map(shown).collect();
    let heads = rows.iter().zip(&shown).map(|(line, (unit, _))| format!("{} ({unit})", line.metric));
    let heads: Vec<String> = [axis_word(first.by).to_owned()].into_iter().chain(heads).collect();
    let cell = |step: Option<&Step>, show: &dyn Fn(f64) -> String| {
        let Some(step) = step else { return "-".to_owned() };
        let value = step.median.value().map_or_else(|| "-".to_owned(), show);
        match step.against.as_ref() {
            Some(tested @ Ratio { change: Change::Better | Change::Worse | Change::Differs, .. }) => {
                format!("{value} **{}**", verdict_word(tested))
            }
            _ => value,
        }
    };
    let row = |(number, step): (usize, &Step)| {
        let cells = rows.iter().zip(&shown).map(|(line, (_, show))| cell(line.steps.get(number), show));
        [escaped(&step.label)].into_iter().chain(cells).collect::<Vec<String>>()
    };
    let cells: Vec<Vec<String>> = first.steps.iter().enumerate().map(row).collect();
    format!("\n{}\n\n{}", escaped(&whose(first)), table(&heads, 1, &cells))
}

/// The unit and the format of a line's medians; bytes as MB or GB.
fn shown(line: &Line) -> (String, Box<dyn Fn(f64) -> String>) {
    shown_in(&line.unit, line.steps.iter().filter_map(|step| step.median.value()))
}

fn axis_word(by: Axis) -> &'static str {
    match by {
        Axis::Version => "version",
        Axis::Commit => "commit",
        Axis::Started => "started",
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn legend(history: &History) -> String {
    let (level, margin) = (history.level * 100.0, history.margin * 100.0);
    let loads = history.lines.iter().any(|line| line.part == Part::Load);
    format!(
        "\nratio: median over that of the last run before it that has the figure; interval and verdict: of a \
         permutation test and Welch's test at {level:.0}% over the repeats; same: all of it within {margin:.0}% of 1. \
         Every ratio includes changes of the host between two runs. A change of level: with repeats assigned to the \
         runs at random, one of this size occurs in less than {:.0}% of cases.{}\n",
        100.0 - level,
        if loads { " A load from which several numbers of clients started is listed once." } else { "" }
    )
}
