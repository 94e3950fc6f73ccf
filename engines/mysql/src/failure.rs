//! How to recognize errors in these servers' logs.

use rumba_server_kit::failure::LogWords;

/// The rules for these servers' logs.
pub const LOG_WORDS: LogWords = LogWords { is_error, never_meant: &SWITCHES, aliases: ALIASES };

fn is_error(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["[error]", "unknown option", "unknown variable", "unknown suffix", "error while setting value", "ambiguous option"]
        .iter()
        .any(|mark| lower.contains(mark))
        || lower.contains("rocksdb: ") && ["invalid", "fail", "cannot", "error"].iter().any(|word| lower.contains(word))
}

/// Engine names that are also options: the switch that makes the server insist on the engine. A log line with such a
/// name always means the engine, never the switch.
const SWITCHES: [&str; 2] = ["rocksdb", "tokudb"];

/// Other words that a server's log uses for a setting.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "rocksdb_default_cf_options",
        &["default_cf_options", "default cf options", "column family option", "cf_options", "cf options"],
    ),
    ("rocksdb_override_cf_options", &["override_cf_options", "override options"]),
    ("innodb_data_file_path", &["data_file_path", "data file size", "tablespace size"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offending_setting_is_named() {
        let settings = [
            ("innodb_page_size", "16384"),
            ("port", "3306"),
            ("innodb_flush_method", "O_DIRECT"),
            ("rocksdb_default_cf_options", "a=1"),
            ("innodb_log_group_home_dir", "/nowhere"),
        ];
        let explained = |log: &str| LOG_WORDS.explain(log, &settings);
        for (log, name) in [
            ("[ERROR] mariadbd: unknown variable 'innodb-page-size=x'", "innodb_page_size"),
            ("mysqld: unknown option '--port'", "port"),
            ("[ERROR] mysqld: Error while setting value 'x' to 'innodb_flush_method'", "innodb_flush_method"),
            ("[ERROR] RocksDB: Invalid default_cf_options", "rocksdb_default_cf_options"),
            ("[ERROR] InnoDB: File /nowhere/ib_logfile0 was not found", "innodb_log_group_home_dir"),
        ] {
            assert!(explained(log).contains(&format!("`{name}`")), "{}", explained(log));
        }
        assert!(!explained("[ERROR] the report is lost").contains('`'));
    }

    /// Every MyRocks log line contains the engine's name, which is also an option that rumba sets. A server that ended
    /// with a full disk was therefore reported as ended because of "the setting `rocksdb`".
    #[test]
    fn the_name_of_the_engine_in_a_line_is_no_setting() {
        let settings = [("rocksdb", "FORCE"), ("tokudb", "FORCE"), ("rocksdb_max_open_files", "-2")];
        for line in ["[ERROR] RocksDB: Error writing to the WAL: IO error", "[ERROR] TokuDB: failed"] {
            assert!(
                LOG_WORDS.explain(line, &settings).starts_with("its log says"),
                "{}",
                LOG_WORDS.explain(line, &settings)
            );
        }
        let named = LOG_WORDS.explain("[ERROR] RocksDB: rocksdb_max_open_files is invalid", &settings);
        assert!(named.contains("`rocksdb_max_open_files`"), "{named}");
    }
}
