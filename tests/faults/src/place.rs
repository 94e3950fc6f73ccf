//! The environment of cases: the program, a separate directory for each case, and the existing server.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::existing::Existing;
use crate::host::{self, MARK};
use crate::trouble::{Doing, Trouble};

/// The setup for running cases.
pub struct Bench {
    rumba: PathBuf,
    base: PathBuf,
    existing: Option<Existing>,
}

impl Bench {
    /// For cases of this program, in directories below `base`.
    ///
    /// # Errors
    /// There is no such program, or the directory cannot be made.
    pub fn new(rumba: &Path, base: &Path) -> Result<Self, Trouble> {
        let rumba = rumba.canonicalize().doing(&format!("looking for rumba at {}", rumba.display()))?;
        fs::create_dir_all(base).doing(&format!("making {}", base.display()))?;
        // The form in which the kernel lists it among its mounts and devices.
        let base = base.canonicalize().doing(&format!("looking at {}", base.display()))?;
        Ok(Self { rumba, base, existing: None })
    }

    /// An existing server, created on the first request; it is running.
    pub(crate) fn existing(&mut self) -> Result<&mut Existing, Trouble> {
        let existing = match self.existing.take() {
            Some(existing) => existing,
            None => Existing::make(&self.base)?,
        };
        let existing = self.existing.insert(existing);
        existing.serve()?;
        Ok(existing)
    }

    pub(crate) fn place(&self, name: &str) -> Result<CaseDirectory, Trouble> {
        let place = CaseDirectory { dir: self.base.join(name), rumba: self.rumba.clone() };
        place.remove();
        fs::create_dir_all(place.path("tmp")).doing("making the directory of a case")?;
        Ok(place)
    }
}

/// The directory of a case.
pub struct CaseDirectory {
    dir: PathBuf,
    rumba: PathBuf,
}

impl CaseDirectory {
    /// Something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// All of it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The mark in the environment of its processes.
    pub fn mark(&self) -> String {
        self.dir.display().to_string()
    }

    /// rumba, with its ledger and its temporary files here. Signals of the terminal do not reach it. Signals that the
    /// suite's parent ignores, as with a shell's `&`, are not ignored in it.
    pub fn rumba(&self) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,QUIT,HUP,TERM").arg(&self.rumba);
        self.dressed(command)
    }

    /// rumba with a limit on its descriptors; arguments follow.
    pub fn rumba_with_descriptors(&self, descriptors: u32) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"")]).arg(&self.rumba);
        self.dressed(shell)
    }

    fn dressed(&self, mut command: Command) -> Command {
        command.current_dir(&self.dir).env("XDG_STATE_HOME", self.path("state")).env("TMPDIR", self.path("tmp"));
        command.env(MARK, self.mark()).env("NO_COLOR", "1").env_remove("RUMBA_TRIAL").process_group(0);
        command
    }

    /// The output of rumba with these arguments.
    pub fn fetch(&self, args: &[&str]) -> Result<Output, Trouble> {
        self.rumba().args(args).output().doing("starting rumba")
    }

    /// Its output as JSON, or as text if it is not JSON.
    pub fn request_json(&self, args: &[&str]) -> Result<Result<Value, String>, Trouble> {
        let output = self.fetch(args)?;
        let value = serde_json::from_slice(&output.stdout);
        Ok(value.map_err(|_| format!("`rumba {}` says: {}", args.join(" "), text(&output))))
    }

    /// The leftovers that `rumba doctor` finds.
    pub fn leftovers(&self) -> Result<Vec<String>, Trouble> {
        let reported = self.request_json(&["doctor", "--json"])?.doing("rumba doctor")?;
        let leftovers = reported["leftovers"].as_array().into_iter().flatten();
        Ok(leftovers.map(|leftover| leftover.as_str().unwrap_or_default().to_owned()).collect())
    }

    /// The entries of rumba's ledger.
    pub fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("state/rumba/managed")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Removes the directory, with processes that still run in it, its mounts and its entries in the ledger.
    pub fn remove(&self) {
        host::end(&self.mark());
        if !self.entries().is_empty() {
            // Cleans up after a failed case; the sweep removes the rest.
            let _ = self.fetch(&["doctor", "--clean"]);
        }
        host::sweep(&self.dir);
        // Remaining files are found by the next check.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// All that a program has printed.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
