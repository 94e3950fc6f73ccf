//! Results and comparisons as Markdown, for a pull request or the summary of a job: the findings first, then the
//! headline table, with the rest folded.

use std::fmt::Write as _;

use rumba_results::comparison::{ComparedRow, Comparison, Summary};
use rumba_results::gate::Gated;
use rumba_results::metric::Metric;
use rumba_results::ratio::Change;
use rumba_results::results::Results;

use super::columns::{self, Column, Pick};
use super::comparison::{change_word, clients, comparison_table, outline, part_word, unit_of, verdict_word, written};
use super::grid::Footnotes;
use super::{GROWTH, PRICED_TITLE, TableOptions, name_cells, name_heads, row_name, tables};
use crate::format::{interval, ratio};
use crate::verdict::verdict_line;

/// A run: its verdicts, its claims, trials that did not end as planned, and the main tables.
pub fn markdown(results: &Results, summary: &Summary, options: &TableOptions) -> String {
    let mut text = format!("### {}\n\n", escaped(&results.name));
    for line in verdict_line(summary).lines() {
        match line.strip_prefix("  ") {
            Some(found) => text.push_str(&item(found)),
            None => {
                let _ = writeln!(text, "\n{}\n", escaped(line));
            }
        }
    }
    text.push_str(&claims(summary));
    text.push_str(&list("Highest rate that keeps a response time", super::searches::lines(summary)));
    text.push_str(&list("Did not end as planned", super::notes::ended_lines(&summary.unfinished).into_iter()));
    let unsound = summary.rows.iter().filter_map(|row| row.why_unsound());
    text.push_str(&list("In no figure", unsound));
    text.push_str(&list("Partial figures", super::notes::partial_lines(summary)));
    let run: Pick = |row| row.run.as_ref();
    text.push_str(&section("Transactions", summary, &columns::transactions(&summary.rows, run)));
    text.push_str(&section("Cost per operation", summary, &columns::cost(&summary.rows, run)));
    text.push_str(&section(PRICED_TITLE, summary, &columns::priced(&summary.rows, run)));
    text.push_str(&section(GROWTH, summary, &columns::growth(&summary.rows, run)));
    text.push_str(&folded("All tables", &tables(results, summary, options)));
    text
}

/// One run compared with another.
pub fn comparison_markdown(comparison: &Comparison, gated: &[Gated]) -> String {
    let (base, other) = (&comparison.base, &comparison.other);
    let turns = if comparison.interleaved { "" } else { " (the runs did not take turns)" };
    let counts = counts(comparison);
    let mut text = format!("### {} against {}: {counts}{turns}\n\n", escaped(&other.name), escaped(&base.name));
    let closed = gated.iter().filter(|gated| gated.verdict.closes());
    text.push_str(&list("Fails", closed.map(Gated::line)));
    for row in &comparison.rows {
        text.push_str(&item(&outline(row)));
        let changes = row.written.iter().map(|change| format!("{}: {}", row.engine, written(change)));
        changes.for_each(|change| text.push_str(&item(&change)));
    }
    for one in &comparison.unmatched {
        let _ = write!(text, "{}", item(&format!("{}: not compared, because {}", one.engine, one.reason)));
    }
    text.push('\n');
    text.push_str(&headlines(comparison));
    let open = gated.iter().filter(|gated| !gated.verdict.closes());
    text.push_str(&list("Gates that did not close", open.map(Gated::line)));
    if !comparison.interleaved {
        text.push_str(
            "\nThe trials of the two runs were not interleaved, so changes of the host between them are \
                       part of every ratio.\n",
        );
    }
    text.push_str(&folded("Details and conditions", &comparison_table(comparison, true)));
    text
}

/// The number of headline verdicts of each kind: `1 worse, 4 same`.
fn counts(comparison: &Comparison) -> String {
    let headlines = || comparison.rows.iter().filter(|row| row.unsound.is_none()).flat_map(|row| &row.metrics);
    let count = |change: Change| {
        let count = headlines().filter(|one| one.ratio.headline && one.ratio.change == change).count();
        (count > 0).then(|| format!("{count} {}", change_word(change)))
    };
    let counts: Vec<String> = Change::ALL.into_iter().filter_map(count).collect();
    if counts.is_empty() { "nothing to compare".to_owned() } else { counts.join(", ") }
}

fn headlines(comparison: &Comparison) -> String {
    let interval = format!("{:.0}% interval", comparison.level * 100.0);
    let heads = ["engine", "clients", "part", "metric", "base", "other", "ratio", &interval, "verdict"];
    let rows: Vec<Vec<String>> = comparison.rows.iter().flat_map(headline_rows).collect();
    table(&heads.map(str::to_owned), 4, &rows)
}

fn headline_rows(row: &ComparedRow) -> Vec<Vec<String>> {
    let figure = |metric: &Metric, show: &dyn Fn(f64) -> String| metric.value().map_or_else(|| "-".to_owned(), show);
    let of_metric = row.metrics.iter().filter(|compared| compared.ratio.headline);
    of_metric
        .map(|compared| {
            let (tested, (unit, show)) = (&compared.ratio, unit_of(compared));
            let strong = matches!(tested.change, Change::Better | Change::Worse | Change::Differs);
            let verdict = verdict_word(tested);
            vec![
                escaped(&row.engine),
                clients(row).trim_end_matches(" clients").trim_end_matches(" client").to_owned(),
                part_word(row.part).to_owned(),
                escaped(&format!("{} ({unit})", tested.metric)),
                figure(&compared.base.median, &show),
                figure(&compared.other.median, &show),
                figure(&tested.ratio, &ratio),
                interval(tested).unwrap_or_else(|| "-".to_owned()),
                if strong { format!("**{verdict}**") } else { verdict },
            ]
        })
        .collect()
}

fn claims(summary: &Summary) -> String {
    let line = |judged: &rumba_results::claim::Judgement| {
        format!("{}: {} ({})", super::claims::word(judged.verdict), judged.claim.text, judged.reason)
    };
    list("Claims", summary.claims.iter().map(line))
}

/// A table of the loops' medians; empty without columns.
fn section(title: &str, summary: &Summary, columns: &[Column]) -> String {
    let names = name_heads(summary);
    let heads: Vec<String> = names.iter().cloned().chain(columns.iter().map(|column| column.head.clone())).collect();
    let mut footnotes = Footnotes::default();
    let mut rows = Vec::new();
    for row in &summary.rows {
        let Some(figures) = &row.run else { continue };
        let name = row_name(summary, row, &[row.clients]);
        let mut cell = |column: &Column| {
            footnotes.cell(&column.median(figures), &column.head, &name, |value| column.digits.show(value))
        };
        let cells: Vec<String> = columns.iter().map(&mut cell).collect();
        let names = name_cells(summary, row, &[row.clients]);
        rows.push(names.iter().map(|name| escaped(name)).chain(cells).collect());
    }
    if columns.is_empty() || rows.is_empty() {
        return String::new();
    }
    let notes: String = footnotes.render().lines().map(|line| item(line.trim_start_matches([' ', '-']))).collect();
    format!("\n{title}\n\n{}\n{notes}", table(&heads, names.len(), &rows))
}

/// A table whose first columns are names, and the others numbers.
pub fn table(heads: &[String], names: usize, rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let align = (0..heads.len()).map(|column| if column < names { "---" } else { "---:" });
    let heads: Vec<String> = heads.iter().map(|head| escaped(head)).collect();
    let mut text = format!("{}| {} |\n", line(&heads), align.collect::<Vec<_>>().join(" | "));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

/// A list below a title; empty without lines.
pub fn list(title: &str, lines: impl Iterator<Item = String>) -> String {
    let items: String = lines.map(|line| item(&line)).collect();
    if items.is_empty() { items } else { format!("\n**{title}**\n\n{items}\n") }
}

fn item(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("- {}\n", escaped(&words.join(" ")))
}

/// A section that opens on click: text as it is in a terminal.
pub fn folded(title: &str, text: &str) -> String {
    // The fence must be longer than any in the text.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n<details><summary>{title}</summary>\n\n{fence}text\n{}\n{fence}\n\n</details>\n", text.trim_end())
}

/// Escapes text so that Markdown shows it unchanged.
pub fn escaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '|' | '*' | '`' | '[' | ']' | '~' => plain.extend(['\\', character]),
            '<' => plain.push_str("&lt;"),
            '\n' => plain.push(' '),
            _ => plain.push(character),
        }
    }
    plain
}
