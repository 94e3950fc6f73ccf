//! Files that a full disk must not damage, and that are not written through what somebody has put in their place.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::plain;

/// A file of lines that only grows. What cannot be written now is kept in memory
/// and tried again with the next line.
pub struct Append {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
    /// Bytes that the file has of a line whose rest is pending.
    begun_bytes: u64,
}

impl Append {
    /// A file at `path`, made with its first line.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, pending: Vec::new(), begun_bytes: 0 }
    }

    /// Adds a line to what is pending.
    pub fn push(&mut self, line: &str) {
        self.pending.extend_from_slice(line.as_bytes());
        self.pending.push(b'\n');
    }

    /// Writes what is pending.
    ///
    /// # Errors
    /// Why it could not be; it stays pending.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(plain::append(&self.path)?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut written = 0;
        let result = loop {
            match file.write(&self.pending[written..]) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if written == self.pending.len() {
                break Ok(());
            }
        };
        self.begun_bytes = match self.pending[..written].iter().rposition(|byte| *byte == b'\n') {
            Some(end) => (written - end - 1) as u64,
            None => self.begun_bytes + written as u64,
        };
        self.pending.drain(..written);
        if result.is_err() {
            // The next try opens it anew: the volume may have been mounted again.
            self.file = None;
        }
        result
    }

    /// Takes back the beginning of a line whose rest found no room.
    fn cut(&self) -> io::Result<()> {
        let file = plain::append(&self.path)?;
        let length = file.metadata()?.len();
        file.set_len(length.saturating_sub(self.begun_bytes))
    }
}

impl Drop for Append {
    fn drop(&mut self) {
        // Readers of the histogram log's format stop at half a line.
        if self.flush().is_err() && self.begun_bytes > 0 {
            // What fails here leaves half a line, which our own reader tells.
            let _ = self.cut();
        }
    }
}

/// Replaces a file whole: readers see the old text or the new, never a part.
///
/// # Errors
/// Why it could not be written; the old text then stands.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => create(&part, text)?,
    }
    let renamed = fs::rename(&part, path);
    if renamed.is_err() {
        let _ = fs::remove_file(&part);
    }
    renamed
}

/// Writes a file that must not be there yet.
///
/// # Errors
/// That it is there, or why it could not be written; nothing of it is left then.
pub fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Replaces a file that a user has named: whole, or not at all. What is no plain file, such as a pipe or a link, is
/// written to.
///
/// # Errors
/// Why it could not be written; the old text of a plain file then stands.
pub fn replace_named(path: &Path, text: &str) -> io::Result<()> {
    let there = fs::symlink_metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return fs::write(path, text);
    }
    match part_of(path, there.as_ref()) {
        // Who may not make files there may still write this one.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fs::write(path, text),
        part => persist(part?, path, text),
    }
}

/// Replaces a file that nobody has named, whole or not at all: what is no plain file is not ours to write to.
///
/// # Errors
/// What is in its place, or why it could not be written; the old text then stands.
pub fn replace_plain(path: &Path, text: &str) -> io::Result<()> {
    let there = plain::there(path)?;
    persist(part_of(path, there.as_ref())?, path, text)
}

/// The beginning of a file that is to take the place of another, with its owner and permissions.
fn part_of(path: &Path, there: Option<&Metadata>) -> io::Result<tempfile::NamedTempFile> {
    // Whoever owns the file alone may have given it more, such as to run as its owner.
    let mode = there.map_or(0o666, |there| there.mode() & 0o777);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A name of its own, because `NAME.part` beside it may be the user's.
    let mut builder = tempfile::Builder::new();
    let part = builder.prefix(".rumba-").permissions(Permissions::from_mode(mode)).tempfile_in(directory)?;
    if let Some(there) = there {
        // Root alone can; it would take the file from its owner otherwise.
        let _ = fchown(part.as_file(), Some(there.uid()), Some(there.gid()));
    }
    Ok(part)
}

fn persist(mut part: tempfile::NamedTempFile, path: &Path, text: &str) -> io::Result<()> {
    part.write_all(text.as_bytes())?;
    // A file system behind a network says only now that it is full.
    part.as_file().sync_all()?;
    part.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_that_finds_no_room_for_its_rest_is_taken_back() {
        // A histogram log that ends in half a line stops its standard reader.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        fs::write(&path, "whole\nha").unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        drop(Append { path: path.clone(), file: Some(full), pending: b"lf\n".to_vec(), begun_bytes: 2 });
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\n");
    }

    #[test]
    fn what_a_full_disk_refuses_is_kept_and_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut file = Append::new(path.clone());
        file.file = Some(full);
        file.push("first");
        assert!(file.flush().is_err(), "/dev/full is always full");
        file.push("second");
        file.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\n");
    }

    #[test]
    fn planted_file_is_never_written_through() {
        // A link `record.part` led every record into a file of its maker's choice, and `intervals.ndjson` every second.
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("precious"), "theirs").unwrap();
        for link in ["record.part", "lines", "library.json"] {
            std::os::unix::fs::symlink(path("precious"), path(link)).unwrap();
        }
        replace(&path("record.json"), "ours").unwrap();
        let mut lines = Append::new(path("lines"));
        lines.push("a second");
        lines.flush().unwrap_err();
        let refused = replace_plain(&path("library.json"), "ours").unwrap_err().to_string();
        assert_eq!(refused, "it is a link, and is not followed");
        assert_eq!(fs::read_to_string(path("precious")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(path("record.json")).unwrap(), "ours");
        assert!(fs::symlink_metadata(path("record.json")).unwrap().is_file());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = Append::new(path.clone());
            lines.push("a second");
            said.send((lines.flush().is_err(), replace_plain(&path, "ours").unwrap_err().to_string()))
        });
        let refused = heard.recv_timeout(std::time::Duration::from_secs(30)).expect("it waits");
        assert_eq!(refused, (true, "it is a pipe".to_owned()));
    }

    #[test]
    fn replaced_file_keeps_its_owner_and_loses_setuid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("library.json");
        fs::write(&path, "old").unwrap();
        let owner = fs::metadata(&path).unwrap().uid();
        fs::set_permissions(&path, Permissions::from_mode(0o4750)).unwrap();
        replace_plain(&path, "new").unwrap();
        let there = fs::metadata(&path).unwrap();
        assert_eq!((there.mode() & 0o7777, there.uid()), (0o750, owner));
    }

    #[test]
    fn regular_file_is_replaced_whole_and_special_one_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (page, link) = (dir.path().join("page.html"), dir.path().join("link"));
        fs::write(&page, "old").unwrap();
        fs::set_permissions(&page, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&page, &link).unwrap();
        replace_named(&page, "new").unwrap();
        assert_eq!(fs::read_to_string(&page).unwrap(), "new");
        assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o640);
        replace_named(&link, "newer").unwrap();
        assert_eq!(fs::read_to_string(&page).unwrap(), "newer");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(replace_named(Path::new("/dev/full"), "more").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
    }
}
