//! Prepared statements.

use std::time::Instant;

use rumba_engine_api::sql::Param;
use rumba_engine_api::value::DateTime;

use crate::WireError;
use crate::codec::answer;
use crate::codec::column::{self, Layout};
use crate::codec::frame::{self, HEADER};
use crate::codec::row::Column;
use crate::connection::Connection;

const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
/// The server cannot prepare this kind of statement.
pub(super) const NOT_PREPARABLE: u16 = 1295;

/// The types in which parameters are sent: a signed integer of 64 bits, and a string.
pub(super) const LONG_LONG: u8 = 0x08;
pub(super) const VAR_STRING: u8 = 0xfd;
const DOUBLE: u8 = 0x05;
pub(super) const DATETIME: u8 = 0x0c;
const NEW_DECIMAL: u8 = 0xf6;

/// The type in which a value is sent; `None` for NULL, which may have any.
pub(super) fn type_of(param: &Param<'_>) -> Option<u8> {
    Some(match param {
        Param::Null => return None,
        Param::Int(_) => LONG_LONG,
        Param::Double(_) => DOUBLE,
        Param::Timestamp(_) => DATETIME,
        Param::Decimal(_) => NEW_DECIMAL,
        // As digits, which the server parses without loss.
        Param::Unsigned(_) | Param::Text(_) | Param::Bytes(_) => VAR_STRING,
    })
}

/// Appends a value of the given type; appends no bytes for NULL.
#[inline]
pub(super) fn put_value(out: &mut Vec<u8>, param: &Param<'_>) {
    match param {
        Param::Null => {}
        Param::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
        Param::Text(bytes) | Param::Bytes(bytes) => frame::put_bytes(out, bytes),
        other => put_rarer_value(out, other),
    }
}

#[inline(never)]
fn put_rarer_value(out: &mut Vec<u8>, param: &Param<'_>) {
    match param {
        Param::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
        Param::Timestamp(time) => put_time(out, time),
        other => {
            // A number of at most forty digits: its length takes one byte.
            out.push(0);
            let at = out.len();
            other.write_text(out);
            out[at - 1] = (out.len() - at) as u8;
        }
    }
}

/// Appends a date and time with microseconds, as [`DATETIME`].
pub(super) fn put_time(out: &mut Vec<u8>, time: &DateTime) {
    let micros = time.subsec_nanosecond() / 1000;
    out.push(11);
    out.extend_from_slice(&time.year().to_le_bytes());
    let fields = [time.month(), time.day(), time.hour(), time.minute(), time.second()];
    out.extend(fields.map(|field| field as u8));
    out.extend_from_slice(&micros.to_le_bytes());
}

/// A statement that the server has prepared.
#[derive(Debug)]
pub(super) struct Binary {
    /// The text in the connection's character set, as the client passed it.
    pub(super) sql: Box<[u8]>,
    pub(super) id: u32,
    /// The columns of its rows, from the server's last definitions.
    pub(super) columns: Vec<Column>,
    /// The bytes of the last answer before its first row, including frames. An answer that starts with the same bytes
    /// has the same columns, which need not be parsed again. Empty if not kept.
    pub(super) prologue: Vec<u8>,
    /// The parameter types that the server assumes.
    types: Vec<u8>,
    /// Whether the server knows [`Binary::types`].
    bound: bool,
    /// The start of every execution: frame, command, statement number, flags, and a count that is always 1. With
    /// parameters, a bit for each that is NULL, and whether their types follow.
    opening: Vec<u8>,
}

/// The offset of the NULL bits in [`Binary::opening`].
const NULLS: usize = HEADER + 10;
/// The length of an opening with one parameter.
const OF_ONE: usize = NULLS + 2;

impl Binary {
    /// Prepares a statement, blocking.
    pub(super) fn prepare(
        connection: &mut Connection,
        sql: &[u8],
        deadline: Option<Instant>,
    ) -> Result<Self, WireError> {
        connection.put_command(PREPARE, sql);
        connection.write(deadline)?;
        let packet = connection.read(deadline)?;
        let packet = connection.at(packet);
        if let Some(0xff) = packet.first() {
            return Err(WireError::refused(&answer::refusal(packet)?));
        }
        let prepared = column::prepared(packet)?;
        definitions(connection, prepared.params, deadline, |_| {})?;
        let mut columns = Vec::with_capacity(usize::from(prepared.columns));
        definitions(connection, prepared.columns, deadline, |layout| columns.push(layout.into()))?;
        connection.channel.incoming.answered();
        let params = usize::from(prepared.params);
        let mut opening = vec![0; NULLS + if params > 0 { params.div_ceil(8) + 1 } else { 0 }];
        opening[HEADER] = EXECUTE;
        opening[HEADER + 1..HEADER + 5].copy_from_slice(&prepared.id.to_le_bytes());
        opening[HEADER + 6] = 1;
        let types = vec![VAR_STRING; params];
        Ok(Self { sql: sql.into(), id: prepared.id, columns, prologue: Vec::new(), types, bound: false, opening })
    }

    /// The number of parameters.
    pub(super) fn params(&self) -> usize {
        self.types.len()
    }

    /// Starts the prologue of an answer with rows with this packet.
    pub(super) fn begin_prologue(&mut self, framed: &[u8], defined: bool) {
        if defined {
            self.columns.clear();
        }
        self.prologue.clear();
        self.prologue.extend_from_slice(framed);
    }

    /// Adds a packet before the rows.
    pub(super) fn add_to_prologue(&mut self, framed: &[u8]) {
        // A longer prologue would cost more in memory than parsing costs in time.
        const LONGEST: usize = 1 << 10;
        if !self.prologue.is_empty() && !framed.is_empty() && self.prologue.len() + framed.len() <= LONGEST {
            self.prologue.extend_from_slice(framed);
        } else {
            self.prologue.clear();
        }
    }

    /// Appends the command that executes the statement with these parameters, whose number must match.
    #[inline]
    pub(super) fn write(&mut self, out: &mut Vec<u8>, params: &[Param<'_>]) {
        if let ([Param::Int(key)], [LONG_LONG], true) = (params, &self.types[..], self.bound)
            && let Some(opening) = self.opening.first_chunk::<OF_ONE>()
        {
            // The most common case of most benchmarks, appended as a whole.
            let mut command = [0; OF_ONE + 8];
            command[..OF_ONE].copy_from_slice(opening);
            command[..HEADER].copy_from_slice(&frame::header(OF_ONE + 8 - HEADER, 0));
            command[OF_ONE..].copy_from_slice(&key.to_le_bytes());
            return out.extend_from_slice(&command);
        }
        self.write_any(out, params);
    }

    #[inline(never)]
    fn write_any(&mut self, out: &mut Vec<u8>, params: &[Param<'_>]) {
        let at = out.len();
        out.extend_from_slice(&self.opening);
        if !self.bound {
            self.bind(out, params);
        }
        for (number, (param, have)) in params.iter().zip(&self.types).enumerate() {
            match type_of(param) {
                // The NULL bit is enough, for any type.
                None => out[at + NULLS + number / 8] |= 1 << (number % 8),
                Some(wanted) if wanted == *have => put_value(out, param),
                // The value's type differs from before: send it again with the types.
                Some(_) => return self.write_again(out, at, params),
            }
        }
        frame::finish(out, at, 0);
    }

    #[cold]
    fn write_again(&mut self, out: &mut Vec<u8>, at: usize, params: &[Param<'_>]) {
        out.truncate(at);
        self.bound = false;
        self.write_any(out, params);
    }

    /// Records the types of the parameters and sends them to the server.
    #[cold]
    fn bind(&mut self, out: &mut Vec<u8>, params: &[Param<'_>]) {
        self.bound = true;
        for (number, param) in self.types.iter_mut().zip(params) {
            *number = type_of(param).unwrap_or(*number);
        }
        if let (Some(follow), false) = (out.last_mut(), params.is_empty()) {
            *follow = 1;
            out.extend(self.types.iter().flat_map(|&number| [number, 0]));
        }
    }
}

/// Reads the announced number of definitions, and the packet that ends them.
fn definitions(
    connection: &mut Connection,
    count: u16,
    deadline: Option<Instant>,
    mut each: impl FnMut(Layout),
) -> Result<(), WireError> {
    for _ in 0..count {
        let packet = connection.read(deadline)?;
        each(column::layout(connection.at(packet))?);
    }
    if count > 0 && !connection.wording.deprecate_eof {
        connection.read(deadline)?;
    }
    Ok(())
}
