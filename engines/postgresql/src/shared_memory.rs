//! The shared memory of a server's processes. A server frees it on a normal exit. After a kill it would remain on the
//! host until the next start on the same data directory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A server's shared memory on the host.
pub struct SharedMemory {
    pid: u32,
    /// Files in `/dev/shm`, with their inodes, because another process may reuse a name.
    files: BTreeMap<PathBuf, u64>,
    /// The System V segment's number.
    segment: Option<i32>,
}

/// The prefix of the files' names.
const FILES: &str = "/dev/shm/PostgreSQL.";

impl SharedMemory {
    /// The shared memory of the server with this first process and data directory.
    pub fn of(pid: u32, data: &Path) -> Self {
        let reported = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        let mut memory = Self { pid, files: BTreeMap::new(), segment: segment_of(&reported) };
        memory.look();
        memory
    }

    /// Adds the shared memory that the server has allocated since.
    pub fn look(&mut self) {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        self.files.extend(maps.lines().filter_map(file_of));
    }

    /// Frees the shared memory of a server that has ended.
    pub fn remove(&self) {
        for (path, inode) in &self.files {
            if fs::metadata(path).is_ok_and(|found| found.ino() == *inode) {
                // A file that cannot be removed takes 1 MB until the next boot.
                let _ = fs::remove_file(path);
            }
        }
        if let Some(segment) = self.segment {
            remove_segment(segment, self.pid);
        }
    }
}

/// The segment's key and number are on the seventh line of `postmaster.pid`.
fn segment_of(reported: &str) -> Option<i32> {
    reported.lines().nth(6)?.split_whitespace().nth(1)?.parse().ok()
}

/// Parses a line of `address rights offset device inode path`.
fn file_of(line: &str) -> Option<(PathBuf, u64)> {
    let mut fields = line.split_whitespace();
    let inode = fields.nth(4)?.parse().ok()?;
    let path = fields.next()?;
    path.starts_with(FILES).then(|| (PathBuf::from(path), inode))
}

/// Removes the segment of this number if this process created it.
fn remove_segment(segment: i32, maker: u32) {
    // SAFETY: shmctl writes into the structure it is given, for which zeros are a valid value, and the last call takes
    // none.
    unsafe {
        let mut found: libc::shmid_ds = std::mem::zeroed();
        if libc::shmctl(segment, libc::IPC_STAT, &mut found) == 0 && found.shm_cpid as u32 == maker {
            libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_read_from_the_servers_files() {
        let reported = "77\n/data\n1700000000\n5432\n.\n\n  9991957    196624\nready   \n";
        assert_eq!(segment_of(reported), Some(196_624));
        let line = "7f13e8a00000-7f13e8b00000 rw-s 00000000 00:1a 12     /dev/shm/PostgreSQL.1147571948";
        assert_eq!(file_of(line), Some((PathBuf::from("/dev/shm/PostgreSQL.1147571948"), 12)));
        assert_eq!(file_of("7f13e8a00000-7f13e8b00000 rw-s 00000000 00:1a 12     /dev/shm/other"), None);
    }
}
