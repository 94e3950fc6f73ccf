//! The documentation is plain English: short sentences, and the words of the field.
//!
//! It checks each page without its headings, tables, code, comments and generated blocks. The mean sentence has at most
//! [`MEAN`] words. At most a tenth of the sentences have more than [`LONG`] words. At most one in fifty, or one in all,
//! begins like [`OPENERS`]. No sentence has a banned word.

use std::path::Path;

use super::words::{plain, words};
use super::{Finding, Text};

/// The most words of the mean sentence.
const MEAN: usize = 18;
/// A sentence of more words is long.
pub const LONG: usize = 30;
/// Pages with fewer sentences are too short for shares.
const FEW: usize = 10;

/// Openings that turn a sentence around.
const OPENERS: [&str; 14] = [
    "Of", "What", "Where", "So", "Over", "Beside", "Such", "Nothing", "Nobody", "None", "Whoever", "Whatever",
    "Neither", "Nor",
];

/// Words that are counted per thousand, under a heading. The last number is the Rust Book's (rust-lang/book, counted by
/// this program).
const COUNTED: [(&str, &[&str], f64); 6] = [
    ("is told", &["is told", "are told", "was told", "were told", "be told", "been told"], 0.0),
    ("what", &["what"], 2.1),
    ("nothing", &["nobody", "nothing", "none"], 0.3),
    ("anew", &["anew", "beside", "by itself", "of its own"], 0.0),
    ("you", &["you", "your", "we", "our"], 39.4),
    ("because", &["because", "but", "however", "for example"], 8.5),
];
/// The Rust Book's words per sentence, percent of long and inverted sentences, and `;` and `:` per thousand words.
const BOOK: [f64; 4] = [18.8, 10.5, 0.7, 10.4];

/// A sentence, and the line on which its paragraph begins.
struct Sentence {
    line: usize,
    text: String,
}

impl Sentence {
    fn length(&self) -> usize {
        self.text.split_whitespace().count()
    }

    fn is_inverted(&self) -> bool {
        let first = self.text.split_whitespace().next().unwrap_or_default();
        OPENERS.contains(&first.trim_matches('*'))
    }
}

/// Checks the pages that people read.
pub fn check(files: &[Text]) -> Vec<Finding> {
    files.iter().filter(|file| is_page(&file.path)).flat_map(check_page).collect()
}

/// The counts of each page, of all, and of the Rust Book.
pub fn counts(files: &[Text]) -> String {
    let pages = files.iter().filter(|file| is_page(&file.path));
    let pages: Vec<_> = pages.map(|file| (file.path.display().to_string(), sentences(&file.content))).collect();
    let mut rows: Vec<_> = pages.iter().map(|(page, sentences)| (page.as_str(), counted(sentences.iter()))).collect();
    rows.push(("all pages", counted(pages.iter().flat_map(|(_, sentences)| sentences))));
    rows.push(("the Rust Book", BOOK.into_iter().chain(COUNTED.map(|(.., book)| book)).collect()));
    let heads = ["words", "long", "inverted", "joins"].into_iter().chain(COUNTED.map(|(head, ..)| head));
    let mut text = format!("{:50}{}\n", "", heads.map(|head| format!("{head:>9}")).collect::<String>());
    for (page, counts) in rows {
        let cells: String = counts.iter().map(|count| format!("{count:>9.1}")).collect();
        text += &format!("{page:50}{cells}\n");
    }
    text
}

fn counted<'a>(sentences: impl Iterator<Item = &'a Sentence> + Clone) -> Vec<f64> {
    let sum = |count: fn(&Sentence) -> usize| sentences.clone().map(count).sum::<usize>() as f64;
    let (count, length) = (sum(|_| 1).max(1.0), sum(Sentence::length).max(1.0));
    let long = sum(|sentence| usize::from(sentence.length() > LONG));
    let inverted = sum(|sentence| usize::from(sentence.is_inverted()));
    let joins = sum(|sentence| sentence.text.split_whitespace().filter(|word| word.ends_with([';', ':'])).count());
    let mut counts = vec![length / count, 100.0 * long / count, 100.0 * inverted / count, 1000.0 * joins / length];
    // Two spaces between words, so that neighbours do not share one.
    let text: String = sentences.flat_map(|sentence| words(&sentence.text)).map(|word| format!(" {word} ")).collect();
    let times = |phrase: &&str| text.matches(&format!(" {} ", phrase.replace(' ', "  "))).count();
    counts.extend(COUNTED.map(|(_, phrases, _)| 1000.0 * phrases.iter().map(times).sum::<usize>() as f64 / length));
    counts
}

/// Pages of the repository's root and of docs. The changelog is history, and some pages are generated.
fn is_page(path: &Path) -> bool {
    let is_generated = path.starts_with("docs/reference")
        || ["CHANGELOG.md", "docs/experiments/changed-claims.md"].iter().any(|of| path == Path::new(of));
    let is_of_root = path.components().count() == 1;
    path.extension().is_some_and(|extension| extension == "md")
        && !is_generated
        && (is_of_root || path.starts_with("docs"))
}

fn check_page(file: &Text) -> Vec<Finding> {
    let sentences = sentences(&file.content);
    let mut findings: Vec<Finding> = sentences.iter().filter_map(|sentence| banned(file, sentence)).collect();
    findings.extend(figures_at_line_starts(file));
    let lengths: Vec<usize> = sentences.iter().map(Sentence::length).collect();
    if sentences.len() < FEW {
        return findings;
    }
    let count = sentences.len();
    let mean = lengths.iter().sum::<usize>() as f64 / count as f64;
    if mean > MEAN as f64 {
        findings.push(file.finding(1, format!("the mean sentence has {mean:.1} words; at most {MEAN}")));
    }
    let long = || sentences.iter().zip(&lengths).filter(|(_, length)| **length > LONG).map(|(sentence, _)| sentence);
    if long().count() * 10 > count {
        let all = long().count();
        findings.extend(long().take(3).map(|sentence| {
            let what = format!("{all} of {count} sentences have over {LONG} words, for example: {}", begin(sentence));
            file.finding(sentence.line, what)
        }));
    }
    let openers: Vec<&Sentence> = sentences.iter().filter(|sentence| sentence.is_inverted()).collect();
    if openers.len() > 1 && openers.len() * 50 > count {
        let all = openers.len();
        findings.extend(openers.iter().take(3).map(|sentence| {
            file.finding(
                sentence.line,
                format!("{all} of {count} sentences are turned around, for example: {}", begin(sentence)),
            )
        }));
    }
    findings
}

/// Markdown ends a paragraph at a line that begins with a comment.
fn figures_at_line_starts(file: &Text) -> impl Iterator<Item = Finding> {
    let lines = file.content.lines().zip(1..).filter(|(line, _)| line.trim_start().starts_with("<!-- = "));
    lines.map(|(_, number)| {
        file.finding(number, "a figure at the start of a line splits the paragraph; move it to the line before")
    })
}

fn banned(file: &Text, sentence: &Sentence) -> Option<Finding> {
    let (word, plain) = words(&sentence.text).find_map(|word| Some((word.clone(), plain(&word)?)))?;
    Some(file.finding(sentence.line, format!("`{word}`: write {plain}: {}", begin(sentence))))
}

fn begin(sentence: &Sentence) -> String {
    sentence.text.split_whitespace().take(8).collect::<Vec<_>>().join(" ")
}

/// The sentences of paragraphs and list items.
fn sentences(page: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let (mut paragraph, mut begun) = (String::new(), 0);
    let (mut is_code, mut is_comment, mut is_generated) = (false, false, false);
    for (number, line) in page.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            is_code = !is_code;
        }
        is_comment |= trimmed.starts_with("<!--");
        // Generated sentences follow their own rules: they quote settings.
        is_generated |=
            ["<!-- since:", "<!-- output:", "<!-- claims:", "<!-- measured:"].iter().any(|of| trimmed.starts_with(of));
        let is_prose = !is_code && !is_comment && !is_generated && !is_apart(trimmed);
        if is_comment && trimmed.contains("-->") {
            is_comment = false;
        }
        if trimmed == "<!-- end -->" {
            is_generated = false;
        }
        let item = ["- ", "* "].iter().find_map(|mark| trimmed.strip_prefix(mark)).or_else(|| numbered(trimmed));
        if !is_prose || item.is_some() {
            split(&paragraph, begun, &mut found);
            paragraph.clear();
        }
        if is_prose {
            if paragraph.is_empty() {
                begun = number + 1;
            }
            paragraph += item.unwrap_or(trimmed);
            paragraph.push(' ');
        }
    }
    split(&paragraph, begun, &mut found);
    found
}

/// Headings, tables, quotations and pictures.
fn is_apart(line: &str) -> bool {
    line.is_empty() || ["#", "|", "```", "![", "<", ">"].iter().any(|mark| line.starts_with(mark))
}

/// `1. text` without the number.
fn numbered(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

/// Ends sentences at a full stop, question or exclamation mark, or colon, before a capital letter.
fn split(paragraph: &str, line: usize, found: &mut Vec<Sentence>) {
    let text = without_code_and_links(paragraph);
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut from = 0;
    for (place, word) in words.iter().enumerate() {
        let ends = word.trim_end_matches(['*', ')', '"']).ends_with(['.', '?', '!', ':']);
        let next = words.get(place + 1);
        let begins = next.is_none_or(|next| next.trim_start_matches(['*', '(', '"']).starts_with(char::is_uppercase));
        if (ends && begins) || next.is_none() {
            if place > from {
                found.push(Sentence { line, text: words[from..=place].join(" ") });
            }
            from = place + 1;
        }
    }
}

/// Code as one word, links as their text, and comments removed.
fn without_code_and_links(text: &str) -> String {
    let mut plain = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 { plain.push_str("Code") } else { plain.push_str(part) }
    }
    while let Some((before, rest)) = plain.split_once("<!--") {
        let after = rest.split_once("-->").map_or("", |(_, after)| after);
        plain = format!("{before}{after}");
    }
    while let Some(start) = plain.find("](") {
        let end = plain[start..].find(')').map_or(plain.len(), |end| start + end + 1);
        plain.replace_range(start..end, "");
    }
    plain.replace('[', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let file = Text { path: "docs/page.md".into(), content: page.to_owned() };
        check(&[file]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn banned_word_is_found_in_prose_but_not_in_code_or_tables() {
        let page = "# Told\n\nIt runs `told` and [reads](beside.md).\n\n```text\nanew\n```\n| told |\n<!-- told -->\n";
        assert_eq!(found(page), [""; 0]);
        let bad = "# Page\n\nIt reads the\nfile anew.\n- It is told.\n";
        let [first, second] = &found(bad)[..] else { panic!("{:?}", found(bad)) };
        assert!(first.starts_with("docs/page.md:3: `anew`: write again"), "{first}");
        assert!(second.starts_with("docs/page.md:5: `told`: write "), "{second}");
    }

    #[test]
    fn figure_that_splits_a_paragraph_is_found() {
        let figure = "<!-- = a: ops_per_s(\"b\") ; 0 -->7<!-- / -->";
        assert_eq!(found(&format!("It serves {figure}\nrows.\n")), [""; 0]);
        let [split] = &found(&format!("It serves\n  {figure} rows.\n"))[..] else { panic!("one finding") };
        assert!(split.starts_with("docs/page.md:2: a figure at the start of a line"), "{split}");
    }

    #[test]
    fn counts_of_a_page_are_per_sentence_and_per_thousand_words() {
        let content = "You read it, but it ends. What is it: you and you?\n".to_owned();
        let counts = counts(&[Text { path: "docs/page.md".into(), content }]);
        let row: Vec<&str> = counts.lines().nth(1).unwrap_or_default().split_whitespace().collect();
        assert_eq!(row, ["docs/page.md", "6.0", "0.0", "50.0", "83.3", "0.0", "83.3", "0.0", "0.0", "250.0", "83.3"]);
    }

    #[test]
    fn long_and_inverted_sentences_are_counted_for_a_page() {
        let short = "It reads the whole file. ".repeat(18);
        assert_eq!(found(&short), [""; 0]);
        let long = format!("{short}{}. {0}. {0}.\n", format!("It {}ends", "goes on and ".repeat(10)));
        let all = found(&long);
        assert!(all.len() == 3 && all[0].contains("3 of 21 sentences have over 30 words"), "{all:?}");
        let inverted = format!("{short}What it reads is a file. Of files it reads one.\n");
        let all = found(&inverted);
        assert!(all.len() == 2 && all[0].contains("2 of 20 sentences are turned around"), "{all:?}");
        let mean = found(
            &"It reads this file and that file and the file after it and all the files that come then. ".repeat(12),
        );
        assert!(mean[0].contains("the mean sentence has 19.0 words"), "{mean:?}");
    }
}
