//! Terminal tables with the columns of the published ones.

mod claims;
mod columns;
pub(crate) mod comparison;
pub(crate) mod grid;
pub(crate) mod markdown;
mod notes;
mod promises;
mod relative;
mod searches;
mod suite;
mod trends;
mod warnings;

use std::fmt::Write as _;

use rumba_results::comparison::{PhaseFigures, Row, Summary};
use rumba_results::engine_name;
use rumba_results::results::Results;

use self::columns::{Column, Pick};
pub use self::comparison::comparison_table;
use self::grid::{Footnotes, Grid};
pub(crate) use self::notes::ending;
use self::warnings::Warnings;
use crate::format::{percent, several};
use crate::opening::opening;
use crate::verdict::{repeats_from, verdict_line};

/// Options of the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    baseline: Option<String>,
    all_warnings: bool,
    legend: bool,
    directories: Vec<String>,
}

/// The results do not contain the requested baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBaseline {
    /// The requested name.
    pub name: String,
    /// The remedy.
    pub remedy: String,
}

impl std::fmt::Display for UnknownBaseline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--baseline {}: these results have no engine of this name; {}", self.name, self.remedy)
    }
}

impl std::error::Error for UnknownBaseline {}

impl TableOptions {
    /// Shows all warnings, and not only the worst.
    pub fn with_all_warnings(mut self, all: bool) -> Self {
        self.all_warnings = all;
        self
    }

    /// Explains every column below its table.
    pub fn with_legend(mut self, legend: bool) -> Self {
        self.legend = legend;
        self
    }

    /// The directories of the results, for the command that shows more of them.
    pub fn with_directories(mut self, directories: impl IntoIterator<Item = String>) -> Self {
        self.directories = directories.into_iter().collect();
        self
    }

    /// The command that shows these results.
    fn report(&self) -> String {
        if self.directories.is_empty() {
            "rumba report DIR".to_owned()
        } else {
            format!("rumba report {}", self.directories.join(" "))
        }
    }

    /// Selects the engine to which costs are relative; the default is the first that keeps its data.
    ///
    /// # Errors
    /// The results have no engine of this name; the remedy names the nearest.
    pub fn with_baseline(mut self, name: &str, summary: &Summary) -> Result<Self, UnknownBaseline> {
        let engines = summary.engines_alone();
        let Some(engine) = engine_name::meant(engines.iter().copied(), name) else {
            let remedy = match rumba_engine_api::nearest(name, engines.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("they have: {}", engines.join(", ")),
            };
            return Err(UnknownBaseline { name: name.to_owned(), remedy });
        };
        self.baseline = Some(engine.to_owned());
        Ok(self)
    }
}

/// The title of the table of [`columns::priced`].
const PRICED_TITLE: &str = "Cost of a million operations, and the life of the drive, at the given prices";

/// The title of the table of [`columns::growth`].
const GROWTH: &str = "Database growth, logs not counted";

/// All of a run's tables, ready to print: engines, load, transactions, cost, spread and shared trends of the repeats,
/// warnings with remedies, failures and missing parts.
pub fn tables(results: &Results, summary: &Summary, options: &TableOptions) -> String {
    let mut text = heading(results, summary);
    let warnings = Warnings::of(&results.warnings, &summary.remarks, options.all_warnings);
    let loaded = Marked { warnings: &warnings, of_loops: false, legend: options.legend };
    let ran = Marked { of_loops: true, ..loaded };
    let (load, run): (Pick, Pick) = (|row| row.load.as_ref(), |row| row.run.as_ref());
    section(&mut text, "Load", summary, load, &columns::load(&summary.rows, load), loaded);
    section(&mut text, "Transactions", summary, run, &columns::transactions(&summary.rows, run), ran);
    let within = "Within the response times that the workload's specification allows";
    section(&mut text, within, summary, run, &columns::limits(&summary.rows, run), ran);
    section(&mut text, "Hardware per transaction", summary, run, &columns::efficiency(&summary.rows, run), ran);
    section(&mut text, "Cost per operation", summary, run, &columns::cost(&summary.rows, run), ran);
    for (title, columns) in [
        (PRICED_TITLE, columns::priced(&summary.rows, run)),
        (GROWTH, columns::growth(&summary.rows, run)),
        ("KB written per operation by the engine's own counters, drain charged", columns::written(&summary.rows, run)),
        ("Microseconds waited per operation by the engine's own counters", columns::waited(&summary.rows, run)),
        ("Statements per operation, those of retries included", columns::statements(&summary.rows, run)),
        ("The workload's own counters, all loops", columns::tallies(&summary.rows, run)),
        (
            "Hardware counters per operation: user mode of server and client, kernel mode",
            columns::hardware(&summary.rows, run),
        ),
    ] {
        section(&mut text, title, summary, run, &columns, ran);
    }
    text.push_str(&searches::section(summary));
    text.push_str(&relative::relative(summary, options.baseline.as_deref()));
    text.push_str(&claims::claims(summary));
    text.push_str(&repeats(summary));
    text.push_str(&trends::trends(summary));
    text.push_str(&promises::promises(results));
    text.push_str(&notes::scaling(summary));
    text.push_str(&notes::waits(results));
    text.push_str(&notes::symbols(summary));
    text.push_str(&notes::conflicts(results));
    text.push_str(&notes::apart(results));
    text.push_str(&notes::servers(results));
    text.push_str(&notes::client_hosts(results));
    text.push_str(&notes::all(results, summary, &warnings, &options.report()));
    if !options.legend {
        let _ = writeln!(text, "\n`{} --legend` explains the columns.", options.report());
    }
    text
}

fn heading(results: &Results, summary: &Summary) -> String {
    let commit = results.build.as_ref().and_then(|build| build.short());
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    let mut text = format!("{}  {}  rumba {}{commit}\n", results.name, results.started, results.rumba);
    if let Some(source) = &results.source {
        let _ = writeln!(text, "reproduces: {source}");
    }
    let counts = || summary.rows.iter().filter_map(|row| row.run.as_ref()).map(|run| run.repeats.len());
    if let (Some(fewest), Some(most)) = (counts().min(), counts().max()) {
        let repeats = match (fewest, most) {
            (_, 1) => "figures of a single run: the spread between repeats is unknown".to_owned(),
            _ if fewest == most => format!("medians of {most} repeats{}", repeats_from(summary)),
            _ => format!("medians of {fewest} to {most} repeats{}", repeats_from(summary)),
        };
        let _ = writeln!(text, "{repeats}");
    }
    if summary.rows.iter().any(|row| row.run.is_some()) {
        let opening = opening(results, summary);
        for line in opening.sentences().into_iter().chain([opening.conditions.as_str()]) {
            let _ = writeln!(text, "{line}");
        }
    }
    let line = verdict_line(summary);
    if !line.is_empty() {
        let _ = write!(text, "{line}");
    }
    text
}

/// The headings of the columns that identify a row.
fn name_heads(summary: &Summary) -> Vec<String> {
    let mut heads = Vec::new();
    if summary.clients().len() > 1 {
        heads.push("clients".to_owned());
    }
    heads.push("engine".to_owned());
    heads
}

fn name_cells(summary: &Summary, row: &Row, clients: &[u32]) -> Vec<String> {
    let mut cells = Vec::new();
    if summary.clients().len() > 1 {
        cells.push(several(clients));
    }
    cells.push(row.engine.clone());
    cells
}

/// A row's name in footnotes; with the number of clients only if there are several.
fn row_name(summary: &Summary, row: &Row, clients: &[u32]) -> String {
    if summary.clients().len() > 1 { format!("{} ({})", row.engine, several(clients)) } else { row.engine.clone() }
}

/// The warnings whose letters appear next to figures.
#[derive(Clone, Copy)]
struct Marked<'a> {
    warnings: &'a Warnings<'a>,
    /// Whether the figures are of the loops, to which warnings of single trials apply, or of the load.
    of_loops: bool,
    /// Whether the columns are explained.
    legend: bool,
}

impl Marked<'_> {
    /// The letters precede a number, so that the digits of a column stay aligned.
    fn before(marks: &str, text: &str) -> String {
        if marks.is_empty() { text.to_owned() } else { format!("{marks} {text}") }
    }

    fn head(self, column: &Column) -> String {
        Self::before(&self.warnings.common_marks(column.undermined_as()), &column.head)
    }

    fn cell(self, column: &Column, row: &Row, text: &str) -> String {
        Self::before(&self.warnings.marks(column.undermined_as(), row, self.of_loops), text)
    }
}

/// A titled table with its footnotes, and its legend on request; empty without columns or figures. Columns without any
/// figure are left out; the footnotes name them with the reason.
fn section(text: &mut String, title: &str, summary: &Summary, pick: Pick, columns: &[Column], marked: Marked<'_>) {
    // A load that several numbers of clients share is one load.
    let clients = |row: &Row| if marked.of_loops { vec![row.clients] } else { summary.clients_of_load(row) };
    let rows = summary.rows.iter().filter(|row| clients(row).first() == Some(&row.clients));
    let with_figures: Vec<(&Row, &PhaseFigures)> = rows.filter_map(|row| Some((row, pick(row)?))).collect();
    if columns.is_empty() || with_figures.is_empty() {
        return;
    }
    let has_figure = |column: &Column| with_figures.iter().any(|(_, figures)| column.median(figures).value().is_some());
    let columns: Vec<(&Column, bool)> = columns.iter().map(|column| (column, has_figure(column))).collect();
    let shown: Vec<&Column> = columns.iter().filter(|(_, is_shown)| *is_shown).map(|(column, _)| *column).collect();
    let mut grid = Grid::new(shown.iter().map(|column| marked.head(column)).chain(name_heads(summary)).collect());
    let mut footnotes = Footnotes::default();
    for &(row, figures) in &with_figures {
        let clients = clients(row);
        let name = row_name(summary, row, &clients);
        let mut cells = Vec::new();
        for &(column, is_shown) in &columns {
            let cell = footnotes.cell(&column.median(figures), &column.head, &name, |value| column.digits.show(value));
            if is_shown {
                cells.push(marked.cell(column, row, &cell));
            }
        }
        cells.extend(name_cells(summary, row, &clients));
        grid.push(cells);
    }
    let _ = write!(text, "\n{title}\n{}{}", grid.render(), footnotes.render());
    if !marked.legend {
        return;
    }
    let width = shown.iter().map(|column| column.head.len()).max().unwrap_or(0);
    for column in shown {
        let _ = writeln!(text, "  {:width$}  {}", column.head, column.legend);
    }
}

/// The spread of the repeats, if there are several.
fn repeats(summary: &Summary) -> String {
    let columns = columns::repeated();
    let mut grid = Grid::new(columns.iter().map(|column| column.head.clone()).chain(name_heads(summary)).collect());
    for row in &summary.rows {
        let Some(run) = row.run.as_ref().filter(|run| run.repeats.len() > 1) else { continue };
        let cell = |column: &Column| {
            let columns::Source::Metric(name) = column.source else { return "-".to_owned() };
            let spread = run.metrics.get(name).and_then(|figure| figure.spread);
            spread
                .map_or_else(|| "-".to_owned(), |spread| format!("{} ({})", percent(spread.range), percent(spread.cv)))
        };
        grid.push(columns.iter().map(cell).chain(name_cells(summary, row, &[row.clients])).collect());
    }
    if grid.is_empty() {
        return String::new();
    }
    let title = "Repeat to repeat: largest over smallest, less one (coefficient of variation)";
    format!("\n{title}\n{}", grid.render())
}
