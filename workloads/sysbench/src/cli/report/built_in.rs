//! The additional output of the built-in tests.

use std::time::Duration;

use super::cumulative::{general, latency_in};
use super::number::{ms, rank, size};
use super::{Closing, Layout, Snapshot};
use crate::cli::settings::{
    FileFlags, FileIo, FileSettings, FileTest, MemoryOperation, MemoryScope, MemorySettings, Settings,
};

const MEBIBYTE: f64 = 1024.0 * 1024.0;
const MEGABYTE: f64 = 1e6;

/// Before `cpu` runs.
pub fn cpu_mode(max_prime: u32) -> String {
    format!("Prime numbers limit: {max_prime}\n\n")
}

/// The closing report of `cpu`.
pub fn cpu_cumulative(snapshot: &Snapshot, closing: Closing) -> String {
    format!("CPU speed:\n    events per second: {:8.2}\n{}", snapshot.events_per_s(), general(snapshot, closing))
}

/// Before `memory` runs.
pub fn memory_mode(mode: &MemorySettings) -> String {
    format!(
        "Running memory speed test with the following options:
  block size: {}KiB
  total size: {}MiB
  operation: {}
  scope: {}

",
        mode.block_bytes / 1024,
        mode.total_bytes / 1024 / 1024,
        match mode.operation {
            MemoryOperation::Read => "read",
            MemoryOperation::Write => "write",
            MemoryOperation::None => "none",
        },
        match mode.scope {
            MemoryScope::Global => "global",
            MemoryScope::Local => "local",
        }
    )
}

/// The intermediate line of `memory`.
pub fn memory_intermediate(snapshot: &Snapshot, mode: &MemorySettings) -> String {
    format!(
        "[ {:.0}s ] {:.2} MiB/sec\n",
        snapshot.elapsed_s,
        snapshot.events_per_s() * mode.block_bytes as f64 / MEBIBYTE
    )
}

/// The closing report of `memory`.
pub fn memory_cumulative(snapshot: &Snapshot, mode: &MemorySettings, closing: Closing) -> String {
    let events = snapshot.counts.events;
    let moved_mib = |events: f64| events * mode.block_bytes as f64 / MEBIBYTE;
    let transferred = if mode.operation == MemoryOperation::None {
        String::new()
    } else {
        let per_s = moved_mib(snapshot.events_per_s());
        format!("{:.2} MiB transferred ({per_s:.2} MiB/sec)\n\n", moved_mib(events as f64))
    };
    format!(
        "Total operations: {events} ({:8.2} per second)\n\n{transferred}{}",
        snapshot.events_per_s(),
        general(snapshot, closing)
    )
}

impl FileFlags {
    /// The line that `prepare` prints too.
    pub fn line(self) -> String {
        let named = [(self.sync, "sync "), (self.dsync, "dsync "), (self.direct, "directio")];
        let names: String = named.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect();
        format!("Extra file open flags: {}\n", if names.is_empty() { "(none)" } else { &names })
    }
}

/// The text before `fileio` runs. A random test prints its limit of events, 0 without one.
pub fn file_mode(mode: &FileSettings, settings: &Settings) -> String {
    let mut text = mode.flags.line();
    text += &format!("{} files, {}B each\n", mode.files, size(mode.file_bytes));
    text += &format!("{}B total file size\n", size(mode.file_bytes * u64::from(mode.files)));
    text += &format!("Block size {}B\n", size(mode.block_bytes));
    if mode.merged_requests.is_some() {
        text += &format!("Merging requests up to {}B for sequential IO.\n", size(mode.request_bytes()));
    }
    if mode.test.is_some_and(FileTest::is_random) {
        text += &format!("Number of IO requests: {}\n", settings.events.unwrap_or(0));
        text += &format!("Read/Write ratio for combined random IO test: {:.2}\n", mode.read_write_ratio);
    }
    if let Some(requests) = mode.sync.frequency {
        text += &format!("Periodic FSYNC enabled, calling fsync() each {requests} requests.\n");
    }
    if mode.sync.at_end {
        text += "Calling fsync() at the end of test, Enabled.\n";
    }
    if mode.sync.after_writes {
        text += "Calling fsync() after each write operation.\n";
    }
    text += &format!("Using {} I/O mode\n", mode.io.words());
    if settings.validate {
        text += "Using checksums validation.\n";
    }
    text + &mode.test.map_or_else(String::new, |test| format!("Doing {} test\n", test.words()))
}

impl FileIo {
    fn words(self) -> &'static str {
        match self {
            FileIo::Sync => "synchronous",
            FileIo::Async { .. } => "asynchronous",
            FileIo::Mmap => "fast mmaped",
        }
    }
}

impl FileTest {
    fn words(self) -> &'static str {
        match self {
            FileTest::SequentialWrite => "sequential write (creation)",
            FileTest::SequentialRewrite => "sequential rewrite",
            FileTest::SequentialRead => "sequential read",
            FileTest::RandomRead => "random read",
            FileTest::RandomWrite => "random write",
            FileTest::RandomReadWrite => "random r/w",
        }
    }
}

/// Before `prepare` of `fileio` makes files.
pub fn file_prepare(mode: &FileSettings) -> String {
    let all_bytes = mode.file_bytes * u64::from(mode.files);
    format!(
        "{} files, {}Kb each, {}Mb total\nCreating files for the test...\n{}",
        mode.files,
        mode.file_bytes / 1024,
        all_bytes / (1024 * 1024),
        mode.flags.line()
    )
}

/// The state of a file that `prepare` finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFound {
    /// None, or an empty one.
    Nothing,
    /// One that is too short.
    Part,
    /// One that is long enough.
    Whole,
}

/// Before `prepare` writes a file.
pub fn file_found(name: &str, found: FileFound) -> String {
    match found {
        FileFound::Nothing => format!("Creating file {name}\n"),
        FileFound::Part => format!("Extending existing file {name}\n"),
        FileFound::Whole => format!("Reusing existing file {name}\n"),
    }
}

/// The reason why `fileio` does not run on a file, without a prefix and without a line end.
pub fn file_too_short(name: &str, bytes: u64, least_bytes: u64) -> String {
    format!("Size of file '{name}' is {}B, but at least {}B is expected.", size(bytes), size(least_bytes))
}

/// When `prepare` has written all files.
pub fn files_written(bytes: u64, took: Duration) -> String {
    if bytes == 0 {
        return "No bytes written.\n".to_owned();
    }
    let seconds = took.as_secs_f64();
    let mib_per_s = if seconds > 0.0 { bytes as f64 / MEBIBYTE / seconds } else { 0.0 };
    format!("{bytes} bytes written in {seconds:.2} seconds ({mib_per_s:.2} MiB/sec).\n")
}

/// Before `cleanup` removes files.
pub const REMOVING_FILES: &str = "Removing test files...\n";

/// The intermediate line of `fileio`.
pub fn file_intermediate(snapshot: &Snapshot) -> String {
    let counts = &snapshot.counts;
    let latencies = snapshot.percentiles.iter().map(|of| (of.percent, of.latency_ms));
    let show = |(percent, latency_ms)| format!("latency (ms,{}%): {latency_ms:.3}", rank(percent));
    let latencies: Vec<String> = match snapshot.percentiles.is_empty() {
        true => vec![show((0.0, 0.0))],
        false => latencies.map(show).collect(),
    };
    format!(
        "[ {:.0}s ] reads: {:.2} MiB/s writes: {:.2} MiB/s fsyncs: {:.2}/s {}\n",
        snapshot.elapsed_s,
        snapshot.per_s(counts.bytes_read) / MEBIBYTE,
        snapshot.per_s(counts.bytes_written) / MEBIBYTE,
        snapshot.per_s(counts.others),
        latencies.join(" ")
    )
}

/// The closing report of `fileio`; in 1.1 without the fairness of threads.
pub fn file_cumulative(snapshot: &Snapshot, closing: Closing) -> String {
    match closing.layout {
        Layout::V1_1 => file_throughput(snapshot) + &file_latency(snapshot),
        Layout::V1_0 => file_operations(snapshot) + &general(snapshot, closing),
    }
}

fn file_throughput(snapshot: &Snapshot) -> String {
    let counts = &snapshot.counts;
    let row = |name: &str, count: u64, bytes: u64| {
        let bytes_per_s = snapshot.per_s(bytes);
        format!(
            "         {name:<6} IOPS={:.2} {:.2} MiB/s ({:.2} MB/s)\n",
            snapshot.per_s(count),
            bytes_per_s / MEBIBYTE,
            bytes_per_s / MEGABYTE
        )
    };
    format!(
        "\nThroughput:\n{}{}         fsync: IOPS={:.2}\n\n",
        row("read:", counts.reads, counts.bytes_read),
        row("write:", counts.writes, counts.bytes_written),
        snapshot.per_s(counts.others)
    )
}

/// Like that of other tests, in narrower columns.
fn file_latency(snapshot: &Snapshot) -> String {
    latency_in(snapshot, 50, |name, ns| format!("         {name}:                            {:10.2}\n", ms(ns)))
}

fn file_operations(snapshot: &Snapshot) -> String {
    let counts = &snapshot.counts;
    format!(
        "
File operations:
    reads/s:                      {:.2}
    writes/s:                     {:.2}
    fsyncs/s:                     {:.2}

Throughput:
    read, MiB/s:                  {:.2}
    written, MiB/s:               {:.2}
",
        snapshot.per_s(counts.reads),
        snapshot.per_s(counts.writes),
        snapshot.per_s(counts.others),
        snapshot.per_s(counts.bytes_read) / MEBIBYTE,
        snapshot.per_s(counts.bytes_written) / MEBIBYTE,
    )
}
