//! Reads a results directory back, also a partial or a damaged one: what can be read is, and what cannot is told.

use std::io;
use std::path::{Path, PathBuf};

use rumba_core::looks::EngineCourse;
use rumba_core::record::{FORMAT, Interval, Record, Status};
use rumba_core::results::{Results, Trial};
use serde::de::DeserializeOwned;

use super::write::{ENGINE, unwritten};
use super::{Meta, resume};
use crate::plan;
use crate::spec::claims_of;

/// Why a directory cannot be read as results.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no results directory.
    #[error("{path} holds no results: there is no experiment.json in it")]
    NoResults {
        /// The directory.
        path: PathBuf,
    },
    /// It was written by another version.
    #[error("{path} was written in format {found}; this version reads format {FORMAT}")]
    Format {
        /// The directory.
        path: PathBuf,
        /// The format found.
        found: u32,
    },
    /// It is damaged or cannot be read.
    #[error("{path} cannot be read: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

/// Reads results; trials that are missing or cut off, and what is damaged, are listed in [`Results::missing`].
///
/// # Errors
/// When the directory as a whole is no results directory.
pub fn read(path: &Path) -> Result<Results, ReadError> {
    read_with(path, read_seconds)
}

/// The same without the seconds, which are most of it.
///
/// # Errors
/// When the directory as a whole is no results directory.
pub fn read_records(path: &Path) -> Result<Results, ReadError> {
    read_with(path, |_, _, _| (Vec::new(), EngineCourse::default()))
}

/// Reads what is of seconds in a trial's directory, and says what of it is damaged.
type ReadSeconds = fn(&Path, &str, &mut Vec<String>) -> (Vec<Interval>, EngineCourse);

fn read_seconds(directory: &Path, name: &str, missing: &mut Vec<String>) -> (Vec<Interval>, EngineCourse) {
    let intervals = read_lines(directory, "intervals.ndjson", name, missing);
    let mut course = EngineCourse::default();
    read_lines(directory, ENGINE, name, missing).into_iter().for_each(|look| course.add(look));
    (intervals, course)
}

fn read_with(path: &Path, seconds: ReadSeconds) -> Result<Results, ReadError> {
    let (mut results, directories) = read_experiment(path)?;
    for directory in directories {
        match read_record_or_plan(path, &directory, &results.started, &mut results.missing) {
            Ok(record) => {
                let of_trial = path.join("trials").join(&directory);
                let (intervals, course) = seconds(&of_trial, &directory, &mut results.missing);
                results.trials.push(Trial { directory, record, intervals, course });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                results.missing.push(format!("{directory}: was not run"));
            }
            Err(error) => results.missing.push(format!("{directory}: record.json cannot be read: {error}")),
        }
    }
    Ok(results)
}

/// All of it but its trials, and the directories of these.
pub(super) fn read_experiment(path: &Path) -> Result<(Results, Vec<String>), ReadError> {
    let (meta, mut missing) = read_meta(path)?;
    let experiment = read_toml(path, &mut missing);
    let results = Results {
        name: meta.name,
        source: meta.source,
        claims: claims_of(&experiment),
        experiment,
        started: meta.started,
        rumba: meta.rumba,
        build: meta.build,
        conditions: meta.conditions,
        warnings: meta.warnings,
        trials: Vec::new(),
        missing,
    };
    Ok((results, meta.trials))
}

/// What is known of results before any record of them is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The experiment's name.
    pub name: String,
    /// Where it was published, if it reproduces something.
    pub source: Option<String>,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of rumba that ran it.
    pub rumba: String,
    /// The directories of all planned trials below `trials/`.
    pub trials: Vec<String>,
}

/// Reads no more than what is known before any record is read.
///
/// # Errors
/// When the directory as a whole is no results directory.
pub fn read_head(path: &Path) -> Result<Head, ReadError> {
    let (Meta { name, source, started, rumba, trials, .. }, _) = read_meta(path)?;
    Ok(Head { name, source, started, rumba, trials })
}

/// What `experiment.json` holds, and what of it is damaged.
pub(super) fn read_meta(path: &Path) -> Result<(Meta, Vec<String>), ReadError> {
    let file = path.join("experiment.json");
    let unreadable = |cause: String| ReadError::Unreadable { path: file.clone(), cause };
    let mut damage = Vec::new();
    let text = text_of(&file, "experiment.json", &mut damage).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::NoResults { path: path.to_owned() },
        _ => unreadable(error.to_string()),
    })?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    let found = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0) as u32;
    if found != FORMAT {
        return Err(ReadError::Format { path: path.to_owned(), found });
    }
    let meta = serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))?;
    Ok((meta, damage))
}

/// The experiment as run; empty when it cannot be read.
fn read_toml(path: &Path, missing: &mut Vec<String>) -> String {
    let text = text_of(&path.join("experiment.toml"), "experiment.toml", missing).unwrap_or_else(|error| {
        missing.push(format!("experiment.toml cannot be read, and its claims are not judged: {error}"));
        String::new()
    });
    if let Err(error) = text.parse::<toml_edit::DocumentMut>() {
        let first = error.message().lines().next().unwrap_or_default();
        missing.push(format!("experiment.toml is damaged, and its claims are not judged: {first}"));
    }
    text
}

/// A trial's record, or what its plan says of it where that cannot be read.
fn read_record_or_plan(results: &Path, name: &str, started: &str, missing: &mut Vec<String>) -> io::Result<Record> {
    let directory = results.join("trials").join(name);
    let record = read_record(&directory.join("record.json"), name, missing);
    let (record, is_left) = match record {
        Ok(record) => (record, false),
        Err(error) => (record_of_plan(results, name, started, error, missing)?, true),
    };
    if record.status == Status::Running && !is_left {
        missing.push(format!("{name}: still running, or cut off before its end"));
    }
    Ok(record)
}

pub(super) fn read_record(file: &Path, name: &str, missing: &mut Vec<String>) -> io::Result<Record> {
    Ok(serde_json::from_str(&text_of(file, &format!("{name}: record.json"), missing)?)?)
}

/// A record without results in the place of one that cannot be read, where the trial's intervals can be.
fn record_of_plan(
    results: &Path,
    name: &str,
    started: &str,
    error: io::Error,
    missing: &mut Vec<String>,
) -> io::Result<Record> {
    let has_intervals = results.join("trials").join(name).join("intervals.ndjson").exists();
    let plans = if has_intervals { resume::read(results).map(|resume| resume.plans) } else { return Err(error) };
    let Some(plan) = plans.into_iter().flatten().find(|plan| plan::directory(plan) == name) else { return Err(error) };
    missing.push(format!("{name}: record.json cannot be read, what is left of the trial is its intervals: {error}"));
    Ok(unwritten(&plan, started.to_owned()))
}

/// The lines of a file of a trial that can be read, in order.
fn read_lines<T: DeserializeOwned>(directory: &Path, file: &str, name: &str, missing: &mut Vec<String>) -> Vec<T> {
    let bytes = match std::fs::read(directory.join(file)) {
        Ok(bytes) => bytes,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                missing.push(format!("{name}: {file} cannot be read: {error}"));
            }
            return Vec::new();
        }
    };
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let (mut read, mut damaged) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(&lines).filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(value) => read.push(value),
            // Only what stands behind the last end of a line can be half-written.
            Err(_) if number == lines.len() => missing.push(format!("{name}: {file} line {number} is cut off")),
            Err(_) => damaged.push(number),
        }
    }
    if !damaged.is_empty() {
        missing.push(format!("{name}: {file} {} cannot be read; the other {} were", in_words(&damaged), read.len()));
    }
    read
}

/// The text of a file that may be damaged: what is no UTF-8 in it is replaced, and the lines are told.
fn text_of(file: &Path, name: &str, damage: &mut Vec<String>) -> io::Result<String> {
    let bytes = match String::from_utf8(std::fs::read(file)?) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let damaged: Vec<usize> =
        lines.filter(|(_, line)| std::str::from_utf8(line).is_err()).map(|(number, _)| number).collect();
    damage.push(format!("{name} {} holds bytes that are no text (UTF-8); all else of it was read", in_words(&damaged)));
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs of lines that are named one by one.
const NAMED_RUNS: usize = 8;

/// Numbers of lines, which grow: `lines 3, 7 to 9`.
fn in_words(numbers: &[usize]) -> String {
    let runs: Vec<&[usize]> = numbers.chunk_by(|one, next| one + 1 == *next).collect();
    let run = |run: &&[usize]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    };
    let named: Vec<String> = runs.iter().take(NAMED_RUNS).map(run).collect();
    let rest: usize = runs.iter().skip(NAMED_RUNS).map(|run| run.len()).sum();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{} {}{more}", if numbers.len() == 1 { "line" } else { "lines" }, named.join(", "))
}
