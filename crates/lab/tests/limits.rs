//! Limits hold, and leave nothing behind. A result under a limit that was not enforced is worthless, and a remaining
//! loop device, mount or throttle spoils the next one.
//!
//! The tests use real control groups, loop devices and mounts, and each states its needs. Times are checked only in the
//! direction that load on the machine cannot affect: a throttle may never let too much through.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "limits/budget.rs"]
mod budget;
#[path = "limits/support.rs"]
mod support;
#[path = "limits/volume.rs"]
mod volume;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use rumba_engine_api::limits::{Backing, Limits, StorageLimit};
use rumba_lab::host::{block, diskstats};
use rumba_lab::leftovers;
use rumba_lab::limits::{self, Enforcement, LimitError};
use rumba_lab::provision::{Leftover, ProvisionError};
use support::*;

/// Operations beyond its rate that a throttle may let through at once: those of its first slice.
const BURST: f64 = 0.1;

fn device_reads_and_written_bytes(enforcement: &Enforcement) -> (u64, u64) {
    let device = block::device_of(enforcement.storage_dir().unwrap()).unwrap();
    let rows = fs::read_to_string("/proc/diskstats").unwrap();
    let (_, counters) = diskstats::row(&rows, device.number).unwrap();
    (counters.reads, counters.write_bytes)
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn throttled_storage_admits_no_more_operations_than_allowed() {
    let host = Host::new();
    const IOPS: u32 = 500;
    const OPERATIONS: u64 = 1000;
    // One after the other: on busy cores a throttle dispatches late and lets more through at once.
    for backing in [Backing::Tmpfs, Backing::File] {
        let storage = StorageLimit { read_iops: Some(IOPS), write_iops: Some(IOPS), ..small(backing) };
        let enforcement = host.begin(&storage_alone(storage));
        is_throttled(backing, &enforcement, OPERATIONS, f64::from(IOPS));
        enforcement.end().unwrap();
    }
    host.assert_nothing_left();
}

/// Reads and writes take at least their time, buffered or not, and the device has counted them.
fn is_throttled(backing: Backing, enforcement: &Enforcement, operations: u64, iops: f64) {
    let path = enforcement.storage_dir().unwrap().join("file");
    let at_least = operations as f64 / iops - BURST;
    let before = device_reads_and_written_bytes(enforcement);
    let name = block::device_of(enforcement.storage_dir().unwrap()).unwrap().name;
    assert_eq!(enforcement.device().unwrap().node.file_name().unwrap().to_str().unwrap(), name);

    let start = Instant::now();
    direct_pages(&path, operations, |file, page, at| file.write_all_at(page, at));
    let writing = start.elapsed().as_secs_f64();
    let start = Instant::now();
    direct_pages(&path, operations, |file, page, at| file.read_exact_at(page, at));
    let reading = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let cached = vec![7; 4096];
    let mut buffered = File::create(path.with_extension("buffered")).unwrap();
    (0..64).for_each(|_| buffered.write_all(&cached).unwrap());
    buffered.sync_all().unwrap();
    // An open file keeps its filesystem mounted.
    drop(buffered);
    println!(
        "{backing}: {operations} writes in {writing:.2} s, reads in {reading:.2} s, both at least {at_least:.2}; \
         64 buffered pages and their sync in {:.2} s",
        start.elapsed().as_secs_f64()
    );
    assert!(writing >= at_least, "{writing}");
    assert!(reading >= at_least, "{reading}");
    let after = device_reads_and_written_bytes(enforcement);
    assert!(after.0 - before.0 >= operations, "the loop device's own counters are the truth");
    assert!(after.1 - before.1 >= operations * 4096);
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn lifted_throttle_passes_the_rate_of_the_backing() {
    let host = Host::new();
    let storage = StorageLimit { read_iops: Some(100), ..small(Backing::Tmpfs) };
    let mut enforcement = host.begin(&storage_alone(storage));
    let path = enforcement.storage_dir().unwrap().join("file");
    direct_pages(&path, 1000, |file, page, at| file.write_all_at(page, at));
    assert_eq!(enforcement.lift_throttle(), []);
    let start = Instant::now();
    direct_pages(&path, 1000, |file, page, at| file.read_exact_at(page, at));
    let seconds = start.elapsed().as_secs_f64();
    println!("1000 reads in {seconds:.2} s, 10 s before");
    assert!(seconds < 5.0, "{seconds}");
    enforcement.end().unwrap();
    host.assert_nothing_left();
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn bytes_are_throttled_apart_from_operations() {
    let host = Host::new();
    let storage = StorageLimit { write_bps: Some(8 << 20), ..small(Backing::Tmpfs) };
    let enforcement = host.begin(&storage_alone(storage));
    let path = enforcement.storage_dir().unwrap().join("file");
    let start = Instant::now();
    let mut file = File::create(&path).unwrap();
    file.write_all(&vec![1; 16 << 20]).unwrap();
    file.sync_all().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    println!("16 MiB written back in {seconds:.2} s at 8 MiB/s");
    assert!(seconds >= 2.0 - BURST, "write-back comes from the kernel's threads and must be throttled too");
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn calibration_finds_the_requested_rate() {
    let host = Host::new();
    let storage = StorageLimit { read_iops: Some(1000), ..small(Backing::Tmpfs) };
    let enforcement = host.begin(&storage_alone(storage.clone()));
    let points = limits::calibrate(enforcement.storage_dir().unwrap(), &storage).unwrap();
    points.iter().for_each(|point| println!("{point}, p99 {:.0} µs", point.p99_us));
    assert_eq!(points.iter().map(|point| point.depth).collect::<Vec<_>>(), [1, 8]);
    for point in &points {
        assert!(point.reads > 0 && point.read_iops <= 1000.0 * (1.0 + BURST), "{point}");
        assert!(point.p50_us > 0.0 && point.p50_us <= point.p99_us);
    }
    let names: Vec<_> = fs::read_dir(enforcement.storage_dir().unwrap()).unwrap().flatten().collect();
    assert!(names.iter().all(|entry| entry.file_name() == "lost+found"), "the file that was read is gone: {names:?}");
    let faster = StorageLimit { read_iops: Some(1_000_000_000), ..storage };
    assert!(limits::slower_than_requested(&faster, &points).unwrap().message.contains("1000000000 reads/s"));
}

#[test]
#[needs(MemoryGroup)]
fn page_cache_of_a_limited_process_counts_and_is_bounded() {
    let host = Host::new();
    const LIMIT: u64 = 64 << 20;
    let file = host.path("file");
    fs::write(&file, vec![1; 256 << 20]).unwrap();
    limits::evict(&file).unwrap();
    let enforcement = host.begin(&memory_alone(LIMIT));
    // Memory is read while the process lives; the group outlives it until `end`.
    let mut child = child("child_reads_a_file", &enforcement).env("RUMBA_TEST_FILE", &file).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    let reading = enforcement.memory().unwrap();
    println!("{reading:?}");
    let peak = reading.peak_bytes.value().unwrap();
    assert!(peak <= LIMIT as f64 && peak >= LIMIT as f64 * 0.9, "it read four times the limit: {peak}");
    assert!(reading.page_cache_bytes.value().unwrap() > 0.0);
    assert_eq!(enforcement.verdict("block_cache"), None, "the kernel reclaims pages of a file and kills no process");
    enforcement.end().unwrap();
    host.assert_nothing_left();
}

#[test]
#[needs(PageCache)]
fn cached_pages_are_evicted() {
    let host = Host::new();
    let dir = host.path("binaries");
    fs::create_dir_all(dir.join("plugins")).unwrap();
    for name in ["server", "plugins/engine"] {
        fs::write(dir.join(name), vec![1; 4 << 20]).unwrap();
    }
    assert!(resident_pages(&dir.join("server")) > 0);
    limits::evict(&dir).unwrap();
    assert_eq!(resident_pages(&dir.join("server")) + resident_pages(&dir.join("plugins/engine")), 0);
}

#[test]
#[needs(MemoryGroup)]
fn lifted_limit_kills_no_process_and_keeps_measured_memory() {
    let host = Host::new();
    let mut enforcement = host.begin(&memory_alone(64 << 20));
    assert!(enforcement.memory_pressure().is_some());
    assert_eq!(enforcement.lift_memory(), None);
    assert!(child("child_touches_memory", &enforcement).status().unwrap().success());
    let peak = enforcement.memory().unwrap().peak_bytes.value().unwrap();
    assert!(peak <= (64 << 20) as f64, "{peak} bytes: what came after the measurement");
    assert_eq!((enforcement.memory_pressure(), enforcement.verdict("block_cache")), (None, None));
    enforcement.end().unwrap();
    host.assert_nothing_left();
}

#[test]
#[needs(MemoryGroup, LoopDevice, StorageRates)]
fn two_runs_at_once_have_their_own_and_leave_the_others_alone() {
    let host = Host::new();
    let storage = StorageLimit { read_iops: Some(500), ..small(Backing::Tmpfs) };
    let limits = Limits { memory_bytes: Some(64 << 20), storage: Some(storage), ..Limits::default() };
    let first = host.begin(&limits);
    let second = host.begin(&limits);
    assert_ne!(first.device(), second.device());
    let (kept, number) = (second.storage_dir().unwrap().to_owned(), second.device().unwrap().number.clone());
    fs::write(kept.join("rows"), "rows").unwrap();
    assert!(leftovers::find(&host.ledger).unwrap().is_empty(), "what a living process has made is never a leftover");
    first.end().unwrap();
    assert_eq!(fs::read_to_string(kept.join("rows")).unwrap(), "rows");
    if let Some(throttles) = throttles() {
        assert!(throttles.contains(&format!("{number} 500")), "{throttles}");
    }
    assert!(second.memory().unwrap().peak_bytes.value().is_some(), "its group is still there");
    second.end().unwrap();
    host.assert_nothing_left();
}

#[test]
#[needs(LoopDevice)]
fn error_midway_removes_created_parts() {
    let host = Host::new();
    let enforcement = host.begin(&storage_alone(small(Backing::Tmpfs)));
    drop(enforcement);
    host.assert_nothing_left();
    // A directory that rumba did not make is refused and unchanged.
    fs::create_dir(host.volume(1)).unwrap();
    fs::write(host.volume(1).join("precious"), "x").unwrap();
    let begin = |storage, volume: u32| {
        Enforcement::prepare(&storage_alone(storage), &host.volume(volume), &owner(), &host.ledger, None)
    };
    let refused = begin(small(Backing::Tmpfs), 1);
    assert!(matches!(refused, Err(LimitError::Provision(ProvisionError::Foreign { .. }))), "{refused:?}");
    assert_eq!(fs::read_to_string(host.volume(1).join("precious")).unwrap(), "x");
    // A volume that would not fit is refused before anything is made.
    let huge = StorageLimit { size_bytes: 1 << 50, ..small(Backing::File) };
    let refused = begin(huge, 2);
    assert!(matches!(refused, Err(LimitError::NoRoom { .. })), "{refused:?}");
    assert!(!host.volume(2).exists());
    // It is not skipped either, because the host could enforce it.
    let refused = limits::enforceable(
        &storage_alone(StorageLimit { size_bytes: 1 << 50, ..small(Backing::File) }),
        &host.volume(2),
    );
    assert!(matches!(refused, Err(LimitError::NoRoom { .. })), "{refused:?}");
    host.assert_nothing_left();
}

#[test]
#[needs(MemoryGroup, LoopDevice, StorageRates)]
fn leftovers_of_a_killed_run_are_all_found_and_removed() {
    let host = Host::new();
    for backing in [Backing::Tmpfs, Backing::File] {
        let before = throttles();
        let mut run = holder(&host, backing, &[]);
        let server = number_said(run.stdout.take().unwrap());
        assert!(leftovers::find(&host.ledger).unwrap().is_empty(), "it lives");
        run.kill().unwrap();
        run.wait().unwrap();
        assert!(!has_ended(server), "the server that works on the volume outlives the kill");
        assert!(fs::read_to_string("/proc/self/mounts").unwrap().contains(&host.shown()), "so does the mount");
        let leftovers = leftovers::find(&host.ledger).unwrap();
        let shown: Vec<String> = leftovers.iter().map(ToString::to_string).collect();
        println!("{shown:#?}");
        assert!(shown.len() == 2 && shown[0].starts_with("control group"), "processes go before what they hold");
        for leftover in &leftovers {
            host.ledger.clean(leftover).unwrap();
        }
        assert!(has_ended(server));
        host.assert_nothing_left();
        assert_eq!(throttles(), before);
    }
}

/// Start times are shifted in another time namespace, and a living run seemed to have ended. Outside a container it is
/// unknown whether its processes have.
#[test]
#[needs(MemoryGroup, LoopDevice, StorageRates)]
fn other_namespaces_resources_stay_until_the_user_removes_them() {
    let time = ["unshare", "--time", "--boottime", "86400", "--fork", "--kill-child"];
    let container = ["unshare", "--pid", "--mount", "--mount-proc", "--fork"];
    for (through, backing) in [(&time[..], Backing::File), (&container, Backing::Tmpfs), (&container, Backing::File)] {
        let host = Host::new();
        let mut run = holder(&host, backing, through);
        let server = number_said(run.stdout.take().unwrap());
        let living = leftovers::find(&host.ledger).unwrap();
        println!("{living:#?}");
        assert!(living.len() == 2 && living.iter().all(Leftover::may_be_in_use));
        assert!(living[0].to_string().starts_with("control group"), "processes go before what they hold");
        let init = fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.id())).unwrap();
        let init: i32 = init.split_whitespace().next().unwrap().parse().unwrap();
        // SAFETY: it sends a signal to a process that this test has started.
        assert_eq!(unsafe { libc::kill(init, libc::SIGKILL) }, 0);
        run.wait().unwrap();
        let found = leftovers::find(&host.ledger).unwrap();
        let attached = host.attached_by_child();
        // In one namespace of pids it is certain that the process is gone.
        let is_certain = through == time;
        assert!(found.len() == 2 && found.iter().all(|found| found.may_be_in_use() != is_certain), "{found:?}");
        assert!(!is_certain || !has_ended(server), "the server that works on the volume outlives the kill");
        found.iter().for_each(|leftover| host.ledger.clean(leftover).unwrap());
        assert!(!is_certain || has_ended(server));
        host.assert_nothing_left();
        assert!(!attached.exists(), "{}: a tmpfs of the container is seen by no path here", attached.display());
    }
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn kill_at_any_step_is_cleaned_up_by_the_next_run() {
    let host = Host::new();
    for milliseconds in [5, 10, 20, 40, 60, 80, 120] {
        let mut run = holder(&host, Backing::Tmpfs, &[]);
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        run.kill().unwrap();
        let mut said = String::new();
        run.stdout.take().unwrap().read_to_string(&mut said).unwrap_or_default();
        run.wait().unwrap();
        let leftovers = leftovers::find(&host.ledger).unwrap();
        println!("killed after {milliseconds} ms: {} things left", leftovers.len());
        leftovers.iter().for_each(|leftover| host.ledger.clean(leftover).unwrap());
        host.assert_nothing_left();
    }
}

#[test]
#[ignore = "run by other tests, as a process of theirs"]
fn child_reads_a_file() {
    let mut file = File::open(std::env::var("RUMBA_TEST_FILE").unwrap()).unwrap();
    let mut bytes = vec![0; 1 << 20];
    while file.read(&mut bytes).unwrap() > 0 {}
}

#[test]
#[ignore = "run by other tests, as a process of theirs"]
fn child_touches_memory() {
    let memory = vec![1u8; 256 << 20];
    println!("{}", memory[memory.len() - 1]);
}

#[test]
#[needs(MemoryGroup, LoopDevice, StorageRates)]
#[ignore = "run by other tests, as a process of theirs"]
fn child_holds_limits() {
    let host = Host::of_parent();
    let backing = if std::env::var("RUMBA_TEST_BACKING").unwrap() == "file" { Backing::File } else { Backing::Tmpfs };
    let limits = Limits { memory_bytes: Some(64 << 20), storage: Some(throttled(backing)), ..Limits::default() };
    let enforcement = host.begin(&limits);
    let dir = enforcement.storage_dir().unwrap();
    let mut server = Command::new("sleep");
    server.arg("600").current_dir(dir);
    // This process does not wait for it on purpose: it lives longer.
    #[allow(clippy::zombie_processes)]
    let server = enforcement.command(server).unwrap().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Dirty data at the time of the unmount.
    fs::write(dir.join("dirty"), vec![1; 4 << 20]).unwrap();
    say(server.id());
    std::thread::sleep(std::time::Duration::from_secs(600));
}
