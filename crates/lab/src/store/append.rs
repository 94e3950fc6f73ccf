//! Files that a full disk must not damage, written without following what another user has put in their place.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::plain;

/// A file of lines that only grows. Lines that cannot be written now are kept in memory and written with the next line.
pub struct Append {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
    /// Bytes of a partial line in the file; the rest of the line is pending.
    begun_bytes: u64,
}

impl Append {
    /// A file at `path`, made with its first line.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, pending: Vec::new(), begun_bytes: 0 }
    }

    pub fn push(&mut self, line: &str) {
        self.pending.extend_from_slice(line.as_bytes());
        self.pending.push(b'\n');
    }

    /// Writes the pending lines.
    ///
    /// # Errors
    /// Why they could not be written; they stay pending.
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
            // The next attempt opens the file again, because the volume may have been mounted again.
            self.file = None;
        }
        result
    }

    /// Removes a partial line when the disk is full.
    fn cut(&self) -> io::Result<()> {
        let file = plain::append(&self.path)?;
        let length = file.metadata()?.len();
        file.set_len(length.saturating_sub(self.begun_bytes))
    }
}

impl Drop for Append {
    fn drop(&mut self) {
        // Readers of the histogram log's format stop at a partial line.
        if self.flush().is_err() && self.begun_bytes > 0 {
            // A failure here leaves a partial line, which our own reader reports.
            let _ = self.cut();
        }
    }
}

/// Replaces a whole file: readers see the old text or the new, never a part.
///
/// # Errors
/// Why it could not be written; the old text then stays.
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

/// Writes a new file.
///
/// # Errors
/// When it exists, or why it could not be written; nothing of it is left then.
pub fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Replaces a file that a user has named: completely, or not at all. A pipe or a link is not replaced but written to.
///
/// # Errors
/// Why it could not be written; the old text of a plain file then stays.
pub fn replace_named(path: &Path, text: &str) -> io::Result<()> {
    let there = fs::symlink_metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return fs::write(path, text);
    }
    match part_of(path, there.as_ref()) {
        // A user who may not make files there may still write this one.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fs::write(path, text),
        part => persist(part?, path, text.as_bytes()),
    }
}

/// Replaces a file that no user has named, completely or not at all. It writes only to a plain file.
///
/// # Errors
/// The kind of file in its place, or why it could not be written; the old text then stays.
pub fn replace_plain(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let there = plain::there(path)?;
    persist(part_of(path, there.as_ref())?, path, content.as_ref())
}

/// A new temporary file that replaces another one, with its owner and permissions.
fn part_of(path: &Path, there: Option<&Metadata>) -> io::Result<tempfile::NamedTempFile> {
    // Do not copy special bits such as setuid, which only the file's owner may have set.
    let mode = there.map_or(0o666, |there| there.mode() & 0o777);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A separate name, because `NAME.part` next to it may be the user's file.
    let mut builder = tempfile::Builder::new();
    let part = builder.prefix(".rumba-").permissions(Permissions::from_mode(mode)).tempfile_in(directory)?;
    if let Some(there) = there {
        // Only root can keep the owner; without this, root would take the file from its owner.
        let _ = fchown(part.as_file(), Some(there.uid()), Some(there.gid()));
    }
    Ok(part)
}

fn persist(mut part: tempfile::NamedTempFile, path: &Path, content: &[u8]) -> io::Result<()> {
    part.write_all(content)?;
    // A network filesystem reports only now that it is full.
    part.as_file().sync_all()?;
    part.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_that_finds_no_room_for_its_rest_is_taken_back() {
        // A histogram log that ends in a partial line stops its standard reader.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        fs::write(&path, "whole\nha").unwrap();
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        drop(Append { path: path.clone(), file: Some(full), pending: b"lf\n".to_vec(), begun_bytes: 2 });
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\n");
    }

    #[test]
    fn lines_refused_by_a_full_disk_are_written_later() {
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
        // Guards against a planted link `record.part`, which led every record into another file. `intervals.ndjson` did
        // so every second.
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
        let (said, received) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = Append::new(path.clone());
            lines.push("a second");
            said.send((lines.flush().is_err(), replace_plain(&path, "ours").unwrap_err().to_string()))
        });
        let refused = received.recv_timeout(std::time::Duration::from_secs(30)).expect("it waits");
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
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no other file is left");
    }
}
