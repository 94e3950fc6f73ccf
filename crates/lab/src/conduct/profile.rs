//! Profiles the CPU during the loops. `perf` samples the server, or the trial's process, and the samples are kept next
//! to the record as folded stacks. It samples by the CPU clock, which virtual machines also have.

mod fold;
mod symbols;

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rumba_engine_api::units::show_bytes;
use rumba_results::event::Event;
use rumba_results::record::PhaseKind;
use rumba_results::warning::Warning;
use rustix::process::{Pid, Signal, kill_process};

use self::fold::Folded;
use crate::host::processes::family;
use crate::store::STACKS;

/// Samples of each CPU and second: few enough to leave a server's figures unchanged, and no divisor of a timer's rate.
const RATE: &str = "49";
/// Unwind by the tables that every library has, because most libraries lack frame pointers. Bytes of stack per sample.
const UNWIND: &str = "dwarf,8192";
/// Sampling ends at this size: minutes of two busy CPUs, seconds of many.
const MOST_BYTES: u64 = 128 << 20;
pub const CONDITION: &str = "profile";
/// How long perf may take to end and to resolve symbols.
const PATIENCE: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(20);

/// Why profiling is not possible.
#[derive(Debug, thiserror::Error)]
pub enum NoProfile {
    /// perf is not installed.
    #[error("--profile needs the program perf, which is not here")]
    Missing,
    /// perf lacks a permission, or does not support this host.
    #[error("perf cannot sample here: {words}")]
    Refused {
        /// perf's error message.
        words: String,
    },
    /// perf could not be run.
    #[error("perf cannot be run: {0}")]
    Io(#[from] io::Error),
}

/// Whether perf can sample a process of this user, by sampling one.
///
/// # Errors
/// Why not.
pub fn can_profile() -> Result<(), NoProfile> {
    let dir = tempfile::tempdir()?;
    let mut command = record(&dir.path().join("perf.data"));
    let output = command.args(["--", "true"]).stdout(Stdio::null()).stderr(Stdio::piped()).output();
    match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NoProfile::Missing),
        Err(error) => Err(error.into()),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let words = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>();
            Err(NoProfile::Refused { words: words.join(" ") })
        }
    }
}

/// `perf record` as every profile is made.
fn record(file: &Path) -> Command {
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-F", RATE, "--call-graph", UNWIND, "--max-size"]);
    command.arg(format!("{MOST_BYTES}B")).arg("-o").arg(file).stdin(Stdio::null());
    command
}

/// Samples one trial.
pub(super) struct Sampler {
    directory: PathBuf,
    /// Output directory of perf, in the temporary directory rather than next to the measured data.
    scratch: io::Result<tempfile::TempDir>,
    perf: Option<Child>,
    /// The sampled program, for a person.
    whom: &'static str,
    trouble: Option<String>,
}

impl Sampler {
    /// For the trial with this results directory.
    pub fn new(directory: &Path) -> Self {
        let scratch = tempfile::tempdir();
        Self { directory: directory.to_owned(), scratch, perf: None, whom: "", trouble: None }
    }

    fn data(&self) -> Option<PathBuf> {
        self.scratch.as_ref().ok().map(|dir| dir.path().join("perf.data"))
    }

    /// Begins with the first loop of the trial in this process, and ends with the last.
    pub fn receive(&mut self, event: &Event, process: u32) {
        match event {
            Event::PhaseStarted { phase: PhaseKind::Loop(1), .. } => self.begin(process),
            Event::PhaseStarted { phase: PhaseKind::Drain, .. } => self.interrupt(),
            Event::PhaseEnded(phase) if phase.phase == PhaseKind::Loops => self.interrupt(),
            _ => {}
        }
    }

    fn begin(&mut self, process: u32) {
        let Some(data) = self.data() else {
            self.trouble = Some("none: no directory for temporary files".to_owned());
            return;
        };
        let family = family([process]);
        let servers = &family[1..];
        self.whom = if servers.is_empty() { "the clients' process" } else { "the server's processes" };
        let pids = if servers.is_empty() { &family } else { servers };
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let mut command = record(&data);
        command.args(["-p", &pids.join(",")]).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: what is called between fork and exec is one system call, and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                Ok(())
            });
        }
        match command.spawn() {
            Ok(perf) => self.perf = Some(perf),
            Err(error) => self.trouble = Some(format!("none: perf could not be started: {error}")),
        }
    }

    /// Interrupts perf; `finish` waits for it when the trial is over.
    fn interrupt(&self) {
        if let Some(perf) = &self.perf {
            // perf may have ended; it is not reaped yet, so the pid is still its own.
            let _ = kill_process(Pid::from_child(perf), Signal::INT);
        }
    }

    /// Stores the samples as folded stacks and describes them; `None` for a trial without loops. The warnings are about
    /// programs whose functions have no names.
    pub fn finish(mut self, stops: &AtomicUsize) -> Option<(String, Vec<Warning>)> {
        self.interrupt();
        let perf = self.perf.take();
        if let Some(trouble) = self.trouble.take() {
            return Some((trouble, Vec::new()));
        }
        let mut perf = perf?;
        let data = self.data()?;
        let until = Instant::now() + PATIENCE;
        let kept = wait(&mut perf, until, stops)
            .and_then(|()| folded(&data, until, stops))
            .and_then(|folded| fs::write(self.directory.join(STACKS), fold::text(&folded.stacks)).map(|()| folded));
        let is_cut = fs::metadata(&data).is_ok_and(|file| file.len() >= MOST_BYTES);
        let when = match is_cut {
            true => {
                format!("from the first loop on until there were {}, not to the end", show_bytes(MOST_BYTES as f64))
            }
            false => "during the loops".to_owned(),
        };
        Some(match kept {
            Ok(folded) => {
                let whom = self.whom;
                let words = format!(
                    "perf, cpu-clock, {RATE} samples per CPU and second {when}, of {whom}; the figures include its cost"
                );
                (words, symbols::missing(&folded))
            }
            Err(error) => (format!("none: {error}"), Vec::new()),
        })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(perf) = &mut self.perf {
            let _ = perf.kill().and_then(|()| perf.wait());
        }
    }
}

/// Waits for a process; ends it at a time limit or at the user's second request to stop.
fn wait(child: &mut Child, until: Instant, stops: &AtomicUsize) -> io::Result<()> {
    while child.try_wait()?.is_none() {
        if Instant::now() > until || stops.load(Relaxed) > 1 {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other("perf took too long"));
        }
        std::thread::sleep(LOOK);
    }
    // How it ended does not matter: it was interrupted.
    Ok(())
}

/// The sampled stacks, with the count of each.
fn folded(data: &Path, until: Instant, stops: &AtomicUsize) -> io::Result<Folded> {
    let text = data.with_extension("txt");
    let script = || {
        let mut command = Command::new("perf");
        command.args(["script", "--no-inline", "-F", "comm,ip,sym,dso", "-i"]).arg(data).stdin(Stdio::null());
        command.stdout(fs::File::create(&text)?).stderr(Stdio::null()).spawn()
    };
    wait(&mut script()?, until, stops)?;
    let folded = fold::fold(io::BufReader::new(fs::File::open(&text)?))?;
    if folded.samples == 0 {
        return Err(io::Error::other("perf saw no running thread"));
    }
    Ok(folded)
}
