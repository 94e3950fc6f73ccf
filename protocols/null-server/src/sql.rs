//! The part of SQL that a server without data needs: the kind of a statement, the end of a statement, and its number of
//! placeholders.

/// A kind of statement, by its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// The fixed result set.
    Rows,
    /// One changed row.
    Changed,
    /// Success without rows.
    Done,
    /// A transaction begins.
    Begin,
    /// A transaction ends.
    End,
    /// Statements commit automatically from now on, or no longer.
    Autocommit(bool),
    /// Another schema becomes the default one.
    Use,
    /// LOAD DATA LOCAL, for which the client must send the file.
    LoadLocal,
    /// A query about the server: SHOW, SELECT without FROM.
    Requesting,
}

/// Returns the kind of a statement.
#[inline]
pub fn statement(text: &[u8]) -> Statement {
    let text = skip_blank(text);
    let (word, rest) = first_word(text);
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if is("select") {
        return if has_word(rest, b"from") { Statement::Rows } else { Statement::Requesting };
    }
    if ["insert", "update", "delete", "replace"].into_iter().any(is) {
        return Statement::Changed;
    }
    rarer(word, rest, text)
}

fn rarer(word: &[u8], rest: &[u8], text: &[u8]) -> Statement {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if is("begin") || (is("start") && has_word(rest, b"transaction")) {
        Statement::Begin
    } else if is("commit") || (is("rollback") && !has_word(rest, b"to")) {
        Statement::End
    } else if is("set") {
        autocommit(rest).map_or(Statement::Done, Statement::Autocommit)
    } else if is("use") {
        Statement::Use
    } else if is("load") {
        if has_word(rest, b"local") { Statement::LoadLocal } else { Statement::Changed }
    } else if ["show", "describe", "desc", "explain", "check", "analyze", "optimize", "repair"].into_iter().any(is) {
        Statement::Requesting
    } else if ["with", "values", "table"].into_iter().any(is) || text.first() == Some(&b'(') {
        Statement::Rows
    } else {
        Statement::Done
    }
}

/// The statements of a text, without semicolons and empty statements.
pub fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = Bare::of(rest).find(|&(_, byte)| byte == b';').map_or(rest.len(), |(at, _)| at);
            let (one, more) = rest.split_at(end);
            rest = more.get(1..).unwrap_or_default();
            if !skip_blank(one).is_empty() {
                return Some(one);
            }
        }
        None
    })
}

/// The number of placeholders in a statement.
pub fn placeholders(text: &[u8]) -> usize {
    Bare::of(text).filter(|&(_, byte)| byte == b'?').count()
}

/// Skips blanks and comments.
pub fn skip_blank(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        match comment(text) {
            Some(length) => text = &text[length..],
            None => return text,
        }
    }
}

/// The word at the start of a statement, and the rest.
pub fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|&byte| !is_name(byte)).unwrap_or(text.len()))
}

/// Whether a text contains a separate word; `word` is in lower case, and case is ignored.
#[inline]
pub fn has_word(text: &[u8], word: &[u8]) -> bool {
    find_word(text, word).is_some()
}

/// The text after a separate word; `word` is in lower case.
#[inline]
pub fn find_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let first = word.first()?;
    let found = |at: &usize| {
        let at = *at;
        text[at] | 0x20 == *first
            && text[at..].get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
            && (at == 0 || !is_name(text[at - 1]))
            && text.get(at + word.len()).is_none_or(|&byte| !is_name(byte))
    };
    (0..text.len()).find(found).map(|at| &text[at + word.len()..])
}

/// The contents of all strings in a text, without unescaping.
pub fn strings(text: &[u8]) -> Vec<&[u8]> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let length = quoted(&text[at..]).unwrap_or(1);
        if length > 1 && text[at] != b'`' {
            found.push(&text[at + 1..at + length - 1]);
        }
        at += length;
    }
    found
}

/// Whether a byte can be part of a name.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// The value that a SET assigns to `autocommit`, if any.
fn autocommit(text: &[u8]) -> Option<bool> {
    let value = find_word(text, b"autocommit")?.trim_ascii_start();
    let value = value.strip_prefix(b":").unwrap_or(value).strip_prefix(b"=")?.trim_ascii_start();
    let (word, _) = first_word(value);
    Some(word == b"1" || word.eq_ignore_ascii_case(b"on") || word.eq_ignore_ascii_case(b"true"))
}

/// The length of the comment at the start of a text.
fn comment(text: &[u8]) -> Option<usize> {
    let line = || text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| at + 1);
    match text {
        [b'#', ..] => Some(line()),
        [b'-', b'-'] => Some(2),
        [b'-', b'-', blank, ..] if blank.is_ascii_whitespace() => Some(line()),
        [b'/', b'*', rest @ ..] => Some(rest.windows(2).position(|pair| pair == b"*/").map_or(text.len(), |at| at + 4)),
        _ => None,
    }
}

/// The length of the string or quoted name at the start of a text, including quotes.
fn quoted(text: &[u8]) -> Option<usize> {
    let quote = *text.first().filter(|byte| matches!(byte, b'\'' | b'"' | b'`'))?;
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    Some(text.len())
}

/// Iterates over the bytes outside of strings, quoted names and comments.
struct Bare<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Bare<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Bare<'_> {
    type Item = (usize, u8);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) {
            match quoted(rest).or_else(|| comment(rest)) {
                Some(length) => self.at += length,
                None => {
                    self.at += 1;
                    return Some((self.at - 1, rest[0]));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_known_by_their_first_word() {
        let of = |text: &str| statement(text.as_bytes());
        assert_eq!(of("SELECT c FROM sbtest1 WHERE id=?"), Statement::Rows);
        assert_eq!(of("select 1"), Statement::Requesting);
        assert_eq!(of("/* driver 8.0 */SELECT  @@session.x AS x, @@from_here AS y"), Statement::Requesting);
        assert_eq!(of(" -- why\n # more\n insert into t values (1)"), Statement::Changed);
        assert_eq!(of("START TRANSACTION WITH CONSISTENT SNAPSHOT"), Statement::Begin);
        assert_eq!(of("START REPLICA"), Statement::Done);
        assert_eq!(of("rollback"), Statement::End);
        assert_eq!(of("rollback to savepoint a"), Statement::Done);
        assert_eq!(of("SET NAMES utf8mb4"), Statement::Done);
        assert_eq!(of("SET session autocommit=0"), Statement::Autocommit(false));
        assert_eq!(of("SET @@autocommit := ON, sql_mode=''"), Statement::Autocommit(true));
        assert_eq!(of("load data LOCAL infile 'x' into table t"), Statement::LoadLocal);
        assert_eq!(of("(select a from t) union (select b from u)"), Statement::Rows);
        assert_eq!(of("/*!40101 SET x=1 */"), Statement::Done);
        assert_eq!(of(""), Statement::Done);
    }

    #[test]
    fn placeholders_in_quotes_and_comments_are_ignored() {
        let text = br#"select '?''?;', "a\"?", `b?;` /* ? ; */ -- ?
            , ? ; # ? ;
            update t set a=?, b=?;;"#;
        assert_eq!(placeholders(text), 3);
        let parts: Vec<_> = split(text).map(placeholders).collect();
        assert_eq!(parts, [1, 2]);
        assert_eq!(placeholders(b"5--?"), 1, "two dashes begin a comment only before a blank");
    }

    #[test]
    fn strings_are_found_and_names_are_not() {
        assert_eq!(strings(b"show variables like 'a%' or `x` = \"b\""), [&b"a%"[..], b"b"]);
        assert_eq!(strings(b"it's"), [&b""[..]], "an open string has no end");
    }

    #[test]
    fn no_text_makes_it_panic() {
        for text in ["'", "\\", "'\\", "/*", "/", "-", "--", "#", "`", "\"\\", "?;'", "/*/"] {
            let _ = (statement(text.as_bytes()), placeholders(text.as_bytes()), strings(text.as_bytes()));
            let _ = split(text.as_bytes()).count();
        }
    }
}
