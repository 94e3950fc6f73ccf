//! A kernel file that is opened once and read many times.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// An open file whose text is generated at each reading. A file of `/proc/PID` stays with that process: once the
/// process has ended, reading fails, even if its pid was reused.
pub struct ProcFile {
    path: String,
    file: File,
}

impl ProcFile {
    pub fn open(path: impl Into<String>) -> Result<Self, String> {
        let path = path.into();
        let file = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self { path, file })
    }

    /// The whole text, from the start.
    pub fn read(&self) -> Result<String, String> {
        // Larger than any of these files on a machine with tens of devices:
        // one call reads all of it and one sees the end.
        let mut bytes = vec![0; 16 * 1024];
        let mut length = 0;
        loop {
            let count = self
                .file
                .read_at(&mut bytes[length..], length as u64)
                .map_err(|error| format!("{}: {error}", self.path))?;
            if count == 0 {
                break;
            }
            length += count;
            if length == bytes.len() {
                bytes.resize(length * 2, 0);
            }
        }
        bytes.truncate(length);
        String::from_utf8(bytes).map_err(|_| format!("{}: not text", self.path))
    }

    /// The error for a text that is not as proc(5) describes it.
    pub fn unexpected(&self) -> String {
        format!("{}: not as expected", self.path)
    }
}
