//! Evicts files from the page cache before the start. A cached page is charged to the group that touched it first, so
//! pages cached outside a memory group are free inside it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

/// Evicts a file, or all files below a directory, from the page cache. Only the top path may be a link. Dirty pages are
/// written first; pages that a running process has mapped stay.
///
/// # Errors
/// When a file cannot be read or written back.
pub fn evict(path: &Path) -> io::Result<()> {
    evict_all(path, &fs::metadata(path)?)
}

fn evict_all(path: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            evict_all(&entry.path(), &entry.metadata()?)?;
        }
    } else if metadata.is_file() {
        let file = File::open(path)?;
        // Dirty pages cannot be evicted.
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
