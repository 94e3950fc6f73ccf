//! Statements sent as text, with literal parameters.

use rumba_engine_api::sql::Param;

use super::literal;
use crate::codec::{frame, types};

/// A statement and the positions of its parameters.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) sql: Box<[u8]>,
    /// The parameters' types, in the order of their numbers.
    oids: Vec<u32>,
    /// The position and length of each `$n`, and its parameter, ascending.
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    at: usize,
    length: usize,
    param: usize,
}

impl Template {
    /// A template with parameters of these types.
    pub(super) fn new(sql: &[u8], oids: Vec<u32>) -> Self {
        let marks = marks(sql).into_iter().filter(|mark| mark.param < oids.len()).collect();
        Self { sql: sql.into(), oids, marks }
    }

    /// The number of parameters.
    pub(super) fn params(&self) -> usize {
        self.oids.len()
    }

    /// Whether these parameters can be sent as literals. A zero byte would end the message, so it is allowed only in
    /// values that are sent as digits.
    pub(super) fn takes(&self, params: &[Param<'_>]) -> bool {
        params.iter().zip(&self.oids).all(|(param, &oid)| match param {
            Param::Text(bytes) | Param::Bytes(bytes) => types::is_bytea(oid) || !bytes.contains(&0),
            _ => true,
        })
    }

    /// Appends the message that executes the statement with these parameters, whose number must match.
    pub(super) fn write(&self, out: &mut Vec<u8>, params: &[Param<'_>]) {
        let sql = &self.sql;
        let message = frame::start(out, b'Q');
        let mut kept = 0;
        for &Mark { at, length, param } in &self.marks {
            out.extend_from_slice(&sql[kept..at]);
            literal::put(out, params[param], self.oids[param]);
            kept = at + length;
        }
        out.extend_from_slice(&sql[kept..]);
        out.push(0);
        frame::finish(out, message);
    }
}

/// The parameters outside of strings, names and comments.
fn marks(sql: &[u8]) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut at = 0;
    while let Some(&byte) = sql.get(at) {
        let rest = &sql[at..];
        at += match byte {
            b'$' => match parameter(rest) {
                Some((length, param)) => {
                    marks.push(Mark { at, length, param });
                    length
                }
                None => dollar_quoted(rest),
            },
            b'\'' => quoted(rest, at > 0 && matches!(sql[at - 1], b'E' | b'e')),
            b'"' => quoted(rest, false),
            b'-' if rest.starts_with(b"--") => {
                rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1)
            }
            b'/' if rest.starts_with(b"/*") => comment(rest),
            // A dollar sign within a name is part of it.
            byte if is_name(byte) => rest.iter().position(|&byte| !is_name(byte) && byte != b'$').unwrap_or(rest.len()),
            _ => 1,
        };
    }
    marks
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

/// The length of the comment that starts here; comments nest.
fn comment(sql: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < sql.len() {
        let step = match &sql[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    sql.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_parameters_of_the_statement_itself_are_written_out() {
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
            let found: Vec<usize> = marks(sql.as_bytes()).iter().map(|mark| mark.param).collect();
            assert_eq!(found, expected, "{sql}");
        }
    }

    #[test]
    fn a_parameter_may_stand_in_several_places_and_in_any_order() {
        let template = Template::new(b"UPDATE t SET a = $2, b = $1 WHERE c = $2", vec![17, 20]);
        let mut out = Vec::new();
        template.write(&mut out, &[Param::Bytes(b"o'clock"), Param::Int(7)]);
        assert_eq!(out[0], b'Q');
        assert_eq!(&out[5..], b"UPDATE t SET a = 7, b = '\\x6f27636c6f636b' WHERE c = 7\0");
        assert_eq!(template.params(), 2);
    }
}
