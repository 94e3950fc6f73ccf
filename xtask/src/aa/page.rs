//! The counts as a table, and their storage.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Cell, Cells, Counted, ENGINES, KEPT, KINDS, Mode, binomial};
use crate::bench::Failure;

const PAGE: &str = "docs/error-rates.md";
const BEGIN: &str = "<!-- measured: cargo run --release -p xtask -- aa --write -->";
const END: &str = "<!-- end of measured -->";

/// Stores the counts and puts the table into the page.
///
/// # Errors
/// The page has no place for it, or cannot be written.
pub fn write(root: &Path, cells: &mut Cells) -> Result<(), Failure> {
    let place = |engine: &str| ENGINES.iter().position(|known| *known == engine).unwrap_or(ENGINES.len());
    cells.sort_by_key(|(engine, mode, _)| (place(engine), engine.clone(), *mode));
    let all: Vec<Value> = cells.iter().map(|(engine, mode, cell)| cell.to_json(engine, *mode)).collect();
    std::fs::write(root.join(KEPT), serde_json::to_string_pretty(&json!({ "cells": all }))? + "\n")?;
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path)?;
    let (Some(begin), Some(end)) = (page.find(BEGIN), page.find(END)) else {
        return Err(format!("{PAGE} lacks the lines `{BEGIN}` and `{END}`").into());
    };
    std::fs::write(&path, format!("{}{BEGIN}\n\n{}\n{}", &page[..begin], table(cells), &page[end..]))?;
    Ok(())
}

pub fn all_of(cells: &Cells, mode: Mode) -> Counted {
    let mut sum = Counted::default();
    cells.iter().filter(|(_, of, _)| *of == mode).for_each(|(_, _, cell)| sum.add(cell.verdicts()));
    sum
}

fn table(cells: &Cells) -> String {
    let mut text = String::from("| engine | repeats are | pairs with a false verdict |");
    KINDS.iter().for_each(|kind| text += &format!(" {kind} |"));
    text += " all verdicts | throughput, CV |\n";
    text += &format!("|---|---|{}\n", "---:|".repeat(KINDS.len() + 3));
    for (engine, mode, cell) in cells {
        text += &line(engine, *mode, cell);
        text.push('\n');
    }
    for mode in Mode::ALL {
        let of_mode: Vec<&Cell> = cells.iter().filter(|(_, of, _)| *of == mode).map(|(.., cell)| cell).collect();
        if of_mode.len() > 1 {
            let mut sum = Cell::default();
            for cell in of_mode {
                sum.pairs.add(cell.pairs);
                cell.kinds.iter().for_each(|(kind, one)| sum.kinds.entry(kind.clone()).or_default().add(*one));
            }
            text += &line("**all**", mode, &sum);
            text.push('\n');
        }
    }
    text
}

/// A row of the table.
pub fn line(engine: &str, mode: Mode, cell: &Cell) -> String {
    let repeats = match mode {
        Mode::Loads => "loads",
        Mode::Kept => "starts of one load",
    };
    let mut text = format!("| {engine} | {repeats} | {} |", with_interval(cell.pairs));
    for kind in KINDS {
        let _ = match cell.kinds.get(kind) {
            Some(one) => write!(text, " {}/{} |", one.wrong, one.all),
            None => write!(text, " – |"),
        };
    }
    let noise = cell.noise.map_or_else(|| "–".to_owned(), |noise| format!("{:.1}%", 100.0 * noise));
    let _ = write!(text, " {} | {noise} |", with_interval(cell.verdicts()));
    text
}

/// `1/20: 5.0% (0.1–24.9)`.
fn with_interval(counted: Counted) -> String {
    let Counted { wrong, all } = counted;
    if all == 0 {
        return "–".to_owned();
    }
    let (low, high) = binomial::interval(wrong, all);
    let share = 100.0 * wrong as f64 / all as f64;
    format!("{wrong}/{all}: {share:.1}% ({:.1}–{:.1})", 100.0 * low, 100.0 * high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_row_shows_intervals_and_dashes_where_untested() {
        let mut cell = Cell { pairs: Counted { wrong: 1, all: 20 }, noise: Some(0.031), ..Cell::default() };
        cell.kinds.insert("throughput".to_owned(), Counted { wrong: 1, all: 20 });
        let row = line("innodb", Mode::Kept, &cell);
        let expected = "| innodb | starts of one load | 1/20: 5.0% (0.1–24.9) | 1/20 | – | – | – | – | – | – | \
                        1/20: 5.0% (0.1–24.9) | 3.1% |";
        assert_eq!(row, expected);
    }
}
