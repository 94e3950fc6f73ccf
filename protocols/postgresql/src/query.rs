//! Statements sent as text with blocking calls, for administration and for setting up a session.

use std::time::Instant;

use rumba_transport::{Blocking, Channel, Rows, Target};

use crate::PgError;
use crate::codec::message::{self, Transaction};
use crate::codec::{Reader, frame};
use crate::connection::{Connection, Message};

/// Appends the message with statements as text.
pub(crate) fn put_query(out: &mut Vec<u8>, sql: &[u8]) {
    let at = frame::start(out, b'Q');
    frame::put_text(out, sql);
    frame::finish(out, at);
}

impl Blocking for Connection {
    type Error = PgError;

    fn open(target: &Target, deadline: Instant) -> Result<Self, PgError> {
        Self::enter(target, &[], deadline)
    }

    fn query(&mut self, sql: &str, deadline: Option<Instant>) -> Result<Rows, PgError> {
        query(self, sql, deadline)
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn may_pass(error: &PgError) -> bool {
        error.may_pass()
    }
}

/// Runs statements; the rows are those of the first that returns any. They stay in memory, so the answer has a limit.
pub(crate) fn query(connection: &mut Connection, sql: &str, deadline: Option<Instant>) -> Result<Rows, PgError> {
    let (mut answers, mut current) = (Vec::new(), Rows::default());
    exchange(connection, sql, Channel::ANSWER, deadline, |kind, body| {
        match kind {
            b'T' => {
                current = Rows::default();
                message::columns(body, |column| current.columns.push(text(column.name)))?;
            }
            b'D' => current.rows.push(row(body)?),
            b'C' | b'I' => answers.push(std::mem::take(&mut current)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(answers.into_iter().find(|rows| !rows.columns.is_empty()).unwrap_or_default())
}

/// Runs statements and discards their rows.
pub(crate) fn run(connection: &mut Connection, sql: &str, deadline: Option<Instant>) -> Result<(), PgError> {
    exchange(connection, sql, usize::MAX, deadline, |_, _| Ok(()))
}

/// Sends statements, and passes on the messages of their answers.
fn exchange(
    connection: &mut Connection,
    sql: &str,
    allowed: usize,
    deadline: Option<Instant>,
    mut take: impl FnMut(u8, &[u8]) -> Result<(), PgError>,
) -> Result<(), PgError> {
    refuse_zero(sql.as_bytes())?;
    connection.channel.allow(allowed);
    put_query(&mut connection.channel.send, sql.as_bytes());
    connection.write(deadline)?;
    let mut failure = None;
    loop {
        let Message { kind, body } = connection.read_after(&mut failure, deadline)?;
        let body = connection.channel.incoming.at(body);
        match kind {
            b'T' | b'D' | b'C' | b'I' => take(kind, body)?,
            b'E' => {
                failure.get_or_insert(PgError::refused(&message::refusal(body)?));
            }
            b'G' => {
                // Refuse a COPY, because there are no rows to load here.
                let out = &mut connection.channel.send;
                let at = frame::start(out, b'f');
                frame::put_text(out, b"no rows are loaded by this statement");
                frame::finish(out, at);
                connection.write(deadline)?;
            }
            b'Z' => {
                connection.transaction = Transaction::of(body)?;
                connection.channel.incoming.answered();
                return failure.map_or(Ok(()), Err);
            }
            // The confirmation that an earlier statement was closed arrives here too.
            b'3' | b'N' | b'S' | b'A' | b'H' | b'd' | b'c' => {}
            other => return Err(PgError::Protocol(format!("{:?} in answer to a statement", char::from(other)))),
        }
    }
}

/// A zero byte would end the statement and start another field.
pub(crate) fn refuse_zero(sql: &[u8]) -> Result<(), PgError> {
    if sql.contains(&0) {
        return Err(PgError::Unable("a statement with a zero byte".into()));
    }
    Ok(())
}

fn row(body: &[u8]) -> Result<Vec<Option<String>>, PgError> {
    const WHAT: &str = "DataRow";
    let mut reader = Reader::new(body);
    (0..reader.u16(WHAT)?).map(|_| Ok(reader.value(WHAT)?.map(text))).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
