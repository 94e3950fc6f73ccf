//! Why a server did not start: its last words, and the setting they are about.

use rumba_core::engine::EngineError;

/// The last lines of a log that are not empty.
pub fn last_lines(log: &str, count: usize) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// What to tell of a server that did not start; `settings` are the variables
/// that it was given, and their values.
pub fn explain(log: &str, settings: &[(&str, &str)]) -> String {
    let telling: Vec<&str> = log.lines().filter(|line| is_error(line)).collect();
    let shown = if telling.is_empty() { last_lines(log, 10) } else { last_lines(&telling.join("\n"), 10) };
    match culprit(&telling, settings) {
        Some(name) => format!("the setting `{name}` seems to be why; its log says:\n{shown}"),
        None => format!("its log says:\n{shown}"),
    }
}

fn is_error(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["[error]", "unknown option", "unknown variable", "unknown suffix", "error while setting value", "ambiguous option"]
        .iter()
        .any(|mark| lower.contains(mark))
        || lower.contains("rocksdb: ") && ["invalid", "fail", "cannot", "error"].iter().any(|word| lower.contains(word))
}

/// Names of engines that are options as well: the switch that makes the server insist on the engine. A log line that
/// has the name speaks of the engine, and never of the switch.
const SWITCHES: [&str; 2] = ["rocksdb", "tokudb"];

/// Other words that a server uses for a setting.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "rocksdb_default_cf_options",
        &["default_cf_options", "default cf options", "column family option", "cf_options", "cf options"],
    ),
    ("rocksdb_override_cf_options", &["override_cf_options", "override options"]),
    ("innodb_data_file_path", &["data_file_path", "data file size", "tablespace size"]),
];

/// The first setting that the log's errors name, or whose value they repeat;
/// longer names first, since one may be part of another.
fn culprit<'a>(lines: &[&str], settings: &[(&'a str, &'a str)]) -> Option<&'a str> {
    let mut settings: Vec<_> = settings.iter().copied().filter(|(name, _)| !SWITCHES.contains(name)).collect();
    settings.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let lines: Vec<String> = lines.iter().map(|line| line.to_ascii_lowercase()).collect();
    let named = lines.iter().find_map(|line| {
        let spelt = line.replace('-', "_");
        settings.iter().find(|(name, _)| {
            let aliases = ALIASES.iter().filter(|(of, _)| of == name).flat_map(|(_, words)| words.iter());
            contains_word(&spelt, name) || aliases.into_iter().any(|words| line.contains(words))
        })
    });
    let repeated = || {
        lines.iter().find_map(|line| {
            settings.iter().find(|(_, value)| is_telling(value) && line.contains(&value.to_ascii_lowercase()))
        })
    };
    named.or_else(repeated).map(|(name, _)| *name)
}

/// Whether a value is one that a log does not repeat by chance: no number, no switch.
fn is_telling(value: &str) -> bool {
    value.len() >= 5 && value.contains(|c: char| !c.is_ascii_digit())
}

fn contains_word(line: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    line.match_indices(name).any(|(at, _)| {
        // `--port` is spelt `__port` here: an option's dashes are no part of its name.
        let before = line[..at].trim_end_matches("__").chars().next_back();
        !is_part(before) && !is_part(line[at + name.len()..].chars().next())
    })
}

/// A failure; told apart from a full device, for which servers write `Errcode: 28`
/// or `OS errno 28` and apt "enough free space".
pub fn full_or_failed(call: &'static str, message: String) -> EngineError {
    if tells_of_full_device(&message) {
        EngineError::DiskFull(format!("{call}: {message}"))
    } else {
        EngineError::failed(call, message)
    }
}

/// Whether a server's words are about a full device.
pub fn tells_of_full_device(words: &str) -> bool {
    let lower = words.to_ascii_lowercase();
    [
        "errcode: 28",
        "errno 28",
        "errno: 28",
        "error number 28",
        "no space left",
        "disk is full",
        "disk full",
        "enough free space",
    ]
    .iter()
    .any(|mark| lower.contains(mark))
}

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
        let explained = |log: &str| explain(log, &settings);
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

    /// Every line of MyRocks' has the engine's name, which is the name of an option that rumba sets itself: a server
    /// that ended for lack of room was said to have ended because of "the setting `rocksdb`".
    #[test]
    fn the_name_of_the_engine_in_a_line_is_no_setting() {
        let settings = [("rocksdb", "FORCE"), ("tokudb", "FORCE"), ("rocksdb_max_open_files", "-2")];
        for line in ["[ERROR] RocksDB: Error writing to the WAL: IO error", "[ERROR] TokuDB: failed"] {
            assert!(explain(line, &settings).starts_with("its log says"), "{}", explain(line, &settings));
        }
        let named = explain("[ERROR] RocksDB: rocksdb_max_open_files is invalid", &settings);
        assert!(named.contains("`rocksdb_max_open_files`"), "{named}");
    }

    #[test]
    fn a_log_without_errors_is_shown_by_its_end() {
        assert_eq!(explain("one\n\ntwo\n", &[]), "its log says:\none\ntwo");
    }

    #[test]
    fn a_full_device_is_known_by_the_servers_own_words() {
        let full =
            full_or_failed("start", "[ERROR] Error writing file 'x' (Errcode: 28 \"No space left on device\")".into());
        assert!(matches!(full, EngineError::DiskFull(_)));
        assert!(matches!(full_or_failed("start", "Errcode: 13".into()), EngineError::Failed { .. }));
    }
}
