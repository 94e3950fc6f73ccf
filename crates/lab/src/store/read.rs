//! Reads a results directory, even a partial or damaged one, or one made by another user. It reads every readable part,
//! and reports the rest.

use std::io;
use std::path::{Path, PathBuf};

use rumba_results::engine_samples::{EngineSample, EngineTimeSeries};
use rumba_results::record::{FORMAT, Interval, Record, Status};
use rumba_results::results::{Results, Trial};
use serde::de::DeserializeOwned;

use super::damaged::Damaged;
use super::error::ReadError;
use super::plain::{self, Line, read_plain};
use super::write::ENGINE;
use super::{Meta, resume};
use crate::plan;
use crate::spec::claims_of;

/// The file that identifies a results directory.
pub(super) const EXPERIMENT: &str = "experiment.json";

/// Whether a directory seems to have results; only reading shows whether they are readable.
pub fn has_results(path: &Path) -> bool {
    path.join(EXPERIMENT).symlink_metadata().is_ok()
}

/// Reads results. Missing or incomplete trials, and damage, are listed in [`Results::missing`].
///
/// # Errors
/// When the directory is no results directory at all.
pub fn read(path: &Path) -> Result<Results, ReadError> {
    read_with(path, read_seconds)
}

/// The same without intervals, which are most of the data.
///
/// # Errors
/// When the directory is no results directory at all.
pub fn read_records(path: &Path) -> Result<Results, ReadError> {
    read_with(path, |_, _, _| (Vec::new(), EngineTimeSeries::default()))
}

/// Reads the intervals of a trial, and reports damage.
type ReadSeconds = fn(&Path, &str, &mut Vec<String>) -> (Vec<Interval>, EngineTimeSeries);

fn read_seconds(results: &Path, name: &str, missing: &mut Vec<String>) -> (Vec<Interval>, EngineTimeSeries) {
    let mut intervals = Vec::new();
    let add = |interval| {
        intervals.push(interval);
        true
    };
    read_lines(results, "intervals.ndjson", name, missing, add);
    let mut course = EngineTimeSeries::default();
    let mut has_room = true;
    read_lines(results, ENGINE, name, missing, |look| {
        has_room = add_look(&mut course, look);
        has_room
    });
    if !has_room {
        missing.push(format!("{name}: {ENGINE} has more than {MOST_NUMBERS} numbers; those beyond were not read"));
    }
    (intervals, course)
}

/// The limit on the numbers of an engine's time series, a gigabyte: a day of seconds with 1500 counters. One line may
/// name thousands of counters, and every later line repeats them.
const MOST_NUMBERS: usize = 1 << 27;

/// Adds a sample if the limit permits it.
pub(super) fn add_look(course: &mut EngineTimeSeries, look: EngineSample) -> bool {
    let columns = course.columns.len() + look.debt.len() + look.counters.len() + 1;
    let has_room = columns.saturating_mul(course.at_s.len() + 1) <= MOST_NUMBERS;
    if has_room {
        course.add(look);
    }
    has_room
}

fn read_with(path: &Path, seconds: ReadSeconds) -> Result<Results, ReadError> {
    let (mut results, directories) = read_experiment(path)?;
    let mut not_run: Vec<String> = Vec::new();
    for directory in directories {
        match read_record_or_plan(path, &directory, &results.started, &mut results.missing) {
            Ok(record) => {
                let (intervals, course) = seconds(path, &directory, &mut results.missing);
                results.trials.push(Trial { directory, record, intervals, course });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                not_run.push(directory);
            }
            Err(error) => results.missing.push(format!("{directory}: record.json cannot be read: {error}")),
        }
    }
    match not_run.as_slice() {
        [] => {}
        [one] => results.missing.push(format!("{one}: was not run")),
        // In an interrupted run these are all later trials.
        [first, .., last] => results.missing.push(format!("{} trials, {first} to {last}: were not run", not_run.len())),
    }
    Ok(results)
}

/// Reads everything except the trials; also returns the trials' directories.
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

/// Reads what is known about results without reading any record.
///
/// # Errors
/// When the directory is no results directory at all.
pub fn read_head(path: &Path) -> Result<Meta, ReadError> {
    read_meta(path).map(|(meta, _)| meta)
}

/// The contents of `experiment.json`, and the damage in it.
pub(super) fn read_meta(path: &Path) -> Result<(Meta, Vec<String>), ReadError> {
    let unreadable = |cause: String| ReadError::Unreadable { path: path.join(EXPERIMENT), cause };
    let mut damage = Vec::new();
    let text = text_of(path, EXPERIMENT.as_ref(), EXPERIMENT, &mut damage).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::NoResults { path: path.to_owned() },
        _ => unreadable(error.to_string()),
    })?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    let found = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if found != u64::from(FORMAT) {
        return Err(ReadError::Format { path: path.to_owned(), found });
    }
    let meta = serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))?;
    Ok((meta, damage))
}

/// The experiment as run; empty when it cannot be read.
fn read_toml(path: &Path, missing: &mut Vec<String>) -> String {
    let name = "experiment.toml";
    let text = text_of(path, name.as_ref(), name, missing).unwrap_or_else(|error| {
        missing.push(format!("experiment.toml cannot be read, and its claims are not judged: {error}"));
        String::new()
    });
    if let Err(error) = text.parse::<toml_edit::DocumentMut>() {
        let first = error.message().lines().next().unwrap_or_default();
        missing.push(format!("experiment.toml is damaged, and its claims are not judged: {first}"));
    }
    text
}

/// A trial's record, or a record from its plan if it is unreadable.
fn read_record_or_plan(results: &Path, name: &str, started: &str, missing: &mut Vec<String>) -> io::Result<Record> {
    let record = read_record(results, name, missing);
    let (record, is_left) = match record {
        Ok(record) => (record, false),
        Err(error) => (record_of_plan(results, name, started, error, missing)?, true),
    };
    if record.status == Status::Running && !is_left {
        missing.push(format!("{name}: still running, or cut off before its end"));
    }
    Ok(record)
}

/// The record of the trial in a directory of this name.
pub(super) fn read_record(results: &Path, name: &str, missing: &mut Vec<String>) -> io::Result<Record> {
    let text = text_of(results, &of_trial(name, "record.json"), &format!("{name}: record.json"), missing)?;
    let mut record: Record = serde_json::from_str(&text)?;
    record.phases.iter_mut().for_each(|phase| phase.metrics.complete());
    Ok(record)
}

/// The path of a trial's file, relative to the results.
pub(super) fn of_trial(name: &str, file: &str) -> PathBuf {
    Path::new("trials").join(name).join(file)
}

/// A record without results that replaces an unreadable one, if the trial's intervals are readable.
fn record_of_plan(
    results: &Path,
    name: &str,
    started: &str,
    error: io::Error,
    missing: &mut Vec<String>,
) -> io::Result<Record> {
    let has_intervals = plain::open(results, &of_trial(name, "intervals.ndjson")).is_ok();
    let plans = if has_intervals { resume::read(results).map(|resume| resume.plans) } else { return Err(error) };
    let Some(plan) = plans.into_iter().flatten().find(|plan| plan::directory(plan) == name) else { return Err(error) };
    missing.push(format!("{name}: record.json cannot be read, so only the trial's intervals remain: {error}"));
    Ok(Record::of_plan(plan, started.to_owned()))
}

/// Passes on the readable lines of a trial's file, in order, until `take` returns false.
fn read_lines<T: DeserializeOwned>(
    results: &Path,
    file: &str,
    name: &str,
    missing: &mut Vec<String>,
    mut take: impl FnMut(T) -> bool,
) {
    let (mut number, mut read, mut damaged, mut is_cut_off) = (0, 0, Damaged::default(), false);
    let each = |line: Line<'_>| {
        number += 1;
        let value = match line {
            Line::Whole([]) => return true,
            Line::Whole(line) | Line::Begun(line) => serde_json::from_slice(line).ok(),
            Line::Endless => None,
        };
        match value {
            Some(value) => {
                read += 1;
                return take(value);
            }
            // Only text after the last end of line can be incomplete.
            None if matches!(line, Line::Begun(_)) => is_cut_off = true,
            None => damaged.add(number),
        }
        true
    };
    match plain::open(results, &of_trial(name, file)).and_then(|file| plain::lines(file, 0, each)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => missing.push(format!("{name}: {file} cannot be read: {error}")),
        Ok(reached) if reached.has_more => {
            let most = plain::LINES_BYTES >> 30;
            missing.push(format!("{name}: {file} is longer than {most} GiB; the rest was not read"));
        }
        Ok(_) if is_cut_off => missing.push(format!("{name}: {file} line {number} is cut off")),
        Ok(_) => {}
    }
    if !damaged.is_empty() {
        missing.push(format!("{name}: {file} {damaged} cannot be read; the other {read} were"));
    }
}

/// The text of a file that may be damaged: invalid UTF-8 is replaced, and its lines are reported.
fn text_of(results: &Path, file: &Path, name: &str, damage: &mut Vec<String>) -> io::Result<String> {
    let bytes = match String::from_utf8(read_plain(results, file)?) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let mut damaged = Damaged::default();
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    lines.filter(|(_, line)| std::str::from_utf8(line).is_err()).for_each(|(number, _)| damaged.add(number));
    damage.push(format!("{name} {damaged} has bytes that are not UTF-8; the rest was read"));
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
