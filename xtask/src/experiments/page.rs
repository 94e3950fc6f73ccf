//! Rewrites the figures of a page.

use std::fmt::Write;

use rumba_statistics::claims::{Scope, number};
use serde_json::Value;

use super::figures::{Committed, figure};

pub const END: &str = "<!-- end -->";
const FIGURE_END: &str = "<!-- / -->";

/// The page; blocks and figures of an experiment without a file stay unchanged.
///
/// # Errors
/// An invalid comment, with its first line.
pub fn written(text: &str, figures: &mut Committed) -> Result<String, String> {
    let blocks = replaced(text, "<!-- measured:", "-->\n", END, &mut |requested| table(requested, figures))?;
    let blocks = replaced(&blocks, "<!-- output:", "-->\n", END, &mut |requested| output(requested.trim(), figures))?;
    replaced(&blocks, "<!-- = ", "-->", FIGURE_END, &mut |requested| inline(requested, figures))
}

/// Lines of the tables that a run printed, starting at the line with these first words:
/// `quickstart | 5 | with 4 clients`.
fn output(requested: &str, figures: &mut Committed) -> Result<Option<String>, String> {
    let form = || format!("`{requested}` is not EXPERIMENT | LINES | FIRST WORDS");
    let [name, count, first] = requested.split('|').map(str::trim).collect::<Vec<_>>()[..] else { return Err(form()) };
    let count: usize = count.parse().map_err(|_| form())?;
    let Some(printed) = figures.printed(name)? else { return Ok(None) };
    let lines: Vec<&str> = printed.lines().skip_while(|line| !line.starts_with(first)).take(count).collect();
    if lines.len() < count {
        return Err(format!("docs/experiments/{name}.txt has no {count} lines from `{first}` on"));
    }
    Ok(Some(format!("```text\n{}\n```\n", lines.join("\n"))))
}

type Content<'a> = &'a mut dyn FnMut(&str) -> Result<Option<String>, String>;

/// The text with everything between `open … close` and `end` replaced by what `write` makes of `…`; unchanged if
/// `write` returns `None`.
///
/// # Errors
/// An incomplete comment, or the error of `write`, with the comment's first line.
pub fn replaced(text: &str, open: &str, close: &str, end: &str, write: Content<'_>) -> Result<String, String> {
    let mut page = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let line = rest[start..].lines().next().unwrap_or_default();
        let torn = || format!("{line}: the comment is not followed by {close} … {end}", close = close.trim());
        let requested = start + open.len();
        let body = requested + rest[requested..].find(close).ok_or_else(torn)?;
        let until = body + rest[body..].find(end).ok_or_else(torn)?;
        page.push_str(&rest[..body + close.len()]);
        match write(&rest[requested..body]).map_err(|error| format!("{line}: {error}"))? {
            Some(new) => page.push_str(&new),
            None => page.push_str(&rest[body + close.len()..until]),
        }
        rest = &rest[until..];
    }
    page.push_str(rest);
    Ok(page)
}

/// A column: an engine, and its heading.
struct Column<'a> {
    engine: &'a str,
    head: &'a str,
}

/// A row: an expression for each column's engine.
struct Row<'a> {
    label: &'a str,
    expression: &'a str,
    decimals: &'a str,
    published: Option<&'a str>,
}

fn table(requested: &str, figures: &mut Committed) -> Result<Option<String>, String> {
    let mut lines = requested.lines();
    let experiment = lines.next().unwrap_or_default().trim();
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_once(':') {
            Some(("column", column)) => columns.push(self::column(column)?),
            Some(("row", text)) => rows.push(row(text)?),
            _ => return Err(format!("`{line}` is neither `column: ENGINE | HEAD` nor `row: …`")),
        }
    }
    let Some(document) = figures.experiment(experiment)? else { return Ok(None) };
    let published = rows.iter().any(|row| row.published.is_some());
    let mut table = String::from("|");
    columns.iter().for_each(|column| table += &format!(" | {}", column.head));
    table += if published { " | published |\n" } else { " |\n" };
    table += &"|---".repeat(columns.len() + 1 + usize::from(published));
    table += "|\n";
    for row in rows {
        let mut cells = Vec::new();
        for column in &columns {
            cells.push(shown(value(document, row.expression, Some(column.engine))?, row.decimals)?);
        }
        let published = if published { format!(" {} |", row.published.unwrap_or_default()) } else { String::new() };
        let _ = writeln!(table, "| {} | {} |{published}", row.label, cells.join(" | "));
    }
    Ok(Some(table))
}

fn column(text: &str) -> Result<Column<'_>, String> {
    let (engine, head) = text.split_once('|').ok_or_else(|| format!("`{text}` is not ENGINE | HEAD"))?;
    Ok(Column { engine: engine.trim(), head: head.trim() })
}

fn row(text: &str) -> Result<Row<'_>, String> {
    let parts: Vec<&str> = text.split('|').map(str::trim).collect();
    let [label, expression, decimals, ref published @ ..] = parts[..] else {
        return Err(format!("`{}` is not LABEL | EXPRESSION | DECIMALS [| PUBLISHED]", text.trim()));
    };
    let published = published.first().copied();
    Ok(Row { label, expression, decimals, published })
}

/// The reason why an expression has no value.
enum Missing {
    /// A figure is absent, or the divisor is zero.
    Absent,
    Mistake(String),
}

impl From<String> for Missing {
    fn from(_: String) -> Self {
        Missing::Absent
    }
}

/// The value of an expression in the language of claims; `None` if a figure is absent. `engine` is that of figures
/// without one.
fn value(document: &Value, text: &str, engine: Option<&str>) -> Result<Option<f64>, String> {
    let expression =
        number(text, &Scope::open(engine)).map_err(|mistake| format!("{}; {}", mistake.problem, mistake.remedy))?;
    let value = expression.value(&mut |reference| {
        let mut engine = reference.engine.clone();
        if reference.clients > 0 {
            engine += &format!(":{}", reference.clients);
        }
        figure(document, &engine, reference).map_err(Missing::Mistake)?.ok_or(Missing::Absent)
    });
    match value {
        Ok(value) => Ok(Some(value)),
        Err(Missing::Absent) => Ok(None),
        Err(Missing::Mistake(why)) => Err(format!("`{text}`: {why}")),
    }
}

fn shown(value: Option<f64>, decimals: &str) -> Result<String, String> {
    let decimals: usize = decimals.trim().parse().map_err(|_| format!("`{decimals}` is not a number of decimals"))?;
    Ok(value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}")))
}

fn inline(requested: &str, figures: &mut Committed) -> Result<Option<String>, String> {
    let form = || format!("`{requested}` is not EXPERIMENT: EXPRESSION ; DECIMALS");
    let (experiment, rest) = requested.split_once(':').ok_or_else(form)?;
    let (expression, decimals) = rest.rsplit_once(';').ok_or_else(form)?;
    let Some(document) = figures.experiment(experiment.trim())? else { return Ok(None) };
    shown(value(document, expression, None)?, decimals).map(Some)
}
