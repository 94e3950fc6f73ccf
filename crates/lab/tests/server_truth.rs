//! A server's meters are accurate. They show the CPU and writes of its process, its ended threads and its descendants.
//! They match the kernel's figures after reaping within 2%. Clients are charged with nothing of it.
//!
//! The server is this test's own program in another process; it has a child.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rumba_engine_api::engine::ProcessLocation;
use rumba_lab::meter::{Meters, Role, ThreadCpuRegistry};
use rumba_results::metric::Metric;
use rumba_results::record::Spent;
use rumba_testkit::process;

const FILE: &str = "RUMBA_TEST_FILE";
const WITH_CHILD: &str = "RUMBA_TEST_WITH_CHILD";
/// Bytes that each of the two processes writes.
const WRITTEN: usize = 24 << 20;
/// Bytes that each touches and holds.
const HELD: usize = 64 << 20;
/// Bytes that both share, like the cache of a server's processes.
const SHARED: usize = 96 << 20;

/// A process that works on request.
struct Program {
    process: Child,
    orders: Option<ChildStdin>,
    words: Lines<BufReader<ChildStdout>>,
    /// CPU seconds that the kernel had charged to it and its living child at its last output.
    used_s: f64,
}

impl Program {
    fn start(file: &Path, with_child: bool) -> Self {
        let mut command = process::with_test("the_server");
        command.env(FILE, file);
        if with_child {
            command.env(WITH_CHILD, "yes");
        } else {
            command.env_remove(WITH_CHILD);
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let orders = process.stdin.take();
        let words = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut program = Self { process, orders, words, used_s: 0.0 };
        program.receive("ready");
        program
    }

    fn say(&mut self, word: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{word}").unwrap();
    }

    fn receive(&mut self, word: &str) {
        // The words are mixed with the test harness's output of that process.
        assert!(self.words.by_ref().map_while(Result::ok).any(|line| line.ends_with(word)), "it ended before {word}");
        self.used_s = self.words.next().unwrap().unwrap().parse().unwrap();
    }

    fn work(&mut self) {
        self.say("work");
        self.receive("done");
    }

    fn place(&self, data_dir: Option<&Path>) -> ProcessLocation {
        ProcessLocation::Server { pid: Some(self.process.id()), data_dir: data_dir.map(Path::to_owned) }
    }

    /// Ends it and returns the kernel's usage of it, its child included.
    fn reap(mut self) -> libc::rusage {
        drop(self.orders.take());
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the process is this one's child and not reaped yet; the usage is written by a call that succeeds.
        unsafe {
            let pid = self.process.id() as libc::pid_t;
            assert_eq!(libc::wait4(pid, std::ptr::null_mut(), 0, usage.as_mut_ptr()), pid);
            usage.assume_init()
        }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
    }
}

/// The other process: a server, and its child.
#[test]
#[ignore = "run by the other tests, as their server"]
fn the_server() {
    let Some(file) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let with_child = std::env::var_os(WITH_CHILD).is_some();
    let mut child = with_child.then(|| Program::start(&file.with_extension("child"), false));
    let held = vec![1u8; HELD];
    share(&file.with_extension("").with_extension("shared"));
    notify("ready", child.as_ref());
    for order in std::io::stdin().lines().map_while(Result::ok) {
        match order.as_str() {
            "end child" => drop(child.take().map(Program::reap)),
            "new child" => child = Some(Program::start(&file.with_extension("child"), false)),
            // It ends, and no process waits for it.
            "leave child" => drop(child.take()),
            "ask child" => child.iter_mut().for_each(|child| {
                child.say("ask child");
                child.receive("done");
            }),
            _ => {
                // A thread that has ended by the time of the reading.
                std::thread::spawn(|| burn(300)).join().unwrap();
                burn(500);
                let written =
                    File::create(&file).and_then(|mut file| file.write_all(&held[..WRITTEN]).and(file.sync_all()));
                written.unwrap();
                child.iter_mut().for_each(Program::work);
            }
        }
        notify("done", child.as_ref());
    }
    let _ = child.map(Program::reap);
}

/// Maps a shared memory file and touches all of it, until the process ends.
fn share(file: &Path) {
    use std::os::fd::AsRawFd;
    let file = File::options().create(true).truncate(false).read(true).write(true).open(file).unwrap();
    file.set_len(SHARED as u64).unwrap();
    // SAFETY: a new mapping of a file that is long enough, which exists until the process ends.
    unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let at = libc::mmap(std::ptr::null_mut(), SHARED, rights, flags, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        for page in (0..SHARED).step_by(4096) {
            at.cast::<u8>().add(page).read_volatile();
        }
    }
}

fn notify(word: &str, child: Option<&Program>) {
    println!("{word}\n{}", cpu_s(&own_usage()) + child.map_or(0.0, |child| child.used_s));
}

fn own_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Uses CPU until the thread's own clock has advanced by this much; returns the actual advance, seconds.
fn burn(milliseconds: u64) -> f64 {
    let start = own_ns();
    while own_ns() - start < milliseconds * 1_000_000 {}
    (own_ns() - start) as f64 / 1e9
}

fn assert_within_2_percent(what: &str, metric: &Metric, truth: f64) {
    let value = metric.value().unwrap_or_else(|| panic!("{what} is absent: {metric:?}"));
    println!("{what}: {value} measured, {truth} true, off by {:+.3}%", (value / truth - 1.0) * 100.0);
    assert!((value - truth).abs() <= 0.02 * truth, "{what}: {value} measured, {truth} true");
}

fn own_usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the usage is written by a call that succeeds.
    unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), 0);
        usage.assume_init()
    }
}

fn cpu_s(usage: &libc::rusage) -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// A directory on a filesystem with a device, where dirty pages are charged.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn server_and_child_cpu_and_writes_match_the_kernel() {
    let dir = on_disk();
    let mut server = Program::start(&dir.path().join("file"), true);
    let roll = ThreadCpuRegistry::new();
    let mut meters = Meters::of(&server.place(Some(dir.path())), dir.path(), roll.clone());
    let (start, started_s) = (meters.read(), server.used_s);
    let client_s = {
        let _entered = roll.enter(Role::Client);
        server.say("work");
        burn(400)
    };
    server.receive("done");
    let spent = meters.read().since(&start);
    let server_s = server.used_s - started_s;
    let truth = server.reap();

    assert!(cpu_s(&truth) >= server_s, "{server_s} of {}", cpu_s(&truth));
    assert_within_2_percent("server CPU seconds", &spent.server_cpu_s, server_s);
    assert_within_2_percent("client CPU seconds", &spent.client_cpu_s, client_s);
    assert_within_2_percent("CPU seconds of both", &spent.cpu_s, server_s + client_s);
    // ru_oublock counts in units of 512 bytes.
    assert_within_2_percent("bytes written", &spent.process_write_bytes, truth.ru_oublock as f64 * 512.0);
    assert_within_2_percent("bytes written", &spent.process_write_bytes, (2 * WRITTEN) as f64);
    let (rss, client_rss) = (spent.rss_bytes.value().unwrap(), spent.client_rss_bytes.value().unwrap());
    assert!(rss >= (2 * HELD + SHARED) as f64, "{rss}: the child's memory is the server's");
    assert!(rss < (2 * HELD + SHARED + SHARED / 2) as f64, "{rss}: what they share is there once");
    assert!(client_rss < HELD as f64, "{client_rss}");
}

#[test]
fn ended_child_keeps_its_usage_and_new_child_counts_once_found() {
    let dir = on_disk();
    let mut server = Program::start(&dir.path().join("file"), true);
    let mut meters = Meters::of(&server.place(None), dir.path(), ThreadCpuRegistry::new());
    let start = meters.read();
    server.work();
    let worked = meters.read().since(&start);
    server.say("end child");
    server.receive("done");
    let ended = meters.read().since(&start);
    assert_grew_little(&worked, &ended);
    server.say("new child");
    server.receive("done");
    meters.look_for_descendants();
    let (found, found_s) = (meters.read(), server.used_s);
    assert_grew_little(&ended, &found.since(&start));
    server.work();
    let truth = server.used_s - found_s;
    assert_within_2_percent("CPU seconds with the new child", &meters.read().since(&found).server_cpu_s, truth);
    let size = worked.process_write_bytes.value().unwrap();
    assert_within_2_percent("bytes written", &meters.read().since(&start).process_write_bytes, 2.0 * size);
    server.reap();
}

/// Guards a server with a process for each client: those of a load came and went between two searches and were in no
/// figure.
#[test]
fn children_that_lived_between_readings_count_as_the_servers() {
    let dir = on_disk();
    let mut server = Program::start(&dir.path().join("file"), false);
    let mut meters = Meters::of(&server.place(None), dir.path(), ThreadCpuRegistry::new());
    let (start, started_s) = (meters.read(), server.used_s);
    for order in ["new child", "work", "end child", "new child", "work", "end child"] {
        server.say(order);
        server.receive("done");
    }
    meters.look_for_descendants();
    let spent = meters.read().since(&start);
    let truth = cpu_s(&server.reap()) - started_s;
    assert_within_2_percent("CPU seconds with children that came and went", &spent.server_cpu_s, truth);
}

/// An ended process is only in its own figure until its parent waits for it.
#[test]
fn ended_but_unreaped_child_counts_as_the_servers() {
    let dir = on_disk();
    let mut server = Program::start(&dir.path().join("file"), false);
    let mut meters = Meters::of(&server.place(None), dir.path(), ThreadCpuRegistry::new());
    let (start, started_s) = (meters.read(), server.used_s);
    for order in ["new child", "work"] {
        server.say(order);
        server.receive("done");
    }
    let worked_s = server.used_s - started_s;
    server.say("leave child");
    server.receive("done");
    while !has_zombie(server.process.id()) {
        std::thread::yield_now();
    }
    meters.look_for_descendants();
    let spent_s = meters.read().since(&start).server_cpu_s.value().unwrap();
    assert!((worked_s - 0.05..worked_s + 0.2).contains(&spent_s), "{spent_s} of {worked_s}");
    server.reap();
}

/// Whether a process has an ended child that it has not waited for.
fn has_zombie(parent: u32) -> bool {
    let is_one = |text: &str| text.contains(&format!(") Z {parent} "));
    let processes = std::fs::read_dir("/proc").unwrap().map_while(Result::ok);
    processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok()).any(|text| is_one(&text))
}

/// Checks that only the CPU of starting and ending a process was added, and no bytes.
fn assert_grew_little(before: &Spent, after: &Spent) {
    let (before_s, after_s) = (before.server_cpu_s.value().unwrap(), after.server_cpu_s.value().unwrap());
    assert!((before_s..before_s + 0.2).contains(&after_s), "{after_s} after {before_s}");
    assert_eq!(before.process_write_bytes, after.process_write_bytes);
}

#[test]
fn killed_server_figures_become_absent_and_clients_go_on() {
    let dir = on_disk();
    let mut server = Program::start(&dir.path().join("file"), false);
    let pid = server.process.id();
    let roll = ThreadCpuRegistry::new();
    let _entered = roll.enter(Role::Client);
    let mut meters = Meters::of(&server.place(Some(dir.path())), dir.path(), roll.clone());
    let start = meters.read();
    server.work();
    assert!(meters.read().since(&start).server_cpu_s.value().unwrap() > 0.7);
    server.kill();
    // All its output has been read by its end; it is not reaped yet.
    assert!(server.words.by_ref().map_while(Result::ok).count() < 100);
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let reason = Metric::absent(format!("the server's process {pid} has ended"));
    for reaped in [false, true] {
        if reaped {
            server.process.wait().unwrap();
        }
        let end = meters.read();
        let spent = end.since(&start);
        for metric in [&spent.server_cpu_s, &spent.cpu_s, &spent.process_write_bytes, &spent.rss_bytes] {
            assert_eq!(*metric, reason, "reaped: {reaped}");
        }
        assert!(spent.client_cpu_s.value().is_some() && spent.client_rss_bytes.value().unwrap() > 0.0);
        assert_eq!(end.since(&end).server_cpu_s, reason, "two readings after its end are no zero");
        assert!(meters.server_switches().is_err());
    }
}

#[test]
fn server_device_is_that_of_its_data_and_remote_has_none() {
    let own = on_disk();
    let server = Program::start(&own.path().join("file"), false);
    let spent_at = |place: &ProcessLocation| {
        let mut meters = Meters::of(place, own.path(), ThreadCpuRegistry::new());
        let start = meters.read();
        meters.read().since(&start)
    };
    let elsewhere = spent_at(&server.place(Some(Path::new("/dev/shm"))));
    assert_eq!(elsewhere.device_reads, Metric::absent("tmpfs is memory and has no device"));
    let remote = spent_at(&ProcessLocation::Server { pid: None, data_dir: None });
    let because = |metric: &Metric| match metric {
        Metric::Absent { absent } => absent.clone(),
        Metric::Value(value) => panic!("{value} of a server that cannot be seen"),
    };
    for metric in [&remote.server_cpu_s, &remote.cpu_s, &remote.process_write_bytes, &remote.rss_bytes] {
        assert!(because(metric).starts_with("the server runs on another host"), "{metric:?}");
    }
    assert!(because(&remote.device_write_bytes).starts_with("the server's data directory is on another host"));
    assert!(remote.client_cpu_s.value().is_some() && remote.client_rss_bytes.value().is_some());
    server.reap();
}

/// Guards against counting only the main process, which has almost none in a server with a process for each client.
#[test]
fn server_context_switches_sum_all_processes_and_report_ended() {
    let dir = on_disk();
    let mut server = Program::start(&dir.path().join("file"), true);
    let mut meters = Meters::of(&server.place(None), dir.path(), ThreadCpuRegistry::new());
    let start = meters.server_switches().unwrap();
    for _ in 0..20 {
        // Both sleep until the order arrives, and the server until its child answers.
        server.say("ask child");
        server.receive("done");
    }
    let end = meters.server_switches().unwrap();
    let switches = end.since(&start);
    assert!(switches >= 50, "{switches}");
    assert_eq!(end.ended_cpu_s_since(&start), 0.0);
    for order in ["end child", "new child", "work", "end child"] {
        server.say(order);
        server.receive("done");
    }
    meters.look_for_descendants();
    let ended_s = meters.server_switches().unwrap().ended_cpu_s_since(&end);
    assert!((0.7..2.0).contains(&ended_s), "{ended_s}");
    server.reap();
}
