//! File systems for one test. They are unmounted lazily when dropped, because a process that another test has just
//! forked keeps open files until it executes its program.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A file system in memory.
#[derive(Debug)]
pub struct Tmpfs(Mounted);

impl Tmpfs {
    /// One with this many MiB.
    ///
    /// # Panics
    /// The system refuses: the test needs `Tmpfs`.
    pub fn of_mebibytes(mebibytes: u32) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut tmpfs = Self::at(&dir.path().join("mounted"), &format!("size={mebibytes}m"));
        tmpfs.0.dir = Some(dir);
        tmpfs
    }

    /// One with these options, such as `size=24m,nr_inodes=64`, on a directory that is made for it.
    pub fn at(point: &Path, options: &str) -> Self {
        make_directory(point);
        let words = ["-t", "tmpfs", "-o", options, "rumba-test"].map(OsStr::new);
        Self(Mounted::with(&words, point))
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.0.point
    }
}

/// An ext4 file system on a loop device, which the mount releases automatically.
#[derive(Debug)]
pub struct LoopDevice(Mounted);

impl LoopDevice {
    /// One with this many MiB, whose device sees only the test's writes: no lazy inode tables, no access times, no
    /// discards.
    ///
    /// # Panics
    /// The system refuses: the test needs `LoopDevice`.
    pub fn of_mebibytes(mebibytes: u64) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let quiet = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];
        let mut device = Self::with(&dir.path().join("mounted"), mebibytes, &quiet, "loop,noatime,nodiscard");
        device.0.dir = Some(dir);
        device
    }

    /// One with this many MiB, on a directory that is made for it; its image is next to it.
    pub fn at(point: &Path, mebibytes: u64) -> Self {
        Self::with(point, mebibytes, &[], "loop")
    }

    fn with(point: &Path, mebibytes: u64, mkfs: &[&str], mount: &str) -> Self {
        let image = point.with_extension("image");
        File::create(&image).and_then(|file| file.set_len(mebibytes << 20)).expect("the image of a file system");
        make_directory(point);
        let words: Vec<&OsStr> = ["-q", "-F"].iter().chain(mkfs).map(OsStr::new).collect();
        run("mkfs.ext4", &words, &image).unwrap_or_else(|error| panic!("{error}"));
        let words = ["-t", "ext4", "-o", mount].map(OsStr::new);
        let words: Vec<&OsStr> = words.into_iter().chain([image.as_os_str()]).collect();
        Self(Mounted::with(&words, point))
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.0.point
    }

    /// Blocks all writes to it until the returned value is dropped; writers wait.
    pub fn freeze(&self) -> Frozen<'_> {
        run("fsfreeze", &["--freeze".as_ref()], self.path()).unwrap_or_else(|error| panic!("{error}"));
        Frozen(self)
    }
}

/// A file system that blocks writes while this value lives.
#[derive(Debug)]
pub struct Frozen<'a>(&'a LoopDevice);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        say_if_refused(run("fsfreeze", &["--unfreeze".as_ref()], self.0.path()));
    }
}

/// Fills the file system of a directory to its last byte.
pub fn fill(directory: &Path) {
    let mut ballast = File::create(directory.join("ballast")).expect("a file");
    for size in [1 << 20, 4096] {
        while ballast.write_all(&vec![1; size]).is_ok() {}
    }
}

#[derive(Debug)]
struct Mounted {
    point: PathBuf,
    /// Removed afterwards, if the mount was made in its own directory.
    dir: Option<TempDir>,
}

impl Mounted {
    fn with(words: &[&OsStr], point: &Path) -> Self {
        run("mount", words, point).unwrap_or_else(|error| panic!("{error}"));
        Self { point: point.to_owned(), dir: None }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        say_if_refused(run("umount", &["-l".as_ref()], &self.point));
    }
}

fn make_directory(point: &Path) {
    fs::create_dir(point).unwrap_or_else(|error| panic!("{}: {error}", point.display()));
}

/// A failing test is torn down too, and must fail with its own finding.
fn say_if_refused(outcome: Result<(), String>) {
    match outcome {
        Err(error) if std::thread::panicking() => eprintln!("left behind: {error}"),
        Err(error) => panic!("left behind: {error}"),
        Ok(()) => {}
    }
}

/// Runs a program; returns its error message in one line if it fails.
pub(crate) fn run(program: &str, words: &[&OsStr], last: &Path) -> Result<(), String> {
    let output = Command::new(program).args(words).arg(last).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", said.split_whitespace().collect::<Vec<_>>().join(" ")))
}
