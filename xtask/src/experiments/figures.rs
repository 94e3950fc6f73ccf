//! The committed figures: `rumba report --json`, one file per experiment.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use rumba_statistics::claims::MetricRef;
use serde_json::Value;

/// The committed files, read on demand.
pub struct Committed {
    directory: PathBuf,
    read: BTreeMap<String, Option<Value>>,
}

impl Committed {
    pub fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), read: BTreeMap::new() }
    }

    /// An experiment's figures; `None` when it has no file.
    pub fn experiment(&mut self, name: &str) -> Result<Option<&Value>, String> {
        if !self.read.contains_key(name) {
            let path = self.directory.join(format!("{name}.json"));
            let value = match std::fs::read_to_string(&path) {
                Ok(text) => Some(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?),
                Err(_) => None,
            };
            self.read.insert(name.to_owned(), value);
        }
        Ok(self.read.get(name).and_then(Option::as_ref))
    }

    /// The tables that an experiment printed; `None` when it has no file.
    pub fn printed(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(_) = self.experiment(name)? else { return Ok(None) };
        let path = self.directory.join(format!("{name}.txt"));
        std::fs::read_to_string(&path).map(Some).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether it was requested, and has a file.
    pub fn has_read(&self, name: &str) -> bool {
        self.read.get(name).is_some_and(Option::is_some)
    }

    /// The experiments that have a file, in order.
    pub fn names(&self) -> Result<Vec<String>, String> {
        let files = std::fs::read_dir(&self.directory)
            .and_then(|files| files.collect::<std::io::Result<Vec<_>>>())
            .map_err(|error| format!("{}: {error}", self.directory.display()))?;
        let name = |file: &DirEntry| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = files.iter().filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The requested experiments without a file.
    pub fn missing(&self) -> Vec<String> {
        self.read.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.clone()).collect()
    }
}

/// A figure of an engine, the median of the repeats. The metrics of claims are joined by those after a kill,
/// `recovery.lost`. `engine:40` is the row of 40 clients, if the experiment has several numbers of clients; a bare name
/// is the first. `None` if the figure is absent, or if only other engines have it.
///
/// # Errors
/// A name that no figure has, or an unknown engine.
pub fn figure(document: &Value, engine: &str, reference: &MetricRef) -> Result<Option<f64>, String> {
    let name = reference.metric.as_str();
    let (part, metric) = name.split_once('.').unwrap_or((if reference.load { "load" } else { "run" }, name));
    if part == "recovery" {
        return of_trials(document, engine, |trial| after_kill(trial, metric));
    }
    let rows = document["summary"]["rows"].as_array().ok_or("the file has no summary")?;
    let row = rows.iter().find(|row| is_row(row, engine)).ok_or_else(|| format!("there is no engine `{engine}`"))?;
    if row[part].is_null() {
        return Ok(None);
    }
    if row[part]["partial"] == true {
        return Err(format!("no repeat of `{engine}` came to its end: its figures are of parts of runs"));
    }
    let of_row = |row: &Value| match &reference.op {
        Some(op) => row[part]["op_types"][op]["response"][metric].clone(),
        None => row[part]["metrics"][metric].clone(),
    };
    let figure = of_row(row);
    // Each engine has counters for its own structure. For example, one has pages where another has flushes.
    if figure.is_null() && rows.iter().all(|row| of_row(row).is_null()) {
        return Err(format!("there is no figure `{name}`"));
    }
    Ok(figure["median"].as_f64())
}

/// Whether a row belongs to this engine, and to these clients if named: `innodb`, `innodb:40`.
fn is_row(row: &Value, named: &str) -> bool {
    match named.rsplit_once(':').map(|(engine, clients)| (engine, clients.parse::<u64>())) {
        Some((engine, Ok(clients))) => is_called(row, engine) && row["clients"].as_u64() == Some(clients),
        _ => is_called(row, named),
    }
}

/// Whether a row or a trial belongs to this engine, by its full or short name.
fn is_called(of: &Value, engine: &str) -> bool {
    of["engine"].as_str().is_some_and(|name| rumba_results::engine_name::is_called(name, engine))
}

/// A trial's finding after its database was opened again after a kill. For a list, which is left out if it is empty,
/// the number of its entries.
fn after_kill(trial: &Value, name: &str) -> Option<f64> {
    let found = &of_phase(&trial["phases"], "recovery")?["recovery"];
    match &found[name] {
        Value::Null if found.is_object() && ["damage", "examples"].contains(&name) => Some(0.0),
        Value::Array(named) => Some(named.len() as f64),
        number => number.as_f64(),
    }
}

/// The entry for a phase in a trial's list.
fn of_phase<'a>(list: &'a Value, phase: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|one| one["phase"] == phase)
}

fn of_trials(document: &Value, engine: &str, value: impl Fn(&Value) -> Option<f64>) -> Result<Option<f64>, String> {
    let trials = document["trials"].as_array().ok_or("the file has no trials")?;
    let mut values: Vec<f64> = trials.iter().filter(|trial| is_called(trial, engine)).filter_map(value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle).copied();
    Ok(if values.len() % 2 == 1 { upper } else { upper.map(|upper| (values[middle - 1] + upper) / 2.0) })
}
