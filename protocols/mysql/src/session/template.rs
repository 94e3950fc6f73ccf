//! Statements sent as text, with literal parameters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::sql::Param;

use super::literal;
use crate::codec::frame;
use crate::query::QUERY;

/// The texts that sessions share. Ten thousand terminals run the same few texts, so separate copies would take a
/// hundred megabytes.
#[derive(Debug, Default)]
pub struct Templates(Mutex<HashMap<Arc<[u8]>, Arc<Template>>>);

impl Templates {
    /// The most texts kept, because a workload with literal values has a new text for each statement.
    const MOST: usize = 1 << 10;

    /// The template of a statement; looked up when it is prepared, not when it is executed.
    pub(super) fn of(&self, sql: &[u8]) -> Arc<Template> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = known.get(sql) {
            return Arc::clone(template);
        }
        let template = Arc::new(Template::new(sql));
        if known.len() < Self::MOST {
            known.insert(Arc::clone(&template.sql), Arc::clone(&template));
        }
        template
    }
}

/// A statement and the positions of its parameters.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) sql: Arc<[u8]>,
    /// The positions of the question marks, ascending.
    marks: Vec<usize>,
}

impl Template {
    pub(super) fn new(sql: &[u8]) -> Self {
        Self { sql: sql.into(), marks: marks(sql) }
    }

    /// The number of parameters.
    pub(super) fn params(&self) -> usize {
        self.marks.len()
    }

    /// Appends the command that executes the statement with these parameters, whose number must match.
    pub(super) fn write(&self, out: &mut Vec<u8>, params: &[Param<'_>], backslashes: bool) {
        let at = frame::start(out);
        out.push(QUERY);
        self.put(out, params, backslashes);
        frame::finish(out, at, 0);
    }

    /// Adds the statement to the command that begins at `at` and ends the buffer.
    pub(super) fn add(&self, out: &mut Vec<u8>, at: usize, params: &[Param<'_>], backslashes: bool) {
        out.push(b';');
        self.put(out, params, backslashes);
        frame::finish(out, at, 0);
    }

    fn put(&self, out: &mut Vec<u8>, params: &[Param<'_>], backslashes: bool) {
        let sql = &self.sql;
        let mut kept = 0;
        for (&mark, &param) in self.marks.iter().zip(params) {
            out.extend_from_slice(&sql[kept..mark]);
            literal::put(out, param, backslashes);
            kept = mark + 1;
        }
        out.extend_from_slice(&sql[kept..]);
    }
}

/// The question marks outside of strings, names and comments.
fn marks(sql: &[u8]) -> Vec<usize> {
    let mut marks = Vec::new();
    let mut at = 0;
    while let Some(&byte) = sql.get(at) {
        let rest = &sql[at..];
        at += match byte {
            b'?' => {
                marks.push(at);
                1
            }
            b'\'' | b'"' | b'`' => quoted(rest),
            b'#' => line(rest),
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(u8::is_ascii_whitespace) => line(rest),
            b'/' if rest.starts_with(b"/*") => {
                rest.windows(2).skip(2).position(|end| end == b"*/").map_or(rest.len(), |end| end + 4)
            }
            _ => 1,
        };
    }
    marks
}

/// The length of the string or name that starts here. A doubled quote is treated as the end of one and the start of the
/// next, with the same result.
fn quoted(sql: &[u8]) -> usize {
    let quote = sql[0];
    let mut at = 1;
    while let Some(&byte) = sql.get(at) {
        at += 1;
        if byte == b'\\' && quote != b'`' {
            at += 1;
        } else if byte == quote {
            return at;
        }
    }
    sql.len()
}

fn line(sql: &[u8]) -> usize {
    sql.iter().position(|&byte| byte == b'\n').map_or(sql.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_question_marks_of_the_statement_itself_are_parameters() {
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
            assert_eq!(marks(sql.as_bytes()).len(), expected, "{sql}");
        }
    }

    #[test]
    fn statement_templates_are_shared_and_bounded() {
        let templates = Templates::default();
        let (first, second) = (templates.of(b"SELECT ?"), templates.of(b"SELECT ?"));
        assert!(Arc::ptr_eq(&first, &second));
        for number in 0..2 * Templates::MOST {
            let text = format!("SELECT {number}");
            assert_eq!(&*templates.of(text.as_bytes()).sql, text.as_bytes());
        }
        assert_eq!(templates.0.lock().unwrap().len(), Templates::MOST);
        assert!(Arc::ptr_eq(&first, &templates.of(b"SELECT ?")), "it came early enough");
    }

    #[test]
    fn parameters_are_written_where_the_question_marks_were() {
        let template = Template::new(b"UPDATE t SET a = ?, b = ? WHERE c = ?");
        let mut out = Vec::new();
        let params = [Param::Null, Param::Bytes(b"o'clock"), Param::Int(-7)];
        template.write(&mut out, &params, true);
        assert_eq!(&out[5..], b"UPDATE t SET a = NULL, b = 'o\\'clock' WHERE c = -7");
        assert_eq!(template.params(), 3);
        let alone = out.len();
        Template::new(b"SELECT ?").add(&mut out, 0, &[Param::Int(8)], true);
        assert_eq!(&out[alone..], b";SELECT 8");
        assert_eq!(usize::from(out[0]), out.len() - 4, "the packet is as long as both");
    }
}
