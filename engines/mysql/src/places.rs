//! Restricts the files of a managed server to its data directory.

use std::path::{Component, Path};

use rumba_engine_api::setting::SettingError;

/// Variables with paths of data files, logs and temporary tables.
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

/// Refuses a variable that places files elsewhere. Those files would escape the measured device and the storage limit,
/// and would be missing from all sizes. All repeats would share them, although each starts from a copy of the
/// directory.
///
/// # Errors
/// The path outside the data directory.
pub fn require_within(name: &str, value: &str) -> Result<(), SettingError> {
    let leads_out = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    // With several files each has its size after a colon: `ibdata1:12M;ibdata2:12M:autoextend`.
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

    /// A redo log on another device was not measured, so InnoDB appeared to write half as much.
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
