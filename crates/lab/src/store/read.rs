//! Reads a results directory back, also a partial one.

use std::io;
use std::path::{Path, PathBuf};

use rumba_core::record::{FORMAT, Interval, Record, Status};
use rumba_core::results::{Results, Trial};

use super::Meta;
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

/// Reads results; trials that are missing or cut off are listed in [`Results::missing`].
///
/// # Errors
/// When the directory as a whole is no results directory.
pub fn read(path: &Path) -> Result<Results, ReadError> {
    let meta = read_meta(path)?;
    let experiment = std::fs::read_to_string(path.join("experiment.toml")).unwrap_or_default();
    let mut results = Results {
        name: meta.name,
        source: meta.source,
        claims: claims_of(&experiment),
        experiment,
        started: meta.started,
        rumba: meta.rumba,
        conditions: meta.conditions,
        warnings: meta.warnings,
        trials: Vec::new(),
        missing: Vec::new(),
    };
    for directory in meta.trials {
        match read_trial(&path.join("trials").join(&directory), &mut results.missing) {
            Ok((record, intervals)) => results.trials.push(Trial { directory, record, intervals }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                results.missing.push(format!("{directory}: was not run"));
            }
            Err(error) => results.missing.push(format!("{directory}: {error}")),
        }
    }
    Ok(results)
}

pub(super) fn read_meta(path: &Path) -> Result<Meta, ReadError> {
    let file = path.join("experiment.json");
    let unreadable = |cause: String| ReadError::Unreadable { path: file.clone(), cause };
    let text = std::fs::read_to_string(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ReadError::NoResults { path: path.to_owned() },
        _ => unreadable(error.to_string()),
    })?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    let found = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0) as u32;
    if found != FORMAT {
        return Err(ReadError::Format { path: path.to_owned(), found });
    }
    serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))
}

fn read_trial(directory: &Path, missing: &mut Vec<String>) -> io::Result<(Record, Vec<Interval>)> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let record: Record = serde_json::from_str(&std::fs::read_to_string(directory.join("record.json"))?)?;
    if record.status == Status::Running {
        missing.push(format!("{name}: still running, or cut off before its end"));
    }
    let text = match std::fs::read_to_string(directory.join("intervals.ndjson")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let mut intervals = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(interval) => intervals.push(interval),
            // Only the last line can be half-written; any other is damage worth naming.
            Err(_) => missing.push(format!("{name}: intervals.ndjson line {} is cut off", number + 1)),
        }
    }
    Ok((record, intervals))
}
