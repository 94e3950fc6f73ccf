//! The engine's files that are kept next to the results: a server's configuration and log.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rumba_engine_api::engine::KEPT;

/// Bytes of a file that are kept: half from its head and half from its tail.
const LONGEST: u64 = 8 << 20;
/// Bytes of memory for all files of a trial; the rest is left out with a warning.
const ALL: u64 = 64 << 20;

/// The files, in memory. They are written after the data is removed, because the data may have filled the disk.
#[derive(Debug, Default)]
pub struct EngineFiles {
    files: Vec<(String, Vec<u8>)>,
    /// Why files are missing, for a person.
    pub problems: Vec<String>,
}

impl EngineFiles {
    /// Reads the plain files directly in an instance's directory [`KEPT`]; none when there is no such directory. Links
    /// are not followed.
    pub fn of(instance_dir: &Path) -> Self {
        let mut found = Self::default();
        let dir = instance_dir.join(KEPT);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
            Err(error) => {
                found.problems.push(format!("{}: {error}", dir.display()));
                return found;
            }
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let mut room = ALL;
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match contents(&path, LONGEST.min(room)) {
                Ok(Some(bytes)) => {
                    room = room.saturating_sub(bytes.len() as u64);
                    found.files.push((name, bytes));
                }
                Ok(None) => {}
                Err(error) => found.problems.push(format!("{name}: {error}")),
            }
        }
        found
    }

    /// Writes the files into a trial's results; what is there already stays as it is.
    pub fn write(&mut self, directory: &Path) {
        for (name, bytes) in &self.files {
            if let Err(error) = write_new(&directory.join(name), bytes) {
                self.problems.push(format!("{name}: {error}"));
            }
        }
    }
}

/// Writes a new file. A partial file is removed, because it would mislead and take space that the record needs.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        // If the removal fails, the partial file stays; the caller reports the original error.
        let _ = fs::remove_file(path);
    })
}

/// A plain file's bytes, or its head and tail when it is longer; `None` for anything else.
fn contents(path: &Path, longest: u64) -> io::Result<Option<Vec<u8>>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    // The file may have been replaced meanwhile: links are not followed, and a pipe does not block.
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= longest {
        file.take(longest).read_to_end(&mut bytes)?;
        return Ok(Some(bytes));
    }
    let half = longest / 2;
    (&file).take(half).read_to_end(&mut bytes)?;
    let left_out = length - 2 * half;
    bytes.extend(format!("\n--- rumba left out {left_out} of {length} bytes here ---\n").into_bytes());
    file.seek(SeekFrom::Start(length - half))?;
    file.take(half).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn instance() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(KEPT)).unwrap();
        dir
    }

    #[test]
    fn plain_files_are_kept_and_link_targets_are_not() {
        let (dir, results) = (instance(), tempfile::tempdir().unwrap());
        let kept = dir.path().join(KEPT);
        fs::write(kept.join("error.log"), "ready for connections").unwrap();
        fs::write(kept.join("record.json"), "not ours").unwrap();
        symlink("/etc/passwd", kept.join("link")).unwrap();
        fs::create_dir(kept.join("directory")).unwrap();
        fs::write(results.path().join("record.json"), "the record").unwrap();
        let mut files = EngineFiles::of(dir.path());
        fs::remove_dir_all(dir.path()).unwrap();
        files.write(results.path());
        assert_eq!(fs::read_to_string(results.path().join("error.log")).unwrap(), "ready for connections");
        assert_eq!(fs::read_to_string(results.path().join("record.json")).unwrap(), "the record");
        assert_eq!(fs::read_dir(results.path()).unwrap().count(), 2);
        assert_eq!(files.problems, ["record.json: File exists (os error 17)"]);
    }

    #[test]
    fn long_log_keeps_head_and_tail_and_notes_the_gap() {
        let dir = instance();
        let log = dir.path().join(KEPT).join("error.log");
        fs::write(&log, [vec![b'h'; 60], vec![b'm'; 100], vec![b't'; 60]].concat()).unwrap();
        let text = String::from_utf8(contents(&log, 100).unwrap().unwrap()).unwrap();
        let middle = "\n--- rumba left out 120 of 220 bytes here ---\n";
        assert_eq!(text, format!("{}{middle}{}", "h".repeat(50), "t".repeat(50)));
        assert_eq!(contents(&log, 220).unwrap().unwrap().len(), 220, "one that fits is whole");
    }

    #[test]
    fn an_instance_without_such_a_directory_keeps_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let found = EngineFiles::of(dir.path());
        assert!(found.files.is_empty() && found.problems.is_empty());
    }
}
