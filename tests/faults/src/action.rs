//! The faults that are injected into a run.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::answers::{Miss, Question, says};
use crate::host;
use crate::place::text;
use crate::plant::Planted;
use crate::run::Ended;
use crate::stage::Stage;
use crate::trouble::{Doing, Trouble};

/// To whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The process that the user started.
    Rumba,
    /// It and its trial, as by a terminal.
    Group,
    /// The process of the trial.
    Trial,
    /// The server that the trial has started.
    Server,
    /// The existing server.
    Existing,
}

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The requested options are the fault.
    Requested,
    /// A signal.
    Signal(Who, Signal),
    /// A signal, and again until rumba has ended.
    Twice(Signal),
    /// A stop, and a continue after this time.
    Pause(Who, Duration),
    /// The existing server ends by this signal and is started again.
    Restart(Signal),
    /// The file system of the data is filled.
    FillData,
    /// The file system of the results is filled.
    FillResults,
    /// The results directory is removed.
    RemoveResults,
    /// The file system of the results is read-only.
    ReadOnlyResults,
    /// A limit on the number of descriptors.
    Descriptors(u32),
    /// Another user has planted files.
    Plant(Planted),
    /// A second run writes to the same directory.
    SecondRun,
    /// Two runs that write to the same directory start at once.
    TwoAtOnce,
    /// Two runs that name no directory start at once.
    TwoUnnamed,
    /// A byte of `intervals.ndjson` is damaged.
    Damage,
    /// rumba is killed, and then the marker of its data directory is damaged.
    CorruptMarker,
    /// The reader of rumba's output is gone.
    NoReader,
}

/// Whether a fault was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// It was.
    Done,
    /// The target of the fault had gone.
    TooLate,
}

/// The messages that a second run must get if it may not write where another one writes.
const REFUSED: [&str; 2] = ["is taken: another run", "is not empty"];

impl Stage<'_> {
    /// Injects the case's fault now.
    pub fn strike(&mut self) -> Result<Injected, Trouble> {
        match self.case.fault.action {
            Action::Signal(who, signal) => return self.signal(who, signal),
            Action::Twice(signal) => return self.signal_until_it_ends(signal),
            Action::Pause(who, length) => {
                if self.signal(who, Signal::STOP)? == Injected::TooLate {
                    return Ok(Injected::TooLate);
                }
                sleep(length);
                return self.signal(who, Signal::CONT);
            }
            Action::Restart(signal) => {
                let existing = self.existing()?;
                existing.end(signal)?;
                existing.serve()?;
            }
            // It goes with the volume.
            Action::FillData => host::fill(&self.volume()).map(drop)?,
            Action::FillResults => self.ballast = Some(host::fill(self.disk()?.point())?),
            Action::RemoveResults => {
                // The rename makes the directory disappear at once, even while files are written in it.
                let gone = self.place.path("gone");
                fs::rename(&self.out, &gone).and_then(|()| fs::remove_dir_all(&gone)).doing("removing the results")?;
            }
            Action::SecondRun => self.second_run()?,
            Action::Damage => self.damage()?,
            Action::CorruptMarker => {
                if self.signal(Who::Rumba, Signal::KILL)? == Injected::TooLate {
                    return Ok(Injected::TooLate);
                }
                host::marked_after(&self.place.mark(), Duration::from_secs(10));
                fs::write(self.data_dir().join(".rumba"), "{\"format\": 1, \"pa").doing("damaging the marker")?;
            }
            Action::Requested
            | Action::ReadOnlyResults
            | Action::Descriptors(_)
            | Action::Plant(_)
            | Action::TwoAtOnce
            | Action::TwoUnnamed
            | Action::NoReader => {}
        }
        Ok(Injected::Done)
    }

    fn pid_of(&mut self, who: Who) -> Option<u32> {
        match who {
            Who::Rumba | Who::Group => {
                let run = self.run.as_mut()?;
                (!run.has_ended()).then(|| run.pid())
            }
            Who::Trial => self.run.as_ref()?.trial(),
            Who::Server => self.run.as_ref()?.server(),
            Who::Existing => self.existing.as_mut()?.pid(),
        }
    }

    fn signal(&mut self, who: Who, signal: Signal) -> Result<Injected, Trouble> {
        let Some(pid) = self.pid_of(who) else { return Ok(Injected::TooLate) };
        match who {
            Who::Group => host::signal_group(pid, signal)?,
            Who::Existing if signal == Signal::KILL => self.existing()?.end(signal)?,
            // The process may have ended since it was found.
            _ => return Ok(host::signal(pid, signal).map_or(Injected::TooLate, |()| Injected::Done)),
        }
        Ok(Injected::Done)
    }

    fn signal_until_it_ends(&mut self, signal: Signal) -> Result<Injected, Trouble> {
        let first = self.signal(Who::Rumba, signal)?;
        // Repeated, because two signals sent at once may arrive as one.
        for _ in 0..100 {
            sleep(Duration::from_millis(50));
            if self.signal(Who::Rumba, signal)? == Injected::TooLate {
                break;
            }
        }
        Ok(first)
    }

    fn second_run(&mut self) -> Result<(), Trouble> {
        let output = self.command().output().doing("starting a second rumba")?;
        self.judge_refused(output.status.code(), &text(&output));
        Ok(())
    }

    /// The message that a second run must get.
    fn judge_refused(&mut self, code: Option<i32>, said: &str) {
        if code != Some(2) {
            self.misses.push(Miss::new(Question::Exit, format!("the second run ended with {code:?} instead of 2")));
        }
        if !REFUSED.iter().any(|words| says(said, words)) {
            self.misses.push(Miss::new(Question::Seen, format!("the second run printed: {said}")));
        }
    }

    /// If two runs were started at once, the first must be the one that ran.
    pub fn judge_second(&mut self, first: Ended, second: Ended) -> Result<Ended, Trouble> {
        let succeeded = |ended: &Ended| ended.status.is_some_and(|status| status.success());
        match self.case.fault.action {
            Action::TwoUnnamed => {
                if !succeeded(&second) {
                    let what = format!("the second run ended with {:?}: {}", second.status, second.said);
                    self.misses.push(Miss::new(Question::Exit, what));
                }
                self.find_unnamed()?;
                Ok(first)
            }
            _ => {
                let (winner, loser) =
                    if succeeded(&second) && !succeeded(&first) { (second, first) } else { (first, second) };
                self.judge_refused(loser.status.and_then(|status| status.code()), &loser.said);
                Ok(winner)
            }
        }
    }

    /// Each run must have its own results directory; the one of the case's engine is checked.
    fn find_unnamed(&mut self) -> Result<(), Trouble> {
        let trial = self.trial_name();
        let entries = fs::read_dir(self.place.path("results")).doing("looking for the results")?;
        let found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        if found.len() != 2 {
            let what = format!("two runs have left {} results directories", found.len());
            self.misses.push(Miss::new(Question::Kept, what));
        }
        if let Some(own) = found.into_iter().find(|out| out.join("trials").join(&trial).exists()) {
            self.out = own;
        }
        Ok(())
    }

    /// Replaces a byte in the middle with one that is invalid in text.
    fn damage(&self) -> Result<(), Trouble> {
        let file = self.trial_dir().join("intervals.ndjson");
        let mut bytes = fs::read(&file).doing("reading intervals.ndjson")?;
        let middle = bytes.len() / 2;
        // Keep line ends, because damage to one would damage two lines.
        if let Some(byte) = bytes[middle..].iter_mut().find(|byte| **byte != b'\n') {
            *byte = 0xFF;
        }
        fs::write(&file, bytes).doing("damaging intervals.ndjson")
    }

    /// Fixes the causes that a user can fix.
    pub fn mend(&mut self) -> Result<(), Trouble> {
        if let Some(ballast) = self.ballast.take() {
            fs::remove_file(ballast).doing("making room")?;
        }
        if let Some(disk) = &self.disk {
            disk.set_read_only(false)?;
        }
        if let Some(plot) = &mut self.plot {
            plot.uproot();
        }
        if let Some(existing) = &mut self.existing {
            existing.serve()?;
        }
        Ok(())
    }
}
