//! The settings of the built-in tests, checked in sysbench's order and refused in its words.

use super::{above_zero, whole};
use crate::cli::help;
use crate::cli::options::{FILEIO, OptionSet};
use crate::cli::refusal::Refusal;

/// The settings of `cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSettings {
    /// Primes are looked for below this.
    pub max_prime: u32,
}

impl CpuSettings {
    /// Reads the options.
    ///
    /// # Errors
    /// The limit is not above 0.
    pub fn read(options: &OptionSet) -> Result<Self, Refusal> {
        let words = |number| format!("Invalid value of cpu-max-prime: {number}.");
        Ok(Self { max_prime: above_zero(options, "cpu-max-prime", words)? })
    }
}

/// The operation on a block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOperation {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is gone through.
    None,
}

/// The owner of a block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryScope {
    /// All threads'.
    Global,
    /// One thread's.
    Local,
}

/// The settings of `memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// The block of one event: a power of two, and at least a word.
    pub block_bytes: u64,
    /// The total of all events; 0 without a limit. Divided by blocks and threads it gives the events of a thread,
    /// because `--events` is no limit here.
    pub total_bytes: u64,
    /// The owner of the blocks.
    pub scope: MemoryScope,
    /// Whether to take them from the pool of huge pages.
    pub huge_pages: bool,
    /// The operation on them.
    pub operation: MemoryOperation,
    /// In a random order.
    pub is_random: bool,
}

impl MemorySettings {
    /// Reads the options.
    ///
    /// # Errors
    /// A block size that is not a power of two or less than eight bytes; an unknown word for an option.
    pub fn read(options: &OptionSet) -> Result<Self, Refusal> {
        let text = |name| options.text(name).unwrap_or_default();
        let refusal = |name| Refusal::fatal(format!("Invalid value for {name}: {}", text(name)));
        let block_bytes = options.size_bytes("memory-block-size");
        if block_bytes < size_of::<usize>() as u64 || !block_bytes.is_power_of_two() {
            return Err(refusal("memory-block-size"));
        }
        let scope = match text("memory-scope") {
            "global" => MemoryScope::Global,
            "local" => MemoryScope::Local,
            _ => return Err(refusal("memory-scope")),
        };
        let operation = match text("memory-oper") {
            "write" => MemoryOperation::Write,
            "read" => MemoryOperation::Read,
            "none" => MemoryOperation::None,
            _ => return Err(refusal("memory-oper")),
        };
        let is_random = match text("memory-access-mode") {
            "seq" => false,
            "rnd" => true,
            _ => return Err(refusal("memory-access-mode")),
        };
        let total_bytes = options.size_bytes("memory-total-size");
        let huge_pages = options.flag("memory-hugetlb");
        Ok(Self { block_bytes, total_bytes, scope, huge_pages, operation, is_random })
    }
}

/// The settings of `threads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadsSettings {
    /// How often an event locks, yields and unlocks.
    pub yields: u32,
    /// The number of mutexes, which events take in turn.
    pub locks: u32,
}

impl ThreadsSettings {
    /// Reads the options.
    ///
    /// # Errors
    /// There are no mutexes: sysbench would divide by their number.
    pub fn read(options: &OptionSet) -> Result<Self, Refusal> {
        Ok(Self { yields: whole(options, "thread-yields")?, locks: some(options, "thread-locks")? })
    }
}

/// The settings of `mutex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MutexSettings {
    /// How many there are.
    pub mutexes: u32,
    /// Locks that a thread takes, in its one event.
    pub locks: u32,
    /// Turns of an empty loop before each.
    pub loops: u32,
}

impl MutexSettings {
    /// Reads the options.
    ///
    /// # Errors
    /// There are no mutexes, or no locks to take: sysbench would run endlessly.
    pub fn read(options: &OptionSet) -> Result<Self, Refusal> {
        Ok(Self {
            mutexes: some(options, "mutex-num")?,
            locks: some(options, "mutex-locks")?,
            loops: whole(options, "mutex-loops")?,
        })
    }
}

/// A number from 1.
fn some(options: &OptionSet, name: &str) -> Result<u32, Refusal> {
    above_zero(options, name, |number| format!("Invalid value for --{name}: {number}."))
}

/// The operation of `fileio` on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTest {
    /// `seqwr`: the files are created again.
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

impl FileTest {
    /// Whether the position of each request is random.
    pub fn is_random(self) -> bool {
        matches!(self, FileTest::RandomRead | FileTest::RandomWrite | FileTest::RandomReadWrite)
    }
}

/// How files are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIo {
    /// A call at a time.
    Sync,
    /// This many requests of a thread at once.
    Async {
        /// `--file-async-backlog`.
        backlog: u32,
    },
    /// As memory.
    Mmap,
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

/// When files are synced, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSync {
    /// After this many requests; `None` disables it.
    pub frequency: Option<u32>,
    /// After every write; then neither after requests nor at the end.
    pub after_writes: bool,
    /// At the end.
    pub at_end: bool,
    /// By `fdatasync`, and not by `fsync`.
    pub data_only: bool,
}

/// The settings of `fileio`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileSettings {
    /// The number of files.
    pub files: u32,
    /// The size of each file.
    pub file_bytes: u64,
    /// The operation; only `run` has one.
    pub test: Option<FileTest>,
    /// The way of reading and writing.
    pub io: FileIo,
    /// The maximum number of adjacent requests to merge; `None` disables merging.
    pub merged_requests: Option<u32>,
    /// The bytes of one event.
    pub block_bytes: u64,
    /// The flags for opening files.
    pub flags: FileFlags,
    /// When they are synced.
    pub sync: FileSync,
    /// Reads per write, if the test does both.
    pub read_write_ratio: f64,
}

impl FileSettings {
    /// Reads the options. Only `run` needs the operation; `prepare` and `cleanup` do not.
    ///
    /// # Errors
    /// A number is out of bounds, or a word is unknown for its option.
    pub fn read(options: &OptionSet, is_run: bool) -> Result<Self, Refusal> {
        let files = above_zero(options, "file-num", |number| format!("Invalid value for file-num: {number}"))?;
        let total_bytes = options.size_bytes("file-total-size");
        if total_bytes == 0 {
            return Err(Refusal::fatal("Invalid value for file-total-size: 0"));
        }
        let test = if is_run { Some(file_test(options)?) } else { None };
        let io = file_io(options)?;
        let merged_requests = unless_negative(options, "file-merged-requests")?;
        let block_bytes = options.size_bytes("file-block-size");
        if block_bytes == 0 {
            return Err(Refusal::fatal("Invalid value for file-block-size: 0."));
        }
        let flags = file_flags(options)?;
        let sync = file_sync(options)?;
        let read_write_ratio = options.double("file-rw-ratio");
        if read_write_ratio < 0.0 {
            return Err(Refusal::fatal(format!("Invalid value for --file-rw-ratio: {read_write_ratio:.6}.")));
        }
        let file_bytes = total_bytes / u64::from(files);
        Ok(Self { files, file_bytes, test, io, merged_requests, block_bytes, flags, sync, read_write_ratio })
    }

    /// The bytes of one request, which merges several blocks if requested.
    pub fn request_bytes(&self) -> u64 {
        self.block_bytes * u64::from(self.merged_requests.unwrap_or(1))
    }
}

fn file_test(options: &OptionSet) -> Result<FileTest, Refusal> {
    let Some(word) = options.text("file-test-mode") else {
        let usage = help::test("fileio", FILEIO);
        // The message ends with two line ends, and the list of options with an empty line, so the end is trimmed.
        return Err(Refusal::fatal(format!("Missing required argument: --file-test-mode\n\n{}", usage.trim_end())));
    };
    Ok(match word {
        "seqwr" => FileTest::SequentialWrite,
        "seqrewr" => FileTest::SequentialRewrite,
        "seqrd" => FileTest::SequentialRead,
        "rndrd" => FileTest::RandomRead,
        "rndwr" => FileTest::RandomWrite,
        "rndrw" => FileTest::RandomReadWrite,
        _ => return Err(Refusal::fatal(format!("Invalid IO operations mode: {word}."))),
    })
}

fn file_io(options: &OptionSet) -> Result<FileIo, Refusal> {
    match options.text("file-io-mode") {
        None | Some("sync") => Ok(FileIo::Sync),
        Some("mmap") => Ok(FileIo::Mmap),
        Some("async") => {
            let words = |number| format!("Invalid value of file-async-backlog: {number}");
            Ok(FileIo::Async { backlog: above_zero(options, "file-async-backlog", words)? })
        }
        Some(word) => Err(Refusal::fatal(format!("unknown I/O mode: {word}"))),
    }
}

fn file_flags(options: &OptionSet) -> Result<FileFlags, Refusal> {
    let mut flags = FileFlags::default();
    for word in options.list("file-extra-flags") {
        match word.as_str() {
            "sync" => flags.sync = true,
            "dsync" => flags.dsync = true,
            "direct" => flags.direct = true,
            _ => return Err(Refusal::fatal(format!("Invalid value for file-extra-flags: {word}"))),
        }
    }
    Ok(flags)
}

fn file_sync(options: &OptionSet) -> Result<FileSync, Refusal> {
    let frequency = unless_negative(options, "file-fsync-freq")?;
    let after_writes = options.flag("file-fsync-all");
    let data_only = match options.text("file-fsync-mode").unwrap_or_default() {
        "fsync" => false,
        "fdatasync" => true,
        word => return Err(Refusal::fatal(format!("Invalid fsync mode: {word}."))),
    };
    Ok(FileSync {
        frequency: frequency.filter(|_| !after_writes),
        after_writes,
        at_end: options.flag("file-fsync-end") && !after_writes,
        data_only,
    })
}

/// A number from 1; none for 0.
fn unless_negative(options: &OptionSet, name: &str) -> Result<Option<u32>, Refusal> {
    let number = options.int(name)?;
    let refusal = |_| Refusal::fatal(format!("Invalid value for {name}: {number}."));
    u32::try_from(number).map(|number| (number > 0).then_some(number)).map_err(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::{BuiltIn, Source};

    fn options(test: &str, given: &[(&str, &str)]) -> OptionSet {
        let mut set = OptionSet::default();
        for info in BuiltIn::find(test).unwrap().options {
            set.declare(info.clone()).unwrap();
        }
        for (name, value) in given {
            set.set(name, Some(*value), Source::CommandLine).unwrap();
        }
        set
    }

    #[test]
    fn each_setting_is_read_from_its_option() {
        let threads = ThreadsSettings { yields: 1000, locks: 8 };
        assert_eq!(ThreadsSettings::read(&options("threads", &[])), Ok(threads));
        let mutex = MutexSettings { mutexes: 4096, locks: 50_000, loops: 10_000 };
        assert_eq!(MutexSettings::read(&options("mutex", &[])), Ok(mutex));
        let requested = [("memory-scope", "local"), ("memory-oper", "none"), ("memory-access-mode", "rnd")];
        let MemorySettings { scope, operation, is_random, .. } =
            MemorySettings::read(&options("memory", &requested)).unwrap();
        assert_eq!((scope, operation, is_random), (MemoryScope::Local, MemoryOperation::None, true));
    }

    /// From test_memory.t and test_fileio.t, and from the source.
    #[test]
    fn values_that_cannot_be_are_refused_in_sysbenchs_words() {
        let memory = |name, value| MemorySettings::read(&options("memory", &[(name, value)])).unwrap_err().to_string();
        for block in ["-1", "0", "3", "9"] {
            let words = format!("FATAL: Invalid value for memory-block-size: {block}");
            assert_eq!(memory("memory-block-size", block), words);
        }
        assert_eq!(memory("memory-oper", "x"), "FATAL: Invalid value for memory-oper: x");
        let cpu = CpuSettings::read(&options("cpu", &[("cpu-max-prime", "0")])).unwrap_err();
        assert_eq!(cpu.to_string(), "FATAL: Invalid value of cpu-max-prime: 0.");
        let files = |name, value| {
            let given = [("file-test-mode", "rndrd"), (name, value)];
            FileSettings::read(&options("fileio", &given), true).unwrap_err().to_string()
        };
        for (name, value, words) in [
            ("file-test-mode", "foo", "FATAL: Invalid IO operations mode: foo."),
            ("file-num", "0", "FATAL: Invalid value for file-num: 0"),
            ("file-total-size", "0", "FATAL: Invalid value for file-total-size: 0"),
            ("file-io-mode", "x", "FATAL: unknown I/O mode: x"),
            ("file-merged-requests", "-1", "FATAL: Invalid value for file-merged-requests: -1."),
            ("file-block-size", "0", "FATAL: Invalid value for file-block-size: 0."),
            ("file-extra-flags", "sync,x", "FATAL: Invalid value for file-extra-flags: x"),
            ("file-fsync-freq", "-1", "FATAL: Invalid value for file-fsync-freq: -1."),
            ("file-fsync-mode", "x", "FATAL: Invalid fsync mode: x."),
            ("file-rw-ratio", "-1", "FATAL: Invalid value for --file-rw-ratio: -1.000000."),
        ] {
            assert_eq!(files(name, value), words);
        }
        let missing = FileSettings::read(&options("fileio", &[]), true).unwrap_err().to_string();
        let begins = "FATAL: Missing required argument: --file-test-mode\n\nfileio options:\n  --file-num=N ";
        assert!(missing.starts_with(begins), "{missing}");
    }

    #[test]
    fn requests_at_once_need_a_number() {
        let read = |backlog| {
            let given = [("file-io-mode", "async"), ("file-async-backlog", backlog)];
            FileSettings::read(&options("fileio", &given), false).map(|settings| settings.io)
        };
        assert_eq!(read("4"), Ok(FileIo::Async { backlog: 4 }));
        assert_eq!(read("0").unwrap_err().to_string(), "FATAL: Invalid value of file-async-backlog: 0");
    }
}
