//! A trial's events become its record and files, as they come.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use rumba_core::event::Event;
use rumba_core::metric::Metric;
use rumba_core::record::{FORMAT, PhaseKind, Record, Status, TrialPlan};

use super::append::{Append, replace};
use crate::harness::Harness;

/// Writes one trial's directory.
pub struct TrialWriter {
    directory: PathBuf,
    record: Record,
    phase: PhaseKind,
    intervals: Append,
    latency: Append,
    latency_begun: bool,
    started_s: f64,
}

impl TrialWriter {
    /// Makes the trial's directory and a first record, so that even a trial
    /// that dies at once has left its plan. What an attempt before this one has left is replaced.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn create(directory: PathBuf, plan: &TrialPlan) -> io::Result<Self> {
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(&directory)?,
        }
        let now = jiff::Timestamp::now();
        let record = Record {
            format: FORMAT,
            plan: plan.clone(),
            status: Status::Running,
            started: super::precise_timestamp(now),
            version: None,
            source: None,
            effective_settings: Vec::new(),
            conditions: std::collections::BTreeMap::new(),
            harness_cpu_us_per_op: Metric::default(),
            phases: Vec::new(),
            warnings: Vec::new(),
        };
        let writer = Self {
            intervals: Append::new(directory.join("intervals.ndjson")),
            latency: Append::new(directory.join("latency.hlog")),
            latency_begun: false,
            started_s: now.as_millisecond() as f64 / 1e3,
            directory,
            record,
            phase: PhaseKind::Provision,
        };
        writer.write_record()?;
        Ok(writer)
    }

    /// The trial's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Takes an event.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Interval(interval) => return self.intervals.line(&json(&interval)),
            Event::Latency { start_s, seconds, histograms } => return self.latency(start_s, seconds, &histograms),
            // It belongs to the data and goes with it.
            Event::Loaded { .. } => return,
            Event::PhaseStarted { phase, .. } => {
                self.phase = phase;
                return;
            }
            Event::Provisioned { version, source, effective_settings, conditions } => {
                self.record.version = Some(version);
                self.record.source = Some(source);
                self.record.effective_settings = effective_settings;
                self.record.conditions.extend(conditions);
            }
            Event::PhaseEnded(phase) => self.record.phases.push(*phase),
            Event::Warning(warning) => self.record.warnings.push(warning),
            Event::Finished => self.record.status = Status::Done,
            Event::Interrupted => self.record.status = Status::Interrupted,
            Event::Failed { phase, cause } => self.record.status = Status::Failed { phase, cause },
        }
        // A full disk is met again in `finish`, after the data is gone.
        let _ = self.write_record();
    }

    fn latency(&mut self, start_s: f64, seconds: f64, histograms: &[(String, u64, String)]) {
        if !self.latency_begun {
            self.latency_begun = true;
            let start = self.started_s;
            self.latency.line("#[Histogram log format version 1.3]");
            self.latency.line(&format!("#[StartTime: {start:.3} (seconds since epoch)]"));
            self.latency.line("#[BaseTime: 0.000 (seconds since epoch)]");
            self.latency.line("#[MaxValueDivisor: 1000000.000]");
            self.latency
                .line("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"");
        }
        let mut lines = String::new();
        for (tag, max_ns, encoded) in histograms {
            let max_ms = *max_ns as f64 / 1e6;
            // Writing into a String cannot fail.
            let _ = write!(
                lines,
                "{}Tag={tag},{:.3},{seconds:.3},{max_ms:.3},{encoded}",
                if lines.is_empty() { "" } else { "\n" },
                self.started_s + start_s
            );
        }
        self.latency.line(&lines);
    }

    /// Says that the user has stopped the run; a trial that had not ended until then is interrupted.
    pub fn interrupted(&mut self) {
        if self.record.status == Status::Running {
            self.record.status = Status::Interrupted;
        }
    }

    /// Says that the trial's process is gone; one that did not say how it
    /// ended has failed with this cause in the phase it was in.
    pub fn gone(&mut self, cause: String) {
        if self.record.status == Status::Running {
            self.record.status = Status::Failed { phase: self.phase, cause };
        }
    }

    /// Names the cause behind the one that a failed trial itself has seen.
    pub fn explained(&mut self, why: &str) {
        if let Status::Failed { cause, .. } = &mut self.record.status {
            // A log that it quotes below its first line knows nothing of a kill; it is kept beside the record.
            let seen = cause.lines().next().unwrap_or_default();
            *cause = format!("{why}; what the trial saw: {}", seen.trim_end_matches("; its log says:"));
        }
    }

    /// How the trial stands.
    pub fn status(&self) -> &Status {
        &self.record.status
    }

    /// When the trial began, RFC 3339.
    pub fn started(&self) -> String {
        self.record.started.clone()
    }

    /// Says what rumba itself costs per operation on this host.
    pub fn harness(&mut self, harness: &Harness) {
        self.record.harness_cpu_us_per_op = harness.cpu_us_per_op.clone();
        self.record.conditions.insert("harness, CPU per operation".to_owned(), harness.to_string());
    }

    /// Adds a condition that is known only at the end.
    pub fn condition(&mut self, name: &str, value: String) {
        self.record.conditions.insert(name.to_owned(), value);
    }

    /// Writes whatever is not on disk yet and gives the record.
    ///
    /// # Errors
    /// When something measured could not be written.
    pub fn finish(mut self) -> io::Result<Record> {
        self.intervals.flush()?;
        self.latency.flush()?;
        self.write_record()?;
        Ok(self.record)
    }

    fn write_record(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.record)?;
        replace(&self.directory.join("record.json"), &text)
    }
}

/// Values of our own types always become JSON: their maps have text keys and their numbers are finite.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}
