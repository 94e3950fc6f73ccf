//! Adapts the configuration of a copied instance to its new directory.

use std::fs;
use std::io;
use std::path::Path;

/// The longest configuration file, bytes.
const LONGEST: u64 = 64 << 10;

/// Replaces the old path `from` by the new directory in a server's configuration, which holds absolute paths. It reads
/// only plain text files directly in the directory; the data is below it.
///
/// # Errors
/// A file that cannot be read or written.
pub fn name_again(directory: &Path, from: &Path) -> io::Result<()> {
    let (Some(here), Some(there)) = (directory.to_str(), from.to_str()) else { return Ok(()) };
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
        if !found.is_file() || found.len() > LONGEST {
            continue;
        }
        let Ok(text) = String::from_utf8(fs::read(&path)?) else { continue };
        if text.contains(there) {
            // Overwrite in place, so that the file keeps its owner and mode.
            fs::write(&path, text.replace(there, here))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_data_config_names_new_directory_and_data_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("volume/there"));
        let names_there = format!("datadir = {}\n", there.join("data").display());
        fs::create_dir_all(here.join("data")).unwrap();
        fs::write(here.join("my.cnf"), &names_there).unwrap();
        fs::write(here.join("data/rows"), &names_there).unwrap();
        fs::write(here.join("pages"), [0xff, 0xfe]).unwrap();
        name_again(&here, &there).unwrap();
        let reported = fs::read_to_string(here.join("my.cnf")).unwrap();
        assert_eq!(reported, format!("datadir = {}\n", here.join("data").display()));
        assert_eq!(fs::read_to_string(here.join("data/rows")).unwrap(), names_there);
        assert_eq!(fs::read(here.join("pages")).unwrap(), [0xff, 0xfe]);
    }
}
