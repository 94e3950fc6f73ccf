//! Restricts the files of a managed server to its data directory.

use std::path::{Component, Path};

use rumba_engine_api::setting::SettingError;

/// Variables that may name a place outside the data directory.
const MAY_LEAD_OUT: [&str; 10] = [
    // Parts of the installed server, which it only reads.
    "character_sets_dir",
    "language",
    "lc_messages_dir",
    "plugin_dir",
    "plugin_load",
    "plugin_load_add",
    // SQL, which may contain a comment.
    "init_connect",
    "init_replica",
    "init_slave",
    // An address.
    "wsrep_cluster_address",
];

/// The beginnings of the names of variables for certificates and keys, which the server only reads.
const CERTIFICATES: [&str; 3] = ["ssl_", "admin_ssl_", "mysqlx_ssl_"];

/// Refuses a variable that places files elsewhere. Those files would escape the measured device and the storage limit,
/// and would be missing from all sizes. All repeats would share them, although each starts from a copy of the
/// directory.
///
/// # Errors
/// The path outside the data directory.
pub fn require_within(name: &str, value: &str) -> Result<(), SettingError> {
    let may_lead_out = MAY_LEAD_OUT.contains(&name) || CERTIFICATES.iter().any(|prefix| name.starts_with(prefix));
    if may_lead_out || !leads_out(value) {
        return Ok(());
    }
    let problem = format!("`{value}` is outside the data directory, so rumba cannot measure or limit the writes there");
    Err(SettingError::new(
        name,
        problem,
        "leave it out, or name a place in the data directory; [run] data_dir moves all of it",
    ))
}

/// Whether a value, or a part of it, is a path that leaves the data directory, which is the server's working directory.
/// The value decides and not the variable's name, because every release and plugin adds variables with paths.
fn leads_out(value: &str) -> bool {
    let is_elsewhere = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    // Some values are lists of paths, have a size behind each (`ibdata1:12M;ibdata2:12M:autoextend`), or hold options
    // (`d:t:o,/tmp/trace`).
    let mut parts = value.split([':', ';', ',', '=', '{', '}']).map(str::trim);
    // The server replaces a tilde with the home directory.
    parts.any(|part| part.starts_with('~') || Path::new(part).components().any(is_elsewhere))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A redo log on another device was not measured, so InnoDB appeared to write half as much. Only listed variables
    /// were refused, so other files, such as logs and MyRocks' second cache, could still be elsewhere.
    #[test]
    fn files_stay_where_they_are_measured_limited_and_copied() {
        for (name, place) in [
            ("innodb_log_group_home_dir", "/ssd/redo"),
            ("innodb_undo_directory", "../undo"),
            ("innodb_data_file_path", "ibdata1:12M;/ssd/ibdata2:12M:autoextend"),
            ("innodb_buffer_pool_filename", "/ssd/pool"),
            ("rocksdb_wal_dir", "/dev/shm"),
            ("rocksdb_persistent_cache_path", "/elsewhere/"),
            ("slow_query_log_file", "/elsewhere/x.log"),
            ("general_log_file", "../../x.log"),
            ("relay_log", "logs/../../relay"),
            ("log_bin_index", "~/binlog.index"),
            ("tmpdir", "tmp:/tmp"),
            ("debug", "d:t:o,/tmp/server.trace"),
            ("a_plugin_of_tomorrow", "cache={path = /ssd}"),
        ] {
            let refused = require_within(name, place).unwrap_err();
            assert!(refused.key == name && refused.problem.contains("outside the data directory"), "{refused:?}");
            assert!(refused.remedy.contains("name a place in the data directory"), "{refused:?}");
        }
    }

    #[test]
    fn values_within_and_installed_files_are_accepted() {
        for (name, value) in [
            ("innodb_log_group_home_dir", "redo"),
            ("innodb_data_file_path", "ibdata1:12M;ibdata2:12M:autoextend"),
            ("innodb_data_home_dir", ""),
            ("rocksdb_datadir", "./.rocksdb"),
            ("slow_query_log_file", "logs/slow.log"),
            ("character_sets_dir", "/usr/share/mysql/charsets"),
            ("ssl_ca", "/etc/ssl/ca.pem"),
            ("init_connect", "SET @a = 4; /* for old clients */"),
            // No paths.
            ("default_time_zone", "+02:00"),
            ("time_zone", "Europe/Warsaw"),
            ("ft_boolean_syntax", "+ -><()~*:\"\"&|"),
            ("rocksdb_default_cf_options", "block_based_table_factory={filter_policy=bloomfilter:10:false}"),
            ("innodb_io_capacity", "2000"),
        ] {
            assert_eq!(require_within(name, value), Ok(()), "{name}");
        }
    }
}
