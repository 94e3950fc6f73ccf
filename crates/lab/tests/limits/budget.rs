//! One budget of reads and writes: never exceeded in any window, and used in the median window. Operations are counted
//! by the device, over the time of its counts.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::limits::{Backing, StorageLimit};
use rumba_lab::host::{block, diskstats};

use crate::support::*;

const IOPS: u32 = 1000;
/// The pages of the file that is read and written.
const PAGES: u64 = 2048;
/// How long a load runs before the measurement, and the number and length of its windows.
const BEFORE: Duration = Duration::from_millis(500);
const WINDOWS: usize = 5;
const MEASURED: Duration = Duration::from_secs(2);
/// The kernel's burst and the budget's credit, in seconds of the budget.
const SLICES_S: f64 = 0.2;

/// A load's client: it runs until it is stopped.
type Client = fn(&Path, u64, &AtomicBool);
/// The load of a device: a name, and kinds of clients with their numbers.
type Load = (&'static str, &'static [(Client, u64)]);

fn page(at: u64) -> u64 {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15) % PAGES
}

fn reads(path: &Path, client: u64, stop: &AtomicBool) {
    repeat(path, client, stop, |file, memory, at| file.read_exact_at(memory, at));
}

fn writes(path: &Path, client: u64, stop: &AtomicBool) {
    repeat(path, client, stop, |file, memory, at| file.write_all_at(memory, at));
}

/// A client that works on one page after another.
fn repeat(path: &Path, client: u64, stop: &AtomicBool, work: impl Fn(&File, &mut [u8], u64) -> io::Result<()>) {
    let (file, mut memory) = direct_file(path);
    let page_of = memory.as_ptr().align_offset(4096);
    let memory = &mut memory[page_of..page_of + 4096];
    let mut at = client << 32;
    while !stop.load(Relaxed) {
        at += 1;
        work(&file, memory, page(at) * 4096).unwrap();
    }
}

/// A checkpoint: half a second of pages into the page cache, then all of them to the device at once.
fn checkpoints(path: &Path, client: u64, stop: &AtomicBool) {
    let file = File::create(path.with_extension("buffered")).unwrap();
    let mut at = client;
    while !stop.load(Relaxed) {
        for _ in 0..IOPS / 4 {
            at += 1;
            file.write_all_at(&[7; 4096], page(at) * 8192).unwrap();
        }
        file.sync_all().unwrap();
        sleep(Duration::from_millis(300));
    }
}

/// Reads and writes submitted to the device so far, before merging: the throttle's count.
fn submitted(dir: &Path) -> u64 {
    let device = block::device_of(dir).unwrap();
    let rows = std::fs::read_to_string("/proc/diskstats").unwrap();
    diskstats::row(&rows, device.number).unwrap().1.submitted
}

/// Gives this thread real-time priority, like the thread that divides the budget. The demand for the budget then does
/// not depend on other load of the machine.
fn request_first() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: it sets the calling thread's own policy, from a value that outlives the call.
    assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) }, 0);
}

fn used(path: &Path, clients: &[(Client, u64)]) -> [f64; WINDOWS] {
    let (stop, dir) = (AtomicBool::new(false), path.parent().unwrap());
    std::thread::scope(|scope| {
        for (client, number) in clients.iter().flat_map(|(client, count)| (0..*count).map(move |n| (client, n))) {
            let stop = &stop;
            scope.spawn(move || {
                request_first();
                client(path, number, stop);
            });
        }
        sleep(BEFORE);
        let shares = [(); WINDOWS].map(|()| {
            let (start, before) = (Instant::now(), submitted(dir));
            sleep(MEASURED);
            let (seconds, after) = (start.elapsed().as_secs_f64(), submitted(dir));
            let allowed = f64::from(IOPS) * (seconds + SLICES_S);
            assert!((after - before) as f64 <= allowed, "{} operations, {allowed} allowed", after - before);
            (after - before) as f64 / (f64::from(IOPS) * seconds)
        });
        stop.store(true, Relaxed);
        shares
    })
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn budget_is_used_and_not_exceeded_by_any_caller() {
    let host = Host::new();
    let storage = StorageLimit { iops: Some(IOPS), ..small(Backing::Tmpfs) };
    let loads: [Load; 3] = [
        ("reads alone", &[(reads, 2)]),
        ("reads and writes", &[(reads, 8), (writes, 8)]),
        ("reads and checkpoints", &[(reads, 8), (checkpoints, 1)]),
    ];
    // Each load has its own device and budget, all at the same time: no load takes from another.
    let volumes: Vec<_> = loads.iter().map(|_| host.begin(&storage_alone(storage.clone()))).collect();
    let paths = volumes.iter().map(|volume| volume.storage_dir().unwrap().join("file"));
    let shares = std::thread::scope(|scope| {
        let of_load = |(&(name, clients), path): (&Load, PathBuf)| {
            scope.spawn(move || {
                // Write in few large requests, so that the budget is used by the load.
                let mut file = File::create(&path).unwrap();
                file.write_all(&vec![7; PAGES as usize * 4096]).unwrap();
                file.sync_all().unwrap();
                drop(file);
                (name, used(&path, clients))
            })
        };
        let running: Vec<_> = loads.iter().zip(paths).map(of_load).collect();
        running.into_iter().map(|load| load.join().unwrap()).collect::<Vec<_>>()
    });
    for (name, mut shares) in shares {
        println!("{name}: of {IOPS} operations/s were used {shares:.3?}");
        shares.sort_by(f64::total_cmp);
        let median = shares[WINDOWS / 2];
        assert!(median >= 0.95, "{name}: {:.1}% of the budget was used", median * 100.0);
    }
    volumes.into_iter().for_each(|volume| volume.end().unwrap());
    host.assert_nothing_left();
}
