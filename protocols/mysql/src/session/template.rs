//! Statements sent as text, with literal parameters.

use rumba_engine_api::sql::Param;
use rumba_transport::Template;

use super::literal;
use crate::codec::frame;
use crate::query::QUERY;

/// Appends the command that executes a statement with these parameters, whose number must match.
pub(super) fn write(template: &Template, out: &mut Vec<u8>, params: &[Param<'_>], backslashes: bool) {
    let at = frame::start(out);
    out.push(QUERY);
    put(template, out, params, backslashes);
    frame::finish(out, at, 0);
}

/// Adds a statement to the command that begins at `at` and ends the buffer.
pub(super) fn add(template: &Template, out: &mut Vec<u8>, at: usize, params: &[Param<'_>], backslashes: bool) {
    out.push(b';');
    put(template, out, params, backslashes);
    frame::finish(out, at, 0);
}

fn put(template: &Template, out: &mut Vec<u8>, params: &[Param<'_>], backslashes: bool) {
    template.fill(out, params.len(), |out, number| literal::put(out, params[number], backslashes));
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::sql::Dialect;

    use super::*;

    #[test]
    fn parameters_are_written_where_the_question_marks_were() {
        let template = |sql: &[u8]| Template::new(sql, Dialect::MySql);
        let mut out = Vec::new();
        let params = [Param::Null, Param::Bytes(b"o'clock"), Param::Int(-7)];
        write(&template(b"UPDATE t SET a = ?, b = ? WHERE c = ?"), &mut out, &params, true);
        assert_eq!(&out[5..], b"UPDATE t SET a = NULL, b = 'o\\'clock' WHERE c = -7");
        let alone = out.len();
        add(&template(b"SELECT ?"), &mut out, 0, &[Param::Int(8)], true);
        assert_eq!(&out[alone..], b";SELECT 8");
        assert_eq!(usize::from(out[0]), out.len() - 4, "the packet is as long as both");
    }
}
