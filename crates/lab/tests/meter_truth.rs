//! The meters are accurate: they show the bytes read and written and the CPU used, within 2%. All figures
//! per operation depend on them.
//!
//! The device is a loop device with a separate filesystem, so that its figures include no other traffic of the machine.
//! Without root these tests are ignored, with the reason. The tests run one at a time, because the process's figures
//! include all its threads.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rumba_lab::meter::{Meters, Role, ThreadCpuRegistry};
use rumba_results::metric::Metric;
use rumba_testkit::mounts::LoopDevice;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn assert_within_2_percent(what: &str, metric: &Metric, truth: f64) {
    let value = metric.value().unwrap_or_else(|| panic!("{what} is absent: {metric:?}"));
    println!("{what}: {value} measured, {truth} true, off by {:+.3}%", (value / truth - 1.0) * 100.0);
    assert!((value - truth).abs() <= 0.02 * truth, "{what}: {value} measured, {truth} true");
}

/// A megabyte that direct I/O accepts.
struct AlignedMegabyte(*mut u8);

impl AlignedMegabyte {
    const LAYOUT: Layout = match Layout::from_size_align(1 << 20, 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("4096 is a power of two"),
    };

    fn new() -> Self {
        // SAFETY: the layout has a size; the pointer is checked.
        let start = unsafe { alloc_zeroed(Self::LAYOUT) };
        assert!(!start.is_null());
        Self(start)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory belongs to this value, is initialised, and has this length.
        unsafe { std::slice::from_raw_parts_mut(self.0, Self::LAYOUT.size()) }
    }
}

impl Drop for AlignedMegabyte {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.0, Self::LAYOUT) };
    }
}

fn direct(path: &Path) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(libc::O_DIRECT).create(!path.exists());
    options
}

#[test]
#[needs(LoopDevice)]
fn device_and_process_meters_match_the_transferred_bytes() {
    let _alone = alone();
    const MEGABYTES: u64 = 128;
    let truth = (MEGABYTES << 20) as f64;
    let filesystem = LoopDevice::of_mebibytes(256);
    let file = filesystem.path().join("file");
    let mut meters = Meters::new(filesystem.path(), ThreadCpuRegistry::new());
    let mut megabyte = AlignedMegabyte::new();

    let start = meters.read();
    let mut writer = direct(&file).write(true).open(&file).unwrap();
    for _ in 0..MEGABYTES {
        writer.write_all(megabyte.bytes()).unwrap();
    }
    writer.sync_all().unwrap();
    let written = meters.read();
    let mut reader = direct(&file).read(true).open(&file).unwrap();
    for _ in 0..MEGABYTES {
        reader.read_exact(megabyte.bytes()).unwrap();
    }
    let read = meters.read();

    let spent = written.since(&start);
    assert_within_2_percent("device bytes written", &spent.device_write_bytes, truth);
    assert_within_2_percent("process bytes written", &spent.process_write_bytes, truth);
    assert_eq!(spent.device_discard_bytes, Metric::Value(0.0));
    let spent = read.since(&written);
    assert_within_2_percent("device bytes read", &spent.device_read_bytes, truth);
    assert_within_2_percent("process bytes read", &spent.process_read_bytes, truth);
    assert!(spent.device_reads.value().unwrap() >= 1.0);
}

/// One request at a time, each timed by its client. A request's time at the device is a part of its client's time, the
/// largest one for a request of a megabyte. The independent figures come from the device's own row in sysfs, divided as
/// `iostat -x` does. The mean number of requests is checked against Little's law and the client's clock.
#[test]
#[needs(LoopDevice)]
fn the_devices_times_are_those_of_the_requests() {
    let _alone = alone();
    const MEGABYTES: u32 = 256;
    let filesystem = LoopDevice::of_mebibytes(512);
    let file = filesystem.path().join("file");
    let number = rustix::fs::stat(filesystem.path()).unwrap().st_dev;
    let row = format!("/sys/dev/block/{}:{}/stat", rustix::fs::major(number), rustix::fs::minor(number));
    let fields = || -> Vec<f64> {
        std::fs::read_to_string(&row).unwrap().split_whitespace().map(|field| field.parse().unwrap()).collect()
    };
    let mut meters = Meters::new(filesystem.path(), ThreadCpuRegistry::new());
    let mut megabyte = AlignedMegabyte::new();

    let (start, before, begun) = (meters.read(), fields(), std::time::Instant::now());
    let mut writer = direct(&file).write(true).open(&file).unwrap();
    for _ in 0..MEGABYTES {
        writer.write_all(megabyte.bytes()).unwrap();
    }
    let mut reader = direct(&file).read(true).open(&file).unwrap();
    for _ in 0..MEGABYTES {
        reader.read_exact(megabyte.bytes()).unwrap();
    }
    let (end, after, seconds) = (meters.read(), fields(), begun.elapsed().as_secs_f64());

    let spent = end.since(&start);
    let grown_s = |field: usize| (after[field] - before[field]) / 1e3;
    // Each reading rounds down to a millisecond.
    let assert_near = |what: &str, metric: &Metric, truth: f64| {
        let value = metric.value().unwrap_or_else(|| panic!("{what} is absent: {metric:?}"));
        println!("{what}: {value} s measured, {truth} s true");
        assert!((value - truth).abs() <= 0.02 * truth + 0.002, "{what}: {value} s measured, {truth} s true");
    };
    assert_near("reads", &spent.device_read_s, grown_s(3));
    assert_near("writes", &spent.device_write_s, grown_s(7));
    assert_near("busy", &spent.device_busy_s, grown_s(9));
    assert_near("all requests", &spent.device_queue_s, grown_s(10));
    let value = |metric: &Metric| metric.value().unwrap();
    let requests_s = value(&spent.device_read_s) + value(&spent.device_write_s);
    assert!(requests_s > 0.0 && value(&spent.device_busy_s) > 0.0, "a loop device times its requests: {spent:?}");
    // The client waits for each request, or for its parts, which are in flight together.
    assert!(
        value(&spent.device_busy_s) <= 1.02 * seconds + 0.01,
        "{} s busy in {seconds} s",
        spent.device_busy_s.value().unwrap()
    );
    assert!(value(&spent.device_queue_s) >= 0.98 * requests_s - 0.002, "{spent:?}");
    assert!(value(&spent.host_ctx_switches) > 0.0);

    // Small writes one by one: each is one request, and its time lies within its client's wait.
    const SMALL: usize = 4096;
    const WRITES: u64 = 2000;
    let (start, begun) = (meters.read(), std::time::Instant::now());
    let mut writer = direct(&file).write(true).open(&file).unwrap();
    for _ in 0..WRITES {
        writer.write_all(&megabyte.bytes()[..SMALL]).unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64();
    let spent = meters.read().since(&start);
    assert_within_2_percent("small writes", &spent.device_writes, WRITES as f64);
    let device_s = value(&spent.device_write_s);
    println!("small writes: {device_s} s at the device of {seconds} s");
    assert!(device_s <= 1.02 * seconds + 0.002 && device_s >= 0.1 * seconds, "{device_s} of {seconds} s");
}

/// Nanoseconds of CPU of the calling thread, by its own clock.
fn own_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Uses CPU until the thread's own clock has advanced by this much; returns the actual advance.
fn burn(milliseconds: u64) -> u64 {
    let start = own_ns();
    loop {
        let spent = own_ns() - start;
        if spent >= milliseconds * 1_000_000 {
            return spent;
        }
    }
}

#[test]
fn cpu_time_is_split_by_thread_role_while_alive_and_after_exit() {
    let _alone = alone();
    let roll = ThreadCpuRegistry::new();
    let mut meters = Meters::new(Path::new("/"), Arc::clone(&roll));
    let start = meters.read();
    // (role, milliseconds): two clients, one of the harness, one of the engine's own.
    let work = [(Some(Role::Client), 300), (Some(Role::Client), 200), (Some(Role::Harness), 250), (None, 400)];
    let (burnt, burnt_by) = channel();
    let threads = work.map(|(role, milliseconds)| {
        let (roll, burnt) = (Arc::clone(&roll), burnt.clone());
        let (end, ended) = channel::<()>();
        let thread = thread::spawn(move || {
            let entered = role.map(|role| roll.enter(role));
            burnt.send((role, burn(milliseconds))).unwrap();
            // The thread stays registered, idle, until the test has read it.
            let _ = ended.recv();
            drop(entered);
        });
        (end, thread)
    });
    let mut truth = [0.0; 3];
    for _ in work {
        let (role, ns) = burnt_by.recv().unwrap();
        let at = match role {
            Some(Role::Client) => 0,
            Some(Role::Harness) => 1,
            None => 2,
        };
        truth[at] += ns as f64 / 1e9;
    }
    let alive = meters.read().since(&start);
    for (end, thread) in threads {
        drop(end);
        thread.join().unwrap();
    }
    let gone = meters.read().since(&start);
    for (when, spent) in [("alive", alive), ("gone", gone)] {
        assert_within_2_percent(&format!("clients, {when}"), &spent.client_cpu_s, truth[0]);
        assert_within_2_percent(&format!("harness, {when}"), &spent.harness_cpu_s, truth[1]);
        assert_within_2_percent(&format!("background, {when}"), &spent.background_cpu_s, truth[2]);
        // It may be below its processes' time only by the host's tick rounding.
        assert!(
            spent.host_cpu_s.value().unwrap()
                >= truth.iter().sum::<f64>() - rumba_results::host_cpu::HOST_CPU_ROUNDING_S
        );
    }
}

#[test]
fn running_client_is_charged_up_to_now() {
    let _alone = alone();
    let roll = ThreadCpuRegistry::new();
    let (looked, look) = channel::<()>();
    let (at, at_client) = channel();
    let client = {
        let roll = Arc::clone(&roll);
        thread::spawn(move || {
            let _before = burn(50);
            let _entered = roll.enter(Role::Client);
            at.send(burn(300)).unwrap();
            // Continue until the reading is done, however long it takes.
            let mut more = 0;
            while look.try_recv().is_err() {
                more += burn(1);
            }
            more
        })
    };
    let at_least = at_client.recv().unwrap();
    let seen = roll.read().client_ns;
    looked.send(()).unwrap();
    let at_most = at_least + client.join().unwrap();
    let left = roll.read().client_ns;
    assert!(seen >= at_least, "{seen} of {at_least}");
    assert!(
        seen as f64 <= 1.02 * at_most as f64,
        "{seen} of at most {at_most}: the time before it entered is not the client's"
    );
    assert!(left >= seen && left as f64 <= 1.02 * at_most as f64, "{left} of {at_most}");
}

#[test]
fn context_switches_are_counted() {
    let _alone = alone();
    let mut meters = Meters::new(Path::new("/"), ThreadCpuRegistry::new());
    let start = meters.read();
    let (ping, pinged) = channel::<()>();
    let (pong, ponged) = channel::<()>();
    let other = thread::spawn(move || while pinged.recv().is_ok() && pong.send(()).is_ok() {});
    for _ in 0..1000 {
        ping.send(()).unwrap();
        // Sleeping certainly gives up the CPU.
        thread::sleep(std::time::Duration::from_micros(1));
        ponged.recv().unwrap();
    }
    drop(ping);
    other.join().unwrap();
    let switches = meters.read().since(&start).ctx_switches.value().unwrap();
    assert!(switches >= 1000.0, "{switches}");
}

/// Two client threads and one CPU: one waits while the other works. Each reads its own counters before it leaves.
#[test]
fn cpu_wait_of_clients_is_counted() {
    let _alone = alone();
    let roll = ThreadCpuRegistry::new();
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu)).unwrap();
    let work = || {
        let roll = Arc::clone(&roll);
        thread::spawn(move || {
            let mut one = rustix::thread::CpuSet::new();
            one.set(cpu);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            let delay_ns = || -> u64 {
                let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
                text.split_whitespace().nth(1).unwrap().parse().unwrap()
            };
            let entered = roll.enter(Role::Client);
            let before = delay_ns();
            burn(300);
            let waited = delay_ns() - before;
            drop(entered);
            waited
        })
    };
    let threads = [work(), work()];
    let truth: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let measured = roll.client_run_delay_ns().unwrap();
    assert!(truth >= 100_000_000, "they share a CPU: {truth} ns");
    assert_within_2_percent("waited for a CPU", &Metric::Value(measured as f64), truth as f64);
}

#[test]
fn touched_memory_is_resident() {
    let _alone = alone();
    const TOUCHED: usize = 256 << 20;
    let mut meters = Meters::new(Path::new("/"), ThreadCpuRegistry::new());
    let start = meters.read();
    let before = start.since(&start).rss_bytes.value().unwrap();
    let memory = vec![1u8; TOUCHED];
    let after = meters.read().since(&start).rss_bytes.value().unwrap();
    assert_eq!(memory[TOUCHED / 2], 1);
    assert_within_2_percent("resident bytes touched", &Metric::Value(after - before), TOUCHED as f64);
}
