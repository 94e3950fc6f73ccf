//! A case in progress: its run, and its files and leftovers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::action::{Action, Who};
use crate::answers::Miss;
use crate::axes::Engine;
use crate::case::Case;
use crate::existing::Existing;
use crate::host::{self, Tmpfs};
use crate::kept::Planned;
use crate::place::CaseDirectory;
use crate::plant::{Planted, Plot};
use crate::run::{Started, Witness};
use crate::trouble::Trouble;

/// The options of a run, unless its fault sets others: it takes some seconds, and its phases are long enough for the
/// fault.
const REQUESTS: &[&str] = &[
    "maxid1=10000",
    "clients=2",
    "load_clients=2",
    "warmup=300ms",
    "loops=2",
    "loop=1s",
    "interval=100ms",
    "cache=16MiB",
    "stall=6s",
];
/// The options of the next run.
const REQUESTS_NEXT: &[&str] =
    &["maxid1=2000", "clients=2", "load_clients=2", "warmup=100ms", "loops=1", "loop=300ms", "cache=16MiB"];
/// The file system of the results, MiB, where they have one of their own.
const RESULTS_MIB: u32 = 48;

/// A case while it is tried.
pub struct Stage<'a> {
    pub place: CaseDirectory,
    pub case: &'a Case,
    /// The existing server, if the case uses it.
    pub existing: Option<&'a mut Existing>,
    /// Its configuration before.
    pub configured: BTreeMap<String, String>,
    /// The directory of the results.
    pub out: PathBuf,
    /// The directory for data; in the results if absent.
    pub data: Option<PathBuf>,
    pub run: Option<Started>,
    pub second: Option<Started>,
    /// The processes of all runs that were started.
    pub pids: Vec<u32>,
    pub witness: Witness,
    pub misses: Vec<Miss>,
    pub disk: Option<Tmpfs>,
    pub ballast: Option<PathBuf>,
    pub plot: Option<Plot>,
}

impl<'a> Stage<'a> {
    /// Prepares the case: creates everything that must exist before the run.
    pub fn set(place: CaseDirectory, case: &'a Case, existing: Option<&'a mut Existing>) -> Result<Self, Trouble> {
        let configured = existing.as_ref().map(|existing| existing.variables()).transpose()?.unwrap_or_default();
        let mut stage = Self {
            out: place.path("out"),
            place,
            case,
            existing,
            configured,
            data: None,
            run: None,
            second: None,
            pids: Vec::new(),
            witness: Witness::default(),
            misses: Vec::new(),
            disk: None,
            ballast: None,
            plot: None,
        };
        stage.prepare()?;
        Ok(stage)
    }

    fn prepare(&mut self) -> Result<(), Trouble> {
        match self.case.fault.action {
            Action::FillResults | Action::ReadOnlyResults => {
                let disk = Tmpfs::mount(&self.place.path("disk"), RESULTS_MIB)?;
                self.out = disk.point().join("out");
                self.data = Some(self.place.path("data"));
                if self.case.fault.action == Action::ReadOnlyResults {
                    disk.set_read_only(true)?;
                }
                self.disk = Some(disk);
            }
            Action::RemoveResults => self.data = Some(self.place.path("data")),
            Action::Plant(planted) => {
                self.plot = Some(Plot::plant(planted, &self.place, &self.trial_name())?);
                if planted != Planted::ResourceRegistry {
                    self.data = Some(Plot::shared(&self.place, planted));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The options: the fault's own take precedence over the common ones.
    fn requests(&self) -> Vec<&'static str> {
        let key = |fetch: &&str| fetch.split('=').next().unwrap_or_default().to_owned();
        let own: Vec<&'static str> =
            self.case.fault.requests.iter().copied().filter(|fetch| !fetch.starts_with("--")).collect();
        let keys: Vec<String> = own.iter().map(key).collect();
        let common = REQUESTS.iter().copied().filter(|fetch| !keys.contains(&key(fetch)));
        let limits = self.case.limit.requests().iter().copied().filter(|fetch| !keys.contains(&key(fetch)));
        common.chain(limits).chain(self.case.engine.requests().iter().copied()).chain(own.iter().copied()).collect()
    }

    fn requested(&self, key: &str) -> Option<&'static str> {
        self.requests().into_iter().find_map(|fetch| fetch.strip_prefix(key)?.strip_prefix('='))
    }

    /// The planned work of the run.
    pub fn planned(&self) -> Planned {
        let seconds = |text: &str| match text.strip_suffix("ms") {
            Some(ms) => ms.parse::<f64>().ok().map(|ms| ms / 1e3),
            None => text.strip_suffix('s')?.parse().ok(),
        };
        let of = |key: &str| self.requested(key).unwrap_or_default();
        Planned {
            loops: of("loops").parse().unwrap_or_default(),
            loop_s: seconds(of("loop")).unwrap_or_default(),
            interval_s: seconds(of("interval")).unwrap_or_default(),
            verifies: self.case.engine != Engine::Null,
        }
    }

    /// The name of the trial, and of its directories.
    pub fn trial_name(&self) -> String {
        format!("001-{}-c{}-r1", self.case.engine.name(), self.requested("clients").unwrap_or_default())
    }

    /// The directory of its results.
    pub fn trial_dir(&self) -> PathBuf {
        self.out.join("trials").join(self.trial_name())
    }

    /// The parent of data directories.
    pub fn data_base(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| self.out.join("data"))
    }

    /// The data directory of the trial, where it has no volume.
    pub fn data_dir(&self) -> PathBuf {
        self.data_base().join(self.trial_name())
    }

    /// The mount point of the trial's volume.
    pub fn volume(&self) -> PathBuf {
        self.data_base().join(format!("{}.storage", self.trial_name())).join("mounted")
    }

    /// The existing server.
    pub fn existing(&mut self) -> Result<&mut Existing, Trouble> {
        self.existing.as_deref_mut().ok_or_else(|| Trouble::new("the existing server", "this case has none"))
    }

    /// The file system of the results.
    pub fn disk(&self) -> Result<&Tmpfs, Trouble> {
        self.disk.as_ref().ok_or_else(|| Trouble::new("the disk of the results", "this case has none"))
    }

    /// The run of the case.
    pub fn command(&self) -> Command {
        let fault = self.case.fault;
        let mut command = match fault.action {
            Action::Descriptors(descriptors) => self.place.rumba_with_descriptors(descriptors),
            _ => self.place.rumba(),
        };
        let out = (fault.action != Action::TwoUnnamed).then_some(self.out.as_path());
        self.run_into(&mut command, self.case.engine, out, &self.requests());
        if let Some(data) = &self.data {
            command.args(["--set", &format!("data_dir={}", data.display())]);
        }
        if fault.action == Action::Plant(Planted::ResourceRegistry) {
            command.env_remove("XDG_STATE_HOME").env_remove("HOME");
        }
        command.args(fault.requests.iter().filter(|fetch| fetch.starts_with("--")));
        command
    }

    /// The run after it: a short one of the same kind, without the fault.
    pub fn next_command(&self, out: &Path) -> Command {
        let mut command = self.place.rumba();
        let limits = self.case.limit.requests().iter().chain(self.case.engine.requests());
        let requests: Vec<&str> = REQUESTS_NEXT.iter().chain(limits).copied().collect();
        self.run_into(&mut command, self.case.engine, Some(out), &requests);
        command
    }

    fn run_into(&self, command: &mut Command, engine: Engine, out: Option<&Path>, requests: &[&str]) {
        command.args(["run", "linkbench", "--engine", engine.name()]);
        if let Some(out) = out {
            command.arg("--out").arg(out);
        }
        for fetch in requests {
            command.args(["--set", fetch]);
        }
        if let (Engine::Existing, Some(existing)) = (engine, &self.existing) {
            command.args(["--set", &existing.requests()]);
        }
    }

    /// Starts the run, and the second one if two must start at once.
    pub fn start(&mut self) -> Result<(), Trouble> {
        let is_read = self.case.fault.action != Action::NoReader;
        let first = Started::start(self.command(), self.trial_dir(), is_read)?;
        self.pids.push(first.pid());
        self.run = Some(first);
        let second = match self.case.fault.action {
            Action::TwoAtOnce => Some(self.command()),
            Action::TwoUnnamed => {
                // Another engine, so that the two can be distinguished.
                let other = if self.case.engine == Engine::Null { Engine::Sqlite } else { Engine::Null };
                let mut command = self.place.rumba();
                self.run_into(&mut command, other, None, REQUESTS_NEXT);
                Some(command)
            }
            _ => None,
        };
        if let Some(command) = second {
            let second = Started::start(command, self.trial_dir(), true)?;
            self.pids.push(second.pid());
            self.second = Some(second);
        }
        Ok(())
    }

    /// The objects that exist now and did not before: processes, mounts, devices, groups, data, and changes of the
    /// existing server. Entries of the ledger are harmless alone, and are listed separately.
    pub fn traces(&mut self) -> Result<Vec<String>, Trouble> {
        let mut traces = Vec::new();
        let dir = self.place.dir();
        traces.extend(host::marked(&self.place.mark()).into_iter().map(host::in_words));
        let own = self.disk.as_ref().map(Tmpfs::point);
        let mounts = host::mounts_below(dir).into_iter().filter(|point| Some(point.as_path()) != own);
        traces.extend(mounts.map(|point| format!("a mount on {}", point.display())));
        traces.extend(host::devices_below(dir).into_iter().map(|device| format!("the loop device {device}")));
        let groups = self.pids.iter().flat_map(|pid| host::groups_of(*pid));
        traces.extend(groups.map(|group| format!("the control group {}", group.display())));
        traces.extend(self.data_left().into_iter().map(|path| format!("data in {}", path.display())));
        if let Some(plot) = &self.plot {
            traces.extend(plot.harm());
        }
        traces.extend(self.changed()?);
        Ok(traces)
    }

    /// Directories of data, and temporary files.
    fn data_left(&self) -> Vec<PathBuf> {
        let entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_trap = |path: &PathBuf| self.plot.as_ref().is_some_and(|plot| plot.is_trap(path));
        let base = self.data_base();
        let mut left: Vec<PathBuf> = match self.case.fault.action {
            // It contains files that other users have put there.
            Action::Plant(Planted::ResourceRegistry) => [base].into_iter().filter(|base| base.exists()).collect(),
            Action::Plant(_) => entries(base).chain(entries(self.place.path("tmp"))).collect(),
            _ => [base].into_iter().filter(|base| base.exists()).chain(entries(self.place.path("tmp"))).collect(),
        };
        let next = entries(self.place.dir().to_owned()).map(|path| path.join("data"));
        left.extend(next.filter(|data| data.exists() && *data != self.data_base()));
        left.retain(|path| !is_trap(path));
        left
    }

    /// Variables of the existing server that have changed.
    fn changed(&mut self) -> Result<Vec<String>, Trouble> {
        let Some(existing) = self.existing.as_deref_mut() else { return Ok(Vec::new()) };
        if existing.pid().is_none() {
            return Ok(Vec::new());
        }
        let now = existing.variables()?;
        let changed = self.configured.iter().filter(|(name, before)| now.get(*name) != Some(*before));
        let words = |(name, before): (&String, &String)| {
            format!(
                "the existing server's {name}, which was {before} and is {}",
                now.get(name).map_or("gone", String::as_str)
            )
        };
        Ok(changed.map(words).collect())
    }
}

/// Whether a case uses the existing server.
pub fn needs_existing(case: &Case) -> bool {
    case.engine == Engine::Existing
        || matches!(
            case.fault.action,
            Action::Signal(Who::Existing, _) | Action::Pause(Who::Existing, _) | Action::Restart(_)
        )
}
