//! Where cases are tried: the program, a directory of its own for each case, the existing server.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::existing::Existing;
use crate::host::{self, MARK};
use crate::trouble::{Doing, Trouble};

/// What cases are tried with.
pub struct Bench {
    rumba: PathBuf,
    base: PathBuf,
    existing: Option<Existing>,
}

impl Bench {
    /// Cases of this program, in directories below `base`.
    ///
    /// # Errors
    /// When there is no such program, or no such directory can be made.
    pub fn new(rumba: &Path, base: &Path) -> Result<Self, Trouble> {
        let rumba = rumba.canonicalize().doing(&format!("looking for rumba at {}", rumba.display()))?;
        fs::create_dir_all(base).doing(&format!("making {}", base.display()))?;
        // As the kernel writes it among its mounts and devices.
        let base = base.canonicalize().doing(&format!("looking at {}", base.display()))?;
        Ok(Self { rumba, base, existing: None })
    }

    /// An existing server, made when it is first asked for; it runs.
    pub(crate) fn existing(&mut self) -> Result<&mut Existing, Trouble> {
        let existing = match self.existing.take() {
            Some(existing) => existing,
            None => Existing::make(&self.base)?,
        };
        let existing = self.existing.insert(existing);
        existing.serve()?;
        Ok(existing)
    }

    /// A place for a case.
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

    /// What its processes carry in their environment.
    pub fn mark(&self) -> String {
        self.dir.display().to_string()
    }

    /// rumba, with its ledger and its temporary files here. A signal of the terminal's is not for it; and that
    /// whoever has started the suite ignores some, as a shell's `&` does, is not passed on.
    pub fn rumba(&self) -> Command {
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,QUIT,HUP,TERM").arg(&self.rumba);
        self.dressed(command)
    }

    /// rumba with so many descriptors at most; arguments follow.
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

    /// What rumba comes to with these arguments.
    pub fn ask(&self, args: &[&str]) -> Result<Output, Trouble> {
        self.rumba().args(args).output().doing("starting rumba")
    }

    /// What it prints as JSON; its own words where it does not.
    pub fn ask_json(&self, args: &[&str]) -> Result<Result<Value, String>, Trouble> {
        let output = self.ask(args)?;
        let value = serde_json::from_slice(&output.stdout);
        Ok(value.map_err(|_| format!("`rumba {}` says: {}", args.join(" "), text(&output))))
    }

    /// The leftovers that `rumba doctor` finds.
    pub fn leftovers(&self) -> Result<Vec<String>, Trouble> {
        let told = self.ask_json(&["doctor", "--json"])?.doing("rumba doctor")?;
        let leftovers = told["leftovers"].as_array().into_iter().flatten();
        Ok(leftovers.map(|leftover| leftover.as_str().unwrap_or_default().to_owned()).collect())
    }

    /// The entries of rumba's ledger.
    pub fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("state/rumba/managed")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Removes it, whatever still works, is mounted or listed in it.
    pub fn remove(&self) {
        host::end(&self.mark());
        if !self.entries().is_empty() {
            // Of a case that ended badly; what it cannot do is swept.
            let _ = self.ask(&["doctor", "--clean"]);
        }
        host::sweep(&self.dir);
        // What cannot be removed is seen by whoever looks there next.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// All that a program has printed.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
