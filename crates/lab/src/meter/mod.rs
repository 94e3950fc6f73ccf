//! Meters: the hardware spent, read from the kernel's cumulative counters.
//!
//! A trial runs in a separate process. An embedded engine runs inside it, so that process's figures cover the engine
//! and rumba. Only CPU time is divided, by the [`ThreadCpuRegistry`]. A server's figures are those of its process and its
//! descendants. A counter that cannot be read is absent with its reason, never zero.

mod clock;
mod cpu_roll;
mod device;
mod hardware;
mod memory;
mod other_processes;
mod perf_event;
mod proc_file;
mod process;
mod pulse;
mod reading;
mod server;
mod size;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::ProcessLocation;

pub use cpu_roll::{CpuTimes, Entered, Role, ThreadCpuRegistry};
pub use hardware::{EventsSpent, HardwareCounts, HardwareMeter, HardwareSpent, HardwareThreads};
pub use other_processes::OtherProcesses;
pub(crate) use process::IoMeter;
pub use pulse::SuspendDetector;
pub use reading::Reading;
pub use server::ThreadSwitches;
pub use size::{DiskSize, allocated};

use crate::host::threads;
use device::DeviceMeter;
use process::{HostCpuMeter, ResidentMeter};
use reading::Apart;
use server::{Sampling, ServerCounters, ServerMeter};

/// A figure, or why there is none.
type Known<T> = Result<T, String>;

/// Why an embedded engine has no separate server figures.
const EMBEDDED: &str = "the engine is embedded, so it has no process";
/// Why a server has no process figures.
const OUT_OF_REACH: &str = "the server runs on another host, or rumba cannot identify its process; for a server on this host, name its Unix \
     socket (?socket= in the DSN) or run rumba as root";
/// Why a server has no figures of its data directory.
const DATA_OUT_OF_REACH: &str =
    "the server's data directory is on another host or may not be read: its size and device are not known";

/// The directory of an instance's data; `own` is the one that rumba gave it.
///
/// # Errors
/// Why it is not known, for a person.
pub fn data_dir<'a>(place: &'a ProcessLocation, own: &'a Path) -> Result<&'a Path, String> {
    match place {
        ProcessLocation::Embedded => Ok(own),
        ProcessLocation::Server { data_dir, .. } => data_dir.as_deref().ok_or_else(|| DATA_OUT_OF_REACH.to_owned()),
    }
}

/// The meters of one trial. Files are opened once and read again from the start, so that a reading costs only a few
/// system calls.
pub struct Meters {
    device: Known<DeviceMeter>,
    io: Known<IoMeter>,
    resident: Known<ResidentMeter>,
    host_cpu: Known<HostCpuMeter>,
    cpu: Arc<ThreadCpuRegistry>,
    /// The server, when the engine is one.
    server: Option<Known<ServerMeter>>,
    /// A process of rumba's outside the trial that works for it. Its CPU is the harness's.
    helper: Option<u32>,
    /// The time of the next search for new server processes while it serves.
    next_look: Instant,
    memory_read_early: Option<Memory>,
}

/// Resident memory in bytes.
struct Memory {
    /// The engine: this process if it is embedded, all processes of a server otherwise.
    engine: Known<u64>,
    /// This process.
    own: Known<u64>,
}

/// The shortest time between two searches, and the least ratio of that time to a search's duration.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_SHARE: u32 = 100;

impl Meters {
    /// The meters of an engine inside this process and of the device that holds `data_dir`, which must exist. Figures
    /// of a meter that is not available are absent.
    pub fn new(data_dir: &Path, cpu: Arc<ThreadCpuRegistry>) -> Self {
        Self::of(&ProcessLocation::Embedded, data_dir, cpu)
    }

    /// The meters of an instance, of this process, and of the device that holds the instance's data. That is `own`,
    /// unless the instance is a server with another directory.
    pub fn of(place: &ProcessLocation, own: &Path, cpu: Arc<ThreadCpuRegistry>) -> Self {
        let server = match place {
            ProcessLocation::Embedded => None,
            ProcessLocation::Server { pid: Some(pid), .. } => Some(ServerMeter::of(*pid)),
            ProcessLocation::Server { pid: None, .. } => Some(Err(OUT_OF_REACH.to_owned())),
        };
        Self {
            device: data_dir(place, own).and_then(DeviceMeter::of),
            io: IoMeter::of("self"),
            resident: ResidentMeter::of("self"),
            host_cpu: HostCpuMeter::open(),
            cpu,
            server,
            helper: None,
            next_look: Instant::now(),
            memory_read_early: None,
        }
    }

    /// The meters that count this process of rumba's as harness, and not as another process of the host.
    #[must_use]
    pub fn with_helper(self, helper: Option<u32>) -> Self {
        Self { helper, ..self }
    }

    /// Adds processes that a server has started meanwhile. It reads every process of the host. Call it when clients are
    /// made and when a phase ends, before the last reading of that phase.
    pub fn look_for_descendants(&mut self) {
        if let Some(Ok(server)) = &mut self.server {
            server.look_for_descendants();
        }
    }

    /// The same only for a server of several processes, while it is measured: it may have one for each client, and
    /// clients reconnect. It runs at most once a second, and for a hundredth of the time.
    pub fn look_for_more_descendants(&mut self) {
        let begun = Instant::now();
        if let Some(Ok(server)) = &mut self.server
            && server.has_descendants()
            && begun >= self.next_look
        {
            server.look_for_descendants();
            self.next_look = Instant::now() + LOOK_EVERY.max(begun.elapsed() * LOOK_SHARE);
        }
    }

    /// The known processes of a server on this host; none when the engine is embedded or out of reach.
    pub fn server_pids(&self) -> Vec<u32> {
        match &self.server {
            Some(Ok(server)) => server.pids().collect(),
            Some(Err(_)) | None => Vec::new(),
        }
    }

    /// The threads that the server and the clients have now.
    pub fn hardware_threads(&self) -> HardwareThreads {
        let harness = self.cpu.threads(Role::Harness);
        let mut client = threads("self");
        client.retain(|thread| !harness.contains(thread));
        HardwareThreads { server: self.server.as_ref().map(|server| reading(server, ServerMeter::threads)), client }
    }

    /// All counters now. Memory comes last, because sampling many processes takes up to a tenth of a second and the
    /// counters should be from one moment.
    pub fn read(&mut self) -> Reading {
        let (io, server_cpu_ns) = match &mut self.server {
            None => (reading(&self.io, IoMeter::read), None),
            Some(Ok(server)) => {
                let ServerCounters { cpu_ns, io } = server.counters();
                (io, Some(cpu_ns))
            }
            Some(Err(reason)) => (Err(reason.clone()), Some(Err(reason.clone()))),
        };
        let device = reading(&self.device, DeviceMeter::read);
        let mut cpu = self.cpu.read();
        let ctx_switches = clock::ctx_switches().map_err(|error| format!("getrusage: {error}"));
        cpu.harness_ns += self.helper.and_then(server::cpu_ns).unwrap_or_default();
        let host_cpu = reading(&self.host_cpu, HostCpuMeter::read);
        let Memory { engine: rss_bytes, own } = match self.memory_read_early.take() {
            Some(memory) => memory,
            None => self.memory(Sampling::InTurns),
        };
        let apart = server_cpu_ns.map(|cpu_ns| {
            let client_run_delay_ns = self.cpu.client_run_delay_ns();
            Apart { cpu_ns, client_rss_bytes: own, client_run_delay_ns }
        });
        Reading { device, io, cpu, apart, host_cpu, clients_elsewhere: false, ctx_switches, rss_bytes }
    }

    /// Reads the memory of all processes for the next [`Meters::read`]. Call it at the end of a phase, before the clients
    /// are requested to end. A server such as PostgreSQL has a process for each session, and its memory is gone once the
    /// session is closed.
    pub fn read_memory_early(&mut self) {
        self.memory_read_early = Some(self.memory(Sampling::Whole));
    }

    /// Makes the next [`Meters::read`] report the memory of an earlier reading, if the server has a process for each
    /// session: for clients that have already ended.
    pub fn keep_memory_of(&mut self, earlier: &Reading) {
        if let (Some(Ok(server)), Some(apart)) = (&self.server, &earlier.apart)
            && server.has_descendants()
        {
            let own = apart.client_rss_bytes.clone();
            self.memory_read_early = Some(Memory { engine: earlier.rss_bytes.clone(), own });
        }
    }

    fn memory(&mut self, sampling: Sampling) -> Memory {
        let own = reading(&self.resident, ResidentMeter::read);
        let engine = match &mut self.server {
            None => own.clone(),
            Some(Ok(server)) => server.memory(sampling),
            Some(Err(reason)) => Err(reason.clone()),
        };
        Memory { engine, own }
    }

    /// The CPU of processes other than this one and its server's. It reads every process of the host, so call it
    /// between phases.
    ///
    /// # Errors
    /// Why it is not known, for a person.
    pub fn other_processes(&self) -> Result<OtherProcesses, String> {
        match &self.server {
            None => OtherProcesses::look(self.helper),
            Some(Ok(server)) => OtherProcesses::look(self.helper.into_iter().chain([server.pid()])),
            Some(Err(reason)) => Err(reason.clone()),
        }
    }

    /// Context switches so far of the threads of the known server processes. It reads every thread. Call it between
    /// phases, before clients end and take their connections' threads and processes with them.
    ///
    /// # Errors
    /// Why there are none, for a person.
    pub fn server_switches(&self) -> Result<ThreadSwitches, String> {
        match &self.server {
            None => Err(EMBEDDED.to_owned()),
            Some(server) => reading(server, ServerMeter::switches),
        }
    }
}

fn reading<M, T>(meter: &Known<M>, read: impl FnOnce(&M) -> Known<T>) -> Known<T> {
    meter.as_ref().map_err(Clone::clone).and_then(read)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// Guards against a time skew. Device, clients and host were read up to a tenth of a second after the CPU of a
    /// server with many processes. An interval may be that short.
    #[test]
    fn slow_memory_reading_is_taken_after_the_counters() {
        let mut server = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let place = ProcessLocation::Server { pid: Some(server.id()), data_dir: None };
        let mut meters = Meters::of(&place, Path::new("/"), ThreadCpuRegistry::new());
        while meters.server_pids().len() < 2 {
            meters.look_for_descendants();
        }
        let reading = meters.read();
        let looked = meters.server.as_ref().and_then(|server| server.as_ref().ok()?.looked);
        for pid in meters.server_pids() {
            kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
        }
        server.wait().unwrap();
        assert!(reading.rss_bytes.unwrap() > 0);
        assert!(reading.host_cpu.unwrap().at <= looked.unwrap());
    }
}
