//! Counts events over threads with perf_event_open(2): events of the CPU's hardware counters, and of the kernel.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::Known;

/// An event, counted while a thread runs.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// `type` and `config` of `struct perf_event_attr`.
    kind: u32,
    config: u64,
    mode: Mode,
}

/// The mode of the CPU in which an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    User,
    Kernel,
}

// Constants of linux/perf_event.h.
const HARDWARE: u32 = 0;
#[cfg(test)]
const SOFTWARE: u32 = 1;
const HARDWARE_CACHE: u32 = 3;
const CPU_CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
const LAST_LEVEL_CACHE: u64 = 2;
const DATA_TLB: u64 = 3;
/// `READ << 8 | MISS << 16`, for the events of a cache.
const READ_MISS: u64 = 1 << 16;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const WITH_TIMES: u64 = 1 | 2;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
// Bits of `struct perf_event_attr`.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

impl Event {
    pub const fn instructions(mode: Mode) -> Self {
        Self { kind: HARDWARE, config: INSTRUCTIONS, mode }
    }

    pub const fn cycles(mode: Mode) -> Self {
        Self { kind: HARDWARE, config: CPU_CYCLES, mode }
    }

    /// Loads that miss the last level cache.
    pub const fn llc_load_misses(mode: Mode) -> Self {
        Self { kind: HARDWARE_CACHE, config: LAST_LEVEL_CACHE | READ_MISS, mode }
    }

    /// Loads whose page is not in the TLB for data.
    pub const fn dtlb_load_misses(mode: Mode) -> Self {
        Self { kind: HARDWARE_CACHE, config: DATA_TLB | READ_MISS, mode }
    }

    /// CPU time, an event of the kernel: it exists on machines without hardware counters, too.
    #[cfg(test)]
    pub const fn task_clock(mode: Mode) -> Self {
        Self { kind: SOFTWARE, config: 1, mode }
    }

    #[cfg(test)]
    pub const fn context_switches(mode: Mode) -> Self {
        Self { kind: SOFTWARE, config: 3, mode }
    }

    /// Opens a counter of a thread, and of all threads and processes that it starts from now on. With `leader`, both
    /// are counted at the same times.
    fn open(self, thread: u32, leader: Option<RawFd>) -> io::Result<File> {
        let excluded = match self.mode {
            Mode::User => EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            Mode::Kernel => EXCLUDE_USER | EXCLUDE_HYPERVISOR,
        };
        let attributes = Attributes {
            kind: self.kind,
            size: size_of::<Attributes>() as u32,
            config: self.config,
            read_format: WITH_TIMES,
            flags: INHERIT | excluded,
            ..Attributes::default()
        };
        let (thread, any_cpu, leader) = (thread as libc::pid_t, -1, leader.unwrap_or(-1));
        // SAFETY: the attributes live through the call, and have their size in them.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, any_cpu, leader, CLOSE_ON_EXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so the descriptor is open and belongs to no other value.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }
}

/// The first version of `struct perf_event_attr`, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// A cumulative count. If more events are requested than the CPU has counters, the kernel counts them in turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub value: u64,
    /// The threads' CPU time, and the part of it in which the event was counted.
    pub enabled_ns: u64,
    pub counted_ns: u64,
}

impl Count {
    fn read(mut counter: &File) -> io::Result<Self> {
        let mut fields = [[0; 8]; 3];
        counter.read_exact(fields.as_flattened_mut())?;
        let [value, enabled_ns, counted_ns] = fields.map(u64::from_ne_bytes);
        Ok(Self { value, enabled_ns, counted_ns })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            enabled_ns: self.enabled_ns + other.enabled_ns,
            counted_ns: self.counted_ns + other.counted_ns,
        }
    }

    /// The events since an earlier reading, scaled to the whole time, and the share of the time in which they were
    /// counted.
    ///
    /// # Errors
    /// The event was not counted at all, although the threads ran.
    pub fn since(self, earlier: Self) -> Known<(f64, f64)> {
        let value = self.value.saturating_sub(earlier.value) as f64;
        let enabled_ns = self.enabled_ns.saturating_sub(earlier.enabled_ns);
        let counted_ns = self.counted_ns.saturating_sub(earlier.counted_ns);
        if enabled_ns == 0 {
            return Ok((value, 1.0));
        }
        if counted_ns == 0 {
            return Err(
                "other events occupied the CPU's counters all the time: end other programs that count".to_owned()
            );
        }
        // Both clocks are read one after the other.
        let share = (counted_ns as f64 / enabled_ns as f64).min(1.0);
        Ok((value / share, share))
    }
}

/// Counters of `N` events over some threads, and over the threads and processes that those start later. A thread that
/// ends keeps its count.
pub struct Counters<const N: usize>([Known<Vec<File>>; N]);

impl<const N: usize> Counters<N> {
    /// Opens counters of `N` events in groups; the events of a group are counted at the same times. An event that one
    /// thread refuses is absent for all, because the sum would be too low.
    ///
    /// A thread that starts meanwhile is counted if the thread that starts it is already.
    pub fn open(groups: &[&[Event]], threads: &[u32]) -> Self {
        let mut counters: [Known<Vec<File>>; N] = std::array::from_fn(|_| Ok(Vec::new()));
        for thread in threads {
            let mut slots = counters.iter_mut();
            for group in groups {
                let mut leader = None;
                for (event, slot) in group.iter().zip(&mut slots) {
                    let Ok(files) = slot else { continue };
                    match event.open(*thread, leader) {
                        Ok(file) => {
                            leader.get_or_insert(file.as_raw_fd());
                            files.push(file);
                        }
                        // The thread has ended.
                        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(error) => *slot = Err(refused(&error)),
                    }
                }
            }
        }
        Self(counters.map(|files| match files {
            Ok(files) if files.is_empty() => Err("all threads had ended when counting began".to_owned()),
            files => files,
        }))
    }

    /// The counts of all threads together.
    pub fn read(&self) -> [Known<Count>; N] {
        std::array::from_fn(|event| {
            let files = self.0[event].as_ref().map_err(Clone::clone)?;
            let counts = files.iter().map(Count::read);
            let sum = counts.reduce(|sum, count| Ok(sum?.plus(count?))).unwrap_or_else(|| Ok(Count::default()));
            sum.map_err(|error| format!("a performance counter cannot be read: {error}"))
        })
    }
}

/// Why an event cannot be counted, with a remedy.
fn refused(error: &io::Error) -> String {
    let cause = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL) => {
            "the CPU has no counter for this event, or the virtual machine has no virtual PMU"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "not permitted: run `sysctl kernel.perf_event_paranoid=1`, or give rumba CAP_PERFMON; a container's seccomp \
             profile must also permit the call"
        }
        Some(libc::ENOSYS) => "the kernel, or a seccomp profile, lacks the call",
        Some(libc::EMFILE | libc::ENFILE) => "raise `ulimit -n`: each thread takes a descriptor for each event",
        _ => return format!("perf_event_open: {error}"),
    };
    format!("{cause} (perf_event_open: {error})")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn this_thread() -> u32 {
        rustix::thread::gettid().as_raw_pid() as u32
    }

    #[test]
    fn events_of_a_group_count_in_their_own_mode() {
        let groups: &[&[Event]] = &[
            &[Event::task_clock(Mode::User), Event::context_switches(Mode::User)],
            &[Event::task_clock(Mode::Kernel), Event::context_switches(Mode::Kernel)],
        ];
        let counters: Counters<4> = Counters::open(groups, &[this_thread()]);
        for _ in 0..20 {
            thread::sleep(std::time::Duration::from_micros(1));
        }
        let [clock, in_user, _, in_kernel] = counters.read().map(Result::unwrap);
        assert_eq!(in_user.value, 0, "threads are switched in the kernel");
        // An event that joins a group on the CPU is counted from the next switch on.
        assert!(in_kernel.value >= 19 && clock.value > 0, "{in_kernel:?}, {clock:?}");
    }

    #[test]
    fn an_event_that_one_thread_refuses_is_absent_for_all() {
        let groups: &[&[Event]] =
            &[&[Event { kind: HARDWARE, config: 0xffff, mode: Mode::User }, Event::task_clock(Mode::User)]];
        let [unknown, clock] = Counters::<2>::open(groups, &[this_thread(), this_thread()]).read();
        assert!(unknown.unwrap_err().contains("perf_event_open"));
        assert!(clock.is_ok(), "the others of its group are counted");
        let gone = Counters::<1>::open(&[&[Event::task_clock(Mode::User)]], &[u32::MAX >> 2]).read();
        assert!(gone[0].as_ref().unwrap_err().contains("ended"), "no threads are not zero events: {gone:?}");
    }

    #[test]
    fn events_counted_in_turns_are_scaled_up() {
        let count = |value, enabled_ns, counted_ns| Count { value, enabled_ns, counted_ns };
        let first = count(100, 1_000, 400);
        assert_eq!(count(400, 2_000, 900).since(first), Ok((600.0, 0.5)));
        assert_eq!(count(400, 2_000, 1_400).since(first), Ok((300.0, 1.0)));
        assert_eq!(first.since(first), Ok((0.0, 1.0)), "the threads did not run");
        assert!(count(100, 2_000, 400).since(first).unwrap_err().contains("other events occupied"));
    }

    #[test]
    fn each_refusal_names_its_remedy() {
        let refused = |error| refused(&io::Error::from_raw_os_error(error));
        for (error, remedy) in [
            (libc::ENOENT, "virtual PMU"),
            (libc::EACCES, "kernel.perf_event_paranoid=1"),
            (libc::EPERM, "CAP_PERFMON"),
            (libc::ENOSYS, "seccomp"),
            (libc::EMFILE, "ulimit -n"),
        ] {
            assert!(refused(error).contains(remedy), "{}", refused(error));
        }
    }
}
