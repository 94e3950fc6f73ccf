//! Makes untrusted text safe to print on a terminal. Text of an experiment, a server or other people's results may
//! contain control characters. These can clear a line, send input as if typed, or reverse the rest of the text.

use std::borrow::Cow;
use std::path::Path;

/// Escapes every character that a terminal would interpret as in JSON, `\u001b`; line ends and tabs stay. The meaning
/// of JSON text does not change.
pub fn printable(text: &str) -> Cow<'_, str> {
    spelt_out(text, is_obeyed)
}

/// The same for a name in a line of text; a newline in it could forge a further line of rumba's output.
pub fn on_a_line(text: &str) -> Cow<'_, str> {
    spelt_out(text, ends_or_is_obeyed)
}

/// A path as shown in a line of text.
pub fn shown(path: &Path) -> String {
    on_a_line(&path.to_string_lossy()).into_owned()
}

/// Whether a name can be shown unchanged in a line of text.
pub fn fits_on_a_line(text: &str) -> bool {
    !text.contains(ends_or_is_obeyed)
}

fn ends_or_is_obeyed(character: char) -> bool {
    matches!(character, '\n' | '\t') || is_obeyed(character)
}

fn spelt_out(text: &str, is_spelt_out: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_spelt_out) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_spelt_out(character) {
            shown += &format!("\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// The same for a text with byte offsets: it keeps its length, with question marks in place of such characters.
pub fn printable_in_place(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_obeyed(character) {
            shown.extend(std::iter::repeat_n('?', character.len_utf8()));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal interprets a character instead of showing it.
pub fn is_obeyed(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Which way the text runs.
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_for_terminals() {
        assert_eq!(printable("a\x1b[2Jb\r\u{9b}c\u{202e}d\n\te"), "a\\u001b[2Jb\\u000d\\u009bc\\u202ed\n\te");
        assert!(matches!(printable("rocksdb µs → 3"), Cow::Borrowed(_)), "what is harmless is not even copied");
    }

    #[test]
    fn names_cannot_begin_a_line() {
        assert_eq!(shown(Path::new("a\nall done\t0 failed")), "a\\u000aall done\\u00090 failed");
        assert!(!fits_on_a_line("a\nb") && !fits_on_a_line("a\u{202e}b") && fits_on_a_line("résultats 1"));
    }

    #[test]
    fn places_stay_where_they_are() {
        let text = "name = \"\u{9b}\x1b\" # here";
        let shown = printable_in_place(text);
        assert_eq!(shown.find("here"), text.find("here"));
        assert_eq!(shown, "name = \"???\" # here");
    }
}
