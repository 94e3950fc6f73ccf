//! A process's counters, and the host's CPU time.

use std::time::Instant;

use rumba_core::host_cpu::HOST_CPU_ROUNDING_S;

use super::proc_file::ProcFile;
use super::{Known, clock};
use crate::host::parse;

/// Bytes between a process and storage (`/proc/PID/io`), all threads, those
/// that have ended included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Bytes that it had fetched from storage, page faults included.
    pub read_bytes: u64,
    /// Bytes that it caused to be written: charged when a page becomes dirty,
    /// or at a direct write. A page that is dirtied again before its write-back
    /// is charged once. `cancelled_write_bytes` is not taken off: it counts the
    /// dirty pages that this process dropped by truncating, whoever dirtied
    /// them, and what the device was spared is seen in the device's own figure.
    pub write_bytes: u64,
}

impl IoCounters {
    /// Those of two processes together.
    pub fn plus(self, other: Self) -> Self {
        Self { read_bytes: self.read_bytes + other.read_bytes, write_bytes: self.write_bytes + other.write_bytes }
    }
}

/// Reads `/proc/PID/io`.
pub struct IoMeter(ProcFile);

impl IoMeter {
    /// Of a process by its number, or of `self`.
    pub fn of(process: &str) -> Result<Self, String> {
        let meter = Self(ProcFile::open(format!("/proc/{process}/io"))?);
        // Some sandboxes let it be opened and refuse to have it read.
        meter.read().map(|_| meter)
    }

    pub fn read(&self) -> Result<IoCounters, String> {
        parse_io(&self.0.read()?).ok_or_else(|| self.0.unexpected())
    }
}

fn parse_io(text: &str) -> Option<IoCounters> {
    let figure = |key| parse::field(text, key)?.parse().ok();
    Some(IoCounters { read_bytes: figure("read_bytes")?, write_bytes: figure("write_bytes")? })
}

/// Reads the resident memory of a process.
pub struct ResidentMeter {
    /// `/proc/PID/statm`.
    pages: ProcFile,
    /// `/proc/PID/status`, which has what that leaves out.
    status: ProcFile,
}

impl ResidentMeter {
    /// Of a process by its number, or of `self`.
    pub fn of(process: &str) -> Result<Self, String> {
        let open = |file: &str| ProcFile::open(format!("/proc/{process}/{file}"));
        Ok(Self { pages: open("statm")?, status: open("status")? })
    }

    /// Resident bytes, shared pages and huge pages included.
    pub fn read(&self) -> Result<u64, String> {
        let text = self.pages.read()?;
        let pages: Option<u64> = text.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok());
        let bytes = pages.ok_or_else(|| self.pages.unexpected())? * rustix::param::page_size() as u64;
        Ok(bytes + huge_bytes(&self.status.read()?))
    }
}

/// Bytes in huge pages of the kernel's pool (hugetlbfs), which are in none of its sums of what is resident: a server's whole
/// cache may be there. A kernel that has no such pages has no line for them.
fn huge_bytes(status: &str) -> u64 {
    parse::meminfo_bytes(status, "HugetlbPages").unwrap_or_default()
}

/// Memory of one of several processes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryShare {
    /// What it has alone, and its part of each page that it has with others.
    pub own: u64,
    /// Huge pages of the kernel's pool that it has with others: of these the kernel tells no parts.
    pub shared_huge: u64,
}

/// Resident memory of a process, where a page that several processes have counts in parts with each
/// (`/proc/PID/smaps_rollup`). The kernel walks its page tables for it: some milliseconds for each GB that is mapped.
///
/// `None` of a process that has ended or is about to, and has no memory any more.
///
/// # Errors
/// The system's words; that the process may not be looked into.
pub fn memory_share(pid: u32) -> Result<Option<MemoryShare>, String> {
    let path = format!("/proc/{pid}/smaps_rollup");
    match std::fs::read_to_string(&path) {
        Ok(text) => parse_share(&text).map(Some).ok_or_else(|| format!("{path}: not as expected")),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

fn parse_share(text: &str) -> Option<MemoryShare> {
    let bytes = |key| parse::meminfo_bytes(text, key);
    Some(MemoryShare {
        own: bytes("Pss")? + bytes("Private_Hugetlb").unwrap_or_default(),
        shared_huge: bytes("Shared_Hugetlb").unwrap_or_default(),
    })
}

/// What the whole host's CPUs did not spend on work, until a moment.
///
/// What they worked is what is left of the time. `/proc/stat` counts that too, but by looking at each tick who runs: a
/// task that wakes by a timer and sleeps again before the next tick is never seen, and a process is charged with more
/// than the host then shows. The time without work is taken from a clock as a CPU begins and ends to idle
/// (`CONFIG_NO_HZ_COMMON`, unless the kernel was started with `nohz=off`). Where that is sampled as well, both ways come
/// to the same.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCpu {
    pub at: Instant,
    /// The CPUs that were online.
    pub online: Vec<u32>,
    /// Seconds that they had no work, or waited for devices.
    pub idle_s: f64,
    /// Seconds that a hypervisor gave to others while the host wanted to run.
    pub steal_s: f64,
    /// Context switches, of all processes and of the kernel's own threads.
    pub ctx_switches: u64,
}

impl HostCpu {
    /// Seconds that the CPUs worked since an earlier reading.
    pub fn busy_s_since(&self, earlier: &Self) -> Known<f64> {
        if self.online != earlier.online {
            return Err("CPUs of this host went on- or offline meanwhile".to_owned());
        }
        let passed_s = self.at.saturating_duration_since(earlier.at).as_secs_f64() * self.online.len() as f64;
        let busy_s = passed_s - (self.idle_s - earlier.idle_s) - (self.steal_s - earlier.steal_s);
        if busy_s < -HOST_CPU_ROUNDING_S {
            return Err("/proc/stat: the CPUs idled for longer than time has passed".to_owned());
        }
        Ok(busy_s.max(0.0))
    }
}

/// Reads `/proc/stat`.
pub struct HostCpuMeter(ProcFile);

impl HostCpuMeter {
    pub fn open() -> Result<Self, String> {
        ProcFile::open("/proc/stat").map(Self)
    }

    pub fn read(&self) -> Result<HostCpu, String> {
        // Its first lines are made first.
        let at = Instant::now();
        let ticks = parse::host_cpu_ticks(&self.0.read()?).ok_or_else(|| self.0.unexpected())?;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let seconds = |ticks: u64| ticks as f64 / per_second;
        let (idle_s, steal_s) = (seconds(ticks.idle), seconds(ticks.steal));
        Ok(HostCpu { at, online: ticks.online, idle_s, steal_s, ctx_switches: ticks.ctx_switches })
    }
}

/// Context switches of this process's threads, those that have ended included, voluntary and not.
pub fn ctx_switches() -> Result<u64, String> {
    clock::ctx_switches().map_err(|error| format!("getrusage: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn host_busy_time_excludes_idle_and_stolen_cpu() {
        let at = Instant::now();
        let start = HostCpu { at, online: vec![0, 1], idle_s: 100.0, steal_s: 5.0, ctx_switches: 9 };
        let after = |seconds, idle_s, steal_s| HostCpu {
            at: at + Duration::from_secs(seconds),
            online: vec![0, 1],
            idle_s: 100.0 + idle_s,
            steal_s: 5.0 + steal_s,
            ctx_switches: 9,
        };
        assert_eq!(after(10, 14.0, 1.0).busy_s_since(&start), Ok(5.0));
        assert_eq!(after(10, 20.02, 0.0).busy_s_since(&start), Ok(0.0), "what ticks round away is nothing");
        assert!(after(10, 21.0, 0.0).busy_s_since(&start).is_err());
        let fewer = HostCpu { online: vec![0], ..after(10, 14.0, 1.0) };
        assert!(fewer.busy_s_since(&start).unwrap_err().contains("went on- or offline"));
    }

    #[test]
    fn a_page_counts_in_parts_with_all_that_have_it() {
        let text = "55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:  9000 kB\nPss:  2 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(parse_share(text), Some(MemoryShare { own: 2048, shared_huge: 0 }));
        assert_eq!(parse_share("Rss: 9000 kB\n"), None);
        assert_eq!(memory_share(u32::MAX), Ok(None), "there is no such process");
        let own = memory_share(std::process::id()).unwrap().unwrap();
        assert!(own.own > 1 << 20, "{own:?}");
    }

    /// A server with its cache there (`huge_pages = on`) seemed to do with some megabytes.
    #[test]
    fn huge_pages_of_the_kernel_pool_count_as_resident() {
        assert_eq!(huge_bytes("VmRSS:\t    9000 kB\nHugetlbPages:\t    4096 kB\nThreads:\t1\n"), 4096 << 10);
        assert_eq!(huge_bytes("VmRSS:\t    9000 kB\n"), 0, "a kernel without them");
        let rollup = "Rss: 90 kB\nPss: 3 kB\nShared_Hugetlb:     8192 kB\nPrivate_Hugetlb:    2048 kB\nLocked: 0 kB\n";
        assert_eq!(parse_share(rollup), Some(MemoryShare { own: (3 + 2048) << 10, shared_huge: 8192 << 10 }));
        assert!(ResidentMeter::of("self").and_then(|meter| meter.read()).unwrap() > 1 << 20);
    }

    #[test]
    fn only_traffic_with_storage_counts_not_with_the_page_cache() {
        let text = "rchar: 6976\nwchar: 5\nsyscr: 10\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 12\n";
        assert_eq!(parse_io(text), Some(IoCounters { read_bytes: 4096, write_bytes: 8192 }));
        assert_eq!(parse_io("rchar: 1\n"), None, "a kernel without I/O accounting has no figure, not zero");
    }
}
