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
