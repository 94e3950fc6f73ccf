//! Finds links that place a directory's content elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

/// The links in and below a directory that lead to directories outside of it, each with its target. Links to single
/// files, such as keys, and broken links are left out.
pub fn leading_out(dir: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(own) = dir.canonicalize() else { return Vec::new() };
    let (mut found, mut pending) = (Vec::new(), vec![own.clone()]);
    while let Some(here) = pending.pop() {
        // Entries that disappear meanwhile, or that this user may not read, are skipped.
        for entry in fs::read_dir(&here).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_symlink()
                && let Ok(to) = path.canonicalize()
                && to.is_dir()
                && !to.starts_with(&own)
            {
                found.push((path, to));
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn linked_directories_are_found_at_any_depth_and_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (data, wal, space) = (root.join("data"), root.join("wal"), root.join("space"));
        for made in [&data.join("base/1"), &data.join("pg_tblspc"), &wal, &space] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(root.join("server.key"), "").unwrap();
        symlink(&wal, data.join("pg_wal")).unwrap();
        symlink("../../space", data.join("pg_tblspc/16400")).unwrap();
        symlink(data.join("base/1"), data.join("base/same")).unwrap();
        symlink(root.join("server.key"), data.join("server.key")).unwrap();
        symlink(root.join("gone"), data.join("gone")).unwrap();
        assert_eq!(leading_out(&data), [(data.join("pg_tblspc/16400"), space), (data.join("pg_wal"), wal)]);
        assert!(leading_out(&data.join("base")).is_empty() && leading_out(&root.join("nowhere")).is_empty());
    }
}
