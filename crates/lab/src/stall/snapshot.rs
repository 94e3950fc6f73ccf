//! Samples a trial from outside while no operation ends: its processes, its memory group, the device of its data. A
//! process outside the trial's groups reads them from the kernel's small files, because a process without memory could
//! not sample itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::host::processes::{ProcessStat, family, stat_of};
use crate::host::{block, parse};
use crate::limits::{Enforcement, MemoryPressure};

#[derive(Debug)]
pub struct SnapshotSource {
    /// The trial's own process; its children are found below it.
    process: u32,
    /// `/sys/dev/block/8:0/stat` of the data's device, if there is one.
    device: Option<PathBuf>,
}

impl SnapshotSource {
    /// The sources for a trial's process with this data directory.
    pub fn new(process: u32, data_dir: &Path) -> Self {
        let device = block::device_of(data_dir).ok();
        let device = device.map(|device| PathBuf::from(format!("/sys/dev/block/{}/stat", device.number)));
        Self { process, device }
    }
}

/// One sample; counters are cumulative.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The time of the sample.
    pub at: Instant,
    /// The trial's process and those below it.
    pub processes: Vec<Process>,
    /// Its memory group, if its memory is limited and the group can be read.
    pub memory: Option<MemoryPressure>,
    /// Microseconds with some process of the host waiting for memory; `/proc/pressure/memory`.
    pub host_memory_wait_us: Option<u64>,
    /// The device that holds its data.
    pub device: Option<Device>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub pid: u32,
    /// Its program's name, at most 15 bytes.
    pub name: String,
    /// `R` running, `S` and `D` waiting, `T` stopped.
    pub state: char,
    /// CPU seconds in its own code.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub system_s: f64,
    /// Major page faults: pages that it waited for a device for.
    pub major_faults: u64,
    /// Its threads, and how many wait for a lock (in the kernel's `futex`), if readable.
    pub threads: u64,
    /// See `threads`.
    pub at_locks: Option<u64>,
}

/// The counters of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Reads and writes completed.
    pub operations: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Milliseconds in which it was busy.
    pub busy_ms: u64,
}

impl Snapshot {
    /// Samples everything now.
    pub fn look(place: &SnapshotSource, limited: &Enforcement) -> Self {
        let pressure = fs::read_to_string("/proc/pressure/memory").ok();
        let device = place.device.as_ref().and_then(|file| fs::read_to_string(file).ok());
        Self {
            at: Instant::now(),
            processes: family([place.process]).into_iter().filter_map(Process::look).collect(),
            memory: limited.memory_pressure(),
            host_memory_wait_us: pressure.and_then(|text| parse::pressure_total_us(&text, "some")),
            device: device.and_then(|text| Device::parse(&text)),
        }
    }

    /// The process that does the engine's work: the server if there is one, else the trial's own. A server of several
    /// processes counts as one with all their threads: waiting if all wait.
    pub fn engine(&self) -> Option<Process> {
        let main = self.processes.get(1).or(self.processes.first())?;
        let mut all = main.clone();
        let others = self.processes.iter().skip(2).filter(|other| other.name == main.name);
        others.for_each(|other| all.add(other));
        Some(all)
    }
}

impl Process {
    fn look(pid: u32) -> Option<Self> {
        let text = stat_of(pid);
        let stat = ProcessStat::parse(&text).filter(|stat| !stat.has_ended())?;
        let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        Some(Self {
            pid,
            name: stat.name.to_owned(),
            state: stat.state,
            user_s: seconds(stat.user_ticks),
            system_s: seconds(stat.system_ticks),
            major_faults: stat.major_faults,
            threads: stat.threads,
            at_locks: at_locks(pid),
        })
    }

    fn add(&mut self, other: &Self) {
        // A process that runs, or waits for a device, says more than an idle one.
        if other.state == 'R' || (other.state == 'D' && self.state != 'R') {
            self.state = other.state;
        }
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.major_faults += other.major_faults;
        self.threads += other.threads;
        self.at_locks = self.at_locks.zip(other.at_locks).map(|(own, others)| own + others);
    }

    /// Whether a signal or a debugger has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// Threads that the kernel shows in `futex_wait`; only root may see that.
fn at_locks(pid: u32) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let places: Vec<String> =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("wchan")).ok()).collect();
    // The value is `0` for every thread if the kernel hides it.
    places
        .iter()
        .any(|place| place != "0")
        .then(|| places.iter().filter(|place| place.contains("futex")).count() as u64)
}

impl Device {
    /// Documentation/block/stat.rst: reads, merged, sectors, ms; the same of writes; in flight, busy ms.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        let [reads, _, read, _, writes, _, written, _, _, busy_ms, ..] = fields[..] else { return None };
        Some(Self { operations: reads + writes, read_bytes: read * 512, write_bytes: written * 512, busy_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_of_several_processes_is_read_as_a_whole() {
        let process = |pid: u32, name: &str, state: char, user_s: f64| Process {
            pid,
            name: name.to_owned(),
            state,
            user_s,
            system_s: 0.5,
            major_faults: 1,
            threads: 1,
            at_locks: Some(1),
        };
        let processes = vec![
            process(1, "rumba", 'S', 9.0),
            process(2, "postgres", 'S', 0.0),
            process(3, "postgres", 'D', 2.0),
            process(4, "another", 'R', 4.0),
        ];
        let at = Instant::now();
        let snapshot = Snapshot { at, processes, memory: None, host_memory_wait_us: None, device: None };
        let engine = snapshot.engine().unwrap();
        assert_eq!((engine.pid, engine.state, engine.user_s, engine.threads), (2, 'D', 2.0, 2));
        assert_eq!((engine.system_s, engine.major_faults, engine.at_locks), (1.0, 2, Some(2)));
    }

    #[test]
    fn a_devices_operations_are_those_of_both_directions() {
        let text = "  10 1 16 5 20 2 32 6 0 1234 11 0 0 0 0 0 0";
        let device = Device { operations: 30, read_bytes: 8192, write_bytes: 16384, busy_ms: 1234 };
        assert_eq!(Device::parse(text), Some(device));
        assert_eq!(Device::parse("1 2 3"), None);
    }
}
