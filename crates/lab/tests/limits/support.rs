//! Directories, a ledger and child processes for the tests of limits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rumba_engine_api::limits::{Backing, Limits, StorageLimit};
use rumba_lab::limits::Enforcement;
use rumba_lab::provision::{Owner, ProcessId, ResourceRegistry};
use rumba_testkit::process;

/// A directory with its own ledger, so that tests do not see each other's leftovers.
pub struct Host {
    root: PathBuf,
    pub ledger: ResourceRegistry,
    volumes: AtomicU32,
    // Removed with the test; a child process has none.
    _dir: Option<tempfile::TempDir>,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// The throttles of all devices are in the same files, so the tests run one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Host {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _dir: Some(dir), _alone: Some(alone), ..Self::at(root) }
    }

    /// The directory of the parent's test.
    pub fn of_parent() -> Self {
        Self::at(std::env::var("RUMBA_TEST_ROOT").unwrap().into())
    }

    fn at(root: PathBuf) -> Self {
        let ledger = ResourceRegistry::at(&root.join("state")).unwrap();
        Self { root, ledger, volumes: AtomicU32::new(0), _dir: None, _alone: None }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn shown(&self) -> String {
        self.root.display().to_string()
    }

    pub fn volume(&self, number: u32) -> PathBuf {
        self.root.join(format!("volume-{number}"))
    }

    pub fn begin(&self, limits: &Limits) -> Enforcement {
        rumba_lab::limits::check(limits, &self.root).unwrap();
        let volume = self.volume(100 + self.volumes.fetch_add(1, Ordering::Relaxed));
        let mut enforcement = Enforcement::prepare(limits, &volume, &owner(), &self.ledger, None).unwrap();
        enforcement.throttle().unwrap();
        enforcement.enforced().iter().for_each(|line| println!("{line}"));
        enforcement
    }

    /// The kernel's file about the loop device of the child's volume, which exists while the device is attached.
    pub fn attached_by_child(&self) -> PathBuf {
        let volumes = fs::read_dir(&self.root).unwrap().flatten();
        let note = volumes.map(|entry| entry.path().join("device.json")).find(|note| note.exists()).unwrap();
        let note: serde_json::Value = serde_json::from_slice(&fs::read(note).unwrap()).unwrap();
        Path::new("/sys/dev/block").join(note["device"]["number"].as_str().unwrap()).join("loop/backing_file")
    }

    /// Checks that nothing of this host is mounted, attached, grouped, throttled or listed any more.
    pub fn assert_nothing_left(&self) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&self.shown()), "{mounts}");
        for block in fs::read_dir("/sys/block").unwrap().flatten() {
            let backing = fs::read_to_string(block.path().join("loop/backing_file")).unwrap_or_default();
            assert!(!backing.contains(&self.shown()), "{:?}: {backing}", block.file_name());
        }
        // A kill may leave an empty directory that is not listed yet, or one with a partial marker, which counts as
        // empty. The next run takes it.
        for number in 100..110 {
            let entries = fs::read_dir(self.volume(number)).into_iter().flatten().flatten();
            let held: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            assert!(held.iter().all(|name| name == ".rumba.new"), "{held:?}");
        }
        // A kill may leave a partial entry, of a resource that was not made yet.
        let entries = fs::read_dir(self.root.join("state/managed")).unwrap().flatten().map(|entry| entry.path());
        let finished: Vec<_> = entries.filter(|path| path.extension().is_none_or(|end| end != "new")).collect();
        assert!(finished.is_empty(), "the ledger is empty: {finished:?}");
    }
}

pub fn owner() -> Owner {
    Owner::this_process("limits", 1).unwrap()
}

pub fn memory_alone(bytes: u64) -> Limits {
    Limits { memory_bytes: Some(bytes), ..Limits::default() }
}

pub fn storage_alone(storage: StorageLimit) -> Limits {
    Limits { storage: Some(storage), ..Limits::default() }
}

/// Small storage without rates.
pub fn small(backing: Backing) -> StorageLimit {
    StorageLimit { size_bytes: 160 << 20, backing, ..StorageLimit::unthrottled() }
}

/// Small storage with every rate.
pub fn throttled(backing: Backing) -> StorageLimit {
    StorageLimit {
        read_iops: Some(100),
        write_iops: Some(100),
        read_bps: Some(1 << 20),
        write_bps: Some(1 << 20),
        ..small(backing)
    }
}

/// All throttles of version 1's outermost group; `None` where there is no version 1.
pub fn throttles() -> Option<String> {
    let root = Path::new("/sys/fs/cgroup/blkio");
    rumba_lab::limits::THROTTLES.iter().map(|file| fs::read_to_string(root.join(file)).ok()).collect()
}

/// This binary, running one of the ignored tests within limits.
pub fn child(test: &str, enforcement: &Enforcement) -> Command {
    enforcement.command(process::with_test(test)).unwrap()
}

/// This binary in a separate mount namespace, like a container, where the host's path is another directory.
pub fn elsewhere(test: &str, host: &Host) -> Command {
    // Unmount the volumes below it; other mounts stay.
    const ENTER: &str = "for point in $(awk -v below=\"$0/\" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac); \
        do umount --lazy $point || exit 1; done; mount -t tmpfs -o size=400m rumba-test $0 && exec \"$@\"";
    let child = process::with_test(test);
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", ENTER]).arg(&host.root);
    command.arg(child.get_program()).args(child.get_args()).env("RUMBA_TEST_ROOT", host.shown());
    for (name, value) in child.get_envs() {
        value.map(|value| command.env(name, value));
    }
    command
}

/// A process that holds limits of both kinds until it is killed, started through these words.
pub fn holder(host: &Host, backing: Backing, through: &[&str]) -> Child {
    let holds = process::with_test("child_holds_limits");
    let mut command = Command::new("env");
    command.args(through).arg(holds.get_program()).args(holds.get_args());
    command.env("RUMBA_TEST_ROOT", host.shown()).env("RUMBA_TEST_BACKING", backing.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

pub fn say(number: u32) {
    println!("\nnumber {number}");
}

/// The number that a child prints.
pub fn number_said(stdout: ChildStdout) -> u32 {
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let number = lines.find_map(|line| line.strip_prefix("number ").map(|number| number.parse().unwrap()));
    number.expect("the child says a number")
}

pub fn has_ended(pid: u32) -> bool {
    ProcessId::of(pid).is_err()
}

/// A file without the page cache, and memory for a page that direct I/O accepts.
pub fn direct_file(path: &Path) -> (File, Vec<u8>) {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(libc::O_DIRECT);
    (options.open(path).unwrap(), vec![1u8; 8192])
}

/// Works on this many pages of a file in order, without the page cache.
pub fn direct_pages(path: &Path, pages: u64, work: impl Fn(&File, &mut [u8], u64) -> io::Result<()>) {
    let (file, mut memory) = direct_file(path);
    let start = memory.as_ptr().align_offset(4096);
    for page in 0..pages {
        work(&file, &mut memory[start..start + 4096], page * 4096).unwrap();
    }
}

/// Pages of a file that are in the page cache.
pub fn resident_pages(path: &Path) -> usize {
    let file = File::open(path).unwrap();
    let bytes = file.metadata().unwrap().len() as usize;
    let mut resident = vec![0u8; bytes.div_ceil(4096)];
    // SAFETY: the mapping is made here, of the file's length, queried while it exists, and removed.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(start, libc::MAP_FAILED);
        assert_eq!(libc::mincore(start, bytes, resident.as_mut_ptr()), 0);
        libc::munmap(start, bytes);
    }
    resident.iter().filter(|&&page| page & 1 == 1).count()
}
