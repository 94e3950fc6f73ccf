//! The settings of SQLite. SQLite takes an unknown word for a known one, which would set a different durability or
//! cache than requested. Each value is therefore checked here.

use crate::cli::options::OptionSet;
use crate::cli::refusal::Refusal;

const JOURNAL_MODES: [&str; 6] = ["wal", "delete", "truncate", "persist", "memory", "off"];
/// The values of `--sqlite-synchronous`.
const SYNCHRONOUS: [&str; 4] = ["off", "normal", "full", "extra"];
/// SQLite has a number of 32 bits for it.
const MOST_CACHE_KIB: u64 = i32::MAX as u64;

/// Options of SQLite but for its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteSettings {
    /// How a transaction is made atomic.
    pub journal_mode: &'static str,
    /// When files are synced.
    pub synchronous: &'static str,
    /// The page cache, in KiB.
    pub cache_kib: u64,
    /// How long a statement waits for a lock, in milliseconds.
    pub busy_timeout_ms: u32,
}

impl SqliteSettings {
    /// Reads the options; an option given without a value has its default.
    ///
    /// # Errors
    /// An invalid value, with the valid ones.
    pub fn read(options: &OptionSet) -> Result<Self, Refusal> {
        Ok(Self {
            journal_mode: word(options, "sqlite-journal-mode", &JOURNAL_MODES)?,
            synchronous: word(options, "sqlite-synchronous", &SYNCHRONOUS)?,
            cache_kib: cache_kib(options)?,
            busy_timeout_ms: busy_timeout_ms(options)?,
        })
    }
}

fn given<'o>(options: &'o OptionSet, name: &str) -> &'o str {
    let default = || options.info(name).and_then(|info| info.default.as_deref()).unwrap_or_default();
    options.text(name).unwrap_or_else(default)
}

fn word(options: &OptionSet, name: &str, words: &'static [&'static str]) -> Result<&'static str, Refusal> {
    let given = given(options, name);
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(given));
    found.copied().ok_or_else(|| Refusal::not_allowed(name, given, &either(words)))
}

fn cache_kib(options: &OptionSet) -> Result<u64, Refusal> {
    const NAME: &str = "sqlite-cache-size";
    let given = given(options, NAME);
    let size = size_kib(given).filter(|kib| (1..=MOST_CACHE_KIB).contains(kib));
    size.ok_or_else(|| Refusal::not_allowed(NAME, given, "a size from 1K to 2047G, such as 64M"))
}

/// A size in KiB, if the whole text is a size. sysbench's own parser takes an invalid text for 0.
fn size_kib(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().ok()?;
    match unit {
        "" => Some(number / 1024),
        "K" | "k" => Some(number),
        "M" | "m" => number.checked_mul(1 << 10),
        "G" | "g" => number.checked_mul(1 << 20),
        "T" | "t" => number.checked_mul(1 << 30),
        _ => None,
    }
}

fn busy_timeout_ms(options: &OptionSet) -> Result<u32, Refusal> {
    const NAME: &str = "sqlite-busy-timeout-ms";
    let ms = options.int(NAME)?;
    u32::try_from(ms).map_err(|_| Refusal::not_allowed(NAME, &ms.to_string(), "a number of milliseconds from 0"))
}

fn either(words: &[&str]) -> String {
    match words {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        all => all.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::Source;

    fn read(name: &str, value: &str) -> Result<SqliteSettings, String> {
        let mut options = OptionSet::general();
        options.set(name, Some(value), Source::CommandLine).unwrap();
        SqliteSettings::read(&options).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn unset_options_use_defaults() {
        let usual =
            SqliteSettings { journal_mode: "wal", synchronous: "full", cache_kib: 65_536, busy_timeout_ms: 5000 };
        assert_eq!(SqliteSettings::read(&OptionSet::general()), Ok(usual));
        for name in ["sqlite-journal-mode", "sqlite-synchronous", "sqlite-cache-size"] {
            assert_eq!(read(name, ""), Ok(usual), "{name}");
        }
    }

    /// Guards against silent misreading: SQLite took `ful` for NORMAL, and `foo` for a cache of 1 KiB.
    #[test]
    fn invalid_option_value_is_refused_with_the_allowed_ones() {
        for (name, value, allowed) in [
            ("sqlite-synchronous", "ful", "off, normal, full or extra"),
            ("sqlite-synchronous", "2", "off, normal, full or extra"),
            ("sqlite-journal-mode", "foo", "wal, delete, truncate, persist, memory or off"),
            ("sqlite-cache-size", "foo", "a size from 1K to 2047G, such as 64M"),
            ("sqlite-cache-size", "64MB", "a size from 1K to 2047G, such as 64M"),
            ("sqlite-cache-size", "0", "a size from 1K to 2047G, such as 64M"),
            ("sqlite-cache-size", "2T", "a size from 1K to 2047G, such as 64M"),
            ("sqlite-cache-size", "99999999999999999999", "a size from 1K to 2047G, such as 64M"),
            ("sqlite-busy-timeout-ms", "-1", "a number of milliseconds from 0"),
        ] {
            let wrong = value.rsplit(',').next().unwrap();
            let words = format!("FATAL: Invalid value for --{name}: '{wrong}'; it is {allowed}");
            assert_eq!(read(name, value), Err(words));
        }
    }

    #[test]
    fn words_are_taken_in_capitals_and_sizes_with_their_units() {
        assert_eq!(read("sqlite-synchronous", "OFF").unwrap().synchronous, "off");
        assert_eq!(read("sqlite-journal-mode", "Memory").unwrap().journal_mode, "memory");
        for (size, kib) in [("2048", 2), ("8k", 8), ("1G", 1 << 20), ("1T", 1 << 30)] {
            assert_eq!(read("sqlite-cache-size", size).unwrap().cache_kib, kib);
        }
    }

    #[test]
    fn the_help_names_the_words_that_are_taken() {
        let options = OptionSet::general();
        for (name, words) in [("sqlite-journal-mode", &JOURNAL_MODES[..]), ("sqlite-synchronous", &SYNCHRONOUS[..])] {
            let help = &options.info(name).unwrap().help;
            assert!(help.ends_with(&format!("{{{}}}", words.join(", "))), "{name}: {help}");
        }
    }
}
