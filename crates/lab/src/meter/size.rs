//! The disk space of a directory.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rumba_engine_api::engine::KEPT;

/// The unit of `st_blocks` (stat(2)), independent of the filesystem's block size.
const BLOCK_BYTES: u64 = 512;

/// Bytes allocated on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSize {
    /// All files and directories, logs included.
    pub total: u64,
    pub logs: u64,
}

/// The bytes that a directory has allocated, as du(1) counts them: blocks and not lengths, a file with several names
/// once, links not followed. Files that the engine removes meanwhile are skipped. A directory [`KEPT`] in it is skipped
/// too, because it holds files for the results and no data.
///
/// # Errors
/// When the directory itself, or something in it that still exists, cannot be read.
pub fn allocated(dir: &Path, is_log: &dyn Fn(&Path) -> bool) -> io::Result<DiskSize> {
    let mut size = DiskSize { total: blocks(&fs::symlink_metadata(dir)?), logs: 0 };
    let kept = dir.join(KEPT);
    let mut seen = HashSet::new();
    let mut pending = vec![fs::read_dir(dir)?];
    while let Some(mut entries) = pending.pop() {
        while let Some(entry) = entries.next().transpose()? {
            let path = entry.path();
            if path == kept {
                continue;
            }
            let Some(metadata) = unless_gone(entry.metadata())? else { continue };
            if !metadata.is_dir() && metadata.nlink() > 1 && !seen.insert((metadata.dev(), metadata.ino())) {
                continue;
            }
            size.total += blocks(&metadata);
            if metadata.is_dir() {
                pending.extend(unless_gone(fs::read_dir(&path))?);
            } else if is_log(&path) {
                size.logs += blocks(&metadata);
            }
        }
    }
    Ok(size)
}

fn blocks(metadata: &Metadata) -> u64 {
    metadata.blocks() * BLOCK_BYTES
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    fn write(path: &Path, bytes: usize) {
        fs::write(path, vec![b'x'; bytes]).unwrap();
        // Filesystems allocate late; a synced file has its blocks.
        File::open(path).unwrap().sync_all().unwrap();
    }

    fn no_log(_: &Path) -> bool {
        false
    }

    #[test]
    fn the_size_is_what_du_says_and_logs_are_apart() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("journal/old")).unwrap();
        write(&dir.path().join("table"), 100_000);
        write(&dir.path().join("journal/1"), 5_000);
        write(&dir.path().join("journal/old/0"), 4_096);
        fs::hard_link(dir.path().join("table"), dir.path().join("checkpoint")).unwrap();
        symlink("/usr", dir.path().join("elsewhere")).unwrap();
        File::create(dir.path().join("sparse")).unwrap().set_len(1 << 30).unwrap();
        let du = Command::new("du").args(["-s", "-B1"]).arg(dir.path()).output().unwrap();
        fs::create_dir(dir.path().join(KEPT)).unwrap();
        write(&dir.path().join(KEPT).join("error.log"), 100_000);
        let size =
            allocated(dir.path(), &|path| path.parent().is_some_and(|parent| parent.ends_with("journal"))).unwrap();
        assert_eq!(size.logs, 8192);
        let du = String::from_utf8(du.stdout).unwrap();
        assert_eq!(size.total.to_string(), du.split_whitespace().next().unwrap());
    }

    #[test]
    fn files_that_vanish_meanwhile_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..50 {
            write(&dir.path().join(number.to_string()), 1);
        }
        // The engine compacts while it is measured: everything goes at the first file seen.
        let size = allocated(dir.path(), &|_| {
            for number in 0..50 {
                let _ = fs::remove_file(dir.path().join(number.to_string()));
            }
            true
        })
        .unwrap();
        assert!(size.logs <= 4096 * 50);
        assert!(allocated(&dir.path().join("missing"), &no_log).is_err());
    }
}
