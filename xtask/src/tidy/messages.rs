//! Texts of the program are plain English, as the pages are: short sentences, and no banned word.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use super::code::code_alone;
use super::prose::LONG;
use super::words::{plain, words};
use super::{Finding, Text};

/// A text of fewer words is a name or a key.
const FEW: usize = 5;

/// Checks the string literals of the program and of the page.
pub fn check(files: &[Text]) -> Vec<Finding> {
    files.iter().filter(|file| is_of_program(&file.path)).flat_map(check_file).collect()
}

fn is_of_program(path: &Path) -> bool {
    let is_below = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
    let is_source = |extension: &str| path.extension().is_some_and(|of| of == extension);
    let is_test = is_below("tests") || is_below("examples") || path.file_stem().is_some_and(|stem| stem == "tests");
    (is_source("rs") && !is_test && !path.starts_with("xtask")) || (is_source("ts") && path.starts_with("web/src"))
}

fn check_file(file: &Text) -> Vec<Finding> {
    let code = code_alone(&file.content);
    let of_text = |(line, text): (usize, String)| {
        let is_sql = ["SELECT ", "FROM "].iter().any(|keyword| text.contains(keyword));
        let is_prose = text.split_whitespace().count() >= FEW && !is_sql;
        is_prose.then(|| finding(file, line, &text)).flatten()
    };
    let quotes: &[char] = if file.extension() == "ts" { &['"', '`'] } else { &['"'] };
    literals(&code, quotes).into_iter().filter_map(of_text).collect()
}

fn finding(file: &Text, line: usize, text: &str) -> Option<Finding> {
    let text: String = text.split('`').enumerate().map(|(at, part)| if at % 2 == 1 { "Code" } else { part }).collect();
    if let Some((word, plain)) = words(&text).find_map(|word| Some((word.clone(), plain(&word)?))) {
        return Some(file.finding(line, format!("`{word}` in a message: write {plain}")));
    }
    let sentence =
        text.split_inclusive(['.', ':', ';', '?', '\n']).find(|part| part.split_whitespace().count() > LONG)?;
    let begin = sentence.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
    Some(file.finding(line, format!("a sentence of over {LONG} words in a message: {begin}")))
}

/// The string literals of a source with their lines, without raw strings. Line ends within a literal stay, except those
/// that a backslash removes. A literal begins and ends with one of the quotes.
fn literals(code: &str, quotes: &[char]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut line, mut rest) = (1, code.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\n' => line += 1,
            // A character: 'x', '"' or '\''. A lifetime has no second quote.
            '\'' => match rest.next() {
                Some('\\') => drop(rest.nth(1)),
                Some('\n') => line += 1,
                _ if rest.peek() == Some(&'\'') => drop(rest.next()),
                _ => {}
            },
            quote if quotes.contains(&quote) => found.push((line, literal(quote, &mut rest, &mut line))),
            _ => {}
        }
    }
    found
}

/// The rest of a literal after its opening quote.
fn literal(quote: char, rest: &mut Peekable<Chars>, line: &mut usize) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next().filter(|c| *c != quote) {
        match (c, rest.peek()) {
            ('\\', Some('\n')) => {
                while let Some(blank) = rest.next_if(|c| c.is_whitespace()) {
                    *line += usize::from(blank == '\n');
                }
            }
            ('\\', Some('n')) => {
                rest.next();
                text.push('\n');
            }
            ('\\', _) => text.extend(rest.next()),
            (c, _) => {
                *line += usize::from(c == '\n');
                text.push(c);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, content: &str) -> Vec<String> {
        let file = Text { path: path.into(), content: content.to_owned() };
        check(&[file]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn banned_words_and_long_sentences_are_found_in_messages() {
        // In parts, because this file is checked too.
        let word = ["to", "ld"].concat();
        let message =
            format!("fn f() {{\n    let q = '\"';\n    say(\"the server has {word} it to the client\");\n}}\n");
        let finding = format!("src/a.rs:3: `{word}` in a message: write reported, passed or printed");
        assert_eq!(found("src/a.rs", &message), [finding.as_str()]);
        assert_eq!(found("web/src/a.ts", &message).len(), 1);
        assert_eq!(found("web/src/a.ts", &message.replace('"', "`")).len(), 1);
        assert_eq!(found("tests/a.rs", &message), [""; 0]);
        let long = format!("say(\"{}\");", "word ".repeat(31));
        assert_eq!(found("src/a.rs", &long).len(), 1);
        let split = format!("say(\"{}. \\\n   {}\");", "word ".repeat(20), "word ".repeat(20));
        assert_eq!(found("src/a.rs", &split), [""; 0]);
        let fine =
            ["say(\"WORD\");", "// \"it has WORD it to the other one\"\n", "say(\"`WORD` is the name of a column\");"];
        for fine in fine.map(|text| text.replace("WORD", &word)) {
            assert_eq!(found("src/a.rs", &fine), [""; 0], "{fine}");
        }
    }
}
