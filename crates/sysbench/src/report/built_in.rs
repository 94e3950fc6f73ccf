//! What the built-in tests print besides.

use super::cumulative::general;
use super::number::{ms, rank, size};
use super::{Closing, Layout, Snapshot};

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

/// What `memory` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryMode {
    /// Of one event.
    pub block_bytes: u64,
    /// Of all; 0 without a limit.
    pub total_bytes: u64,
    /// `read`, `write` or `none`.
    pub operation: &'static str,
    /// `global` or `local`.
    pub scope: &'static str,
}

/// Before `memory` runs.
pub fn memory_mode(mode: &MemoryMode) -> String {
    format!(
        "Running memory speed test with the following options:
  block size: {}KiB
  total size: {}MiB
  operation: {}
  scope: {}

",
        mode.block_bytes / 1024,
        mode.total_bytes / 1024 / 1024,
        mode.operation,
        mode.scope
    )
}

/// The intermediate line of `memory`.
pub fn memory_intermediate(snapshot: &Snapshot, mode: &MemoryMode) -> String {
    format!(
        "[ {:.0}s ] {:.2} MiB/sec\n",
        snapshot.elapsed_s,
        snapshot.events_per_s() * mode.block_bytes as f64 / MEBIBYTE
    )
}

/// The closing report of `memory`.
pub fn memory_cumulative(snapshot: &Snapshot, mode: &MemoryMode, closing: Closing) -> String {
    let events = snapshot.counts.events;
    let moved_mib = |events: f64| events * mode.block_bytes as f64 / MEBIBYTE;
    let transferred = if mode.operation == "none" {
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

/// What `fileio` does.
#[derive(Clone, Debug, PartialEq)]
pub struct FileMode {
    /// Of `--file-extra-flags`.
    pub flags: FileFlags,
    /// How many.
    pub files: u32,
    /// Of each.
    pub file_bytes: u64,
    /// Of each event.
    pub block_bytes: u64,
    /// Of requests that are made one; none if they are not.
    pub merged_bytes: Option<u64>,
    /// A random test tells its limit of events, 0 without one, and its reads for each write.
    pub random: Option<RandomAccess>,
    /// Requests from sync to sync; none without.
    pub fsync_frequency: Option<u32>,
    /// Sync at the end.
    pub fsync_end: bool,
    /// Sync after every write.
    pub fsync_all: bool,
    /// How files are read and written.
    pub io: FileIo,
    /// `--validate`.
    pub validate: bool,
    /// What is done.
    pub test: FileTest,
}

/// Flags with which files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFlags {
    /// `O_SYNC`.
    pub sync: bool,
    /// `O_DSYNC`.
    pub dsync: bool,
    /// `O_DIRECT`.
    pub direct: bool,
}

/// What a random test tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomAccess {
    /// Limit; 0 without one.
    pub events: u64,
    /// Reads for each write.
    pub read_write_ratio: f64,
}

/// How files are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIo {
    /// `sync`.
    Sync,
    /// `async`.
    Async,
    /// `mmap`.
    Mmap,
}

/// What `fileio` does to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTest {
    /// `seqwr`.
    SequentialWrite,
    /// `seqrewr`.
    SequentialRewrite,
    /// `seqrd`.
    SequentialRead,
    /// `rndrd`.
    RandomRead,
    /// `rndwr`.
    RandomWrite,
    /// `rndrw`.
    RandomReadWrite,
}

impl FileFlags {
    /// The line that `prepare` prints too.
    pub fn line(self) -> String {
        let named = [(self.sync, "sync "), (self.dsync, "dsync "), (self.direct, "directio")];
        let names: String = named.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect();
        format!("Extra file open flags: {}\n", if names.is_empty() { "(none)" } else { &names })
    }
}

/// Before `fileio` runs.
pub fn file_mode(mode: &FileMode) -> String {
    let mut text = mode.flags.line();
    text += &format!("{} files, {}B each\n", mode.files, size(mode.file_bytes));
    text += &format!("{}B total file size\n", size(mode.file_bytes * u64::from(mode.files)));
    text += &format!("Block size {}B\n", size(mode.block_bytes));
    if let Some(bytes) = mode.merged_bytes {
        text += &format!("Merging requests up to {}B for sequential IO.\n", size(bytes));
    }
    if let Some(RandomAccess { events, read_write_ratio }) = mode.random {
        text += &format!("Number of IO requests: {events}\n");
        text += &format!("Read/Write ratio for combined random IO test: {read_write_ratio:.2}\n");
    }
    if let Some(requests) = mode.fsync_frequency {
        text += &format!("Periodic FSYNC enabled, calling fsync() each {requests} requests.\n");
    }
    if mode.fsync_end {
        text += "Calling fsync() at the end of test, Enabled.\n";
    }
    if mode.fsync_all {
        text += "Calling fsync() after each write operation.\n";
    }
    text += &format!("Using {} I/O mode\n", mode.io.words());
    if mode.validate {
        text += "Using checksums validation.\n";
    }
    text + &format!("Doing {} test\n", mode.test.words())
}

impl FileIo {
    fn words(self) -> &'static str {
        match self {
            FileIo::Sync => "synchronous",
            FileIo::Async => "asynchronous",
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

/// The closing report of `fileio`: in 1.1 without how even threads were.
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

/// As that of other tests, in narrower columns.
fn file_latency(snapshot: &Snapshot) -> String {
    let of = &snapshot.latency;
    let row = |name: &str, ns: u64| format!("         {name}:                            {:10.2}\n", ms(ns));
    let percentile = |percent: f64, latency_ms: f64| {
        let label = format!("        {:>3}th percentile:", rank(percent));
        format!("{label}{latency_ms:width$.2}\n", width = 51_usize.saturating_sub(label.len()))
    };
    let percentiles = match snapshot.percentiles.as_slice() {
        [] => "         percentile stats:               disabled\n".to_owned(),
        all => all.iter().map(|of| percentile(of.percent, of.latency_ms)).collect(),
    };
    let (min, avg, max) = (row("min", of.min_ns), row("avg", of.avg_ns), row("max", of.max_ns));
    format!("Latency (ms):\n{min}{avg}{max}{percentiles}{}\n", row("sum", of.sum_ns))
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
