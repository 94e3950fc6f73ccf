//! Statements sent as text with blocking calls, for administration and for setting up a session.

use std::time::Instant;

use rumba_transport::{Blocking, Rows, Target};

use crate::WireError;
use crate::codec::Reader;
use crate::codec::answer::{self, Head, MORE_RESULTS, Next};
use crate::codec::column;
use crate::connection::Connection;

/// The command for a statement as text.
pub(crate) const QUERY: u8 = 0x03;

impl Blocking for Connection {
    type Error = WireError;

    fn open(target: &Target, deadline: Instant) -> Result<Self, WireError> {
        Connection::enter(target, deadline)
    }

    fn query(&mut self, sql: &str, deadline: Option<Instant>) -> Result<Rows, WireError> {
        query(self, sql, deadline)
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn may_pass(error: &WireError) -> bool {
        error.may_pass()
    }
}

/// Runs statements; the rows are those of the first that returns any.
pub(crate) fn query(connection: &mut Connection, sql: &str, deadline: Option<Instant>) -> Result<Rows, WireError> {
    connection.put_command(QUERY, sql.as_bytes());
    connection.write(deadline)?;
    let mut first = Rows::default();
    loop {
        let rows = answer(connection, deadline)?;
        if first.columns.is_empty() {
            first = rows;
        }
        if connection.status & MORE_RESULTS == 0 {
            connection.channel.incoming.answered();
            return Ok(first);
        }
    }
}

fn answer(connection: &mut Connection, deadline: Option<Instant>) -> Result<Rows, WireError> {
    let packet = connection.read(deadline)?;
    let packet = connection.at(packet);
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
        rows.columns.push(text(column::column(connection.at(packet))?.name));
    }
    if !connection.wording.deprecate_eof {
        connection.read(deadline)?;
    }
    loop {
        let packet = connection.read(deadline)?;
        let packet = connection.at(packet);
        match answer::next(packet, connection.wording)? {
            Next::Row => {
                rows.rows.push(row(packet, count)?);
                connection.channel.charge((1 + count) * size_of::<Option<String>>())?;
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
