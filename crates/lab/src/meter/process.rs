//! A process's counters, and the host's CPU time.

use std::time::Instant;

use rumba_results::host_cpu::HOST_CPU_ROUNDING_S;

use super::Known;
use super::proc_file::ProcFile;
use crate::host::parse;

/// Bytes between a process and storage (`/proc/PID/io`), all threads, ended threads included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Bytes that the process fetched from storage, page faults included.
    pub read_bytes: u64,
    /// Bytes that the process caused to be written. They are charged when a page becomes dirty, or at a direct write. A
    /// page that is dirtied again before its write-back is charged once. `cancelled_write_bytes` is not subtracted. It
    /// counts dirty pages that this process dropped by truncating, even pages dirtied by others; the device's figure
    /// shows the writes avoided.
    pub write_bytes: u64,
}

impl IoCounters {
    /// The sum of two processes.
    pub fn plus(self, other: Self) -> Self {
        Self { read_bytes: self.read_bytes + other.read_bytes, write_bytes: self.write_bytes + other.write_bytes }
    }
}

pub struct IoMeter(ProcFile);

impl IoMeter {
    /// For a process by its pid, or `self`.
    pub fn of(process: &str) -> Result<Self, String> {
        let meter = Self(ProcFile::open(format!("/proc/{process}/io"))?);
        // Some sandboxes permit opening the file but not reading it.
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
    /// `/proc/PID/status`, with the huge pages that `statm` omits.
    status: ProcFile,
}

impl ResidentMeter {
    /// For a process by its pid, or `self`.
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

/// Bytes in huge pages of the kernel's pool (hugetlbfs), which the kernel's resident figures omit. A server's whole
/// cache may be there. A kernel without such pages has no line for them.
fn huge_bytes(status: &str) -> u64 {
    parse::meminfo_bytes(status, "HugetlbPages").unwrap_or_default()
}

/// Memory of one of several processes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryShare {
    /// Its private memory, and its share of each page that it has with others.
    pub own: u64,
    /// Huge pages of the kernel's pool that are shared with others; the kernel reports no shares of these.
    pub shared_huge: u64,
}

/// Resident memory of a process, where each shared page counts in proportion (`/proc/PID/smaps_rollup`). The kernel
/// walks the page tables for it, which takes some milliseconds for each mapped GB.
///
/// `None` for a process that has ended or is about to end, and has no memory any more.
///
/// # Errors
/// The system's error, for example a missing permission.
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

/// Time that the host's CPUs did not work, until a moment.
///
/// The busy time is the rest of the elapsed time. `/proc/stat` also counts busy time, but it samples the running task
/// at each tick. It never sees a task that wakes by a timer and sleeps before the next tick. A process is then charged
/// with more than the host shows. The idle time comes from a clock at the start and end of each idle period
/// (`CONFIG_NO_HZ_COMMON`, without the boot option `nohz=off`). If idle time is sampled too, both ways give the same
/// result.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCpu {
    pub at: Instant,
    /// The CPUs that were online.
    pub online: Vec<u32>,
    /// Seconds without work, or waiting for devices.
    pub idle_s: f64,
    /// Seconds that a hypervisor gave to other guests while the host wanted to run.
    pub steal_s: f64,
    /// Context switches of all processes and kernel threads.
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
        // Take the time first, because the kernel generates the first lines first.
        let at = Instant::now();
        let ticks = parse::host_cpu_ticks(&self.0.read()?).ok_or_else(|| self.0.unexpected())?;
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let seconds = |ticks: u64| ticks as f64 / per_second;
        let (idle_s, steal_s) = (seconds(ticks.idle), seconds(ticks.steal));
        Ok(HostCpu { at, online: ticks.online, idle_s, steal_s, ctx_switches: ticks.ctx_switches })
    }
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

    /// Guards against missing a cache in huge pages (`huge_pages = on`): such a server seemed to use only some
    /// megabytes.
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
