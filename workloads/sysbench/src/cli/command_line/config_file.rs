//! Option files: lines of `name=value`.
//!
//! A value is one word, or several separated by commas or blanks; a word that contains blanks is quoted. A value that
//! begins with `#` is a comment, along with the rest of its line. A line without `=` is ignored. Names are those of
//! options without their dashes; sysbench treats blanks around them as a part of the name.

use std::io;

use super::Notice;
use crate::cli::options::{ConfigEntry, OptionSet};

/// A file of options, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// In their order.
    pub entries: Vec<ConfigEntry>,
    /// The line, counted from 1, with an unclosed quotation mark: from it on, the file was not read.
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

/// The values of a line; `None` if a quotation mark is not closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next().filter(|&first| first != '#') {
        let (word, behind) = if matches!(first, '\'' | '"') {
            let (word, behind) = rest[1..].split_once(first)?;
            // Text between the closing mark and the next comma is ignored.
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

pub(super) fn take(path: &str, set: &mut OptionSet, read: &mut dyn FnMut(&str) -> io::Result<String>) -> Vec<Notice> {
    let text = match read(path) {
        Ok(text) => text,
        Err(error) => return vec![Notice::UnreadableConfig { path: path.to_owned(), error: words_of(&error) }],
    };
    let file = parse_config(&text);
    set.take_config(path, file.entries);
    file.unterminated_line.map(|line| Notice::UnterminatedQuote { line }).into_iter().collect()
}

/// The message as in C's `strerror`, without the number that Rust adds.
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
}
