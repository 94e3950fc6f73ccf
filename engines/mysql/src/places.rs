//! Where a server of rumba's own has its files: in the data directory, all of them.

use std::path::{Component, Path};

use rumba_core::setting::SettingError;

/// Variables that say where files of the data, of logs and of temporary tables are.
const PLACES: [&str; 16] = [
    "aria_log_dir_path",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_temp_data_file_path",
    "innodb_temp_tablespaces_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "rocksdb_datadir",
    "rocksdb_tmpdir",
    "rocksdb_wal_dir",
    "tmpdir",
    "tokudb_data_dir",
    "tokudb_log_dir",
    "tokudb_tmp_dir",
];

/// Refuses a variable that has files elsewhere. They would be written past the device that is measured and the limit of its
/// storage, be counted in no size, and be the same for all repeats, which start from copies of the directory.
///
/// # Errors
/// The place that is not within it.
pub fn require_within(name: &str, value: &str) -> Result<(), SettingError> {
    let leads_out = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    // Of several files each has its size behind it: `ibdata1:12M;ibdata2:12M:autoextend`.
    let is_elsewhere = || value.split([':', ';']).any(|place| Path::new(place.trim()).components().any(leads_out));
    if !PLACES.contains(&name) || !is_elsewhere() {
        return Ok(());
    }
    let problem = format!("`{value}` is not within the data directory: what is written there would be in no figure");
    Err(SettingError::new(
        name,
        problem,
        "leave it out, or name a place within it; [run] data_dir is where all of it lies",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A redo log on another device was measured by nobody: InnoDB wrote half of what it does.
    #[test]
    fn files_stay_where_they_are_measured_limited_and_copied() {
        for (name, place) in [
            ("innodb_log_group_home_dir", "/ssd/redo"),
            ("innodb_undo_directory", "../undo"),
            ("innodb_data_file_path", "ibdata1:12M;/ssd/ibdata2:12M:autoextend"),
            ("rocksdb_wal_dir", "/dev/shm"),
            ("tmpdir", "tmp:/tmp"),
        ] {
            let refused = require_within(name, place).unwrap_err();
            assert!(refused.key == name && refused.problem.contains("in no figure"), "{refused:?}");
        }
        for (name, place) in [
            ("innodb_log_group_home_dir", "redo"),
            ("innodb_data_file_path", "ibdata1:12M;ibdata2:12M:autoextend"),
            ("rocksdb_datadir", "./.rocksdb"),
            ("character_sets_dir", "/usr/share/mysql/charsets"),
        ] {
            assert_eq!(require_within(name, place), Ok(()));
        }
    }
}
