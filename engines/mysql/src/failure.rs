//! Why a server did not start: its last words, and the setting they are about.

use rumba_core::engine::EngineError;

/// The last lines of a log that are not empty.
pub fn last_lines(log: &str, count: usize) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// What to tell of a server that did not start; `names` are the variables that
/// the experiment sets.
pub fn explain<'a>(log: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let telling: Vec<&str> = log.lines().filter(|line| is_error(line)).collect();
    let shown = if telling.is_empty() { last_lines(log, 10) } else { last_lines(&telling.join("\n"), 10) };
    match culprit(&telling, names) {
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

/// Other words that a server uses for a setting.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "rocksdb_default_cf_options",
        &["default_cf_options", "default cf options", "column family option", "cf_options", "cf options"],
    ),
    ("rocksdb_override_cf_options", &["override_cf_options", "override options"]),
    ("innodb_data_file_path", &["data_file_path", "data file size"]),
];

/// The first setting that the log's errors name; longer names first, since one may be part of another.
fn culprit<'a>(lines: &[&str], names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let lines: Vec<String> = lines.iter().map(|line| line.to_ascii_lowercase()).collect();
    lines.iter().find_map(|line| {
        let spelt = line.replace('-', "_");
        names.iter().copied().find(|name| {
            let aliases = ALIASES.iter().filter(|(of, _)| of == name).flat_map(|(_, words)| words.iter());
            contains_word(&spelt, name) || aliases.into_iter().any(|words| line.contains(words))
        })
    })
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
    let lower = message.to_ascii_lowercase();
    let is_full =
        ["errcode: 28", "errno 28", "errno: 28", "error number 28", "no space left", "disk is full", "disk full", "enough free space"]
            .iter()
            .any(|mark| lower.contains(mark));
    if is_full { EngineError::DiskFull(format!("{call}: {message}")) } else { EngineError::failed(call, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offending_setting_is_named() {
        let names = ["innodb_page_size", "port", "innodb_flush_method", "rocksdb_default_cf_options"];
        let explained = |log: &str| explain(log, names.iter().copied());
        for (log, name) in [
            ("[ERROR] mariadbd: unknown variable 'innodb-page-size=x'", "innodb_page_size"),
            ("mysqld: unknown option '--port'", "port"),
            ("[ERROR] mysqld: Error while setting value 'x' to 'innodb_flush_method'", "innodb_flush_method"),
            ("[ERROR] RocksDB: Invalid default_cf_options", "rocksdb_default_cf_options"),
        ] {
            assert!(explained(log).contains(&format!("`{name}`")), "{}", explained(log));
        }
        assert!(!explained("[ERROR] the report is lost").contains('`'));
    }

    #[test]
    fn a_log_without_errors_is_shown_by_its_end() {
        assert_eq!(explain("one\n\ntwo\n", [].into_iter()), "its log says:\none\ntwo");
    }

    #[test]
    fn a_full_device_is_known_by_the_servers_own_words() {
        let full =
            full_or_failed("start", "[ERROR] Error writing file 'x' (Errcode: 28 \"No space left on device\")".into());
        assert!(matches!(full, EngineError::DiskFull(_)));
        assert!(matches!(full_or_failed("start", "Errcode: 13".into()), EngineError::Failed { .. }));
    }
}
