//! Runs over files in a temporary folder.

use std::os::fd::AsRawFd;
use std::path::Path;

use crate::cli::settings::FileTest;
use crate::counters::Counter;
use tempfile::TempDir;

use crate::built_in_tests::built_in::{BuiltInTest, Purpose};
use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::fileio::OpenFiles;
use crate::built_in_tests::testing::{Given, allocations, events, files, run, test};

/// Four files of four blocks.
const SMALL: [(&str, &str); 2] = [("file-num", "4"), ("file-total-size", "256K")];

fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [&SMALL, more].concat()
}

fn prepared(folder: &TempDir, given: &[(&str, &str)]) -> (BuiltInTest, String) {
    let test = test("fileio", given).within(folder.path());
    let mut reported = String::new();
    test.prepare(3, &mut |text| reported += text).unwrap();
    (test, reported)
}

/// The counts of one thread within this many events: reads, writes, syncs, bytes read, bytes written.
fn counts(test: &BuiltInTest, limit: u64) -> [u64; 5] {
    let counters = run(&test.start().unwrap(), 1, limit).unwrap();
    let all = counters[0].read();
    [Counter::Read, Counter::Write, Counter::Other, Counter::BytesRead, Counter::BytesWritten]
        .map(|counter| all[counter as usize])
}

fn sizes(folder: &Path) -> Vec<u64> {
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
    all.sort_by_key(|entry| entry.file_name());
    all.into_iter().map(|entry| entry.metadata().unwrap().len()).collect()
}

fn refused(given: &[(&str, &str)]) -> String {
    let Given { options, settings } = Given::of("fileio", given);
    BuiltInTest::of("fileio", Purpose::Run, &options, &settings).unwrap_err().to_string()
}

/// From test_fileio.t.
#[test]
fn prepare_makes_files_and_cleanup_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (test, reported) = prepared(&folder, &with(&[("file-test-mode", "rndrd")]));
    let begins = "4 files, 64Kb each, 0Mb total\nCreating files for the test...\nExtra file open flags: (none)\nCreating \
                  file test_file.0\nCreating file test_file.1\nCreating file test_file.2\nCreating file \
                  test_file.3\n262144 bytes written in ";
    assert!(reported.starts_with(begins), "{reported}");
    assert_eq!(sizes(folder.path()), [65_536; 4]);
    std::fs::File::options().write(true).open(folder.path().join("test_file.1")).unwrap().set_len(100).unwrap();
    let mut reported = String::new();
    test.prepare(3, &mut |text| reported += text).unwrap();
    assert!(
        reported.contains("Reusing existing file test_file.0\nExtending existing file test_file.1\nReusing"),
        "{reported}"
    );
    // Whole blocks behind the hundred bytes.
    assert_eq!(sizes(folder.path()), [65_536, 65_636, 65_536, 65_536]);
    let mut reported = String::new();
    test.cleanup(&mut |text| reported += text);
    assert_eq!(reported, "Removing test files...\n");
    assert_eq!(sizes(folder.path()), [0_u64; 0]);
}

#[test]
fn every_test_counts_what_it_does() {
    let folder = tempfile::tempdir().unwrap();
    prepared(&folder, &with(&[("file-test-mode", "rndrd")]));
    let block = 16_384;
    for io in ["sync", "mmap", "async"] {
        let of = |mode, events| {
            let given = with(&[("file-test-mode", mode), ("file-io-mode", io), ("file-async-backlog", "3")]);
            counts(&test("fileio", &given).within(folder.path()), events)
        };
        assert_eq!(of("seqrd", 20), [20, 0, 0, 20 * block, 0], "{io}");
        assert_eq!(of("rndrd", 20), [20, 0, 0, 20 * block, 0], "{io}");
        // At the end all four files are synced.
        assert_eq!(of("seqrewr", 20), [0, 20, 4, 0, 20 * block], "{io}");
        assert_eq!(of("rndwr", 20), [0, 20, 4, 0, 20 * block], "{io}");
        assert_eq!(of("rndrw", 20), [12, 8, 4, 12 * block, 8 * block], "{io}");
        // After a hundred requests the files are synced, too.
        assert_eq!(of("rndwr", 105), [0, 101, 8, 0, 101 * block], "{io}");
    }
    assert_eq!(sizes(folder.path()), [65_536; 4]);
}

#[test]
fn syncs_happen_on_request() {
    let folder = tempfile::tempdir().unwrap();
    prepared(&folder, &with(&[("file-test-mode", "rndrd")]));
    let syncs = |more: &[(&'static str, &'static str)]| {
        let given = with(&[&[("file-test-mode", "seqrewr")], more].concat());
        let [_, writes, syncs, ..] = counts(&test("fileio", &given).within(folder.path()), 30);
        (writes, syncs)
    };
    assert_eq!(syncs(&[("file-fsync-freq", "0"), ("file-fsync-end", "off")]), (30, 0));
    assert_eq!(syncs(&[("file-fsync-freq", "0")]), (30, 4));
    assert_eq!(syncs(&[("file-fsync-all", "on")]), (30, 30));
    // Ten writes, four syncs, ten writes, four syncs, two writes.
    assert_eq!(syncs(&[("file-fsync-freq", "10"), ("file-fsync-end", "off")]), (22, 8));
    assert_eq!(syncs(&[("file-fsync-freq", "10"), ("file-fsync-mode", "fdatasync")]), (22, 12));
}

#[test]
fn each_thread_syncs_at_its_end_and_all_share_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let given = with(&[("file-test-mode", "rndwr"), ("threads", "3"), ("events", "50"), ("file-fsync-freq", "0")]);
    let (test, _) = prepared(&folder, &given);
    let counters = run(&test.start().unwrap(), 3, u64::MAX).unwrap();
    assert_eq!(events(&counters).iter().sum::<u64>(), 50);
    assert!(counters.iter().all(|client| client.read()[Counter::Other as usize] == 4));
}

#[test]
fn sequential_write_recreates_files() {
    for (io, sizes_after) in [("sync", [65_536, 16_384, 0, 0]), ("mmap", [65_536; 4])] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("test_file.2"), "old").unwrap();
        let given = with(&[("file-test-mode", "seqwr"), ("file-io-mode", io)]);
        let test = test("fileio", &given).within(folder.path());
        assert_eq!(counts(&test, 5), [0, 5, 4, 0, 5 * 16_384]);
        assert_eq!(sizes(folder.path()), sizes_after, "{io}");
    }
}

#[test]
fn flags_are_those_of_the_files() {
    // The temporary directory may be in memory, where direct I/O is not possible.
    let folder = tempfile::tempdir_in(".").unwrap();
    for (flags, all) in [
        ("sync", libc::O_SYNC),
        ("dsync", libc::O_DSYNC),
        ("direct", libc::O_DIRECT),
        ("dsync,sync,direct", libc::O_DSYNC | libc::O_SYNC | libc::O_DIRECT),
    ] {
        let given = with(&[("file-test-mode", "rndrw"), ("file-extra-flags", flags)]);
        let (test, _) = prepared(&folder, &given);
        let open = OpenFiles::open(folder.path(), &files(&given), FileTest::RandomRead, None).unwrap();
        // SAFETY: the file is open.
        let of_file = unsafe { libc::fcntl(open.files[0].as_raw_fd(), libc::F_GETFL) };
        assert_eq!(of_file & (libc::O_SYNC | libc::O_DSYNC | libc::O_DIRECT), all, "{flags}");
        assert_eq!(counts(&test, 20), [12, 8, 4, 12 * 16_384, 8 * 16_384], "{flags}");
        test.cleanup(&mut |_| {});
    }
}

#[test]
fn contents_that_were_written_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let given =
        |mode, io| with(&[("file-test-mode", mode), ("file-io-mode", io), ("validate", "on"), ("threads", "3")]);
    prepared(&folder, &given("rndrd", "sync"));
    for io in ["sync", "mmap"] {
        for mode in ["seqrd", "rndwr", "rndrd", "rndrw", "seqrewr", "seqrd"] {
            let test = test("fileio", &given(mode, io)).within(folder.path());
            let counters = run(&test.start().unwrap(), 3, 40).unwrap();
            assert_eq!(events(&counters), [40; 3], "{mode} {io}");
        }
    }
    let merged = with(&[("file-test-mode", "seqrd"), ("validate", "on"), ("file-merged-requests", "3")]);
    assert_eq!(counts(&test("fileio", &merged).within(folder.path()), 8)[3], 262_144);
}

#[test]
fn contents_that_were_damaged_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (test, _) = prepared(&folder, &with(&[("file-test-mode", "seqrd"), ("validate", "on")]));
    let path = folder.path().join("test_file.1");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20_000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = run(&test.start().unwrap(), 1, 100).unwrap_err();
    let words = Failure::of_client(&error).unwrap().to_string();
    assert!(
        words.starts_with("FATAL: Checksum mismatch in block with offset: 16384\nFATAL:     Calculated"),
        "{words}"
    );
    assert!(words.ends_with("\nFATAL: Validation failed on file 1, block offset 16384, exiting..."), "{words}");
}

#[test]
fn options_that_prevent_validation_are_refused() {
    let refused = |more: &[(&'static str, &'static str)]| {
        refused(&with(&[&[("file-test-mode", "rndrw"), ("validate", "on")], more].concat()))
    };
    for (given, words) in [
        (("file-block-size", "12"), "needs a --file-block-size of 13 or more: a checksum is part of each block"),
        (
            ("file-num", "3"),
            "needs files of whole blocks, and 87381 bytes are not a multiple of 16384: change --file-total-size or --file-num",
        ),
        (("file-io-mode", "async"), "cannot be used with --file-io-mode=async: requests of a thread share one buffer"),
        (("threads", "17"), "needs a block for each thread: there are 16 for 17 threads"),
    ] {
        assert_eq!(refused(&[given]), format!("FATAL: --validate {words}"));
    }
}

#[test]
fn empty_files_are_refused() {
    let words = refused(&[("file-test-mode", "rndrd"), ("file-total-size", "100")]);
    assert_eq!(words, "FATAL: Invalid value for file-total-size: 100: 128 files would be empty");
}

/// From test_fileio.t: GH-196.
#[test]
fn missing_or_short_files_are_reported_in_sysbench_wording() {
    let folder = tempfile::tempdir().unwrap();
    let given = [("file-num", "4"), ("file-total-size", "32M"), ("file-test-mode", "rndrw")];
    let start = || test("fileio", &given).within(folder.path()).start().err().unwrap();
    assert_eq!(
        start().to_string(),
        "FATAL: Cannot open file 'test_file.0' errno = 2 (No such file or directory)\nWARNING: Did you forget to run the \
         prepare step?"
    );
    std::fs::File::create(folder.path().join("test_file.0")).unwrap().set_len(262_144).unwrap();
    assert_eq!(
        start().to_string(),
        "FATAL: Size of file 'test_file.0' is 256KiB, but at least 8MiB is expected.\nWARNING: Did you run 'prepare' with \
         different --file-total-size or --file-num values?"
    );
}

#[test]
fn a_file_that_ends_too_soon_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    for (io, begins, ends) in [
        ("sync", "FATAL: Failed to read file! file: ", " pos: 0: 100 of 16384 bytes"),
        ("async", "FATAL: Asynchronous read failed! 100 of 16384 bytes", ""),
    ] {
        let (test, _) = prepared(&folder, &with(&[("file-test-mode", "seqrd"), ("file-io-mode", io)]));
        let started = test.start().unwrap();
        std::fs::File::options().write(true).open(folder.path().join("test_file.0")).unwrap().set_len(100).unwrap();
        let error = run(&started, 1, 3).unwrap_err();
        let words = Failure::of_client(&error).unwrap().to_string();
        assert!(words.starts_with(begins) && words.ends_with(ends), "{words}");
        test.cleanup(&mut |_| {});
    }
}

#[test]
fn requests_allocate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    prepared(&folder, &with(&[("file-test-mode", "rndrd")]));
    for io in ["sync", "mmap", "async"] {
        let given = with(&[("file-test-mode", "rndrw"), ("file-io-mode", io)]);
        let started = test("fileio", &given).within(folder.path()).start().unwrap();
        assert_eq!(allocations(&started, 10), allocations(&started, 500), "{io}");
    }
}
