//! Explains why a server did not start: its last messages, and the setting they concern.

use rumba_engine_api::error::EngineError;

/// The last non-empty lines of a log.
pub fn last_lines(log: &str, count: usize) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The log format of a family of servers.
#[derive(Clone, Copy, Debug)]
pub struct LogWords {
    /// Whether a line reports an error.
    pub is_error: fn(&str) -> bool,
    /// Settings whose names appear in such lines for other reasons only.
    pub never_meant: &'static [&'static str],
    /// Other words for a setting.
    pub aliases: &'static [(&'static str, &'static [&'static str])],
}

impl LogWords {
    /// Explains why a server did not start; `settings` are its variables and their values.
    pub fn explain(&self, log: &str, settings: &[(&str, &str)]) -> String {
        let telling: Vec<&str> = log.lines().filter(|line| (self.is_error)(line)).collect();
        // A server may abort after it has reported a full device, and its backtrace then fills the last messages.
        if let Some(line) = telling.iter().find(|line| reports_of_full_device(line)) {
            return format!("its log says:\n{line}");
        }
        let shown = if telling.is_empty() { last_lines(log, 10) } else { last_lines(&telling.join("\n"), 10) };
        match self.culprit(&telling, settings) {
            Some(name) => format!("the setting `{name}` seems to be the cause; its log has:\n{shown}"),
            None => format!("its log says:\n{shown}"),
        }
    }

    /// The first setting whose name or value is in the log's errors. Longer names are tried first, because a name may
    /// be part of a longer one.
    fn culprit<'a>(&self, lines: &[&str], settings: &[(&'a str, &'a str)]) -> Option<&'a str> {
        let meant = settings.iter().copied().filter(|(name, _)| !self.never_meant.contains(name));
        let mut settings: Vec<_> = meant.collect();
        settings.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let lines: Vec<String> = lines.iter().map(|line| line.to_ascii_lowercase()).collect();
        let named = lines.iter().find_map(|line| {
            let spelt = line.replace('-', "_");
            settings.iter().find(|(name, _)| {
                let aliases = self.aliases.iter().filter(|(of, _)| of == name).flat_map(|(_, words)| words.iter());
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
}

/// Whether a value is specific enough to identify its setting: not a number and not a switch.
fn is_telling(value: &str) -> bool {
    value.len() >= 5 && value.contains(|c: char| !c.is_ascii_digit())
}

fn contains_word(line: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    line.match_indices(name).any(|(at, _)| {
        // `--port` is normalized to `__port` here, and an option's dashes are not part of its name.
        let before = line[..at].trim_end_matches("__").chars().next_back();
        !is_part(before) && !is_part(line[at + name.len()..].chars().next())
    })
}

/// Distinguishes a full device from other failures. Servers write `Errcode: 28` or `OS errno 28` for it, and apt writes
/// "enough free space".
pub fn full_or_failed(call: &'static str, message: String) -> EngineError {
    if reports_of_full_device(&message) {
        EngineError::DiskFull(format!("{call}: {message}"))
    } else {
        EngineError::failed(call, message)
    }
}

/// Whether a server's message reports a full device.
pub fn reports_of_full_device(words: &str) -> bool {
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

    const WORDS: LogWords = LogWords { is_error: |line| line.contains("ERROR"), never_meant: &[], aliases: &[] };

    #[test]
    fn a_log_without_errors_is_shown_by_its_end() {
        assert_eq!(WORDS.explain("one\n\ntwo\n", &[]), "its log says:\none\ntwo");
    }

    #[test]
    fn a_value_that_the_log_repeats_names_its_setting() {
        let reported = WORDS.explain("ERROR: /nowhere/x was not found", &[("a_dir", "/nowhere"), ("size", "1")]);
        assert!(reported.contains("`a_dir`"), "{reported}");
    }

    #[test]
    fn a_full_device_is_known_by_the_servers_own_words() {
        let full =
            full_or_failed("start", "[ERROR] Error writing file 'x' (Errcode: 28 \"No space left on device\")".into());
        assert!(matches!(full, EngineError::DiskFull(_)));
        assert!(matches!(full_or_failed("start", "Errcode: 13".into()), EngineError::Failed { .. }));
    }
}
