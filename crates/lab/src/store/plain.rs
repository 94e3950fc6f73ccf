//! Files of a directory that another user may have made. No link in it is followed, no pipe waited for, no device
//! touched, and reads have a size limit.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::FileType;

pub(super) use crate::host::plain::open;
use crate::host::plain::{opened, require_plain};

/// The longest file that is read completely, bytes; a record of sixty loops takes 2 MB.
pub(super) const TEXT_BYTES: u64 = 256 << 20;
/// Bytes that are read from a file of lines: a week of seconds with five types of operations.
pub(super) const LINES_BYTES: u64 = 1 << 30;
/// The longest line, bytes; no run writes a longer one.
const LINE_BYTES: u64 = 16 << 20;

/// Opens a file of lines for appending, and makes it if missing.
///
/// # Errors
/// The system's error; the file is not plain.
pub(super) fn append(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    opened(OpenOptions::new().create(true).append(true).custom_flags(flags).open(path)?.into())
}

/// The metadata of a path, if it exists.
///
/// # Errors
/// The system's error; the file is not plain.
pub(super) fn there(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(there) => {
            require_plain(FileType::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&there)))?;
            Ok(Some(there))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The contents of a plain file below a directory.
///
/// # Errors
/// Errors of opening it; a file longer than 256 MiB.
pub fn read_plain(directory: &Path, file: &Path) -> io::Result<Vec<u8>> {
    let file = open(directory, file)?;
    let bytes = file.metadata()?.len();
    if bytes > TEXT_BYTES {
        let most = TEXT_BYTES >> 20;
        return Err(io::Error::other(format!("it has {bytes} bytes, and no more than {most} MiB are read")));
    }
    let mut read = Vec::new();
    // The file may grow meanwhile.
    file.take(TEXT_BYTES).read_to_end(&mut read)?;
    Ok(read)
}

pub(super) enum Line<'a> {
    /// With its end of line.
    Whole(&'a [u8]),
    /// The last line, without an end yet.
    Begun(&'a [u8]),
    /// A line beyond the length limit; it was skipped.
    Endless,
}

/// The read position in a file of lines.
pub(super) struct Reached {
    /// The bytes of complete lines, including those before the start.
    pub whole_bytes: u64,
    /// Whether the file is longer than the read limit.
    pub has_more: bool,
}

/// Reads the lines of a file from an offset, one at a time, until `take` returns false.
pub(super) fn lines(mut file: File, from: u64, mut take: impl FnMut(Line<'_>) -> bool) -> io::Result<Reached> {
    let has_more = file.metadata()?.len() > LINES_BYTES;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file.take(LINES_BYTES.saturating_sub(from)));
    let (mut line, mut whole_bytes) = (Vec::new(), from);
    loop {
        line.clear();
        let bytes = reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        let goes_on = match line.last() {
            None => false,
            Some(b'\n') => {
                whole_bytes += bytes;
                take(Line::Whole(&line[..line.len() - 1]))
            }
            Some(_) if bytes < LINE_BYTES => {
                take(Line::Begun(&line));
                false
            }
            Some(_) => {
                whole_bytes += bytes + reader.skip_until(b'\n')? as u64;
                take(Line::Endless)
            }
        };
        if !goes_on {
            return Ok(Reached { whole_bytes, has_more });
        }
    }
}
