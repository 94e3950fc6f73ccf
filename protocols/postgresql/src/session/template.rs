//! Statements sent as text, with literal parameters.

use std::sync::Arc;

use rumba_engine_api::sql::Param;
use rumba_transport::Template;

use super::literal;
use super::statement::Control;
use crate::codec::{frame, types};

/// A statement that is sent as text.
#[derive(Debug)]
pub(super) struct Text {
    template: Arc<Template>,
    /// The parameters' types, in the order of their numbers.
    oids: Vec<u32>,
    pub(super) control: Control,
}

impl Text {
    /// A statement with parameters of these types.
    pub(super) fn new(template: Arc<Template>, oids: Vec<u32>) -> Self {
        let control = Control::of(&template.sql);
        Self { template, oids, control }
    }

    /// The statement's text.
    pub(super) fn sql(&self) -> &[u8] {
        &self.template.sql
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
        let message = frame::start(out, b'Q');
        self.template.fill(out, params.len(), |out, number| literal::put(out, params[number], self.oids[number]));
        out.push(0);
        frame::finish(out, message);
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::sql::Dialect;

    use super::*;

    #[test]
    fn a_parameter_may_stand_in_several_places_and_in_any_order() {
        let template = Template::new(b"UPDATE t SET a = $2, b = $1 WHERE c = $2", Dialect::PostgreSql);
        let text = Text::new(Arc::new(template), vec![17, 20]);
        let mut out = Vec::new();
        text.write(&mut out, &[Param::Bytes(b"o'clock"), Param::Int(7)]);
        assert_eq!(out[0], b'Q');
        assert_eq!(&out[5..], b"UPDATE t SET a = 7, b = '\\x6f27636c6f636b' WHERE c = 7\0");
        assert_eq!(text.params(), 2);
    }
}
