//! Files of options: lines of `name=value`.
//!
//! A value is one word or several with commas or blanks between; with blanks of its own it is in quotation marks. A
//! value that begins with `#` is a comment, and so is the rest of its line; a line without `=` is nothing. Names are
//! those of options without their dashes; sysbench takes blanks around them for a part of the name.

use std::io;

use super::Notice;
use crate::options::{ConfigEntry, OptionSet};

/// A file of options, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// In their order.
    pub entries: Vec<ConfigEntry>,
    /// The line, counted from 1, in which a quotation mark is the only one: nothing from it on was read.
    pub unterminated_line: Option<usize>,
}

/// Reads the text of a file of options.
pub fn parse_config(text: &str) -> ConfigFile {
    let mut file = ConfigFile::default();
    for (index, line) in text.lines().enumerate() {
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim();
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        let Some(values) = words(value) else {
            file.unterminated_line = Some(index + 1);
            break;
        };
        file.entries.push(ConfigEntry { name: name.to_owned(), values, line: index + 1 });
    }
    file
}

/// The values of a line; none if a quotation mark is left open.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next().filter(|&first| first != '#') {
        let (word, behind) = if matches!(first, '\'' | '"') {
            let (word, behind) = rest[1..].split_once(first)?;
            // What stands between the closing mark and the next comma is nothing.
            (word, behind.split_once(',').map_or("", |(_, behind)| behind))
        } else {
            let ends = |c: char| c == ',' || c.is_ascii_whitespace();
            rest.split_once(ends).unwrap_or((rest, ""))
        };
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    Some(words)
}

/// Reads a file and takes what it has.
pub(super) fn take(path: &str, set: &mut OptionSet, read: &mut dyn FnMut(&str) -> io::Result<String>) -> Vec<Notice> {
    let text = match read(path) {
        Ok(text) => text,
        Err(error) => return vec![Notice::UnreadableConfig { path: path.to_owned(), error: words_of(&error) }],
    };
    let file = parse_config(&text);
    set.take_config(path, file.entries);
    file.unterminated_line.map(|line| Notice::UnterminatedQuote { line }).into_iter().collect()
}

/// As C's `strerror` has it: Rust adds the number.
fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(end)) => text[..end].to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        parse_config(text).entries.remove(0).values
    }

    #[test]
    fn values_are_words_with_commas_or_blanks_between() {
        assert_eq!(values("mysql-host=a,b c"), ["a", "b", "c"]);
        assert_eq!(values("time=10 # seconds"), ["10"]);
        assert_eq!(values("time=10#20"), ["10#20"]);
        assert_eq!(values("report-checkpoints='1, 2' , \"3\" x"), ["1, 2", "3"]);
        assert_eq!(values("mysql-password="), Vec::<String>::new());
        assert_eq!(values("a=,b"), ["", "b"]);
    }

    #[test]
    fn names_are_trimmed_and_other_lines_are_nothing() {
        let file = parse_config("[sysbench]\n\n# threads=8\n threads = 4\ndb_driver=sqlite\n");
        let entry =
            |name: &str, value: &str, line| ConfigEntry { name: name.to_owned(), values: vec![value.to_owned()], line };
        assert_eq!(file.entries, [entry("threads", "4", 4), entry("db_driver", "sqlite", 5)]);
        assert_eq!(file.unterminated_line, None);
    }

    #[test]
    fn an_open_quotation_mark_ends_the_file() {
        let file = parse_config("threads=4\nmysql-db='x\ntime=5\n");
        assert_eq!(file.entries.len(), 1);
        assert_eq!(file.unterminated_line, Some(2));
    }

    #[test]
    fn a_missing_file_is_named_in_the_systems_words() {
        let mut read = |_: &str| Err(io::Error::from_raw_os_error(2));
        let notices = take("no.cnf", &mut OptionSet::general(), &mut read);
        assert_eq!(notices[0].to_string(), "no.cnf: No such file or directory");
    }
}
