//! Options of the built-in tests.

use super::Kind::{Double, Flag, Int, List, Size, Text};
use super::{Group, Kind, OptionInfo, option};

/// Options of `cpu`.
pub static CPU: &[OptionInfo] = &[of("cpu", "cpu-max-prime", Int, Some("10000"), "look for primes below this")];

/// Options of `memory`.
pub static MEMORY: &[OptionInfo] = &[
    of("memory", "memory-block-size", Size, Some("1K"), "bytes of one event: a power of two"),
    of("memory", "memory-total-size", Size, Some("100G"), "bytes of all events together; 0 for no limit"),
    of("memory", "memory-scope", Text, Some("global"), "one block for all threads, or one each: {global, local}"),
    of("memory", "memory-hugetlb", Flag, Some("off"), "take the blocks from the pool of huge pages"),
    of("memory", "memory-oper", Text, Some("write"), "operation on each block: {read, write, none}"),
    of("memory", "memory-access-mode", Text, Some("seq"), "in which order: {seq, rnd}"),
];

/// Options of `threads`.
pub static THREADS: &[OptionInfo] = &[
    of("threads", "thread-yields", Int, Some("1000"), "how often an event locks, yields and unlocks"),
    of("threads", "thread-locks", Int, Some("8"), "how many mutexes events take in turn"),
];

/// Options of `mutex`.
pub static MUTEX: &[OptionInfo] = &[
    of("mutex", "mutex-num", Int, Some("4096"), "how many mutexes there are"),
    of("mutex", "mutex-locks", Int, Some("50000"), "how many locks a thread takes"),
    of("mutex", "mutex-loops", Int, Some("10000"), "how often a thread loops before each lock"),
];

/// Options of `fileio`.
pub static FILEIO: &[OptionInfo] = &[
    of("fileio", "file-num", Int, Some("128"), "how many files"),
    // Declared as an Int, although sysbench reads it as a Size.
    of("fileio", "file-block-size", Int, Some("16384"), "bytes that an event reads or writes"),
    of("fileio", "file-total-size", Size, Some("2G"), "bytes of all files together"),
    of("fileio", "file-test-mode", Text, None, "kind of operations: {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}"),
    of("fileio", "file-io-mode", Text, Some("sync"), "how: {sync, async, mmap}"),
    of("fileio", "file-async-backlog", Int, Some("128"), "how many requests a thread keeps going in mode async"),
    of("fileio", "file-extra-flags", List, Some(""), "flags with which files are opened: {sync, dsync, direct}"),
    of("fileio", "file-fsync-freq", Int, Some("100"), "how many requests come before each sync; 0 for no sync"),
    of("fileio", "file-fsync-all", Flag, Some("off"), "sync after every write"),
    of("fileio", "file-fsync-end", Flag, Some("on"), "sync at the end"),
    of("fileio", "file-fsync-mode", Text, Some("fsync"), "what syncs: {fsync, fdatasync}"),
    of(
        "fileio",
        "file-merged-requests",
        Int,
        Some("0"),
        "how many requests are made one where they adjoin; 0 for none",
    ),
    of("fileio", "file-rw-ratio", Double, Some("1.5"), "reads for each write in mode rndrw"),
];

const fn of(
    test: &'static str,
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    help: &'static str,
) -> OptionInfo {
    option(Group::BuiltIn(test), name, kind, default, help)
}
