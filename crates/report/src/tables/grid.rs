//! Plain, narrow grids, with footnotes that give each reason for an absence once.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use rumba_results::entry;
use rumba_results::metric::{Metric, TOO_FEW_SAMPLES};

/// Rows of text: numbers aligned right, and the last column, a name, aligned left.
pub struct Grid {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    left: Vec<usize>,
}

impl Grid {
    /// A grid with these headings; the last column is aligned left.
    pub fn new(heads: Vec<String>) -> Self {
        let left = vec![heads.len().saturating_sub(1)];
        Grid { heads, rows: Vec::new(), left }
    }

    /// Aligns another column left.
    pub fn left(mut self, column: usize) -> Self {
        self.left.push(column);
        self
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Two spaces between columns, no border, no trailing blanks.
    pub fn render(self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.heads);
        table.add_rows(self.rows);
        for (index, column) in table.column_iter_mut().enumerate() {
            let left = self.left.contains(&index);
            column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
            column.set_padding((0, 2));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// The reasons for empty cells: each reason once, with its cells.
#[derive(Default)]
pub struct Footnotes(Vec<(String, RowsColumns)>);

/// Rows with their empty columns.
type RowsColumns = Vec<(String, Vec<String>)>;

impl Footnotes {
    /// The cell's text: the number, or `-` and a footnote.
    pub fn cell(&mut self, metric: &Metric, column: &str, row: &str, show: impl FnOnce(f64) -> String) -> String {
        match metric {
            Metric::Value(value) => show(*value),
            Metric::Absent { absent } => {
                self.note(without_count(absent), column, row);
                "-".to_owned()
            }
        }
    }

    fn note(&mut self, reason: &str, column: &str, row: &str) {
        let rows = entry(&mut self.0, reason.to_owned());
        let columns = entry(rows, row.to_owned());
        if !columns.iter().any(|known| known == column) {
            columns.push(column.to_owned());
        }
    }

    /// One line per reason.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (reason, rows) in &self.0 {
            text.push_str(&format!("  - {}: {reason}\n", cells(rows)));
        }
        text
    }
}

/// `1232 samples are too few` without the number, so that cells that differ only in it share one footnote. In any other
/// reason, a number at the start is part of the statement.
fn without_count(reason: &str) -> &str {
    let rest = reason.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    if rest.starts_with(TOO_FEW_SAMPLES) { rest } else { reason }
}

/// `wkb/t, size of lmdb, null`; rows with the same columns are merged.
fn cells(rows: &RowsColumns) -> String {
    let mut groups: Vec<(&[String], Vec<&str>)> = Vec::new();
    for (row, columns) in rows {
        entry(&mut groups, columns.as_slice()).push(row);
    }
    let group = |(columns, rows): &(&[String], Vec<&str>)| format!("{} of {}", columns.join(", "), rows.join(", "));
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footnote_merges_only_reasons_about_too_few_samples() {
        let mut notes = Footnotes::default();
        for (column, reason) in [
            ("gn", "997 samples are too few for p99: fewer than 10 lie beyond it"),
            ("un", "12 samples are too few for p99: fewer than 10 lie beyond it"),
            ("ul", "12.3% of the operations had not ended at the end, after up to 30000 ms"),
            ("gl", "30 operations were still open"),
        ] {
            assert_eq!(notes.cell(&Metric::absent(reason), column, "lmdb", |_| String::new()), "-");
        }
        assert_eq!(
            notes.render(),
            "  - gn, un of lmdb: samples are too few for p99: fewer than 10 lie beyond it\n  \
               - ul of lmdb: 12.3% of the operations had not ended at the end, after up to 30000 ms\n  \
               - gl of lmdb: 30 operations were still open\n"
        );
    }
}
