//! The document of `--report-json`, for runs that fail as well as for others.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rumba_engine_api::printable::shown;
use rumba_workload_sysbench::cli::report::Document;
use rumba_workload_sysbench::cli::settings::Settings;
use rumba_workload_sysbench::cli::{OptionSet, Refusal};

use super::Ended;

/// The document of a run, and its file if one was requested.
#[derive(Clone)]
pub struct Record {
    pub document: Document,
    file: Option<PathBuf>,
}

impl Record {
    /// For a run that is about to begin.
    ///
    /// # Errors
    /// The file could not be written at the end.
    pub fn new(test: &str, settings: &Settings, options: &OptionSet) -> Result<Self, Refusal> {
        let file = settings.report_json.clone();
        if let Some(file) = &file {
            probe(file).map_err(|error| unwritable(file, &error))?;
        }
        Ok(Self { document: Document::new(test, options), file })
    }

    pub fn add_failure(&mut self, words: &str) {
        self.document.add_failure(words.strip_prefix("FATAL: ").unwrap_or(words));
    }

    /// Writes the document over any earlier one, so that a failed run does not leave another run's document behind.
    pub fn write(&self) -> Result<(), Ended> {
        let Some(file) = &self.file else { return Ok(()) };
        self.write_to(file).map_err(|error| Ended::refused(&unwritable(file, &error)))
    }

    /// Writes the document to a file before a step that may never end. A pipe is written once, at the end.
    pub fn write_ahead(&self) {
        let Some(file) = &self.file else { return };
        if fs::metadata(file).map_or(true, |found| found.is_file()) {
            // An error here is reported by the final write.
            let _ = self.write_to(file);
        }
    }

    fn write_to(&self, file: &Path) -> io::Result<()> {
        fs::write(file, self.document.json().map_err(io::Error::other)?)
    }
}

/// Checks whether a file can be written; its content stays.
fn probe(file: &Path) -> io::Result<()> {
    match fs::metadata(file) {
        // The pipe's reader would see end of file.
        Ok(found) if !found.is_file() && !found.is_dir() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(file).map(drop),
        Err(_) => match OpenOptions::new().write(true).create_new(true).open(file) {
            Ok(_) => fs::remove_file(file),
            // A link to where there is no file yet.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        },
    }
}

fn unwritable(file: &Path, error: &io::Error) -> Refusal {
    let remedy = "--report-json needs a file that can be written, in a directory that is there";
    Refusal::Fatal(format!("{}: {error}: {remedy}", shown(file)))
}
