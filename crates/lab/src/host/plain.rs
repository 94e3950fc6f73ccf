//! Plain files of a directory in which somebody else may put something in their place: no link is followed, no pipe waited
//! for, no device touched.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

/// How a step goes: into a directory and along no link. No right to read it is needed.
pub const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Whoever opens a pipe so does not wait for the other end.
const AT_ONCE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a plain file below a directory to be read. The directory itself may be reached along links, as its user has
/// named it.
///
/// # Errors
/// What the system said; that it is no plain file, or that a link or its name leads elsewhere.
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
            // Looked at before it is opened: to open some devices is to start something.
            require_plain(kind)?;
            return opened(openat(&here, name, OFlags::RDONLY | AT_ONCE, Mode::empty())?);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// What was opened, unless something else has come in the place of what was looked at.
///
/// # Errors
/// That it is no plain file.
pub fn opened(file: OwnedFd) -> io::Result<File> {
    require_plain(FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode))?;
    Ok(file.into())
}

/// Refuses what is no plain file.
///
/// # Errors
/// What it is instead.
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
