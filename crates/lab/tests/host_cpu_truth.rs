//! The host's CPU time is divided correctly. CPU used by other processes counts as theirs. Kernel CPU for a volume's
//! write-back belongs to no process, and is the difference between `host_cpu_us_per_op` and `cpu_us_per_op`. The sum
//! must also be complete. Clients that wake, work for 200 µs and sleep again were mostly asleep when the kernel
//! sampled. The host then seemed to use less CPU than its processes.
//!
//! The CPU of other processes is reported in ticks, and the kernel's work for them is not reported at all. The host
//! must therefore use at least as much as its processes in every attempt. It must use only little more in one attempt
//! of five.
//!
//! A hypervisor may let an idle CPU wait before it wakes. It counts the wait as stolen, and the guest, whose idle clock
//! still runs, counts it as idle. The host may therefore seem to use less than its processes by the stolen time.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "limits/support.rs"]
#[allow(dead_code)]
mod support;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rumba_engine_api::limits::{Backing, StorageLimit};
use rumba_lab::host::processes::{ProcessStat, pids, stat_of};
use rumba_lab::meter::{Meters, ThreadCpuRegistry};
use rustix::time::{ClockId, clock_gettime};
use support::*;

/// Seconds of CPU that the other process uses.
const BURNT_S: f64 = 2.0;

/// CPU seconds by a clock of this thread or process.
fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU seconds of this process by getrusage.
fn process_s() -> f64 {
    // SAFETY: a usage of zeros is valid, and the call writes it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), 0);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The tests run one at a time, because the process's figures include all its threads.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The CPU ticks of each kernel thread so far, by its pid and start time.
fn kernel_threads() -> HashMap<(u32, u64), u64> {
    let stats = pids().filter_map(|pid| {
        let stat = stat_of(pid);
        let stat = ProcessStat::parse(&stat).filter(ProcessStat::is_kernel_thread)?;
        Some(((pid, stat.start_ticks), stat.cpu_ticks()))
    });
    stats.collect()
}

/// CPU seconds of the kernel threads since an earlier reading. Idle workers end and take their usage with them, so
/// threads that are gone count as zero.
fn kernel_threads_s_since(earlier: &HashMap<(u32, u64), u64>) -> f64 {
    let now = kernel_threads();
    let ticks: u64 =
        now.iter().map(|(name, ticks)| ticks.saturating_sub(earlier.get(name).copied().unwrap_or(0))).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Starts a process that uses CPU and is no child of this one by then, because its parent has ended. Returns its pid.
fn let_a_outsider_burn() -> u32 {
    let binary = std::env::current_exe().unwrap();
    let line = format!(
        "'{}' --ignored --exact --nocapture --test-threads=1 child_burns_cpu >/dev/null 2>&1 & echo $!",
        binary.display()
    );
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// Dirties pages of a volume and writes them back, so that kernel threads work.
fn have_pages_written_back(dir: &Path) {
    let page = [7; 4096];
    for round in 0..10 {
        let file = File::create(dir.join("dirty")).unwrap();
        for at in 0..4096u64 {
            file.write_all_at(&page, (at.wrapping_mul(2_654_435_761) + round) % 16384 * 4096).unwrap();
        }
        file.sync_all().unwrap();
    }
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn other_processes_are_separate_from_the_kernel() {
    let _alone = alone();
    let host = Host::new();
    let storage = StorageLimit { size_bytes: 256 << 20, ..small(Backing::Tmpfs) };
    let enforcement = host.begin(&storage_alone(storage));
    let dir = enforcement.storage_dir().unwrap();
    let mut meters = Meters::new(dir, ThreadCpuRegistry::new());
    let mut sound = false;
    for _ in 0..5 {
        let (other_processes, threads, before) = (meters.other_processes().unwrap(), kernel_threads(), meters.read());
        let outsider = let_a_outsider_burn();
        // Wait by working, so that both work at the same time.
        while !has_ended(outsider) {
            have_pages_written_back(dir);
        }
        let spent = meters.read().since(&before);
        let (burnt, kernel) =
            (meters.other_processes().unwrap().cpu_s_since(&other_processes), kernel_threads_s_since(&threads));
        let (host, own) = (spent.host_cpu_s.value().unwrap(), spent.cpu_s.value().unwrap());
        let uncharged = host - own - burnt;
        println!(
            "host {host:.2} s, own {own:.2}, others {burnt:.2}, of them {BURNT_S:.2} burnt for \
             this; uncharged {uncharged:.2}, threads of the kernel by their own accounts {kernel:.2}"
        );
        assert!(burnt >= BURNT_S, "another process used it: {burnt}");
        assert!(kernel > 0.2, "the kernel's threads had work to do: {kernel}");
        // Interrupts add to the kernel threads' time. If the other process counted as uncharged, the value would
        // double.
        sound = (uncharged - kernel).abs() < 0.3 * kernel + 0.2 && uncharged < kernel + BURNT_S / 2.0;
        if sound {
            break;
        }
    }
    assert!(sound, "uncharged CPU equals that of the kernel's threads");
    enforcement.end().unwrap();
}

/// How long sleepers are measured, and the allowed difference of the meters because of tick rounding.
const SLEPT: Duration = Duration::from_secs(5);
const TICKS_S: f64 = 0.06;

/// Runs this many threads that work for 200 µs and sleep for 800, again and again.
fn with_sleepers<T>(count: usize, look: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let start = cpu_s(ClockId::ThreadCPUTime);
                    while cpu_s(ClockId::ThreadCPUTime) < start + 200e-6 {
                        std::hint::spin_loop();
                    }
                    thread::sleep(Duration::from_micros(800));
                }
            });
        }
        let seen = look();
        stop.store(true, Relaxed);
        seen
    })
}

#[test]
fn short_sleepers_are_seen_at_low_and_at_full_load() {
    let _alone = alone();
    let mut meters = Meters::new(Path::new("/"), ThreadCpuRegistry::new());
    // A fifth of one CPU; then more than all CPUs provide.
    let all = thread::available_parallelism().unwrap().get() * 6;
    for sleepers in [1, all] {
        let mut is_near = false;
        for _ in 0..5 {
            let (spent, used, other_processes, kernel, stolen) = with_sleepers(sleepers, || {
                let (kernel, before, used) = (kernel_threads(), meters.read(), process_s());
                let other_processes = meters.other_processes().unwrap();
                thread::sleep(SLEPT);
                let other_processes = meters.other_processes().unwrap().cpu_s_since(&other_processes);
                // Read the two values that must agree next to each other, because reading all processes takes time.
                let (after, used) = (meters.read(), process_s() - used);
                let stolen = after.steal_s_since(&before).value().unwrap();
                (after.since(&before), used, other_processes, kernel_threads_s_since(&kernel), stolen)
            });
            let (host, own) = (spent.host_cpu_s.value().unwrap(), spent.cpu_s.value().unwrap());
            let beyond = host - own - other_processes;
            println!(
                "{sleepers} sleepers: host {host:.2} s, own {own:.2} (by getrusage {used:.2}), others \
                 {other_processes:.2}, threads of the kernel {kernel:.2}, stolen {stolen:.2}; beyond processes {beyond:.3}"
            );
            assert!((own - used).abs() < TICKS_S, "{own} {used}");
            assert!(beyond >= -TICKS_S - stolen, "the host used less than its processes: {beyond}");
            // A CPU that wakes up a thousand times a second uses time for that too.
            is_near = beyond - kernel <= 0.25 * (own + other_processes) + TICKS_S;
            if is_near {
                break;
            }
        }
        assert!(is_near, "{sleepers} sleepers: the host used much more than its processes and its kernel");
    }
}

#[test]
#[ignore = "run by another test, as a process"]
fn child_burns_cpu() {
    while cpu_s(ClockId::ProcessCPUTime) < BURNT_S + 0.1 {
        std::hint::spin_loop();
    }
}
