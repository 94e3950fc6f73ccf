//! Loading many rows: COPY, in its binary format where the columns' types allow it.
//!
//! The rows go behind the statement without waiting for the server to ask for
//! them: one that refuses the statement passes over them, as the protocol says.

use rumba_core::error::EngineError;
use rumba_core::sql::Param;

use super::failure::call_failed;
use super::literal::{put_hex, quoted_name};
use super::statement::Described;
use crate::PgError;
use crate::codec::frame;
use crate::codec::types::{self, ParamLayout};
use crate::connection::Connection;
use crate::query::put_query;

/// How much of the rows one message carries.
const CHUNK: usize = 64 << 10;
/// What binary rows begin with: a signature, flags, and no extension.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// In the place of a row's number of columns: there are no more rows.
const TRAILER: [u8; 2] = [0xff, 0xff];

/// How rows of one table are loaded.
#[derive(Debug)]
pub(super) struct Rows {
    sql: String,
    columns: Vec<CopyColumn>,
    binary: bool,
}

#[derive(Clone, Copy, Debug)]
struct CopyColumn {
    layout: ParamLayout,
    bytea: bool,
}

impl Rows {
    /// Prepares the loading of rows, blocking.
    pub(super) fn prepare(connection: &mut Connection, table: &str, columns: &[&str]) -> Result<Self, PgError> {
        if columns.is_empty() {
            return Err(PgError::Unable("rows without columns cannot be loaded".into()));
        }
        let names: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
        let (table, names) = (quoted_name(table), names.join(", "));
        // Parsed for its types, and never run.
        let described = Described::ask(connection, "", &format!("SELECT {names} FROM {table}"), None)?;
        let columns: Vec<CopyColumn> = described
            .columns
            .into_iter()
            .map(|oid| CopyColumn { layout: ParamLayout::of(oid), bytea: types::is_bytea(oid) })
            .collect();
        let binary = columns.iter().all(|column| column.layout != ParamLayout::Text);
        let format = if binary { "binary" } else { "text" };
        Ok(Self { sql: format!("COPY {table} ({names}) FROM STDIN (FORMAT {format})"), columns, binary })
    }

    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// Appends the messages that load these rows; false if there are none.
    pub(super) fn write(&self, out: &mut Vec<u8>, values: &[Param<'_>]) -> Result<bool, EngineError> {
        if !values.len().is_multiple_of(self.columns.len()) {
            return Err(call_failed("submit_rows", "the values do not fill their last row"));
        }
        if values.is_empty() {
            return Ok(false);
        }
        let start = out.len();
        put_query(out, self.sql.as_bytes());
        let written = if self.binary { self.write_binary(out, values) } else { self.write_text(out, values) };
        if let Err(column) = written {
            out.truncate(start);
            let problem = format!("a value of column {} is not of its type, in: {}", column + 1, self.sql);
            return Err(call_failed("submit_rows", &problem));
        }
        let done = frame::start(out, b'c');
        frame::finish(out, done);
        Ok(true)
    }

    /// Appends rows in the binary format; on failure, which column has a value that its type does not.
    fn write_binary(&self, out: &mut Vec<u8>, values: &[Param<'_>]) -> Result<(), usize> {
        let mut at = frame::start(out, b'd');
        out.extend_from_slice(SIGNATURE);
        let count = (self.columns.len() as u16).to_be_bytes();
        for row in values.chunks_exact(self.columns.len()) {
            if out.len() - at > CHUNK {
                frame::finish(out, at);
                at = frame::start(out, b'd');
            }
            out.extend_from_slice(&count);
            for (number, (value, column)) in row.iter().zip(&self.columns).enumerate() {
                put_binary(out, value, column.layout).ok_or(number)?;
            }
        }
        out.extend_from_slice(&TRAILER);
        frame::finish(out, at);
        Ok(())
    }

    /// Appends rows as text, which takes any value.
    fn write_text(&self, out: &mut Vec<u8>, values: &[Param<'_>]) -> Result<(), usize> {
        let mut at = frame::start(out, b'd');
        for row in values.chunks_exact(self.columns.len()) {
            if out.len() - at > CHUNK {
                frame::finish(out, at);
                at = frame::start(out, b'd');
            }
            for (number, (value, column)) in row.iter().zip(&self.columns).enumerate() {
                if number > 0 {
                    out.push(b'\t');
                }
                put_text(out, value, column.bytea);
            }
            out.push(b'\n');
        }
        frame::finish(out, at);
        Ok(())
    }
}

/// Appends a value as its type has it; `None` if it is of another.
#[inline]
fn put_binary(out: &mut Vec<u8>, value: &Param<'_>, layout: ParamLayout) -> Option<()> {
    match (value, layout) {
        (Param::Null, _) => out.extend_from_slice(&u32::MAX.to_be_bytes()),
        (Param::Int(value), ParamLayout::Int(8)) => frame::put_value(out, &value.to_be_bytes()),
        (Param::Int(value), ParamLayout::Int(4)) => frame::put_value(out, &i32::try_from(*value).ok()?.to_be_bytes()),
        (Param::Int(value), ParamLayout::Int(_)) => frame::put_value(out, &i16::try_from(*value).ok()?.to_be_bytes()),
        (Param::Text(bytes) | Param::Bytes(bytes), ParamLayout::Bytes) => frame::put_value(out, bytes),
        _ => return None,
    }
    Some(())
}

fn put_text(out: &mut Vec<u8>, value: &Param<'_>, bytea: bool) {
    match value {
        Param::Null => out.extend_from_slice(b"\\N"),
        Param::Bytes(bytes) if bytea => {
            // Its backslash is one of two to COPY.
            out.push(b'\\');
            put_hex(out, bytes);
        }
        Param::Text(bytes) | Param::Bytes(bytes) => {
            for &byte in *bytes {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    _ => out.push(byte),
                }
            }
        }
        number => number.write_text(out),
    }
}
