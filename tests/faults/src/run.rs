//! A running rumba: its output, its progress and its end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::axes::Moment;
use crate::host;
use crate::trouble::{Doing, Trouble};

/// The time limit for reaching a moment, or the end.
const PATIENCE: Duration = Duration::from_secs(150);
/// The interval between two checks.
const NAP: Duration = Duration::from_millis(3);
/// Phases whose end is reported, in addition to the loops.
const PHASES: [&str; 7] = ["load", "settle", "warmup", "loops", "backlog", "drain", "verify"];

/// Whether a moment came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It is now.
    Now,
    /// The run has ended before.
    Ended,
}

/// A run that is under way.
pub struct Started {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
    /// The directory of the trial's results.
    trial: PathBuf,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status; absent if the run did not end and was killed.
    pub status: Option<ExitStatus>,
    /// All that it has printed.
    pub said: String,
}

/// The progress of a run at the time of the fault.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// The phases that it reported as ended.
    pub phases: Vec<String>,
    /// Whole lines of `intervals.ndjson`.
    pub intervals: usize,
}

impl Started {
    /// Starts a run whose trial's results are in this directory. Without a reader, its output is discarded.
    pub fn start(mut command: Command, trial: PathBuf, is_read: bool) -> Result<Self, Trouble> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().doing("starting rumba")?;
        let lines = Arc::default();
        let mut readers = Vec::new();
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ];
        if is_read {
            readers.extend(streams.into_iter().flatten().map(|stream| read(stream, &lines)));
        }
        Ok(Self { child, lines, readers, trial })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process of its trial, if there is one now.
    pub fn trial(&self) -> Option<u32> {
        host::trial_of(self.pid())
    }

    /// The process that its trial has started.
    pub fn server(&self) -> Option<u32> {
        host::children(self.trial()?).into_iter().next()
    }

    /// Waits for a moment.
    pub fn reach(&mut self, moment: Moment) -> Result<Reached, Trouble> {
        let since = Instant::now();
        loop {
            if self.is_at(moment) {
                return Ok(Reached::Now);
            }
            if self.child.try_wait().doing("waiting for rumba")?.is_some() {
                return Ok(Reached::Ended);
            }
            if since.elapsed() > PATIENCE {
                let why = format!("it did not come within {} s; it said: {}", PATIENCE.as_secs(), self.said());
                return Err(Trouble::new(format!("waiting for the {moment} of a run"), why));
            }
            sleep(NAP);
        }
    }

    fn is_at(&self, moment: Moment) -> bool {
        let phases = self.phases();
        match moment.follows() {
            Some(before) => phases.iter().any(|phase| phase == before),
            // The first rows are reported after an interval.
            None => !phases.is_empty() || self.trial.join("intervals.ndjson").exists(),
        }
    }

    /// The phases that it has said had ended.
    pub fn phases(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter_map(|line| ended(line)).map(str::to_owned).collect()
    }

    fn said(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// How far it is.
    pub fn witness(&self) -> Witness {
        let intervals = fs::read(self.trial.join("intervals.ndjson")).unwrap_or_default();
        Witness { phases: self.phases(), intervals: intervals.iter().filter(|byte| **byte == b'\n').count() }
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits for its end.
    pub fn end(mut self) -> Result<Ended, Trouble> {
        let since = Instant::now();
        let status = loop {
            match self.child.try_wait().doing("waiting for rumba")? {
                Some(status) => break Some(status),
                None if since.elapsed() > PATIENCE => break None,
                None => sleep(NAP),
            }
        };
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // Its child processes could keep its streams open.
        let since = Instant::now();
        while !self.readers.iter().all(JoinHandle::is_finished) && since.elapsed() < Duration::from_secs(2) {
            sleep(NAP);
        }
        Ok(Ended { status, said: self.said() })
    }
}

fn read(stream: Box<dyn Read + Send>, lines: &Arc<Mutex<Vec<String>>>) -> JoinHandle<()> {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8_lossy(&line).into_owned());
        }
    })
}

/// The phase whose end a line reports: `  loop 1     3120 ops/s over …`.
fn ended(line: &str) -> Option<&str> {
    let name = line.strip_prefix("  ")?.get(..10)?.trim_end();
    let number = name.strip_prefix("loop ").unwrap_or_default();
    (PHASES.contains(&name) || number.parse::<u32>().is_ok()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_end_lines_are_distinguished_from_other_lines() {
        assert_eq!(ended("  load       20000 rows in 1 s"), Some("load"));
        assert_eq!(ended("  loop 12    3120 ops/s over 1 s"), Some("loop 12"));
        for other in
            ["  warning: loops were long", "  FAILED in load: why", "load       20", "  load", "  copy of    1"]
        {
            assert_eq!(ended(other), None, "{other}");
        }
    }
}
