//! Prepared statements.

use std::time::Instant;

use rumba_engine_api::sql::{Param, ParamType};
use rumba_transport::Channel;

use crate::PgError;
use crate::codec::row::Column;
use crate::codec::types::{Layout, ParamLayout, declared_oid};
use crate::codec::{frame, message};
use crate::connection::{Connection, Message};
use crate::query::refuse_zero;

/// The end of a group: the server answers all of its statements and resets its error state.
pub(super) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// The effect of a statement on its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Begin,
    Commit,
    /// Ends the transaction in another way.
    Rollback,
    /// No effect.
    Nothing,
}

impl Control {
    pub(super) fn of(sql: &[u8]) -> Self {
        let sql = sql.trim_ascii_start();
        let first = &sql[..sql.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()];
        let is = |words: &[&str]| words.iter().any(|word| first.eq_ignore_ascii_case(word.as_bytes()));
        // ROLLBACK TO a savepoint leaves the transaction open.
        let within = || {
            let mut words = sql.split(u8::is_ascii_whitespace);
            words.any(|word| word.eq_ignore_ascii_case(b"TO") || word.eq_ignore_ascii_case(b"PREPARED"))
        };
        if is(&["BEGIN", "START"]) {
            Control::Begin
        } else if is(&["COMMIT", "END"]) && !within() {
            Control::Commit
        } else if is(&["ROLLBACK", "ABORT"]) && !within() {
            Control::Rollback
        } else {
            Control::Nothing
        }
    }
}

/// The server's description of a statement.
pub(super) struct Described {
    /// The types of its parameters.
    pub(super) params: Vec<u32>,
    /// The types of its result columns.
    pub(super) columns: Vec<u32>,
}

impl Described {
    /// Makes the server parse a statement under this name, with the declared types of its first parameters, and returns
    /// its description. Blocks.
    pub(super) fn fetch(
        connection: &mut Connection,
        name: &str,
        sql: &[u8],
        types: &[ParamType],
        deadline: Option<Instant>,
    ) -> Result<Self, PgError> {
        refuse_zero(sql)?;
        let Ok(count) = u16::try_from(types.len()) else {
            return Err(PgError::Unable(format!(
                "a statement has at most {} parameters there, not {}",
                u16::MAX,
                types.len()
            )));
        };
        connection.channel.allow(Channel::ANSWER);
        let out = &mut connection.channel.send;
        let parse = frame::start(out, b'P');
        frame::put_text(out, name.as_bytes());
        frame::put_text(out, sql);
        out.extend_from_slice(&count.to_be_bytes());
        types.iter().for_each(|&declared| out.extend_from_slice(&declared_oid(declared).to_be_bytes()));
        frame::finish(out, parse);
        let describe = frame::start(out, b'D');
        out.push(b'S');
        frame::put_text(out, name.as_bytes());
        frame::finish(out, describe);
        out.extend_from_slice(&SYNC);
        connection.write(deadline)?;
        let mut described = Self { params: Vec::new(), columns: Vec::new() };
        let mut failure = None;
        loop {
            let Message { kind, body } = connection.read_after(&mut failure, deadline)?;
            let body = connection.channel.incoming.at(body);
            match kind {
                b't' => described.params = message::parameters(body)?,
                b'T' => message::columns(body, |column| described.columns.push(column.oid))?,
                b'E' => failure = Some(PgError::refused(&message::refusal(body)?)),
                b'Z' => {
                    connection.transaction = message::Transaction::of(body)?;
                    connection.channel.incoming.answered();
                    return failure.map_or(Ok(described), Err);
                }
                // Parsed; an earlier statement closed; no rows; notices and other messages that may come at any time.
                b'1' | b'3' | b'n' | b'N' | b'S' | b'A' => {}
                other => {
                    return Err(PgError::Protocol(format!(
                        "{:?} in answer to the preparing of a statement",
                        char::from(other)
                    )));
                }
            }
        }
    }
}

/// A statement that the server has prepared.
#[derive(Debug)]
pub(super) struct Binary {
    /// The text in the connection's encoding, as the client passed it.
    pub(super) sql: Box<[u8]>,
    /// The parameter types that the client has declared: the first ones, or all.
    pub(super) declared: Box<[ParamType]>,
    pub(super) number: usize,
    pub(super) name: Box<str>,
    pub(super) control: Control,
    pub(super) columns: Vec<Column>,
    /// The format of its parameters, if they match the type.
    params: Vec<ParamLayout>,
    /// The start of every execution: Bind, without its length, up to the values.
    opening: Vec<u8>,
    /// The end of every execution: the format of the rows, Execute, Sync.
    closing: Vec<u8>,
    /// A complete execution with one integer, and the integer's position, for the most common case of benchmarks.
    whole: Option<(Vec<u8>, usize)>,
}

impl Binary {
    /// The number of columns, if the statement returns rows.
    #[inline]
    pub(super) fn returned(&self) -> Option<u32> {
        Some(self.columns.len() as u32).filter(|&columns| columns > 0)
    }

    /// Prepares a statement, blocking.
    pub(super) fn prepare(
        connection: &mut Connection,
        number: usize,
        sql: &[u8],
        types: &[ParamType],
        deadline: Option<Instant>,
    ) -> Result<Self, PgError> {
        let name = format!("{}{number}", connection.names).into_boxed_str();
        let described = Described::fetch(connection, &name, sql, types, deadline)?;
        let params: Vec<ParamLayout> = described.params.iter().map(|&oid| ParamLayout::of(oid)).collect();
        let layouts: Vec<Layout> = described.columns.iter().map(|&oid| Layout::of(oid)).collect();

        // Bind to the unnamed portal.
        let mut opening = Vec::new();
        frame::start(&mut opening, b'B');
        frame::put_text(&mut opening, b"");
        frame::put_text(&mut opening, name.as_bytes());
        opening.extend_from_slice(&(params.len() as u16).to_be_bytes());
        params.iter().for_each(|param| opening.extend_from_slice(&param.format().to_be_bytes()));
        opening.extend_from_slice(&(params.len() as u16).to_be_bytes());

        let mut closing = Vec::new();
        if layouts.iter().all(|layout| layout.format() == 1) {
            // One format for all columns.
            closing.extend_from_slice(&[0, 1, 0, 1]);
        } else {
            closing.extend_from_slice(&(layouts.len() as u16).to_be_bytes());
            layouts.iter().for_each(|layout| closing.extend_from_slice(&layout.format().to_be_bytes()));
        }
        let of_bind = closing.len();
        // Execute the unnamed portal without a row limit.
        closing.extend_from_slice(&[b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0]);
        closing.extend_from_slice(&SYNC);

        let whole = match params[..] {
            [ParamLayout::Int(width)] => {
                let mut whole = opening.clone();
                whole.extend_from_slice(&u32::from(width).to_be_bytes());
                let at = whole.len();
                whole.resize(at + usize::from(width), 0);
                whole.extend_from_slice(&closing[..of_bind]);
                frame::finish(&mut whole, 1);
                whole.extend_from_slice(&closing[of_bind..]);
                Some((whole, at))
            }
            _ => None,
        };
        let columns = layouts.into_iter().map(Column::from).collect();
        let control = Control::of(sql);
        let declared = types.into();
        Ok(Self { sql: sql.into(), declared, number, name, control, columns, params, opening, closing, whole })
    }

    /// The number of parameters.
    pub(super) fn params(&self) -> usize {
        self.params.len()
    }

    /// Appends the messages that execute the statement with these parameters, whose number must match, and end the
    /// group.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, params: &[Param<'_>]) {
        if let ([Param::Int(number)], Some((whole, at)), [ParamLayout::Int(8)]) =
            (params, &self.whole, &self.params[..])
        {
            let start = out.len() + at;
            out.extend_from_slice(whole);
            out[start..start + 8].copy_from_slice(&number.to_be_bytes());
            return;
        }
        self.write_any(out, params);
    }

    #[inline(never)]
    fn write_any(&self, out: &mut Vec<u8>, params: &[Param<'_>]) {
        let start = out.len();
        out.extend_from_slice(&self.opening);
        for (number, (param, layout)) in params.iter().zip(&self.params).enumerate() {
            match (param, layout) {
                (Param::Null, _) => out.extend_from_slice(&u32::MAX.to_be_bytes()),
                (Param::Int(value), ParamLayout::Int(8)) => frame::put_value(out, &value.to_be_bytes()),
                (Param::Int(value), &ParamLayout::Int(width)) if fits(*value, width) => {
                    frame::put_value(out, &value.to_be_bytes()[8 - usize::from(width)..]);
                }
                (Param::Text(bytes) | Param::Bytes(bytes), ParamLayout::Bytes | ParamLayout::Text) => {
                    frame::put_value(out, bytes);
                }
                (_, ParamLayout::Text) => put_as_text(out, param),
                // If the value does not match the type, send it as text, which the server parses or refuses with its
                // own error.
                _ => {
                    // The formats precede the second count of the opening.
                    let formats = start + self.opening.len() - 2 - 2 * self.params.len();
                    out[formats + 2 * number..][..2].copy_from_slice(&0_u16.to_be_bytes());
                    put_as_text(out, param);
                }
            }
        }
        let of_bind = self.closing.len() - EXECUTE_AND_SYNC;
        out.extend_from_slice(&self.closing[..of_bind]);
        frame::finish(out, start + 1);
        out.extend_from_slice(&self.closing[of_bind..]);
    }
}

/// Appends a value as text with its length prefix.
fn put_as_text(out: &mut Vec<u8>, param: &Param<'_>) {
    let length = out.len();
    out.extend_from_slice(&[0; 4]);
    param.write_text(out);
    let bytes = (out.len() - length - 4) as u32;
    out[length..length + 4].copy_from_slice(&bytes.to_be_bytes());
}

/// The length of the messages after Bind.
const EXECUTE_AND_SYNC: usize = 10 + SYNC.len();

fn fits(value: i64, width: u8) -> bool {
    match width {
        2 => i16::try_from(value).is_ok(),
        4 => i32::try_from(value).is_ok(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_effects_on_the_transaction_are_known() {
        for (sql, control) in [
            ("BEGIN", Control::Begin),
            (" start transaction isolation level serializable", Control::Begin),
            ("commit;", Control::Commit),
            ("END", Control::Commit),
            ("ROLLBACK", Control::Rollback),
            ("rollback to savepoint a", Control::Nothing),
            ("COMMIT PREPARED 'x'", Control::Nothing),
            ("SELECT 1", Control::Nothing),
        ] {
            assert_eq!(Control::of(sql.as_bytes()), control, "{sql}");
        }
    }
}
