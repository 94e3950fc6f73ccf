//! Taking answers: what arrives, is read where it lies, and is shown row by row.

use std::io;
use std::ops::Range;
use std::task::Poll;

use rumba_core::engine::EngineError;
use rumba_core::sql::{Answer, Visit};
use rumba_core::wait::{Wait, wait_for};

use super::failure::{call_failed, refused, usual};
use super::lost::Link;
use super::outbox::Kind;
use super::statement::Plan;
use super::{WireSession, load};
use crate::WireError;
use crate::codec::answer::{self, Done, Head, MORE_RESULTS, Next, Refusal};
use crate::codec::row::{self, BinaryRow, TextRow};
use crate::codec::column::{self, Layout};
use crate::codec::Malformed;
use crate::connection::lost_while_reading;
use crate::error::lost;
use crate::stream::Ready;

/// Where in an answer the reading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before its first packet.
    Head,
    /// Definitions of columns are to come.
    Columns {
        /// How many columns the rows have.
        count: usize,
        /// How many definitions are still to come.
        left: usize,
    },
    /// The packet that ends the definitions is to come.
    ColumnsEnd {
        /// How many columns the rows have.
        count: usize,
    },
    /// Rows of so many columns.
    Rows {
        /// How many columns the rows have.
        count: usize,
    },
}

/// What a packet brought.
enum Taken {
    /// More packets belong to the answer.
    Part,
    /// The answer to the statement is complete.
    Complete,
}

/// What the packets of rows left over.
enum Came {
    /// Nothing: the next packet is not here yet.
    Nothing,
    /// The rows are over; the session's status flags.
    End(u16),
    /// A packet that has to do with something else.
    Other(Range<usize>),
}

impl WireSession {
    /// Sends what is to be sent, takes what has come, and waits in between.
    #[inline]
    pub(super) fn advance(&mut self, visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        loop {
            if !matches!(self.link, Link::Up) {
                return self.without_link();
            }
            let statement = match self.queue.front() {
                Some(first) if first.kind != Kind::Nothing => first.statement,
                _ => return Poll::Ready(self.nothing_was_sent()),
            };
            if self.connection.receive.has_some() {
                match self.take(statement, visit) {
                    Ok(Taken::Complete) if self.complete() => return Poll::Ready(self.result()),
                    // The next part of the same call is to be sent now.
                    Ok(_) => {}
                    Err(error) => {
                        self.lose(&error);
                        continue;
                    }
                }
            }
            let mut ready = Ready::ToRead;
            if self.outbox.is_waiting(&self.connection) && self.flush_is_blocked() {
                ready = Ready::ToWrite;
            }
            if !self.waited && self.wait(ready) {
                return Poll::Pending;
            }
            match self.connection.receive.fill(&mut self.connection.stream) {
                Ok(more) => self.waited = more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.waited = false,
                Err(error) => self.lose(&lost_while_reading(error)),
            }
        }
    }

    /// Whether room to write must be waited for. While the server owes an
    /// answer to something sent in full, that is waited for: the server may be
    /// unable to go on before it is taken.
    fn flush_is_blocked(&mut self) -> bool {
        match self.outbox.flush(&mut self.connection, &self.queue) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.queue.front().is_some_and(|first| !self.outbox.is_sent(&self.connection, first))
            }
            // The server's last words may still be there to be read; if not, reading says what happened.
            Err(_) => {
                self.outbox.give_up(&mut self.connection);
                false
            }
        }
    }

    /// Waits; true when a driver does so.
    #[inline]
    fn wait(&mut self, ready: Ready) -> bool {
        self.waited = true;
        let socket = self.connection.stream.raw();
        let wait = match ready {
            Ready::ToRead => Wait::Readable(socket),
            Ready::ToWrite => Wait::Writable(socket),
        };
        if wait_for(wait) {
            return true;
        }
        // What is wrong with the socket shows when it is read.
        let _ = self.connection.stream.block(ready, None);
        false
    }

    /// Takes packets until the first statement is answered, or nothing is left.
    #[inline]
    fn take(&mut self, statement: usize, visit: Visit<'_>) -> Result<Taken, WireError> {
        loop {
            let taken = match self.take_rows(statement, visit)? {
                Came::Nothing => return Ok(Taken::Part),
                Came::End(status) => self.end(status),
                Came::Other(packet) => self.take_other(packet)?,
            };
            if matches!(taken, Taken::Complete) {
                return Ok(taken);
            }
        }
    }

    /// Takes the packets that rows are made of, so far as they have come.
    #[inline]
    fn take_rows(&mut self, statement: usize, visit: Visit<'_>) -> Result<Came, WireError> {
        let mut columns = match self.statements.get_mut(statement) {
            Some(Plan::Binary(binary)) => Some(&mut binary.columns),
            _ => None,
        };
        let wording = self.connection.wording;
        let receive = &mut self.connection.receive;
        while let Some(place) = receive.packet() {
            let packet = receive.at(place.clone());
            match self.stage {
                Stage::Head => match answer::head_of_rows(packet, wording)? {
                    None => return Ok(Came::Other(place)),
                    Some((count, true)) => self.stage = Stage::Columns { count, left: count },
                    Some((count, false)) if columns.as_ref().is_some_and(|columns| columns.len() == count) => {
                        self.stage = Stage::Rows { count };
                    }
                    Some(_) => return Err(Malformed("rows of columns that were never defined").into()),
                },
                Stage::Columns { count, left } => {
                    if let Some(columns) = &mut columns {
                        define(columns, count, left, column::layout(packet)?);
                    }
                    self.stage = match left - 1 {
                        0 if wording.deprecate_eof => Stage::Rows { count },
                        0 => Stage::ColumnsEnd { count },
                        left => Stage::Columns { count, left },
                    };
                }
                Stage::ColumnsEnd { count } => self.stage = Stage::Rows { count },
                Stage::Rows { count } => {
                    match (&columns, packet.first()) {
                        // Nothing but a row starts so.
                        (Some(columns), Some(0)) => {
                            row::find_binary(packet, columns, &mut self.places)?;
                            visit(&BinaryRow { packet, columns, places: &self.places });
                        }
                        _ => match answer::next(packet, wording)? {
                            Next::End { status } => return Ok(Came::End(status)),
                            Next::Refused(_) => return Ok(Came::Other(place)),
                            Next::Row if columns.is_some() => return Err(Malformed("binary row").into()),
                            Next::Row => {
                                row::find_text(packet, count, &mut self.places)?;
                                visit(&TextRow { packet, places: &self.places });
                            }
                        },
                    }
                    self.answer.rows += 1;
                }
            }
        }
        Ok(Came::Nothing)
    }

    #[cold]
    fn nothing_was_sent(&mut self) -> Result<Answer, EngineError> {
        match self.queue.pop_front() {
            Some(_) => Ok(Answer::default()),
            None => Err(call_failed("poll_answer", "no statement waits for an answer")),
        }
    }

    /// Takes a packet that is an answer without rows, a refusal, or asks for a file.
    #[inline(never)]
    fn take_other(&mut self, packet: Range<usize>) -> Result<Taken, WireError> {
        let packet = self.connection.receive.at(packet);
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
                Ok(self.end(status))
            }
            Head::Refused(refusal) => {
                let failure = self.refused(&refusal)?;
                self.fail(failure);
                Ok(Taken::Complete)
            }
            Head::WantsFile => {
                if !matches!(kind, Some(Kind::Load { .. })) || !self.outbox.feed() {
                    return Err(WireError::Protocol("the server asks for a file that nobody wants to load".into()));
                }
                Ok(Taken::Part)
            }
            Head::Rows { .. } => Err(Malformed("rows in the place of an answer without rows").into()),
        }
    }

    /// One answer of the server's is over.
    #[inline]
    fn end(&mut self, status: u16) -> Taken {
        self.connection.status = status;
        self.stage = Stage::Head;
        if status & MORE_RESULTS != 0 { Taken::Part } else { Taken::Complete }
    }

    /// The first statement is answered; whether its call is as well.
    #[inline]
    fn complete(&mut self) -> bool {
        self.stage = Stage::Head;
        self.connection.receive.answered();
        let Some(first) = self.queue.pop_front() else { return true };
        if first.is_barrier() {
            self.outbox.barriers -= 1;
            if matches!(first.kind, Kind::Load { .. }) {
                self.outbox.fed();
            }
        }
        first.last || self.leave_out_the_rest()
    }

    /// What the call came to that is answered.
    #[inline]
    fn result(&mut self) -> Result<Answer, EngineError> {
        let answer = std::mem::take(&mut self.answer);
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(answer),
        }
    }

    /// A part of a call failed: what follows it of the same call is not sent.
    #[cold]
    fn leave_out_the_rest(&mut self) -> bool {
        if self.failure.is_none() {
            return false;
        }
        while let Some(part) = self.queue.pop_front() {
            self.outbox.barriers -= usize::from(part.is_barrier());
            if part.last {
                self.outbox.skip_to(&mut self.connection, part.end);
                break;
            }
        }
        true
    }

    /// Keeps what the call failed with; the first counts. That a row is there
    /// already may only be said if nothing else of the call was done.
    fn fail(&mut self, failure: EngineError) {
        let failure = match failure {
            EngineError::Duplicate if self.answer.affected > 0 => call_failed(
                "submit_rows",
                "a row with this key is there already, and rows before it are loaded: roll back, or load fewer at once",
            ),
            other => other,
        };
        self.failure.get_or_insert(failure);
    }

    /// What a refusal means; an error when it means that the connection is gone.
    fn refused(&self, refusal: &Refusal<'_>) -> Result<EngineError, WireError> {
        if let Some(usual) = usual(refusal, &self.options.counts) {
            return Ok(usual);
        }
        if lost(refusal.code) {
            return Err(WireError::refused(refusal));
        }
        let statement = self.queue.front().and_then(|first| self.statements.get(first.statement));
        Ok(refused(refusal, statement.map_or("", Plan::sql)))
    }
}

/// Notes the layout of a column: where so many of all are still to come, it is the first of them.
#[inline]
fn define(columns: &mut Vec<Layout>, count: usize, left: usize, layout: Layout) {
    if left == count && columns.len() != count {
        columns.clear();
    }
    match columns.get_mut(count - left) {
        Some(column) => *column = layout,
        None => columns.push(layout),
    }
}

/// What an OK packet says was done.
#[inline]
fn counts(done: &Done<'_>) -> Answer {
    let matched = if done.info.is_empty() { None } else { answer::counted(done.info, b"Rows matched: ") };
    Answer {
        rows: 0,
        affected: done.affected,
        matched: matched.unwrap_or(done.affected),
        last_insert_id: done.last_insert_id.cast_signed(),
    }
}
