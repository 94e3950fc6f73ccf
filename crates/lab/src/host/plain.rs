//! Opens plain files in a directory where another user may replace them. It follows no link, waits for no pipe and
//! touches no device.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

/// Flags of one step: into a directory, and never along a link. No right to read the directory is needed.
pub const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opening a pipe with these flags does not wait for the other end.
const AT_ONCE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a plain file below a directory for reading. The directory itself may be reached along links, because its user
/// has named it.
///
/// # Errors
/// The system's error; the file is not plain, or a link or its name leads elsewhere.
pub fn open(directory: &Path, file: &Path) -> io::Result<File> {
    let mut here = rustix::fs::open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut steps = file.components().peekable();
    while let Some(step) = steps.next() {
        let Component::Normal(name) = step else {
            return Err(io::Error::other("its name leads out of the directory"));
        };
        let kind = FileType::from_raw_mode(statat(&here, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
        if steps.peek().is_some() {
            if kind == FileType::Symlink {
                return Err(io::Error::other(format!("{} is a link, and is not followed", Path::new(name).display())));
            }
            here = openat(&here, name, STEP, Mode::empty())?;
        } else {
            // Check before opening, because opening some devices has side effects.
            require_plain(kind)?;
            return opened(openat(&here, name, OFlags::RDONLY | AT_ONCE, Mode::empty())?);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The opened file. The check is repeated, because the file may have been replaced since it was checked.
///
/// # Errors
/// When it is not a plain file.
pub fn opened(file: OwnedFd) -> io::Result<File> {
    require_plain(FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode))?;
    Ok(file.into())
}

/// Refuses a file that is not plain.
///
/// # Errors
/// The actual kind of the file.
pub fn require_plain(kind: FileType) -> io::Result<()> {
    let what = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a link, and is not followed",
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "no plain file",
    };
    Err(io::Error::other(format!("it is {what}")))
}
