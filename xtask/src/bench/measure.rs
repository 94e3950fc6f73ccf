//! Common parts of all measurements: the binaries, their output as JSON, and medians.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Failure;

/// The binaries under measurement and a place for results.
pub struct Bench {
    root: PathBuf,
    release: PathBuf,
    out: tempfile::TempDir,
    examples: BTreeSet<&'static str>,
}

impl Bench {
    /// Builds the measured programs: `rumba`, and the examples with these names.
    pub fn new(root: &Path, examples: BTreeSet<&'static str>) -> Result<Self, Failure> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        std::fs::create_dir_all(&target)?;
        // Next to the build and not in /tmp, which may be in memory, because the device is measured too.
        let out = tempfile::tempdir_in(&target)?;
        let bench = Self { root: root.to_owned(), release: target.join("release"), out, examples };
        let protocols = ["rumba-protocol-mongodb", "rumba-protocol-mysql", "rumba-protocol-postgresql"];
        let of = [&["rumba", "rumba-lab"][..], &protocols].concat();
        // Built together, because separate builds would compile crates with different features each time.
        let of = of.iter().flat_map(|name| ["-p", name]);
        let examples = bench.examples.iter().flat_map(|name| ["--example", name]);
        let built = ["build", "--release", "--bin", "rumba"].into_iter().chain(of).chain(examples);
        bench.cargo(&built.collect::<Vec<_>>())?;
        Ok(bench)
    }

    fn cargo(&self, args: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new("cargo");
        // The variables that `cargo run` sets for this program would rerun build scripts that depend on them, such as
        // ring's.
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
        let status = command.args(args).current_dir(&self.root).status()?;
        if status.success() { Ok(()) } else { Err(format!("cargo {} failed", args.join(" ")).into()) }
    }

    /// Builds a program to measure next to rumba, from its own workspace below xtask/peers; returns its path.
    pub fn peer(&self, name: &str) -> Result<PathBuf, Failure> {
        let (manifest, target) = (format!("xtask/peers/{name}/Cargo.toml"), self.release.with_file_name("peers"));
        let built = ["build", "--release", "--locked", "--manifest-path", &manifest, "--target-dir"];
        self.cargo(&[&built[..], &[&target.display().to_string()]].concat())?;
        Ok(target.join("release").join(name))
    }

    pub fn rumba(&self) -> PathBuf {
        self.release.join("rumba")
    }

    /// The path of an example that was built.
    ///
    /// # Panics
    /// The example was not built, so the file there may be old.
    pub fn example(&self, name: &str) -> PathBuf {
        assert!(self.examples.contains(name), "bench::STEPS does not say that {name} is run");
        self.release.join("examples").join(name)
    }

    /// A path for a file of this run; it is removed with the run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.out.path().join(name)
    }

    /// The host, by name.
    pub fn conditions(&self) -> Result<Value, Failure> {
        let mut conditions = json(Command::new(self.rumba()).args(["doctor", "--json"]))?["conditions"].take();
        // This fact describes the moment after the last of many measurements.
        if let Some(facts) = conditions.as_object_mut() {
            facts.remove("load_average_at_start");
        }
        Ok(conditions)
    }

    /// Runs an experiment and gives its report.
    pub fn report(&self, name: &str, args: &[&str]) -> Result<Value, Failure> {
        let mut command = Command::new(self.rumba());
        command.arg("run").args(args).args(["--json", "--quiet", "--out"]).arg(self.path(name));
        json(command.current_dir(&self.root))
    }
}

pub fn json(command: &mut Command) -> Result<Value, Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let reported = String::from_utf8_lossy(&output.stderr).into_owned() + &failures(&output.stdout);
        return Err(format!("{command:?}: {}: {reported}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The failed trials of a report, because a quiet run reports them nowhere else.
fn failures(report: &[u8]) -> String {
    let report: Value = serde_json::from_slice(report).unwrap_or_default();
    let trials = report["trials"].as_array().map_or(&[][..], Vec::as_slice);
    let failures = trials.iter().filter(|trial| !trial["failure"].is_null());
    failures.map(|trial| format!("{}: {}; ", trial["engine"], trial["failure"])).collect()
}

pub fn number(value: &Value) -> Result<f64, Failure> {
    value.as_f64().ok_or_else(|| format!("{value} is not a number").into())
}

/// A figure over repeats.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    least: f64,
    most: f64,
    /// The range that contains the true median in at least 95 of 100 such measurements.
    sure: (f64, f64),
}

impl Spread {
    /// Computes the spread of one or more repeats.
    pub fn of(mut repeats: Vec<f64>) -> Self {
        repeats.sort_by(f64::total_cmp);
        let at = |place: usize| repeats.get(place).copied().unwrap_or(f64::NAN);
        let (last, out) = (repeats.len().wrapping_sub(1), left_out(repeats.len()));
        Self {
            median: (at(last / 2) + at(repeats.len() / 2)) / 2.0,
            least: at(0),
            most: at(last),
            sure: (at(out), at(last.wrapping_sub(out))),
        }
    }

    /// Written as `1.23 (1.20–1.31)`.
    pub fn reported(&self, digits: usize) -> String {
        format!("{:.digits$} ({:.digits$}–{:.digits$})", self.median, self.least, self.most)
    }

    /// The same, and where the median lies at 95%: `1.23 (1.11–1.31; at 95% 1.20–1.25)`.
    pub fn reported_with_surety(&self, digits: usize) -> String {
        let ((from, to), reported) = (self.sure, self.reported(digits));
        format!("{}; at 95% {from:.digits$}–{to:.digits$})", reported.trim_end_matches(')'))
    }
}

/// The number of sorted repeats to leave out at each end, so that the rest contains the median in at least 95 of 100
/// cases. For any distribution, each repeat lies below the median with probability 1/2 (sign test).
fn left_out(repeats: usize) -> usize {
    let outcomes = 2_f64.powi(repeats as i32);
    // The number of repeats below, by its share of all outcomes.
    let (mut ways, mut below, mut out) = (1.0, 1.0, 0);
    while out < repeats / 2 {
        ways *= (repeats - out) as f64 / (out + 1) as f64;
        below += ways;
        if 2.0 * below / outcomes > 0.05 {
            break;
        }
        out += 1;
    }
    out
}

pub fn phase<'a>(trial: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    let phases = trial["phases"].as_array().ok_or("a trial without phases")?;
    phases.iter().find(|phase| phase["phase"] == name).ok_or_else(|| format!("a trial without {name}").into())
}

/// A figure over the trials that `keep` selects.
pub fn over_trials(
    report: &Value,
    keep: &dyn Fn(&Value) -> bool,
    of: &dyn Fn(&Value) -> Result<f64, Failure>,
) -> Result<Spread, Failure> {
    let trials = report["trials"].as_array().ok_or("a report without trials")?;
    for trial in trials {
        if trial["status"] != "done" {
            return Err(format!("a trial ended as {}: {}", trial["status"], trial["failure"]).into());
        }
    }
    Ok(Spread::of(trials.iter().filter(|trial| keep(trial)).map(of).collect::<Result<_, _>>()?))
}

/// The instructions of a program per operation. It is the difference between runs with `count` and with twice as many
/// operations, which removes the start of the process.
pub fn callgrind(count: u64, program: &dyn Fn(&mut Command, u64)) -> Result<f64, Failure> {
    let executed = |count: u64| -> Result<f64, Failure> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        program(&mut command, count);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(format!("{command:?}: {text}").into());
        }
        let line = text.lines().find_map(|line| line.split_once("Collected : ")).ok_or("callgrind counted nothing")?;
        Ok(line.1.trim().parse()?)
    };
    Ok((executed(2 * count)? - executed(count)?) / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_median_are_those_of_the_tables_of_the_sign_test() {
        // Critical values of the two-sided sign test at 5%: 0 of 6, 1 of 9, 2 of 12, 3 of 15, 5 of 20.
        assert_eq!([6, 8, 9, 12, 15, 20].map(left_out), [0, 0, 1, 2, 3, 5]);
        assert_eq!(Spread::of(vec![4.0, 1.0, 3.0, 2.0]).median, 2.5, "between the two in the middle");
        let spread = Spread::of((1..=15).map(f64::from).collect());
        assert_eq!(spread.reported_with_surety(0), "8 (1–15; at 95% 4–12)");
    }
}
