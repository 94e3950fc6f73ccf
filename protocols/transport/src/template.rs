//! Statements sent as text, with literal parameters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::sql::Dialect;

/// The texts that sessions share. Ten thousand terminals run the same few texts, so separate copies would take a
/// hundred megabytes.
#[derive(Debug, Default)]
pub struct Templates(Mutex<HashMap<Arc<[u8]>, Arc<Template>>>);

impl Templates {
    /// The most texts kept, because a workload with literal values has a new text for each statement.
    const MOST: usize = 1 << 10;

    /// The template of a statement; looked up when it is prepared, not when it is executed. All sessions that share the
    /// texts have one dialect.
    pub fn of(&self, sql: &[u8], dialect: Dialect) -> Arc<Template> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = known.get(sql) {
            return Arc::clone(template);
        }
        let template = Arc::new(Template::new(sql, dialect));
        if known.len() < Self::MOST {
            known.insert(Arc::clone(&template.sql), Arc::clone(&template));
        }
        template
    }
}

/// A statement and the positions of its parameters.
#[derive(Debug)]
pub struct Template {
    /// The statement's text.
    pub sql: Arc<[u8]>,
    /// The position and length of each parameter, ascending, and its number from 0.
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    at: usize,
    length: usize,
    param: usize,
}

impl Template {
    /// Finds a statement's parameters: `$1` in PostgreSQL, `?` in other dialects.
    pub fn new(sql: &[u8], dialect: Dialect) -> Self {
        Self { sql: sql.into(), marks: marks(sql, dialect == Dialect::PostgreSql) }
    }

    /// The number of places of parameters.
    pub fn places(&self) -> usize {
        self.marks.len()
    }

    /// Appends the statement. `put` appends the parameter of a number below `params`; others are left as they are.
    #[inline]
    pub fn fill(&self, out: &mut Vec<u8>, params: usize, mut put: impl FnMut(&mut Vec<u8>, usize)) {
        let mut kept = 0;
        for &Mark { at, length, param } in self.marks.iter().filter(|mark| mark.param < params) {
            out.extend_from_slice(&self.sql[kept..at]);
            put(out, param);
            kept = at + length;
        }
        out.extend_from_slice(&self.sql[kept..]);
    }
}

/// The parameters outside of strings, names and comments.
fn marks(sql: &[u8], is_postgresql: bool) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut at = 0;
    while let Some(&byte) = sql.get(at) {
        let rest = &sql[at..];
        at += match byte {
            b'?' if !is_postgresql => {
                marks.push(Mark { at, length: 1, param: marks.len() });
                1
            }
            b'$' if is_postgresql => match parameter(rest) {
                Some((length, param)) => {
                    marks.push(Mark { at, length, param });
                    length
                }
                None => dollar_quoted(rest),
            },
            b'\'' => quoted(rest, !is_postgresql || at > 0 && matches!(sql[at - 1], b'E' | b'e')),
            b'"' => quoted(rest, !is_postgresql),
            b'`' if !is_postgresql => quoted(rest, false),
            b'#' if !is_postgresql => line(rest),
            b'-' if rest.starts_with(b"--") && (is_postgresql || rest.get(2).is_none_or(u8::is_ascii_whitespace)) => {
                line(rest)
            }
            b'/' if rest.starts_with(b"/*") => comment(rest, is_postgresql),
            // A dollar sign within a name is part of it.
            byte if is_postgresql && is_name(byte) => {
                rest.iter().position(|&byte| !is_name(byte) && byte != b'$').unwrap_or(rest.len())
            }
            _ => 1,
        };
    }
    marks
}

/// Appends the text of a string literal without its own quotes, each of which is doubled.
#[inline]
pub fn put_doubled(out: &mut Vec<u8>, mut bytes: &[u8]) {
    while let Some(quote) = bytes.iter().position(|&byte| byte == b'\'') {
        out.extend_from_slice(&bytes[..=quote]);
        out.push(b'\'');
        bytes = &bytes[quote + 1..];
    }
    out.extend_from_slice(bytes);
}

/// A name in these quotes; a dot separates schema and table.
pub fn quoted_name(name: &str, quote: &str) -> String {
    let part = |part: &str| format!("{quote}{}{quote}", part.replace(quote, &quote.repeat(2)));
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length and the number, from 0, of `$n`.
fn parameter(sql: &[u8]) -> Option<(usize, usize)> {
    let digits = sql[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number: usize = std::str::from_utf8(&sql[1..=digits]).ok()?.parse().ok()?;
    Some((1 + digits, number.checked_sub(1)?))
}

/// The length of the `$tag$` string that starts here; 1 if there is none.
fn dollar_quoted(sql: &[u8]) -> usize {
    let name = sql[1..].iter().take_while(|&&byte| is_name(byte)).count();
    let Some(b'$') = sql.get(1 + name) else { return 1 };
    let (tag, body) = sql.split_at(name + 2);
    body.windows(tag.len()).position(|window| window == tag).map_or(sql.len(), |end| end + 2 * tag.len())
}

/// The length of the string or name that starts here. A doubled quote is treated as the end of one and the start of the
/// next, with the same result.
fn quoted(sql: &[u8], backslashes: bool) -> usize {
    let mut at = 1;
    while let Some(&byte) = sql.get(at) {
        at += 1;
        if byte == b'\\' && backslashes {
            at += 1;
        } else if byte == sql[0] {
            return at;
        }
    }
    sql.len()
}

fn line(sql: &[u8]) -> usize {
    sql.iter().position(|&byte| byte == b'\n').map_or(sql.len(), |end| end + 1)
}

/// The length of the comment that starts here.
fn comment(sql: &[u8], nests: bool) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < sql.len() {
        at += match &sql[at..] {
            [b'/', b'*', ..] if nests => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        if depth == 0 {
            return at;
        }
    }
    sql.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_of_the_statement_itself_are_found() {
        for (sql, expected) in [
            ("SELECT ?", 1),
            ("SELECT '?', \"?\", `?`, ?", 1),
            ("SELECT 'it''s ?', 'a\\'?', ?", 1),
            ("SELECT ? -- ?\n, ? # ?\n /* ? */ , ?", 3),
            ("SELECT 1--?", 1),
            ("SELECT '", 0),
            ("SELECT '\\", 0),
            ("/*", 0),
            ("/*/ ? */ ?", 1),
        ] {
            assert_eq!(Template::new(sql.as_bytes(), Dialect::MySql).places(), expected, "{sql}");
        }
        for (sql, expected) in [
            ("SELECT $1", vec![0]),
            ("SELECT $2, $1, $2", vec![1, 0, 1]),
            ("SELECT '$1', \"$1\", $1", vec![0]),
            ("SELECT 'it''s $1', E'a\\'$1', $1", vec![0]),
            ("SELECT 'a\\', $1", vec![0]),
            ("SELECT $1 -- $2\n, $3 /* $4 /* $5 */ $6 */ , $7", vec![0, 2, 6]),
            ("SELECT $$ $1 $$, $a$ $1 $b$ $a$, $12", vec![11]),
            ("SELECT a$1, $", vec![]),
            ("SELECT '", vec![]),
            ("/*", vec![]),
            ("SELECT $0", vec![]),
        ] {
            let marks = marks(sql.as_bytes(), true);
            let found: Vec<usize> = marks.iter().map(|mark| mark.param).collect();
            assert_eq!(found, expected, "{sql}");
        }
    }

    #[test]
    fn statement_templates_are_shared_and_bounded() {
        let templates = Templates::default();
        let of = |sql: &str| templates.of(sql.as_bytes(), Dialect::MySql);
        let (first, second) = (of("SELECT ?"), of("SELECT ?"));
        assert!(Arc::ptr_eq(&first, &second));
        for number in 0..2 * Templates::MOST {
            let text = format!("SELECT {number}");
            assert_eq!(&*of(&text).sql, text.as_bytes());
        }
        assert_eq!(templates.0.lock().map(|known| known.len()).ok(), Some(Templates::MOST));
        assert!(Arc::ptr_eq(&first, &of("SELECT ?")), "it came early enough");
    }
}
