//! The differences between a committed run and today's experiment file: the file evolves, and the figures stay.

use std::collections::BTreeSet;
use std::path::Path;

use rumba_engine_api::units::counted;
use serde_json::{Map, Value};

use super::figures::Committed;
use super::page::{END, replaced};
use super::predates;

/// At most this many differences are listed; the rest are counted.
const REPORTED: usize = 6;

pub type Table = Map<String, Value>;

/// The keys that name an engine, and those that identify a claim, in order of preference.
const ENGINE_CALLED_BY: [&[&str]; 1] = [&["name", "use"]];
const CLAIM_CALLED_BY: [&[&str]; 3] = [&["text"], &["holds"], &["measure"]];
/// Keys of a claim that hold prose: a reworded claim still asserts the same.
const CLAIM_PROSE: [&str; 2] = ["text", "source"];

/// Keys of the whole experiment that do not change what it measures, or that are lists of tables.
const APART: [&str; 4] = ["name", "source", "engine", "claim"];

/// The page with the differences of its runs from the files in `experiments`; a run without a committed file keeps its
/// text.
///
/// # Errors
/// A file of today or of a run that cannot be read.
pub fn written(text: &str, figures: &mut Committed, experiments: &Path) -> Result<String, String> {
    replaced(text, "<!-- since:", "-->\n", END, &mut |requested| reported(requested.trim(), figures, experiments))
}

/// The kept runs that a page of docs/experiments/ quotes, by a figure or by a link to their tables.
///
/// # Errors
/// A directory that cannot be read.
pub fn quoted(page: &str, figures: &Committed) -> Result<Vec<String>, String> {
    let mut names = figures.names()?;
    names.retain(|name| figures.has_read(name) || page.contains(&format!("]({name}.txt)")));
    Ok(names)
}

/// Whether a page has such a block of a run.
pub fn is_reported(page: &str, name: &str) -> bool {
    page.contains(&format!("<!-- since: {name} -->"))
}

/// A sentence on a run, or `None` if its experiment's file is unchanged.
///
/// # Errors
/// A file of today or of the run that cannot be read.
pub fn reported(name: &str, figures: &mut Committed, experiments: &Path) -> Result<Option<String>, String> {
    let Some(document) = figures.experiment(name)? else { return Ok(None) };
    let as_run = text(name, document, "experiment_toml")?;
    let run = table(as_run, &format!("docs/experiments/{name}.json, `experiment_toml`"))?;
    let today = today(name, document, experiments)?;
    let differences = Differences::of(&run, &today).reported();
    let mut sentences = String::new();
    if !differences.is_empty() {
        let experiment = today.get("name").and_then(Value::as_str).unwrap_or(name);
        sentences =
            format!("The run kept as `{name}` differs from today's `experiments/{experiment}.toml`. {differences}\n");
    }
    Ok(Some(sentences + &predates::sentences(document).unwrap_or_default()))
}

/// Today's file of the experiment of a kept run: the one of the run's own name, if there is one. A run may be kept under the
/// name of an experiment that was split off later.
///
/// # Errors
/// A file that cannot be read.
pub fn today(name: &str, run: &Value, experiments: &Path) -> Result<Table, String> {
    let own = experiments.join(format!("{name}.toml"));
    let file = if own.exists() { own } else { experiments.join(format!("{}.toml", text(name, run, "experiment")?)) };
    let today = std::fs::read_to_string(&file)
        .map_err(|error| format!("{}: {error}; while a run of it is quoted, its file stays", file.display()))?;
    table(&today, &file.display().to_string())
}

fn text<'a>(name: &str, run: &'a Value, key: &str) -> Result<&'a str, String> {
    run[key].as_str().ok_or_else(|| format!("docs/experiments/{name}.json has no `{key}`"))
}

fn table(text: &str, of: &str) -> Result<Table, String> {
    toml_edit::de::from_str(text).map_err(|error| format!("{of}: {error}"))
}

/// The differences between a run and today's file.
#[derive(Default)]
struct Differences {
    /// Values, with their paths.
    values: Vec<String>,
    /// Paths of engines that the run did not have.
    only_today: Vec<String>,
    /// And of those that the file has not.
    only_run: Vec<String>,
    /// Claims that the two check differently, or that only one of them has.
    claims: usize,
}

impl Differences {
    fn of(run: &Table, today: &Table) -> Self {
        let mut found = Self::default();
        compare("", run, today, &APART, &mut found.values);
        let path = |table: &Table| format!("engine[\"{}\"]", called(table, ENGINE_CALLED_BY[0]).unwrap_or_default());
        let quoted = |table: &Table| format!("`{}`", path(table));
        let engines = paired("engine", &ENGINE_CALLED_BY, run, today);
        for (run, today) in engines.both {
            compare(&path(today), run, today, &[], &mut found.values);
        }
        found.only_today = engines.only_today.into_iter().map(quoted).collect();
        found.only_run = engines.only_run.into_iter().map(quoted).collect();
        let claims = paired("claim", &CLAIM_CALLED_BY, run, today);
        let differs = |(run, today): &(&Table, &Table)| {
            let mut values = Vec::new();
            compare("", run, today, &CLAIM_PROSE, &mut values);
            !values.is_empty()
        };
        let changed = claims.both.iter().filter(|pair| differs(pair)).count();
        found.claims = changed + claims.only_run.len() + claims.only_today.len();
        found
    }

    /// The first differences, and how many more there are; empty if there are none.
    fn reported(mut self) -> String {
        let count = self.values.len() + self.only_today.len() + self.only_run.len();
        self.values.truncate(REPORTED);
        self.only_today.truncate(REPORTED - self.values.len());
        self.only_run.truncate(REPORTED - self.values.len() - self.only_today.len());
        let mut parts = self.values;
        for (owner, paths) in [("The run had", self.only_today), ("The file has", self.only_run)] {
            if !paths.is_empty() {
                parts.push(format!("{owner} no {}", paths.join(", ")));
            }
        }
        if count > REPORTED {
            parts.push(format!("This list leaves out {}", counted(count - REPORTED, "difference")));
        }
        if self.claims > 0 {
            parts.push(format!("The file has {}", counted(self.claims, "changed claim")));
        }
        parts.iter().map(|part| format!("{part}.")).collect::<Vec<_>>().join(" ")
    }
}

/// Lists the differences of two tables, except for some of their keys.
fn compare(path: &str, run: &Table, today: &Table, but: &[&str], reported: &mut Vec<String>) {
    let none = Table::new();
    let keys: BTreeSet<&String> = run.keys().chain(today.keys()).filter(|key| !but.contains(&key.as_str())).collect();
    for key in keys {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (run.get(key), today.get(key)) {
            (run, today) if run == today => {}
            (Some(Value::Object(run)), Some(Value::Object(today))) => compare(&path, run, today, &[], reported),
            (Some(Value::Object(run)), None) if !run.is_empty() => compare(&path, run, &none, &[], reported),
            (None, Some(Value::Object(today))) if !today.is_empty() => compare(&path, &none, today, &[], reported),
            (run, today) => reported.push(format!("`{path}` was {} and is {}", shown(run), shown(today))),
        }
    }
}

/// A value in JSON form, which TOML accepts, except for a text with quotes.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "not set".to_owned(),
        Some(Value::String(text)) if text.contains('"') && !text.contains(['\'', '\n']) => format!("`'{text}'`"),
        Some(value) => format!("`{value}`"),
    }
}

/// The tables of a list: those that a run and today's file have, and those of one alone.
struct Paired<'a> {
    both: Vec<(&'a Table, &'a Table)>,
    only_run: Vec<&'a Table>,
    only_today: Vec<&'a Table>,
}

fn paired<'a>(list: &str, called_by: &[&[&str]], run: &'a Table, today: &'a Table) -> Paired<'a> {
    let (mut only_run, mut only_today) = (tables(list, run), tables(list, today));
    let mut both = Vec::new();
    for by in called_by {
        only_today.retain(|&one| {
            let is_same = |other: &&Table| called(one, by).is_some() && called(one, by) == called(other, by);
            let Some(at) = only_run.iter().position(is_same) else { return true };
            both.push((only_run.remove(at), one));
            false
        });
    }
    Paired { both, only_run, only_today }
}

fn tables<'a>(list: &str, of: &'a Table) -> Vec<&'a Table> {
    of.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object).collect()
}

/// The name of a table by the first of these keys that it has.
fn called<'a>(table: &'a Table, by: &[&str]) -> Option<&'a str> {
    by.iter().find_map(|key| table.get(*key)?.as_str())
}
