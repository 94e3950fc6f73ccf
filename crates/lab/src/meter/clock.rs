//! The CPU clocks of threads and of the process, and the process's usage.

use std::io;
use std::mem::MaybeUninit;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CPU that the calling thread has used.
pub fn this_thread_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Nanoseconds of CPU that all threads of the process have used, those that have ended included.
pub fn process_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU clock of a thread of this process, or of a process with all its threads, ended ones included. Any thread can
/// read it. Threads of a process that run on other CPUs at this moment lag by up to a scheduler tick each.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    /// The clock of the calling thread; `None` when the kernel provides none.
    pub fn of_this_thread() -> Option<Self> {
        let mut clock = 0;
        // SAFETY: pthread_self is always valid, and the call writes only the clock.
        let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (error == 0).then_some(Self(clock))
    }

    /// The clock of the process that has this pid now; `None` when the kernel provides none.
    pub fn of_process(pid: u32) -> Option<Self> {
        let mut clock = 0;
        // SAFETY: the call writes only the clock.
        let error = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) };
        (error == 0).then_some(Self(clock))
    }

    /// Nanoseconds of CPU that have been used; `None` when the thread has ended, or no process has the pid any more.
    pub fn read_ns(self) -> Option<u64> {
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the time is written by a call that succeeds, and read only then.
        let time = unsafe {
            if libc::clock_gettime(self.0, time.as_mut_ptr()) != 0 {
                return None;
            }
            time.assume_init()
        };
        Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

/// Nanoseconds that a thread of this process was ready to run and waited for a CPU.
///
/// # Errors
/// The system's error, also when the thread has ended.
pub fn run_delay_ns(thread: rustix::thread::Pid) -> Result<u64, String> {
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    // CPU time, time waiting on a run queue, timeslices: Documentation/scheduler/sched-stats.rst.
    let field = text.split_ascii_whitespace().nth(1).and_then(|field| field.parse().ok());
    field.ok_or_else(|| format!("{path}: not as expected"))
}

/// Context switches of the process's threads, ended threads included, voluntary and not.
pub fn ctx_switches() -> io::Result<u64> {
    let usage = usage(libc::RUSAGE_SELF)?;
    Ok(usage.ru_nvcsw as u64 + usage.ru_nivcsw as u64)
}

/// Major page faults of the calling thread: pages that it waited for a device for.
pub fn this_thread_major_faults() -> io::Result<u64> {
    Ok(usage(libc::RUSAGE_THREAD)?.ru_majflt as u64)
}

fn usage(whose: libc::c_int) -> io::Result<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the usage is written by a call that succeeds, and read only then.
    unsafe {
        match libc::getrusage(whose, usage.as_mut_ptr()) {
            0 => Ok(usage.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
