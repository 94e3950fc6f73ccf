//! Page cache belongs to whoever touched it first: what was cached outside a
//! memory group is read for free inside it. So it is evicted before the start.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

/// What was evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Files that the kernel was told to let go.
    pub files: u64,
    /// Their bytes, cached or not.
    pub bytes: u64,
}

/// Evicts a file, or all files below a directory, from the page cache. Links
/// are followed at the top alone. What is changed is written first, and what a
/// running process has mapped stays.
///
/// # Errors
/// When a file cannot be read or written back.
pub fn evict(path: &Path) -> io::Result<Evicted> {
    let mut evicted = Evicted::default();
    evict_into(path, &fs::metadata(path)?, &mut evicted)?;
    Ok(evicted)
}

fn evict_into(path: &Path, metadata: &fs::Metadata, evicted: &mut Evicted) -> io::Result<()> {
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            evict_into(&entry.path(), &entry.metadata()?, evicted)?;
        }
    } else if metadata.is_file() {
        let file = File::open(path)?;
        // Pages that are not on disk yet cannot be let go.
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
        evicted.files += 1;
        evicted.bytes += metadata.len();
    }
    Ok(())
}
