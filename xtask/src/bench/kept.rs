//! docs/performance.json: the last result of every measurement, with its day. The page is made from it, so that one
//! measurement can be repeated without the hour that all of them take.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::{Failure, Line, STEPS, page};

pub struct MeasurementStore {
    root: PathBuf,
    machine: Value,
    steps: Map<String, Value>,
}

impl MeasurementStore {
    /// Reads the file; empty if there is none.
    ///
    /// # Errors
    /// A file in another format.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(root.join(FILE)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "{}".to_owned(),
            read => read?,
        };
        let mut kept: Value = serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?;
        let steps = kept["steps"].as_object_mut().map(std::mem::take).unwrap_or_default();
        Ok(Self { root: root.to_owned(), machine: kept["machine"].take(), steps })
    }

    /// Replaces a measurement's earlier results, and writes file and page. An hour's measurements that are interrupted
    /// therefore keep those that were taken.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn put(&mut self, step: &str, lines: &[Line], machine: Value) -> Result<(), Failure> {
        self.machine = machine;
        let lines: Vec<Value> = lines.iter().map(to_json).collect();
        self.steps.insert(step.to_owned(), json!({ "day": today()?, "lines": lines }));
        // The figures of a removed measurement are dropped.
        self.steps.retain(|name, _| STEPS.iter().any(|(step, ..)| step == name));
        let kept = json!({ "machine": self.machine, "steps": self.steps });
        std::fs::write(self.root.join(FILE), format!("{}\n", serde_json::to_string_pretty(&kept)?))?;
        std::fs::write(self.root.join(PAGE), page::page(&self.lines(), &self.machine))?;
        Ok(())
    }

    /// All lines, each with its day, in the order of the measurements.
    fn lines(&self) -> Vec<(String, Line)> {
        let steps = STEPS.iter().filter_map(|(name, ..)| self.steps.get(*name));
        let of_step = |step: &Value| {
            let day = text(&step["day"]);
            let lines: Vec<Line> = step["lines"].as_array().into_iter().flatten().map(from_json).collect();
            lines.into_iter().map(move |line| (day.clone(), line))
        };
        steps.flat_map(of_step).collect()
    }
}

const FILE: &str = "docs/performance.json";
const PAGE: &str = "docs/performance.md";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn to_json(line: &Line) -> Value {
    let Line { what, goal, measured, met, command } = line;
    json!({ "what": what, "goal": goal, "measured": measured, "met": met, "command": command })
}

fn from_json(line: &Value) -> Line {
    Line {
        what: text(&line["what"]),
        goal: text(&line["goal"]),
        measured: text(&line["measured"]),
        met: line["met"].as_bool(),
        command: text(&line["command"]),
    }
}

fn today() -> Result<String, Failure> {
    let reported = Command::new("date").args(["-u", "+%F"]).output()?.stdout;
    Ok(String::from_utf8_lossy(&reported).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(measured: &str) -> Line {
        Line {
            what: "a cost".into(),
            goal: "none".into(),
            measured: measured.into(),
            met: None,
            command: "cost".into(),
        }
    }

    #[test]
    fn one_measurement_is_replaced_and_the_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        let put = |step: &str, measured: &str| {
            MeasurementStore::read(dir.path()).unwrap().put(step, &[line(measured)], json!({ "cpus": "2" })).unwrap();
        };
        put("delay", "1 ns");
        put("harness", "2 ns");
        put("delay", "3 ns");
        let page = std::fs::read_to_string(dir.path().join(PAGE)).unwrap();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| a cost")).collect();
        assert!(rows.len() == 2 && rows[0].contains("| 2 ns |") && rows[1].contains("| 3 ns |"), "{rows:?}");
        assert!(page.contains("- cpus: 2"), "{page}");
        std::fs::write(dir.path().join(FILE), "no JSON").unwrap();
        assert!(MeasurementStore::read(dir.path()).is_err());
    }
}
