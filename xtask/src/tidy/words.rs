//! Comments and names use the words of the field: a banned word is a finding that names the plain one.

use super::{Finding, Text};

/// Words of the project's old language, and the plain word for each.
const BANNED: [(&str, &str); 16] = [
    ("told", "reported, passed or printed"),
    ("tell", "report, print or distinguish"),
    ("tells", "reports, prints or distinguishes"),
    ("untold", "unreported"),
    ("anew", "again"),
    ("beside", "next to or with"),
    ("stranger", "another process or user"),
    ("strangers", "other processes or users"),
    ("whoever", "the actor's name"),
    ("whatever", "the thing's name"),
    ("nobody", "no process, no user or nothing"),
    ("standstill", "stall"),
    ("hears", "receives"),
    ("heard", "received"),
    ("thereof", "of it"),
    ("lest", "so that … not"),
];

/// The keywords in front of a declared name.
const DECLARING: [&str; 10] =
    ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "mod ", "let mut ", "let "];

/// Checks the comments and the declared names of Rust sources.
pub fn check(texts: &[Text]) -> Vec<Finding> {
    let sources = texts.iter().filter(|text| text.extension() == "rs");
    sources
        .flat_map(|text| text.content.lines().enumerate().filter_map(|(line, words)| finding(text, line, words)))
        .collect()
}

/// The words of a text, in lower case.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase)
}

pub fn plain(word: &str) -> Option<&'static str> {
    BANNED.into_iter().find(|(banned, _)| *banned == word).map(|(_, plain)| plain)
}

fn finding(text: &Text, line: usize, words: &str) -> Option<Finding> {
    let banned =
        |mut words: Box<dyn Iterator<Item = String> + '_>| words.find_map(|word| Some((word.clone(), plain(&word)?)));
    let (place, (word, plain)) = match words.trim_start().strip_prefix("//") {
        // Names of code in a comment are checked where they are declared.
        Some(comment) => ("a comment", banned(Box::new(comment.split('`').step_by(2).flat_map(self::words)))?),
        None => ("a name", banned(Box::new(declared(words).flat_map(parts)))?),
    };
    Some(text.finding(line + 1, format!("`{word}` in {place}: write {plain}")))
}

fn declared(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    DECLARING.into_iter().flat_map(move |keyword| {
        let behind = line.match_indices(keyword).filter(move |(at, _)| !line[..*at].ends_with(is_part));
        behind.map(move |(at, _)| {
            let rest = &line[at + keyword.len()..];
            &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())]
        })
    })
}

/// The words of a name: of `snake_case` and `CamelCase`, in lower case.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() && spaced.ends_with(char::is_lowercase) {
            spaced.push('_');
        }
        spaced.push(c);
    }
    spaced.split('_').map(str::to_lowercase).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_words_are_found_in_comments_and_declared_names() {
        let found = |line: &str| {
            let file = Text { path: "a.rs".into(), content: line.to_owned() };
            check(&[file]).iter().map(|finding| finding.what.clone()).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(found("// It is told."), "`told` in a comment: write reported, passed or printed");
        // In parts, because this file is checked too.
        for (before, word, after) in [("    let is_", "told", " = true;"), ("struct ", "Told", "Once;")] {
            let found = found(&[before, word, after].concat());
            assert_eq!(found, "`told` in a name: write reported, passed or printed");
        }
        for fine in ["// Set `told`.", "let toldo = 1;", "println!(\"told\");", "fn reported() {}"] {
            assert_eq!(found(fine), "", "{fine}");
        }
    }
}
