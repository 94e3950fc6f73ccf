//! Options of the built-in tests.

use super::Kind::{Double, Flag, Int, List, Size, Text};
use super::{OptionInfo, option};

/// Options of `cpu`.
pub static CPU: &[OptionInfo] = &[option("cpu-max-prime", Int, Some("10000"), "look for primes below this")];

/// Options of `memory`.
pub static MEMORY: &[OptionInfo] = &[
    option("memory-block-size", Size, Some("1K"), "bytes of one event: a power of two"),
    option("memory-total-size", Size, Some("100G"), "bytes of all events together; 0 for no limit"),
    option("memory-scope", Text, Some("global"), "one block for all threads, or one each: {global, local}"),
    option("memory-hugetlb", Flag, Some("off"), "take the blocks from the pool of huge pages"),
    option("memory-oper", Text, Some("write"), "operation on each block: {read, write, none}"),
    option("memory-access-mode", Text, Some("seq"), "in which order: {seq, rnd}"),
];

/// Options of `threads`.
pub static THREADS: &[OptionInfo] = &[
    option("thread-yields", Int, Some("1000"), "how often an event locks, yields and unlocks"),
    option("thread-locks", Int, Some("8"), "how many mutexes events take in turn"),
];

/// Options of `mutex`.
pub static MUTEX: &[OptionInfo] = &[
    option("mutex-num", Int, Some("4096"), "how many mutexes there are"),
    option("mutex-locks", Int, Some("50000"), "how many locks a thread takes"),
    option("mutex-loops", Int, Some("10000"), "how often a thread loops before each lock"),
];

/// Options of `fileio`.
pub static FILEIO: &[OptionInfo] = &[
    option("file-num", Int, Some("128"), "how many files"),
    // Declared as an Int, although sysbench reads it as a Size.
    option("file-block-size", Int, Some("16384"), "bytes that an event reads or writes"),
    option("file-total-size", Size, Some("2G"), "bytes of all files together"),
    option("file-test-mode", Text, None, "kind of operations: {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}"),
    option("file-io-mode", Text, Some("sync"), "how: {sync, async, mmap}"),
    option("file-async-backlog", Int, Some("128"), "how many requests a thread keeps going in mode async"),
    option("file-extra-flags", List, Some(""), "flags with which files are opened: {sync, dsync, direct}"),
    option("file-fsync-freq", Int, Some("100"), "how many requests come before each sync; 0 for no sync"),
    option("file-fsync-all", Flag, Some("off"), "sync after every write"),
    option("file-fsync-end", Flag, Some("on"), "sync at the end"),
    option("file-fsync-mode", Text, Some("fsync"), "what syncs: {fsync, fdatasync}"),
    option("file-merged-requests", Int, Some("0"), "how many requests are made one where they adjoin; 0 for none"),
    option("file-rw-ratio", Double, Some("1.5"), "reads for each write in mode rndrw"),
];
