//! The files: made, opened, removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::cli::log::Rank;
use crate::cli::report::built_in::{self, FileFound};
use crate::cli::settings::{FileFlags, FileIo, FileSettings, FileTest};
use crate::random::Random;

use super::contents;
use super::map::Map;
use super::request::Requests;
use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::pages::Pages;

/// The mode of new files: only the owner has access.
const MODE: u32 = 0o600;

fn name(file: u32) -> String {
    format!("test_file.{file}")
}

/// For `open`.
fn flags(of: FileFlags) -> i32 {
    let named = [(of.sync, libc::O_SYNC), (of.dsync, libc::O_DSYNC), (of.direct, libc::O_DIRECT)];
    named.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag)
}

/// A page-aligned buffer, as direct I/O requires.
pub(super) fn buffer(bytes: u64) -> Result<Pages, Failure> {
    Pages::new(usize::try_from(bytes).unwrap_or(usize::MAX), false)
        .map_err(|error| Failure::system("Failed to allocate a memory buffer", &error))
}

/// Makes missing files, and extends short ones. With `random`, the blocks are those that `--validate` expects;
/// otherwise they are zeros. `notify` receives messages as they occur.
pub(crate) fn prepare(
    folder: &Path,
    requested: &FileSettings,
    mut random: Option<Random>,
    notify: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    notify(&built_in::file_prepare(requested));
    let mut buffer = buffer(requested.block_bytes)?;
    let block = buffer.first(requested.block_bytes as usize);
    let started = Instant::now();
    let mut written_bytes = 0;
    for number in 0..requested.files {
        let name = name(number);
        let opened = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(MODE)
            .custom_flags(flags(requested.flags))
            .open(folder.join(&name));
        let mut file = opened.map_err(|error| Failure::system("Can't open file", &error))?;
        let failed = |error| Failure::system("Failed to write file!", &error);
        let there = file.seek(SeekFrom::End(0)).map_err(failed)?;
        notify(&built_in::file_found(&name, found(there, requested.file_bytes)));
        written_bytes += lengthen(&mut file, there, requested, block, random.as_mut()).map_err(failed)?;
        // Data that the system has not written yet would disturb the run.
        file.sync_all().map_err(|error| Failure::system("Failed to fsync file!", &error))?;
    }
    notify(&built_in::files_written(written_bytes, started.elapsed()));
    Ok(())
}

fn found(there: u64, file_bytes: u64) -> FileFound {
    match there {
        there if there >= file_bytes => FileFound::Whole,
        0 => FileFound::Nothing,
        _ => FileFound::Part,
    }
}

/// Writes whole blocks from an offset on, until a file is long enough; the last one may end beyond that. Returns the
/// number of written bytes.
fn lengthen(
    file: &mut File,
    from: u64,
    requested: &FileSettings,
    block: &mut [u8],
    mut random: Option<&mut Random>,
) -> io::Result<u64> {
    let mut offset = from;
    while offset < requested.file_bytes {
        if let Some(random) = &mut random {
            contents::fill(block, block.len(), offset, random);
        }
        file.write_all(block)?;
        offset += requested.block_bytes;
    }
    Ok(offset - from)
}

/// Removes the files. A file that is missing, or cannot be removed, is skipped, as in sysbench.
pub(crate) fn cleanup(folder: &Path, requested: &FileSettings, notify: &mut dyn FnMut(&str)) {
    notify(built_in::REMOVING_FILES);
    for number in 0..requested.files {
        let _ = std::fs::remove_file(folder.join(name(number)));
    }
}

/// The files of a run and its next requests, shared by all threads.
pub(crate) struct OpenFiles {
    pub(super) requested: FileSettings,
    pub(super) test: FileTest,
    /// Contents are checked.
    pub(super) validate: bool,
    pub(super) files: Vec<File>,
    /// In mode mmap.
    pub(super) maps: Vec<Map>,
    requests: Mutex<Requests>,
}

impl OpenFiles {
    /// Opens the prepared files, or makes them again for a test of their creation.
    pub(crate) fn open(
        folder: &Path,
        requested: &FileSettings,
        test: FileTest,
        validated_threads: Option<u32>,
    ) -> Result<Self, Failure> {
        let files = (0..requested.files).map(|number| open(folder, &name(number), requested, test));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let maps = if requested.io == FileIo::Mmap { maps(&files, requested, test)? } else { Vec::new() };
        let requests = Mutex::new(Requests::new(requested, validated_threads));
        Ok(Self { requested: *requested, test, validate: validated_threads.is_some(), files, maps, requests })
    }

    /// Which requests come next.
    pub(super) fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(folder: &Path, name: &str, requested: &FileSettings, test: FileTest) -> Result<File, Failure> {
    let path = folder.join(name);
    if test == FileTest::SequentialWrite {
        // If it stays, the next line says why.
        let _ = std::fs::remove_file(&path);
        let made = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path);
        made.map_err(|error| Failure::system(&format!("Cannot create file '{name}'"), &error))?;
    }
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags(requested.flags)).open(&path);
    let file = opened.map_err(|error| {
        Failure::system(&format!("Cannot open file '{name}'"), &error)
            .and(Rank::Warning, "Did you forget to run the prepare step?")
    })?;
    if test == FileTest::SequentialWrite {
        return Ok(file);
    }
    let there = file.metadata();
    let there = there.map_err(|error| Failure::system(&format!("fstat() failed on file '{name}'"), &error))?.len();
    if there < requested.file_bytes {
        return Err(Failure::fatal(built_in::file_too_short(name, there, requested.file_bytes))
            .and(Rank::Warning, "Did you run 'prepare' with different --file-total-size or --file-num values?"));
    }
    Ok(file)
}

fn maps(files: &[File], requested: &FileSettings, test: FileTest) -> Result<Vec<Map>, Failure> {
    let map = |(number, file): (usize, &File)| {
        if test == FileTest::SequentialWrite {
            let failed = |error| Failure::system(&format!("ftruncate() failed on file {number}"), &error);
            file.set_len(requested.file_bytes).map_err(failed)?;
        }
        Map::new(file, requested.file_bytes)
            .map_err(|error| Failure::system(&format!("mmap() failed on file {number}"), &error))
    };
    files.iter().enumerate().map(map).collect()
}
