//! Statements sent as text with blocking calls, for administration and for setting up a session.

use std::time::Instant;

use crate::codec::Reader;
use crate::codec::answer::{self, Head, MORE_RESULTS, Next};
use crate::codec::column;
use crate::connection::Connection;
use crate::receive::LONGEST;
use crate::{Rows, WireError};

/// The command for a statement as text.
pub(crate) const QUERY: u8 = 0x03;

/// The memory that the answer to an administrative statement may take, with its rows.
const MOST: usize = 16 << 20;

/// Runs statements; the rows are those of the first that returns any.
pub(crate) fn query(connection: &mut Connection, sql: &str, deadline: Option<Instant>) -> Result<Rows, WireError> {
    connection.receive.limit(MOST);
    let rows = answers(connection, sql, deadline);
    connection.receive.limit(LONGEST);
    rows
}

fn answers(connection: &mut Connection, sql: &str, deadline: Option<Instant>) -> Result<Rows, WireError> {
    connection.put_command(QUERY, sql.as_bytes());
    connection.write(deadline)?;
    let mut first = Rows::default();
    let mut room = Room(MOST);
    loop {
        let rows = answer(connection, &mut room, deadline)?;
        if first.columns.is_empty() {
            first = rows;
        }
        if connection.status & MORE_RESULTS == 0 {
            connection.receive.answered();
            return Ok(first);
        }
    }
}

/// The memory that the rest of an answer may take.
struct Room(usize);

impl Room {
    /// Counts a packet from which so many texts are kept.
    fn take(&mut self, packet: &[u8], texts: usize) -> Result<(), WireError> {
        let bytes = packet.len() + (1 + texts) * size_of::<Option<String>>();
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            WireError::Protocol(format!(
                "the answer to an administrative statement takes more than {} MiB; see that the address is that of a \
                 database server",
                MOST >> 20
            ))
        })?;
        Ok(())
    }
}

fn answer(connection: &mut Connection, room: &mut Room, deadline: Option<Instant>) -> Result<Rows, WireError> {
    let packet = connection.read(deadline)?;
    let packet = connection.receive.at(packet);
    room.take(packet, 0)?;
    let count = match answer::head(packet, connection.wording)? {
        Head::Done(done) => {
            connection.status = done.status;
            return Ok(Rows::default());
        }
        Head::Refused(refusal) => return Err(WireError::refused(&refusal)),
        Head::WantsFile => {
            connection.put(&[]);
            connection.write(deadline)?;
            connection.read(deadline)?;
            return Err(WireError::Protocol("no file is sent here; load rows with prepare_rows".into()));
        }
        Head::Rows { columns, .. } => columns,
    };
    let mut rows = Rows::default();
    for _ in 0..count {
        let packet = connection.read(deadline)?;
        let packet = connection.receive.at(packet);
        room.take(packet, 1)?;
        rows.columns.push(text(column::column(packet)?.name));
    }
    if !connection.wording.deprecate_eof {
        connection.read(deadline)?;
    }
    loop {
        let packet = connection.read(deadline)?;
        let packet = connection.receive.at(packet);
        match answer::next(packet, connection.wording)? {
            Next::Row => {
                room.take(packet, count)?;
                rows.rows.push(row(packet, count)?);
            }
            Next::End { status } => {
                connection.status = status;
                return Ok(rows);
            }
            Next::Refused(refusal) => return Err(WireError::refused(&refusal)),
        }
    }
}

fn row(packet: &[u8], columns: usize) -> Result<Vec<Option<String>>, WireError> {
    let mut reader = Reader::new(packet);
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        let mut ahead = reader;
        if ahead.u8("text row")? == 0xfb {
            reader = ahead;
            row.push(None);
        } else {
            row.push(Some(text(reader.bytes("text row")?)));
        }
    }
    Ok(row)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
