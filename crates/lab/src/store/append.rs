//! Files that a full disk must not damage.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that only grows. What cannot be written now is kept in memory and
/// tried again with the next line, so that a disk that was full for a while
/// costs nothing.
pub struct Append {
    path: PathBuf,
    file: Option<File>,
    pending: Vec<u8>,
}

impl Append {
    /// A file at `path`, made with its first line.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, pending: Vec::new() }
    }

    /// Appends a line.
    pub fn line(&mut self, line: &str) {
        self.pending.extend_from_slice(line.as_bytes());
        self.pending.push(b'\n');
        // The failure is not lost: `flush` at the end reports it.
        let _ = self.flush();
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
            self.file = Some(OpenOptions::new().create(true).append(true).open(&self.path)?);
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
        self.pending.drain(..written);
        if result.is_err() {
            // The next try opens it anew: the volume may have been mounted again.
            self.file = None;
        }
        result
    }
}

/// Replaces a file whole: readers see the old text or the new, never a part.
///
/// # Errors
/// Why it could not be written; the old text then stands.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let result = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    result
}
