//! Bulk loading in three ways, each with one answer.

use std::slice::ChunksExact;
use std::time::Instant;

use rumba_engine_api::error::{EngineError, ErrorCode, Result};
use rumba_engine_api::sql::Param;
use rumba_transport::{Channel, quoted_name, server_text};

use super::failure::call_failed;
use super::literal::{self, put_escaped, put_quoted};
use super::outbox::{Kind, Outbox, Pending, Queue};
use super::statement::{Binary, DATETIME, LONG_LONG, VAR_STRING, put_time};
use super::{LoadWay, SessionOptions};
use crate::WireError;
use crate::codec::answer::{Done, counted};
use crate::codec::frame;
use crate::connection::Connection;
use crate::query::{QUERY, query};

const BULK_EXECUTE: u8 = 0xfa;
/// Flag: the types of the parameters are sent along.
const WITH_TYPES: u16 = 128;
/// The part of the packet limit reserved for commands and headers.
const MARGIN: usize = 1024;
/// The number of bytes of a file in one packet.
const FILE_PACKET: usize = 64 << 10;

/// How the rows of a table are loaded.
#[derive(Debug)]
pub(super) struct Rows {
    columns: usize,
    /// The server's packet limit in bytes.
    limit: usize,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Bulk {
        insert: Binary,
        /// The type in which each column's values are sent.
        types: Vec<u8>,
    },
    /// The statement.
    Data(String),
    /// The start of the statement.
    Insert(String),
}

/// The destination of statements: the send buffer, the files after it, and the queue of answers.
pub(super) struct Sink<'a> {
    pub(super) channel: &'a mut Channel,
    pub(super) outbox: &'a mut Outbox,
    pub(super) queue: &'a mut Queue,
}

impl Sink<'_> {
    fn push(&mut self, statement: usize, kind: Kind) {
        let end = self.channel.end();
        self.queue.push(Pending { statement, end, kind, last: false, grouped: false });
    }
}

impl Rows {
    /// Prepares bulk loading, blocking.
    pub(super) fn prepare(
        connection: &mut Connection,
        options: &SessionOptions,
        table: &str,
        columns: &[&str],
    ) -> Result<Self, WireError> {
        if columns.is_empty() {
            return Err(WireError::Unable("rows without columns cannot be loaded".into()));
        }
        let limits = query(connection, "SELECT @@max_allowed_packet, @@local_infile", None)?;
        let limit = |column: usize| limits.rows.first()?.get(column)?.as_ref()?.parse::<usize>().ok();
        let local_infile = limit(1) == Some(1);
        let names: Vec<String> = columns.iter().map(|column| quoted_name(column, "`")).collect();
        let (table, names) = (quoted_name(table, "`"), names.join(", "));
        let way = match options.load {
            LoadWay::Auto if connection.bulk && !options.text => LoadWay::BulkExecute,
            LoadWay::Auto if local_infile => LoadWay::LoadData,
            LoadWay::Auto => LoadWay::Insert,
            requested => requested,
        };
        let way = match way {
            LoadWay::BulkExecute if !connection.bulk => {
                return Err(WireError::Unable(format!(
                    "server {} has no COM_STMT_BULK_EXECUTE, which MariaDB has since 10.2; load by LOAD DATA or INSERT",
                    connection.version,
                )));
            }
            LoadWay::LoadData if !local_infile => {
                return Err(WireError::Unable(
                    "the server refuses LOAD DATA LOCAL: start it with local_infile=1, or load by INSERT".into(),
                ));
            }
            LoadWay::BulkExecute => {
                let marks = vec!["?"; columns.len()].join(", ");
                let sql = format!("INSERT INTO {table} ({names}) VALUES ({marks})");
                let insert = Binary::prepare(connection, sql.as_bytes(), None)?;
                Way::Bulk { types: vec![0; insert.params()], insert }
            }
            LoadWay::LoadData => Way::Data(format!(
                "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET binary \
                 FIELDS TERMINATED BY X'09' ESCAPED BY X'5C' LINES TERMINATED BY X'0A' ({names})"
            )),
            LoadWay::Insert | LoadWay::Auto => Way::Insert(format!("INSERT INTO {table} ({names}) VALUES ")),
        };
        // The limit that every server allows, if this one does not report its own.
        const LEAST: usize = 1 << 20;
        let limit = limit(0).unwrap_or(LEAST).saturating_sub(MARGIN).max(MARGIN);
        Ok(Self { columns: columns.len(), limit, way })
    }

    pub(super) fn prepare_again(
        &mut self,
        connection: &mut Connection,
        deadline: Option<Instant>,
    ) -> Result<(), WireError> {
        if let Way::Bulk { insert, .. } = &mut self.way {
            *insert = Binary::prepare(connection, &insert.sql, deadline)?;
        }
        Ok(())
    }

    /// The server's number of the prepared statement.
    pub(super) fn id(&self) -> Option<u32> {
        match &self.way {
            Way::Bulk { insert, .. } => Some(insert.id),
            Way::Data(_) | Way::Insert(_) => None,
        }
    }

    pub(super) fn sql(&self) -> &[u8] {
        match &self.way {
            Way::Bulk { insert, .. } => &insert.sql,
            Way::Data(sql) | Way::Insert(sql) => sql.as_bytes(),
        }
    }

    /// Appends the statements that load these rows; the caller must mark the last pending one.
    pub(super) fn write(
        &mut self,
        sink: &mut Sink<'_>,
        statement: usize,
        values: &[Param<'_>],
        backslashes: bool,
    ) -> Result<()> {
        if !values.len().is_multiple_of(self.columns) {
            return Err(call_failed("submit_rows", "the values do not fill their last row"));
        }
        let rows = values.chunks_exact(self.columns);
        if rows.len() == 0 {
            sink.push(statement, Kind::Nothing);
            return Ok(());
        }
        match &mut self.way {
            Way::Bulk { insert, types } => {
                choose_types(types, values);
                bulk(sink, statement, insert.id, types, values, self.limit);
            }
            Way::Data(sql) => {
                let mut file = sink.outbox.file();
                write_file(&mut file, values, self.columns);
                sink.outbox.keep(file);
                let at = frame::start(&mut sink.channel.send);
                sink.channel.send.push(QUERY);
                sink.channel.send.extend_from_slice(sql.as_bytes());
                frame::finish(&mut sink.channel.send, at, 0);
                sink.push(statement, Kind::Load { rows: rows.len() as u64 });
            }
            Way::Insert(opening) => insert(sink, statement, opening, rows, self.limit, backslashes),
        }
        Ok(())
    }
}

/// A column is sent as integers if all its values are integers, as times if all are times, and else as strings, which
/// the server parses. Strings cost both sides more for a time.
fn choose_types(types: &mut [u8], values: &[Param<'_>]) {
    /// The type of NULL, which is valid for any column.
    const ANY: u8 = 0x06;
    types.fill(ANY);
    for row in values.chunks_exact(types.len()) {
        for (column, value) in types.iter_mut().zip(row) {
            let own = match value {
                Param::Null => continue,
                Param::Int(_) => LONG_LONG,
                Param::Timestamp(_) => DATETIME,
                _ => VAR_STRING,
            };
            *column = if *column == ANY || *column == own { own } else { VAR_STRING };
        }
    }
    types.iter_mut().filter(|column| **column == ANY).for_each(|column| *column = LONG_LONG);
}

fn bulk(sink: &mut Sink<'_>, statement: usize, id: u32, types: &[u8], values: &[Param<'_>], limit: usize) {
    let mut at = None;
    for row in values.chunks_exact(types.len()) {
        // An indicator and up to nine bytes of length or number, twelve of a time, or twenty digits.
        let most: usize = row.iter().map(|value| 22 + longest(value)).sum();
        if let Some(full) = at.filter(|full| sink.channel.send.len() - full + most > limit) {
            frame::finish(&mut sink.channel.send, full, 0);
            sink.push(statement, Kind::Binary);
            at = None;
        }
        if at.is_none() {
            at = Some(frame::start(&mut sink.channel.send));
            sink.channel.send.push(BULK_EXECUTE);
            sink.channel.send.extend_from_slice(&id.to_le_bytes());
            sink.channel.send.extend_from_slice(&WITH_TYPES.to_le_bytes());
            types.iter().for_each(|&number| sink.channel.send.extend_from_slice(&[number, 0]));
        }
        for (&number, value) in types.iter().zip(row) {
            put_bulk(&mut sink.channel.send, number, value);
        }
    }
    if let Some(at) = at {
        frame::finish(&mut sink.channel.send, at, 0);
        sink.push(statement, Kind::Binary);
    }
}

#[inline]
fn put_bulk(out: &mut Vec<u8>, number: u8, value: &Param<'_>) {
    const VALUE: u8 = 0;
    const NULL: u8 = 1;
    match value {
        Param::Null => out.push(NULL),
        Param::Int(value) if number == LONG_LONG => {
            out.push(VALUE);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Param::Timestamp(time) if number == DATETIME => {
            out.push(VALUE);
            put_time(out, time);
        }
        Param::Text(bytes) | Param::Bytes(bytes) => {
            out.push(VALUE);
            frame::put_bytes(out, bytes);
        }
        number => {
            out.extend_from_slice(&[VALUE, 0]);
            let at = out.len();
            number.write_text(out);
            out[at - 1] = (out.len() - at) as u8;
        }
    }
}

/// The number of bytes that a value may take beyond the twenty digits of an integer.
fn longest(value: &Param<'_>) -> usize {
    match value {
        Param::Null | Param::Int(_) | Param::Unsigned(_) => 0,
        Param::Text(bytes) | Param::Bytes(bytes) => bytes.len(),
        Param::Double(_) | Param::Decimal(_) | Param::Timestamp(_) => 24,
    }
}

/// Writes the file for LOAD DATA, in packets that answer the server's first one.
fn write_file(file: &mut Vec<u8>, values: &[Param<'_>], columns: usize) {
    let mut sequence = 2;
    let mut at = frame::start(file);
    for row in values.chunks_exact(columns) {
        for (number, value) in row.iter().enumerate() {
            if number > 0 {
                file.push(b'\t');
            }
            match value {
                Param::Null => file.extend_from_slice(b"\\N"),
                Param::Text(bytes) | Param::Bytes(bytes) => put_escaped(file, bytes, |byte| match byte {
                    0 => Some(b'0'),
                    b'\t' => Some(b't'),
                    b'\n' => Some(b'n'),
                    b'\\' => Some(b'\\'),
                    _ => None,
                }),
                number => number.write_text(file),
            }
        }
        file.push(b'\n');
        if file.len() - at > FILE_PACKET {
            sequence = frame::finish_in_packets(file, at, sequence, FILE_PACKET);
            at = frame::start(file);
        }
    }
    if file.len() > at + frame::HEADER {
        sequence = frame::finish(file, at, sequence);
        at = frame::start(file);
    }
    // An empty packet ends the file.
    frame::finish(file, at, sequence);
}

fn insert(
    sink: &mut Sink<'_>,
    statement: usize,
    opening: &str,
    rows: ChunksExact<'_, Param<'_>>,
    limit: usize,
    backslashes: bool,
) {
    let mut at = None;
    for row in rows {
        // Every byte may be escaped; add quotes, a comma, a prefix, or twenty digits and a sign.
        let most: usize = row.iter().map(|value| 24 + 2 * longest(value)).sum();
        if let Some(full) = at.filter(|full| sink.channel.send.len() - full + most > limit) {
            frame::finish(&mut sink.channel.send, full, 0);
            sink.push(statement, Kind::Text);
            at = None;
        }
        match at {
            Some(_) => sink.channel.send.push(b','),
            None => {
                at = Some(frame::start(&mut sink.channel.send));
                sink.channel.send.push(QUERY);
                sink.channel.send.extend_from_slice(opening.as_bytes());
            }
        }
        put_row(&mut sink.channel.send, row, backslashes);
    }
    if let Some(at) = at {
        frame::finish(&mut sink.channel.send, at, 0);
        sink.push(statement, Kind::Text);
    }
}

fn put_row(out: &mut Vec<u8>, row: &[Param<'_>], backslashes: bool) {
    for (number, value) in row.iter().enumerate() {
        out.push(if number == 0 { b'(' } else { b',' });
        match value {
            Param::Bytes(bytes) if !bytes.is_ascii() => {
                // These bytes are stored unchanged, regardless of the connection's character set.
                out.extend_from_slice(b"_binary");
                put_quoted(out, bytes, backslashes);
            }
            other => literal::put(out, *other, backslashes),
        }
    }
    out.push(b')');
}

/// LOAD DATA LOCAL skips rows that it cannot load and changes values that do not fit, with only a warning. Both count
/// as failures.
pub(super) fn loaded_less(done: &Done<'_>, rows: u64) -> Option<EngineError> {
    let skipped = counted(done.info, b"Skipped: ").unwrap_or(0);
    if skipped > 0 && done.affected == 0 {
        return Some(EngineError::Duplicate(ErrorCode::NONE));
    }
    if done.affected == rows && done.warnings == 0 {
        return None;
    }
    let said = server_text(done.info);
    Some(call_failed(
        "submit_rows",
        &format!(
            "LOAD DATA took {} of {rows} rows as they are ({said}): rows with a key that is there already were left \
             out, or values that do not fit were changed; roll back, and load by INSERT to see which",
            done.affected
        ),
    ))
}
