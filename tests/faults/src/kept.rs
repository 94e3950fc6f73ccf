//! Checks the kept results: the report of a run, and the written intervals, against the requirements.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitStatus;

use serde_json::Value;

use crate::answers::{Exit, Miss, Question, RequiredResults};
use crate::run::Witness;

/// The maximum measured time that is in no interval, in intervals: the interval that could not be written, plus the
/// part that the failure cut off.
const LOST_INTERVALS: f64 = 2.0;
/// The share of its length by which a loop may exceed the plan without a mark, …
const LONGER: f64 = 0.05;
/// … and for a loop planned shorter than this, the excess in seconds: see docs/method.md, "A suspension".
const SHORT_S: f64 = 5.0;
const LONGER_S: f64 = 1.0;
/// The mark of a trial, or a phase, that was not measured as planned.
const MARK: &str = "suspended";

/// The planned work of a run.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Loops.
    pub loops: u32,
    /// The length of one, seconds.
    pub loop_s: f64,
    /// The length of an interval, seconds.
    pub interval_s: f64,
    /// Whether the data is verified.
    pub verifies: bool,
}

/// The results of a run, and the facts to check them against.
pub struct Results<'a> {
    /// The output of `rumba report --json`, or why there is none.
    pub report: &'a Result<Value, String>,
    /// The trial's directory.
    pub trial: &'a Path,
    /// The progress at the time of the fault.
    pub witness: &'a Witness,
    /// The planned work.
    pub planned: Planned,
}

impl Results<'_> {
    /// The missing results that are required.
    pub fn judge(&self, kept: RequiredResults, status: Option<ExitStatus>) -> Vec<Miss> {
        let wrong = match kept {
            RequiredResults::All => self.trial_of().map_or_else(|why| vec![why], |trial| self.all("done", trial)),
            RequiredResults::Marked => self.trial_of().map_or_else(|why| vec![why], |trial| self.all(MARK, trial)),
            RequiredResults::Until(states) => {
                self.trial_of().map_or_else(|why| vec![why], |trial| self.until(states, trial))
            }
            RequiredResults::Nothing => self.nothing(),
            RequiredResults::Gone => Vec::new(),
            RequiredResults::AllOrNothing if status.and_then(Exit::of) == Some(Exit::Code(0)) => {
                return self.judge(RequiredResults::All, status);
            }
            RequiredResults::AllOrNothing => self.nothing(),
        };
        wrong.into_iter().map(|what| Miss::new(Question::Kept, what)).collect()
    }

    fn trial_of(&self) -> Result<&Value, String> {
        let report = self.report.as_ref().map_err(|why| format!("the results cannot be read: {why}"))?;
        report["trials"]
            .get(0)
            .ok_or_else(|| format!("there is no trial in the results; missing: {}", report["missing"]))
    }

    fn nothing(&self) -> Vec<String> {
        let Ok(trial) = self.trial_of() else { return Vec::new() };
        let phases = phases(trial);
        if phases.is_empty() { Vec::new() } else { vec![format!("these phases were run: {}", phases.join(", "))] }
    }

    fn all(&self, status: &str, trial: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        if trial["status"] != status {
            wrong.push(format!("the trial is {} and not {status}: {}", trial["status"], trial["failure"]));
        }
        let mut wanted: Vec<String> = ["load", "settle", "warmup", "loops", "drain"].map(str::to_owned).into();
        wanted.extend((1..=self.planned.loops).map(|number| format!("loop {number}")));
        wanted.extend(self.planned.verifies.then(|| "verify".to_owned()));
        wrong.extend(lacking(&wanted, trial));
        for phase in of(trial).filter(|phase| name(phase).starts_with("loop ")) {
            let seconds = phase["seconds"].as_f64().unwrap_or_default();
            let planned_s = self.planned.loop_s;
            let longest = planned_s + if planned_s < SHORT_S { LONGER_S } else { planned_s * LONGER };
            if seconds > longest && phase[MARK].is_null() {
                wrong.push(format!("{} lasted {seconds:.2} s and is not marked as `{MARK}`", name(phase)));
            }
        }
        wrong.extend(self.lost(trial));
        wrong
    }

    fn until(&self, states: &[&str], trial: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let status = trial["status"].as_str().unwrap_or_default();
        // After the loops the rest takes some ten milliseconds, so it may be over before the fault has an effect.
        let is_late = status == "done"
            && self.witness.phases.iter().any(|phase| phase == "loops")
            && self.all("done", trial).is_empty();
        if !states.contains(&status) && !is_late {
            wrong.push(format!("the trial is {status} and not {}: {}", states.join(" or "), trial["failure"]));
        }
        wrong.extend(lacking(&self.witness.phases, trial));
        let written = intervals(self.trial).values().map(|(count, _)| count).sum::<usize>();
        if written < self.witness.intervals {
            wrong.push(format!("{} intervals were written, {written} are there", self.witness.intervals));
        }
        if status != "running" {
            wrong.extend(self.lost(trial));
        }
        wrong
    }

    /// The measured seconds of each phase that are in no interval.
    fn lost(&self, trial: &Value) -> Vec<String> {
        let written = intervals(self.trial);
        let may_be_lost = LOST_INTERVALS * self.planned.interval_s;
        let lost = |phase: &Value| {
            let seconds = phase["seconds"].as_f64()?;
            let there = written.get(name(phase)).map_or(0.0, |(_, seconds)| *seconds);
            (seconds - there > may_be_lost)
                .then(|| format!("of {seconds:.2} s of {} only {there:.2} s are in intervals.ndjson", name(phase)))
        };
        // All loops together have no intervals of their own.
        of(trial).filter(|phase| !matches!(name(phase), "loops" | "backlog")).filter_map(lost).collect()
    }
}

fn of(trial: &Value) -> impl Iterator<Item = &Value> {
    trial["phases"].as_array().into_iter().flatten()
}

fn name(phase: &Value) -> &str {
    phase["phase"].as_str().unwrap_or_default()
}

fn phases(trial: &Value) -> Vec<&str> {
    of(trial).map(name).collect()
}

/// Phases that are not in the record.
fn lacking(wanted: &[String], trial: &Value) -> Vec<String> {
    let there = phases(trial);
    let lacking = wanted.iter().filter(|phase| !there.contains(&phase.as_str()));
    lacking.map(|phase| format!("{phase} is not in the record; there are {}", there.join(", "))).collect()
}

/// The intervals of each phase: their number and total seconds. Unreadable lines are skipped.
fn intervals(trial: &Path) -> BTreeMap<String, (usize, f64)> {
    let mut phases: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    let text = fs::read(trial.join("intervals.ndjson")).unwrap_or_default();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(interval) = serde_json::from_slice::<Value>(line) else { continue };
        let sum = phases.entry(name(&interval).to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + interval["seconds"].as_f64().unwrap_or_default());
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(trial: Value, kept: RequiredResults, witness: &Witness) -> Vec<String> {
        let report = Ok(json!({ "trials": [trial], "missing": [] }));
        let planned = Planned { loops: 1, loop_s: 1.0, interval_s: 2.0, verifies: false };
        let nowhere = Path::new("/nowhere");
        let results = Results { report: &report, trial: nowhere, witness, planned };
        results.judge(kept, None).into_iter().map(|miss| miss.what).collect()
    }

    fn done(seconds: f64) -> Value {
        let phase = |name: &str| json!({ "phase": name, "seconds": 0.1 });
        let mut phases: Vec<Value> = ["load", "settle", "warmup", "loops", "drain"].map(phase).into();
        phases.push(json!({ "phase": "loop 1", "seconds": seconds }));
        json!({ "status": "done", "phases": phases, "warnings": [] })
    }

    #[test]
    fn a_loop_that_was_too_long_and_not_marked_is_a_miss() {
        let witness = Witness::default();
        assert_eq!(judged(done(1.0), RequiredResults::All, &witness), [""; 0]);
        assert_eq!(judged(done(1.9), RequiredResults::All, &witness), [""; 0]);
        let long = judged(done(2.1), RequiredResults::All, &witness);
        assert!(long[0].contains("not marked"), "{long:?}");
        let mut marked = done(2.1);
        marked["phases"][5]["suspended"] = json!({ "seconds": 1.1 });
        assert_eq!(judged(marked.clone(), RequiredResults::All, &witness), [""; 0]);
        assert_eq!(judged(marked.clone(), RequiredResults::Marked, &witness).len(), 1, "the trial is not marked");
        marked["status"] = json!("suspended");
        assert_eq!(judged(marked, RequiredResults::Marked, &witness), [""; 0]);
    }

    #[test]
    fn finished_trial_events_must_be_in_the_record() {
        let witness = Witness { phases: vec!["load".into(), "settle".into()], intervals: 2 };
        let trial = json!({ "status": "running", "phases": [{ "phase": "load", "seconds": 0.1 }] });
        let misses = judged(trial, RequiredResults::Until(&["interrupted"]), &witness);
        assert_eq!(misses.len(), 3, "{misses:?}");
        assert!(misses[0].contains("is running and not interrupted") && misses[1].starts_with("settle is not in"));
    }

    #[test]
    fn trial_that_ended_before_the_fault_is_complete() {
        let witness = Witness { phases: vec!["loops".into()], intervals: 0 };
        let early = judged(done(1.0), RequiredResults::Until(&["interrupted"]), &Witness::default());
        assert_eq!(early.len(), 1, "it had time to");
        let mut trial = done(1.0);
        let lost = |misses: &[String]| misses.iter().any(|miss| miss.contains("is done and not interrupted"));
        assert!(!lost(&judged(trial.clone(), RequiredResults::Until(&["interrupted"]), &witness)));
        trial["phases"][4]["phase"] = json!("settle");
        assert!(lost(&judged(trial, RequiredResults::Until(&["interrupted"]), &witness)), "its drain is not there");
    }

    #[test]
    fn empty_phase_is_refused() {
        let witness = Witness::default();
        assert_eq!(judged(done(1.0), RequiredResults::Nothing, &witness).len(), 1);
        assert_eq!(judged(json!({ "status": "failed", "phases": [] }), RequiredResults::Nothing, &witness), [""; 0]);
    }
}
