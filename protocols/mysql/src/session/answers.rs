//! Receives answers, parses them in place, and passes on each row.

use std::ops::Range;
use std::task::Poll;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Visit};
use rumba_transport::{Linked, left_out};

use super::failure::{call_failed, refused, usual};
use super::outbox::{Kind, Pending};
use super::plan::Plan;
use super::{WireSession, load};
use crate::WireError;
use crate::codec::answer::{self, Done, Head, MORE_RESULTS, Next, Refusal};
use crate::codec::column;
use crate::codec::row::{self, BinaryRow, Column, TextRow};
use crate::codec::{Malformed, frame};
use crate::connection::Connection;
use crate::error::lost;

/// The parse position in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before its first packet.
    Head,
    /// Column definitions are pending.
    Columns {
        /// The number of columns in the rows.
        count: usize,
        /// The number of pending definitions.
        left: usize,
    },
    /// The packet that ends the definitions is pending.
    ColumnsEnd {
        /// The number of columns in the rows.
        count: usize,
    },
    Rows {
        /// The number of columns in the rows.
        count: usize,
    },
}

/// The result of a packet.
enum Taken {
    /// More packets belong to the answer.
    Part,
    /// The answer to the statement is complete.
    Complete,
}

impl WireSession {
    /// Sends pending data, handles received packets, and waits in between.
    #[inline]
    pub(super) fn advance(&mut self, visit: Visit<'_>) -> Poll<Result<Answer>> {
        // The most common case. The queue of a lost connection is empty.
        if let Some(&Pending { kind: Kind::Binary, statement, .. }) = self.queue.front() {
            if !self.connection.channel.incoming.has_some() && self.exchange().is_pending() {
                return Poll::Pending;
            }
            if self.take_usual(statement, visit) && self.complete() {
                return Poll::Ready(self.result());
            }
        }
        self.advance_any(visit)
    }

    #[inline(never)]
    fn advance_any(&mut self, visit: Visit<'_>) -> Poll<Result<Answer>> {
        while self.link.is_up() {
            if self.skipping {
                self.skip();
                return Poll::Ready(Err(left_out()));
            }
            let statement = match self.queue.front() {
                Some(first) if first.kind != Kind::Nothing => first.statement,
                _ => return Poll::Ready(self.nothing_was_sent()),
            };
            while self.link.is_up() {
                if self.connection.channel.incoming.has_some() {
                    match self.take(statement, visit) {
                        Ok(Taken::Part) => {}
                        Ok(Taken::Complete) if self.complete() => {
                            if self.groups {
                                self.lend_buffers();
                            }
                            return Poll::Ready(self.result());
                        }
                        // Send the next part of the same call now.
                        Ok(Taken::Complete) => break,
                        Err(error) => {
                            self.lose(&error);
                            break;
                        }
                    }
                }
                if self.exchange().is_pending() {
                    return Poll::Pending;
                }
            }
        }
        self.without_link()
    }

    /// Handles an answer that begins like the statement's last one, and so has the same columns. Returns whether it was
    /// complete.
    #[inline]
    fn take_usual(&mut self, statement: usize, visit: Visit<'_>) -> bool {
        if self.stage == Stage::Head
            && let Some(Plan::Binary(binary)) = self.statements.get_mut(statement)
            && self.connection.channel.incoming.skip(&binary.prologue)
        {
            self.answer.columns = Some(binary.columns.len() as u32);
            if take_rows(&mut self.connection, &mut binary.columns, &mut self.answer.rows, visit) {
                return true;
            }
            // More rows are pending, or they end in another way.
            self.stage = Stage::Rows { count: binary.columns.len() };
        }
        false
    }

    /// Handles packets of any kind until the first statement is answered, or no packets are left.
    fn take(&mut self, statement: usize, visit: Visit<'_>) -> Result<Taken, WireError> {
        while let Some(packet) = self.connection.packet() {
            if let Taken::Complete = self.take_packet(statement, packet, visit)? {
                return Ok(Taken::Complete);
            }
            if let Stage::Rows { .. } = self.stage
                && let Some(Plan::Binary(binary)) = self.statements.get_mut(statement)
                && take_rows(&mut self.connection, &mut binary.columns, &mut self.answer.rows, visit)
            {
                return Ok(Taken::Complete);
            }
        }
        Ok(Taken::Part)
    }

    /// Handles one packet of any kind.
    #[inline]
    fn take_packet(&mut self, statement: usize, place: Range<usize>, visit: Visit<'_>) -> Result<Taken, WireError> {
        let wording = self.connection.wording;
        let connection = &self.connection;
        let packet = connection.at(place.clone());
        let mut binary = match self.statements.get_mut(statement) {
            Some(Plan::Binary(binary)) => Some(binary),
            _ => None,
        };
        self.stage = match self.stage {
            Stage::Head => match answer::head(packet, wording)? {
                Head::Rows { columns: count, defined } => {
                    self.answer.columns = Some(count as u32);
                    let known = binary.as_ref().is_some_and(|binary| binary.columns.len() == count);
                    if let Some(binary) = &mut binary {
                        binary.begin_prologue(connection.framed(place), defined);
                    }
                    match (defined, known) {
                        (true, _) => Stage::Columns { count, left: count },
                        (false, true) => Stage::Rows { count },
                        (false, false) => return Err(Malformed("rows of columns that were never defined").into()),
                    }
                }
                _ => return self.take_other(place),
            },
            Stage::Columns { count, left } => {
                if let Some(binary) = &mut binary {
                    binary.columns.push(column::layout(packet)?.into());
                    binary.add_to_prologue(connection.framed(place));
                }
                match left - 1 {
                    0 if wording.deprecate_eof => Stage::Rows { count },
                    0 => Stage::ColumnsEnd { count },
                    left => Stage::Columns { count, left },
                }
            }
            Stage::ColumnsEnd { count } => {
                if let Some(binary) = &mut binary {
                    binary.add_to_prologue(connection.framed(place));
                }
                Stage::Rows { count }
            }
            Stage::Rows { count } => match answer::next(packet, wording)? {
                Next::End { status } => return self.end(status),
                Next::Refused(refusal) => {
                    let failure = self.refused(&refusal)?;
                    self.fail(failure);
                    return Ok(Taken::Complete);
                }
                Next::Row => {
                    self.answer.rows += 1;
                    match binary {
                        Some(_) if packet.first() != Some(&0) => return Err(Malformed("binary row").into()),
                        Some(binary) => {
                            row::find_binary(packet, &mut binary.columns)?;
                            visit(&BinaryRow { packet, columns: &binary.columns });
                        }
                        None => {
                            row::find_text(packet, count, &mut self.places)?;
                            visit(&TextRow { packet, places: &self.places });
                        }
                    }
                    self.stage
                }
            },
        };
        Ok(Taken::Part)
    }

    #[cold]
    fn nothing_was_sent(&mut self) -> Result<Answer> {
        match self.queue.pop() {
            Some(_) => Ok(Answer::default()),
            None => Err(call_failed("poll_answer", "no statement waits for an answer")),
        }
    }

    /// Handles a packet that is an answer without rows, an error, or a request for a file.
    #[inline(never)]
    fn take_other(&mut self, packet: Range<usize>) -> Result<Taken, WireError> {
        let packet = self.connection.at(packet);
        let kind = self.queue.front().map(|first| first.kind);
        match answer::head(packet, self.connection.wording)? {
            Head::Done(done) => {
                let (count, status) = (counts(&done), done.status);
                if let Some(Kind::Load { rows }) = kind
                    && let Some(failure) = load::loaded_less(&done, rows)
                {
                    self.fail(failure);
                }
                self.answer.affected += count.affected;
                self.answer.matched += count.matched;
                if count.last_insert_id != 0 {
                    self.answer.last_insert_id = count.last_insert_id;
                }
                self.end(status)
            }
            Head::Refused(refusal) => {
                let failure = self.refused(&refusal)?;
                self.fail(failure);
                Ok(Taken::Complete)
            }
            Head::WantsFile => {
                if !matches!(kind, Some(Kind::Load { .. })) || !self.outbox.feed() {
                    return Err(WireError::Protocol("the server requests a file that no statement loads".into()));
                }
                Ok(Taken::Part)
            }
            Head::Rows { .. } => Err(Malformed("rows in the place of an answer without rows").into()),
        }
    }

    /// One answer of the server is complete.
    #[inline]
    fn end(&mut self, status: u16) -> Result<Taken, WireError> {
        self.connection.status = status;
        self.stage = Stage::Head;
        match (status & MORE_RESULTS != 0, self.queue.front().is_some_and(|first| first.grouped)) {
            // A further answer belongs to the next statement.
            (true, true) | (false, false) => Ok(Taken::Complete),
            (true, false) => Ok(Taken::Part),
            (false, true) => Err(Malformed("fewer answers than statements were sent").into()),
        }
    }

    /// The first statement is answered; returns whether its call is as well.
    #[inline]
    fn complete(&mut self) -> bool {
        self.stage = Stage::Head;
        self.connection.channel.incoming.answered();
        let Some(first) = self.queue.pop() else { return true };
        self.skipping = first.grouped && self.failure.is_some();
        if first.is_barrier() {
            self.outbox.barriers -= 1;
            if matches!(first.kind, Kind::Load { .. }) {
                self.outbox.fed();
            }
        }
        first.last || self.leave_out_the_rest()
    }

    #[inline]
    fn result(&mut self) -> Result<Answer> {
        if self.failure.is_some() {
            return self.failed();
        }
        Ok(std::mem::take(&mut self.answer))
    }

    #[cold]
    fn failed(&mut self) -> Result<Answer> {
        let answer = std::mem::take(&mut self.answer);
        self.failure.take().map_or(Ok(answer), Err)
    }

    /// The next statement, which the server has skipped.
    #[cold]
    fn skip(&mut self) {
        self.skipping = self.queue.pop().is_some_and(|passed_over| passed_over.grouped);
        self.lend_buffers();
    }

    /// A part of a call failed, so its remaining parts are not sent.
    #[cold]
    fn leave_out_the_rest(&mut self) -> bool {
        if self.failure.is_none() {
            return false;
        }
        while let Some(part) = self.queue.pop() {
            self.outbox.barriers -= usize::from(part.is_barrier());
            if part.last {
                self.connection.channel.skip_to(part.end);
                break;
            }
        }
        true
    }

    /// Keeps the first failure of the call. A duplicate key may only be reported if the rest of the call was not
    /// executed.
    fn fail(&mut self, failure: EngineError) {
        let failure = match failure {
            EngineError::Duplicate(_) if self.answer.affected > 0 => call_failed(
                "submit_rows",
                "a row with this key is there already, and rows before it are loaded: roll back, or load fewer at once",
            ),
            other => other,
        };
        self.failure.get_or_insert(failure);
    }

    /// Converts a refusal; an error means that the connection is lost.
    fn refused(&self, refusal: &Refusal<'_>) -> Result<EngineError, WireError> {
        if let Some(usual) = usual(refusal, &self.options) {
            return Ok(usual);
        }
        if lost(refusal.code) {
            return Err(WireError::refused(refusal));
        }
        let statement = self.queue.front().and_then(|first| self.statements.get(first.statement));
        Ok(refused(refusal, statement.map(Plan::sql).unwrap_or_default()))
    }
}

/// Handles the rows of a prepared statement, each in a single frame, and the packet that ends the answer. Returns
/// whether that packet was there. Packets of other kinds are left.
#[inline]
fn take_rows(connection: &mut Connection, columns: &mut [Column], count: &mut u64, visit: Visit<'_>) -> bool {
    let mut rest = connection.channel.incoming.rest();
    let mut left = rest.len();
    let mut complete = false;
    while let Some(packet) = frame::next(&mut rest) {
        match packet {
            // Only a row starts with this byte.
            [0, ..] if row::find_binary(packet, columns).is_ok() => {
                visit(&BinaryRow { packet, columns });
                *count += 1;
            }
            _ => {
                if let Some(status) = answer::plain_end(packet, connection.wording) {
                    connection.status = status;
                    left = rest.len();
                    complete = true;
                }
                break;
            }
        }
        left = rest.len();
    }
    connection.channel.incoming.leave(left);
    complete
}

/// The counts of an OK packet.
#[inline]
fn counts(done: &Done<'_>) -> Answer {
    let matched = if done.info.is_empty() { None } else { answer::counted(done.info, b"Rows matched: ") };
    Answer {
        rows: 0,
        affected: done.affected,
        matched: matched.unwrap_or(done.affected),
        last_insert_id: done.last_insert_id.cast_signed(),
        columns: None,
    }
}
