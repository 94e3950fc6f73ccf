//! Copies the plain files of a directory and checks their contents.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rumba_engine_api::engine::KEPT;
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use serde::{Deserialize, Serialize};

use super::error::{CopyError, reading, writing};
use super::shared::is_shared;
use crate::host::plain;
use crate::provision::free_bytes;

/// Bytes read and written at once.
const WINDOW: u64 = 1 << 20;
/// Bytes after which a copy waits for the device, so that no more of it is in memory.
const SYNC_EVERY: u64 = 256 << 20;
/// Read-ahead, bytes, so that the device reads while earlier data is written.
const AHEAD: u64 = 4 * WINDOW;
/// The unit of `st_blocks` (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// Whether a file shares blocks with another file.
pub(super) type RequestShared = fn(&File) -> io::Result<bool>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileNote {
    /// Relative to the directory.
    path: PathBuf,
    mode: u32,
    bytes: u64,
    /// Checksum over each window that is not all zeros: its offset, then its bytes. Holes and zeros count alike.
    crc32: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Bytes allocated on disk.
    pub allocated_bytes: u64,
    directories: Vec<(PathBuf, u32)>,
    files: Vec<FileNote>,
}

impl Contents {
    /// Reads all files below a directory except those that are kept next to the results anyway. Sockets and pipes are
    /// skipped, because they hold no data.
    ///
    /// # Errors
    /// A file that cannot be read; a link, which may lead out of the directory; the user's request to stop.
    pub fn of(directory: &Path, stops: &AtomicUsize) -> Result<Self, CopyError> {
        let mut contents = Self::default();
        contents.list(directory, Path::new(""))?;
        for note in &mut contents.files {
            let path = directory.join(&note.path);
            let file = plain::open(directory, &note.path).map_err(reading(&path))?;
            // Drop pages that are cached since the file was written, because they may be newer than the device.
            settle(&file).map_err(reading(&path))?;
            note.crc32 = transfer(&path, &file, note.bytes, None, stops)?;
        }
        Ok(contents)
    }

    fn list(&mut self, directory: &Path, below: &Path) -> Result<(), CopyError> {
        let here = directory.join(below);
        let mut entries: Vec<_> =
            fs::read_dir(&here).and_then(Iterator::collect::<io::Result<_>>).map_err(reading(&here))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = below.join(entry.file_name());
            let metadata = entry.metadata().map_err(reading(&entry.path()))?;
            self.allocated_bytes += metadata.blocks() * BLOCK_BYTES;
            let mode = metadata.mode() & 0o7777;
            if metadata.is_dir() && path != Path::new(KEPT) {
                self.directories.push((path.clone(), mode));
                self.list(directory, &path)?;
            } else if metadata.is_file() {
                self.files.push(FileNote { path, mode, bytes: metadata.len(), crc32: 0 });
            } else if metadata.is_symlink() {
                let problem = "is a link, which a copy would lead to the same place".to_owned();
                return Err(CopyError::Damaged { path: entry.path(), problem });
            }
        }
        Ok(())
    }

    /// Copies the contents from a directory that still holds them into an empty one. Then the copy is on the device,
    /// and neither is in the page cache.
    ///
    /// # Errors
    /// [`CopyError::Damaged`] when the files have changed since they were read; no space; a file that cannot be
    /// written; the user's request to stop.
    pub fn copy(&self, from: &Path, to: &Path, stops: &AtomicUsize) -> Result<(), CopyError> {
        self.copy_unless(is_shared, from, to, stops)
    }

    /// The same with a given check for shared blocks.
    pub(super) fn copy_unless(
        &self,
        is_shared: RequestShared,
        from: &Path,
        to: &Path,
        stops: &AtomicUsize,
    ) -> Result<(), CopyError> {
        let (needed, free) = (self.allocated_bytes, free_bytes(to).unwrap_or(u64::MAX));
        if free < needed {
            return Err(CopyError::NoRoom { path: to.to_owned(), needed, free });
        }
        for (path, mode) in &self.directories {
            let path = to.join(path);
            DirBuilder::new().mode(*mode).create(&path).map_err(writing(&path))?;
        }
        for note in &self.files {
            copy_file(note, from, &to.join(&note.path), stops)?;
        }
        // Sync everything at once, including directory entries: a sync of each file would write the journal as often.
        let root = File::open(to).map_err(writing(to))?;
        rustix::fs::syncfs(&root).map_err(|error| writing(to)(error.into()))?;
        for note in &self.files {
            let path = to.join(&note.path);
            let copy = File::open(&path).map_err(writing(&path))?;
            forget(&copy, 0, None).map_err(writing(&path))?;
            if is_shared(&copy).map_err(writing(&path))? {
                return Err(CopyError::Shared { path });
            }
        }
        Ok(())
    }
}

/// Copies one file without following links. The server's user may still have processes. Those could replace a file in
/// `from` by a pipe, or by a link to a file that only root may read.
fn copy_file(note: &FileNote, from: &Path, to: &Path, stops: &AtomicUsize) -> Result<(), CopyError> {
    let path = &from.join(&note.path);
    let damaged = |problem: &str| CopyError::Damaged { path: path.clone(), problem: problem.to_owned() };
    let source = plain::open(from, &note.path).map_err(reading(path))?;
    if source.metadata().map_err(reading(path))?.len() != note.bytes {
        return Err(damaged("is not as long as it was"));
    }
    let target =
        OpenOptions::new().write(true).read(true).create_new(true).mode(0o600).open(to).map_err(writing(to))?;
    if transfer(path, &source, note.bytes, Some((&target, to)), stops)? != note.crc32 {
        return Err(damaged("has changed since it was kept"));
    }
    target.set_len(note.bytes).map_err(writing(to))?;
    target.set_permissions(Permissions::from_mode(note.mode)).map_err(writing(to))
}

/// Writes a file to the device and evicts it from the page cache.
fn settle(file: &File) -> io::Result<()> {
    file.sync_all()?;
    forget(file, 0, None)
}

/// Evicts a part of a file from the page cache. Dirty pages stay, and the kernel begins to write them.
fn forget(file: &File, from: u64, bytes: Option<NonZeroU64>) -> io::Result<()> {
    Ok(fadvise(file, from, bytes, Advice::DontNeed)?)
}

/// Reads a file's windows that hold data, writes them to the target if there is one, and returns the checksum.
fn transfer(
    path: &Path,
    source: &File,
    bytes: u64,
    target: Option<(&File, &Path)>,
    stops: &AtomicUsize,
) -> Result<u32, CopyError> {
    let mut sum = crc32fast::Hasher::new();
    let mut buffer = vec![0; WINDOW as usize];
    let (mut at, mut unsynced) = (0, 0);
    // Evict first, so that the checksum covers the data on the device.
    forget(source, 0, None).map_err(reading(path))?;
    while let Some(data) = seek_to(source, SeekFrom::Data(at)).map_err(reading(path))? {
        if stops.load(Relaxed) > 0 {
            return Err(CopyError::Interrupted);
        }
        let start = data / WINDOW * WINDOW;
        let end = bytes.min(start + WINDOW);
        if start >= end {
            break;
        }
        let window = &mut buffer[..(end - start) as usize];
        fadvise(source, end, NonZeroU64::new(AHEAD), Advice::WillNeed).map_err(|error| reading(path)(error.into()))?;
        source.read_exact_at(window, start).map_err(reading(path))?;
        if window.iter().any(|byte| *byte != 0) {
            sum.update(&start.to_le_bytes());
            sum.update(window);
        }
        if let Some((target, to)) = target {
            unsynced += write_data(source, window, start, target).map_err(writing(to))?;
            forget(target, start, NonZeroU64::new(WINDOW)).map_err(writing(to))?;
            if unsynced >= SYNC_EVERY {
                settle(target).map_err(writing(to))?;
                unsynced = 0;
            }
        }
        // Reading must not evict the cached pages of other processes.
        forget(source, start, NonZeroU64::new(WINDOW)).map_err(reading(path))?;
        at = end;
    }
    // Evict pages that were read ahead in holes.
    forget(source, 0, None).map_err(reading(path))?;
    Ok(sum.finalize())
}

/// Writes the data of a window; holes of the source stay holes. Returns the bytes written.
fn write_data(source: &File, window: &[u8], start: u64, target: &File) -> io::Result<u64> {
    let end = start + window.len() as u64;
    let (mut at, mut written) = (start, 0);
    while let Some(data) = seek_to(source, SeekFrom::Data(at))?.filter(|data| *data < end) {
        let hole = seek_to(source, SeekFrom::Hole(data))?.unwrap_or(end).min(end);
        target.write_all_at(&window[(data - start) as usize..(hole - start) as usize], data)?;
        written += hole - data;
        at = hole;
        if at >= end {
            break;
        }
    }
    Ok(written)
}

/// The offset of the next data or the next hole; `None` after the last.
fn seek_to(file: &File, place: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, place) {
        Ok(at) => Ok(Some(at)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
