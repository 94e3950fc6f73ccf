//! Writes a trial's events to its record and files as they arrive.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rumba_results::build::Build;
use rumba_results::condition;
use rumba_results::engine_samples::EngineSample;
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, Record, Status, TrialPlan};
use rumba_results::warning::Warning;

use super::append::{Append, replace};
use super::room::{Held, Room};
use crate::harness::Harness;

/// The file of a trial with the samples of its engine.
pub(super) const ENGINE: &str = "engine.ndjson";

/// Writes one trial's directory.
pub struct TrialWriter {
    directory: PathBuf,
    room: Arc<Room>,
    /// Whether the failure to write results was reported.
    reported: bool,
    record: Record,
    phase: PhaseKind,
    intervals: Append,
    latency: Append,
    engine: Append,
    /// The last sample in the engine's file.
    seen: EngineSample,
    latency_begun: bool,
    started_s: f64,
}

impl TrialWriter {
    /// Makes the trial's directory and a first record, so that even a trial that dies at once has left its plan. Files
    /// of an earlier attempt are replaced.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub(super) fn create(directory: PathBuf, plan: &TrialPlan, build: &Build, room: Arc<Room>) -> io::Result<Self> {
        room.write(Held::Record, || match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => std::fs::create_dir_all(&directory),
        })?;
        let now = jiff::Timestamp::now();
        let writer = Self {
            intervals: Append::new(directory.join("intervals.ndjson")),
            latency: Append::new(directory.join("latency.hlog")),
            engine: Append::new(directory.join(ENGINE)),
            seen: EngineSample::default(),
            latency_begun: false,
            started_s: now.as_millisecond() as f64 / 1e3,
            directory,
            room,
            reported: false,
            record: Record {
                build: Some(build.clone()),
                ..Record::of_plan(plan.clone(), super::precise_timestamp(now))
            },
            phase: PhaseKind::Provision,
        };
        writer.write_record(Held::Record)?;
        Ok(writer)
    }

    /// The trial's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The last phase that the trial has reported.
    pub fn phase(&self) -> PhaseKind {
        self.phase
    }

    pub fn take(&mut self, event: Event) {
        match event {
            Event::Interval(interval) => {
                self.intervals.push(&json(&interval));
                return append(&mut self.intervals, &self.room);
            }
            Event::Looked(look) => {
                self.engine.push(&json(&look.since(&mut self.seen)));
                return append(&mut self.engine, &self.room);
            }
            Event::Latency { start_s, seconds, histograms } => return self.latency(start_s, seconds, &histograms),
            // The state is stored and removed with the data.
            Event::Loaded { .. } => return,
            Event::PhaseStarted { phase, .. } => {
                self.phase = phase;
                // A comment, which readers of the format ignore; the lines up to the next mark belong to this phase.
                if self.latency_begun {
                    self.mark_phase();
                }
                return;
            }
            Event::Provisioned { version, source, effective_settings, conditions } => {
                self.record.version = Some(version);
                self.record.source = Some(source);
                self.record.effective_settings = effective_settings;
                self.record.conditions.extend(conditions);
            }
            Event::PhaseEnded(phase) => self.record.phases.push(*phase),
            Event::Hosts { hosts } => self.record.hosts = hosts,
            Event::Warning(warning) => self.record.warnings.push(warning),
            Event::Finished => self.record.status = whole(&self.record),
            Event::Interrupted => self.halt(Status::Interrupted),
            Event::Failed { phase, cause } => self.record.status = Status::Failed { phase, cause },
        }
        // A failure is noted in `room`, and retried in `finish`, after the data is removed.
        let _ = self.write_record(Held::Record);
    }

    fn latency(&mut self, start_s: f64, seconds: f64, histograms: &[(String, u64, String)]) {
        if !self.latency_begun {
            self.latency_begun = true;
            let start = self.started_s;
            self.latency.push("#[Histogram log format version 1.3]");
            self.latency.push(&format!("#[StartTime: {start:.3} (seconds since epoch)]"));
            self.latency.push("#[BaseTime: 0.000 (seconds since epoch)]");
            self.latency.push("#[MaxValueDivisor: 1000000.000]");
            self.latency
                .push("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"");
            self.mark_phase();
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
        self.latency.push(&lines);
        append(&mut self.latency, &self.room);
    }

    /// Marks in the log the phase of the histograms that follow.
    fn mark_phase(&mut self) {
        self.latency.push(&format!("#[Phase: {}]", self.phase));
    }

    /// The reason why results cannot be written; returned only once.
    pub fn trouble(&mut self) -> Option<Warning> {
        if self.reported {
            return None;
        }
        let warning = self.room.trouble()?;
        self.reported = true;
        self.record.warnings.push(warning.clone());
        // A failure is retried in `finish`.
        let _ = self.write_record(Held::Record);
        Some(warning)
    }

    /// Notes that another process of the trial follows one that has ended as planned.
    pub fn goes_on(&mut self) {
        self.record.status = Status::Running;
    }

    /// Sets the status of an incomplete trial: if its results cannot be written, that is the cause.
    fn halt(&mut self, otherwise: Status) {
        self.record.status = match self.room.trouble() {
            Some(Warning { code, message, .. }) => {
                Status::Failed { phase: self.phase, cause: format!("{code}: {message}") }
            }
            None => otherwise,
        };
    }

    /// Notes that the user has stopped the run; a trial that had not ended is interrupted.
    pub fn interrupted(&mut self) {
        if self.record.status == Status::Running {
            self.halt(Status::Interrupted);
        }
    }

    /// Notes that the trial's process has ended. If it reported no end, it has failed with this cause in its current
    /// phase.
    pub fn gone(&mut self, cause: String) {
        if self.record.status == Status::Running {
            self.halt(Status::Failed { phase: self.phase, cause });
        }
    }

    /// Adds a cause to the one that a failed trial reported itself.
    pub fn explained(&mut self, why: &str) {
        if let Status::Failed { cause, .. } = &mut self.record.status {
            // Keep only the first line: the log quoted below it does not mention the kill, and is stored next to the
            // record anyway.
            let seen = cause.lines().next().unwrap_or_default();
            *cause = format!("{why}; the trial reported: {}", seen.trim_end_matches("; its log says:"));
        }
    }

    /// The trial's status.
    pub fn status(&self) -> &Status {
        &self.record.status
    }

    /// When the trial began, RFC 3339.
    pub fn started(&self) -> String {
        self.record.started.clone()
    }

    /// Sets the harness's overhead per operation on this host.
    pub fn harness(&mut self, harness: &Harness) {
        self.record.harness_cpu_us_per_op = harness.cpu_us_per_op.clone();
        self.record.conditions.insert(condition::HARNESS.to_owned(), harness.to_string());
    }

    /// Adds a condition that is known only at the end.
    pub fn condition(&mut self, name: &str, value: String) {
        self.record.conditions.insert(name.to_owned(), value);
    }

    /// Writes everything that is not on disk yet and returns the record.
    ///
    /// # Errors
    /// When measured data could not be written.
    pub fn finish(mut self) -> io::Result<Record> {
        self.trouble();
        // Write the record first, because the other files are useless without it.
        self.write_record(Held::Summary)?;
        self.room.write(Held::Summary, || self.intervals.flush())?;
        self.room.write(Held::Summary, || self.latency.flush())?;
        self.room.write(Held::Summary, || self.engine.flush())?;
        // The failure may be new.
        self.trouble();
        Ok(self.record)
    }

    fn write_record(&self, held: Held) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.record)?;
        self.room.write(held, || replace(&self.directory.join("record.json"), &text))
    }
}

/// The status of a trial that ran to its end.
fn whole(record: &Record) -> Status {
    let first = record.suspended().next();
    first.map_or(Status::Done, |(phase, suspension)| Status::Suspended { phase, cause: suspension.cause.clone() })
}

/// Writes the pending lines. A failure is noted in `room`; the lines stay pending, and are retried in `finish`.
fn append(file: &mut Append, room: &Room) {
    let _ = room.write(Held::Record, || file.flush());
}

/// Values of our own types always become JSON: their maps have text keys and their numbers are finite.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}
