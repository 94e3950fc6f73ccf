//! Lines as sysbench prints them, with realistic figures.

use std::time::Duration;

use super::built_in::*;
use super::*;
use crate::cli::histogram::Bucket;
use crate::cli::options::OptionSet;
use crate::cli::settings::{
    FileFlags, FileIo, FileSettings, FileSync, FileTest, MemoryOperation, MemoryScope, MemorySettings, Settings,
};

const SQL: Closing = Closing { layout: Layout::V1_1, subject: Subject::Sql, debug: false };
const OTHER: Closing = Closing { subject: Subject::Other, ..SQL };

/// Two threads that ran ten events in four seconds: 40 reads, 20 writes, 20 others.
pub(super) fn run() -> Snapshot {
    let threads = vec![
        ThreadTimes { events: 6, min_ns: 500_000_000, max_ns: 1_000_000_000, sum_ns: 3_990_000_000 },
        ThreadTimes { events: 4, min_ns: 750_000_000, max_ns: 1_234_567_890, sum_ns: 3_970_000_000 },
    ];
    Snapshot {
        threads_running: 2,
        interval_s: 4.0,
        elapsed_s: 4.00021,
        counts: Counts {
            events: 10,
            reads: 40,
            writes: 20,
            others: 20,
            not_found: 5,
            ignored_errors: 3,
            reconnects: 1,
            bytes_read: 40 * 16_384,
            bytes_written: 20 * 16_384,
        },
        latency: Latency::of(&threads),
        percentiles: vec![
            Percentile { percent: 95.0, latency_ms: 1235.617 },
            Percentile { percent: 99.9, latency_ms: 1258.081 },
        ],
        queue: Some(Queue { length: 7, concurrency: 2 }),
        threads,
        errors_by_code: [("1213".to_owned(), 2), ("1205".to_owned(), 1)].into(),
        histogram: vec![Bucket { value: 1000.0, count: 9 }, Bucket { value: 1235.617, count: 1 }],
        ..Snapshot::default()
    }
}

/// The same with only the figures that sysbench reports: one percentile, no error codes, no rate.
fn plain() -> Snapshot {
    let percentiles = vec![Percentile { percent: 95.0, latency_ms: 1235.617 }];
    Snapshot { percentiles, queue: None, errors_by_code: [].into(), ..run() }
}

/// From drv_mysql.t, cmdline.t and test_cpu.t; the columns are from there and from 1.0.20's output.
#[test]
fn the_closing_report_is_sysbenchs_to_the_blank() {
    let expected = "SQL statistics:
    queries performed:
        read:                            40
        write:                           20
        other:                           20
        total:                           80
    transactions:                        10     (2.50 per sec.)
    queries:                             80     (20.00 per sec.)
    ignored errors:                      3      (0.75 per sec.)
    reconnects:                          1      (0.25 per sec.)

Throughput:
    events/s (eps):                      2.5000
    time elapsed:                        4.0002s
    total number of events:              10

Latency (ms):
         min:                                  500.00
         avg:                                  796.00
         max:                                 1234.57
         95th percentile:                     1235.62
         sum:                                 7960.00

Threads fairness:
    events (avg/stddev):           5.0000/1.00
    execution time (avg/stddev):   3.9800/0.01

";
    assert_eq!(cumulative(&plain(), SQL), expected);
    let (_, without_sql) = expected.split_once("per sec.)\n\nThroughput").unwrap();
    assert_eq!(cumulative(&plain(), OTHER), format!("\nThroughput{without_sql}"));
}

/// The output of 1.0.20, except for the figures.
#[test]
fn the_closing_report_in_the_words_of_1_0() {
    let expected = "
General statistics:
    total time:                          4.0002s
    total number of events:              10

Latency (ms):
         min:                                  500.00
";
    let closing = Closing { layout: Layout::V1_0, ..OTHER };
    let text = cumulative(&plain(), closing);
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.split_once("\nLatency").unwrap().1, cumulative(&plain(), OTHER).split_once("\nLatency").unwrap().1);
}

#[test]
fn metrics_unknown_to_sysbench_use_the_same_line_format() {
    insta::assert_snapshot!(cumulative(&run(), SQL) + &ignored_errors(&run()));
}

/// Microsoft's VirtualClient takes the numbers after `SQL statistics:` by their positions. Codes of ignored errors
/// were once between them.
#[test]
fn numbers_of_the_report_keep_their_places() {
    let with_codes = Snapshot { percentiles: plain().percentiles, ..run() };
    for layout in [Layout::V1_0, Layout::V1_1] {
        let closing = Closing { layout, ..SQL };
        assert_eq!(cumulative(&with_codes, closing), cumulative(&plain(), closing));
    }
    assert_eq!(ignored_errors(&plain()), "");
}

#[test]
fn percentiles_can_be_left_out() {
    let text = cumulative(&Snapshot { percentiles: vec![], ..plain() }, OTHER);
    assert!(text.contains("\n         percentile stats:               disabled\n         sum: "), "{text}");
}

#[test]
fn nothing_happened() {
    let text = cumulative(&Snapshot { threads: vec![ThreadTimes::default()], ..Snapshot::default() }, SQL);
    assert!(text.contains("    transactions:                        0      (0.00 per sec.)\n"), "{text}");
    assert!(text.contains("         min:                                    0.00\n"), "{text}");
    assert!(text.contains("    events (avg/stddev):           0.0000/0.00\n"), "{text}");
}

#[test]
fn run_ended_by_force_reports_its_state() {
    let text = cumulative(&Snapshot { unfinished_events: 2, ..plain() }, OTHER);
    let expected = "\nNumber of unfinished transactions on forced shutdown: 2\n\nThroughput:\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn each_thread_is_reported_with_debug() {
    let times = Latency { min_ns: 100_000, avg_ns: 200_000, max_ns: 300_000, sum_ns: 400_000 };
    let statements = Some(StatementTimes { executing: times, fetching: times });
    let text = cumulative(&Snapshot { statements, ..plain() }, Closing { debug: true, ..SQL });
    let threads = "DEBUG: Verbose per-thread statistics:

DEBUG:     thread #  0: min: 0.5000s  avg: 0.6650s  max: 1.0000s  events: 6
DEBUG:                  total time taken by event execution: 3.9900s
DEBUG:     thread #  1: min: 0.7500s  avg: 0.9925s  max: 1.2346s  events: 4
DEBUG:                  total time taken by event execution: 3.9700s

";
    assert!(text.ends_with(threads), "{text}");
    let of_statements = "DEBUG: Query execution statistics:
DEBUG:     min:                                0.0001s
DEBUG:     avg:                                0.0002s
DEBUG:     max:                                0.0003s
DEBUG:   total:                                0.0004s
DEBUG: Results fetching statistics:
";
    assert!(text.contains(of_statements), "{text}");
}

/// From opt_report_interval.t.
#[test]
fn intermediate_lines() {
    let of = |snapshot: &Snapshot, subject| intermediate(&Snapshot { elapsed_s: 2.0003, ..snapshot.clone() }, subject);
    assert_eq!(
        of(&plain(), Subject::Sql),
        "[ 2s ] thds: 2 tps: 2.50 qps: 20.00 (r/w/o: 10.00/5.00/5.00) lat (ms,95%): 1235.62 err/s: 0.75 \
         reconn/s: 0.25\n"
    );
    assert_eq!(of(&plain(), Subject::Other), "[ 2s ] thds: 2 eps: 2.50 lat (ms,95%): 1235.62\n");
    assert_eq!(
        of(&Snapshot { percentiles: vec![], ..plain() }, Subject::Other),
        "[ 2s ] thds: 2 eps: 2.50 lat (ms,0%): 0.00\n"
    );
    assert_eq!(
        of(&run(), Subject::Other),
        "[ 2s ] thds: 2 eps: 2.50 lat (ms,95%): 1235.62 lat (ms,99.9%): 1258.08\n\
         [ 2s ] queue length: 7 concurrency: 2\n"
    );
    assert!(of(&run(), Subject::Sql).ends_with("\n[ 2s ] queue length: 7, concurrency: 2\n"));
}

fn settings(words: &[(&str, &str)]) -> Settings {
    let mut options = OptionSet::general();
    for (name, value) in words {
        options.set(name, Some(*value), crate::cli::options::Source::CommandLine).unwrap();
    }
    Settings::read(&mut options).unwrap().0
}

/// From cmdline.t and opt_warmup_time.t.
#[test]
fn before_a_run() {
    let expected = "Running the test with following options:
Number of threads: 1
Initializing random number generator from current time


";
    assert_eq!(running_with(&settings(&[])), expected);
    let all = [
        ("threads", "2"),
        ("warmup-time", "1"),
        ("rate", "40"),
        ("report-interval", "5"),
        ("report-checkpoints", "20,10"),
        ("debug", "on"),
        ("validate", "on"),
        ("rand-seed", "7"),
        ("forced-shutdown", "5"),
    ];
    let expected = "Running the test with following options:
Number of threads: 2
Warmup time: 1s
Target transaction rate: 40/sec
Report intermediate results every 5 second(s)
Report checkpoint(s) at 10, 20 seconds
Debug mode enabled.

Validation checks: on.

Initializing random number generator from seed (7).

Forcing shutdown in 16 seconds

";
    assert_eq!(running_with(&settings(&all)), expected);
    assert_eq!(warming_up(Duration::from_secs(1)), "Warming up for 1 seconds...\n\n");
    // From opt_report_checkpoints.t.
    assert_eq!(checkpoint(1.0002), "[ 1s ] Checkpoint report:\n");
}

/// From opt_histogram.t.
#[test]
fn the_histogram_stands_between_its_title_and_a_blank() {
    let expected = "Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
    1000.000 |**************************************** 9
    1235.617 |****                                     1
";
    assert_eq!(histogram(&run()), format!("{expected} \n"));
}

/// From test_memory.t.
#[test]
fn memory() {
    let mode = MemorySettings {
        block_bytes: 4096,
        total_bytes: 1 << 30,
        scope: MemoryScope::Global,
        huge_pages: false,
        operation: MemoryOperation::Read,
        is_random: false,
    };
    let expected = "Running memory speed test with the following options:
  block size: 4KiB
  total size: 1024MiB
  operation: read
  scope: global

";
    assert_eq!(memory_mode(&mode), expected);
    let mut snapshot = plain();
    snapshot.counts.events = 262_144;
    let text = memory_cumulative(&snapshot, &mode, OTHER);
    let expected = "Total operations: 262144 (65536.00 per second)

1024.00 MiB transferred (256.00 MiB/sec)


Throughput:
";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(memory_intermediate(&snapshot, &mode), "[ 4s ] 256.00 MiB/sec\n");
    let text = memory_cumulative(&snapshot, &MemorySettings { operation: MemoryOperation::None, ..mode }, OTHER);
    assert!(text.starts_with("Total operations: 262144 (65536.00 per second)\n\n\nThroughput:\n"), "{text}");
}

const FILES: FileSettings = FileSettings {
    files: 4,
    file_bytes: 8 << 20,
    test: Some(FileTest::RandomReadWrite),
    io: FileIo::Sync,
    merged_requests: None,
    block_bytes: 16_384,
    flags: FileFlags { sync: false, dsync: false, direct: false },
    sync: FileSync { frequency: Some(100), after_writes: false, at_end: true, data_only: false },
    read_write_ratio: 1.5,
};

/// From test_fileio.t.
#[test]
fn files_before_a_run() {
    let expected = "Extra file open flags: (none)
4 files, 8MiB each
32MiB total file size
Block size 16KiB
Number of IO requests: 150
Read/Write ratio for combined random IO test: 1.50
Periodic FSYNC enabled, calling fsync() each 100 requests.
Calling fsync() at the end of test, Enabled.
Using synchronous I/O mode
Doing random r/w test
";
    assert_eq!(file_mode(&FILES, &settings(&[("events", "150")])), expected);
    let sequential = FileSettings {
        files: 10,
        file_bytes: 16_384,
        test: Some(FileTest::SequentialWrite),
        sync: FileSync { frequency: None, at_end: false, ..FILES.sync },
        ..FILES
    };
    let expected = "Extra file open flags: (none)
10 files, 16KiB each
160KiB total file size
Block size 16KiB
Using synchronous I/O mode
Doing sequential write (creation) test
";
    assert_eq!(file_mode(&sequential, &settings(&[])), expected);
    let flags = FileFlags { sync: true, dsync: true, direct: false };
    assert_eq!(flags.line(), "Extra file open flags: sync dsync \n");
}

/// From test_fileio.t.
#[test]
fn files_are_made() {
    assert_eq!(
        files_written(33_554_432, Duration::from_millis(500)),
        "33554432 bytes written in 0.50 seconds (64.00 MiB/sec).\n"
    );
    assert_eq!(files_written(0, Duration::ZERO), "No bytes written.\n");
}

/// From test_fileio.t.
#[test]
fn files_after_a_run() {
    let expected = "
Throughput:
         read:  IOPS=10.00 0.16 MiB/s (0.16 MB/s)
         write: IOPS=5.00 0.08 MiB/s (0.08 MB/s)
         fsync: IOPS=5.00

Latency (ms):
         min:                                500.00
         avg:                                796.00
         max:                               1234.57
         95th percentile:                   1235.62
         sum:                               7960.00

";
    assert_eq!(file_cumulative(&plain(), OTHER), expected);
    assert_eq!(
        file_intermediate(&plain()),
        "[ 4s ] reads: 0.16 MiB/s writes: 0.08 MiB/s fsyncs: 5.00/s latency (ms,95%): 1235.617\n"
    );
    let text = file_cumulative(&plain(), Closing { layout: Layout::V1_0, ..OTHER });
    let expected = "
File operations:
    reads/s:                      10.00
    writes/s:                     5.00
    fsyncs/s:                     5.00

Throughput:
    read, MiB/s:                  0.16
    written, MiB/s:               0.08

General statistics:
";
    assert!(text.starts_with(expected), "{text}");
}
