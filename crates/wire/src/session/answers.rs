//! Taking answers: what arrives, is read where it lies, and is shown row by row.

use std::io;
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
use crate::codec::{Malformed, column};
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

impl WireSession {
    /// Sends what is to be sent, takes what has come, and waits in between.
    #[inline]
    pub(super) fn advance(&mut self, visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        loop {
            if !matches!(self.link, Link::Up) {
                return self.without_link();
            }
            match self.take(visit) {
                Ok(Some(result)) => return Poll::Ready(result),
                Ok(None) => {}
                Err(error) => {
                    self.lose(&error);
                    continue;
                }
            }
            let mut ready = Ready::ToRead;
            if self.outbox.is_waiting(&self.connection) && self.flush_is_blocked() {
                ready = Ready::ToWrite;
            }
            if self.waited {
                match self.connection.receive.fill(&mut self.connection.stream) {
                    Ok(more) => {
                        self.waited = more;
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => {
                        self.lose(&lost_while_reading(error));
                        continue;
                    }
                }
            }
            if self.wait(ready) {
                return Poll::Pending;
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
    fn take(&mut self, visit: Visit<'_>) -> Result<Option<Result<Answer, EngineError>>, WireError> {
        if self.queue.front().is_none_or(|first| first.kind == Kind::Nothing) {
            return Ok(Some(self.nothing_was_sent()));
        }
        while let Some(packet) = self.connection.receive.packet() {
            let taken = match self.stage {
                Stage::Rows { count } => self.take_row(packet, count, visit)?,
                Stage::Head => self.take_head(packet)?,
                Stage::Columns { count, left } => self.take_column(packet, count, left)?,
                Stage::ColumnsEnd { count } => {
                    self.stage = Stage::Rows { count };
                    Taken::Part
                }
            };
            if matches!(taken, Taken::Complete) {
                if let Some(result) = self.complete() {
                    return Ok(Some(result));
                }
                // The next part of the same call is to be sent now.
                break;
            }
        }
        Ok(None)
    }

    #[cold]
    fn nothing_was_sent(&mut self) -> Result<Answer, EngineError> {
        match self.queue.pop_front() {
            Some(_) => Ok(Answer::default()),
            None => Err(call_failed("poll_answer", "no statement waits for an answer")),
        }
    }

    #[inline]
    fn take_row(&mut self, packet: std::ops::Range<usize>, count: usize, visit: Visit<'_>) -> Result<Taken, WireError> {
        let packet = self.connection.receive.at(packet);
        match answer::next(packet, self.connection.wording)? {
            Next::Row => {
                self.answer.rows += 1;
                let first = self.queue.front().map(|first| (first.kind, self.statements.get(first.statement)));
                if let Some((Kind::Binary, Some(Plan::Binary(binary)))) = first {
                    row::find_binary(packet, &binary.columns, &mut self.places)?;
                    visit(&BinaryRow { packet, columns: &binary.columns, places: &self.places });
                } else {
                    row::find_text(packet, count, &mut self.places)?;
                    visit(&TextRow { packet, places: &self.places });
                }
                Ok(Taken::Part)
            }
            Next::End { status, .. } => Ok(self.end(status)),
            Next::Refused(refusal) => {
                let failure = self.refused(&refusal)?;
                self.fail(failure);
                Ok(Taken::Complete)
            }
        }
    }

    #[inline]
    fn take_head(&mut self, packet: std::ops::Range<usize>) -> Result<Taken, WireError> {
        let wording = self.connection.wording;
        let packet = self.connection.receive.at(packet);
        match answer::head(packet, wording)? {
            Head::Rows { columns: count, defined } => {
                let binary = match self.queue.front().map(|first| self.statements.get_mut(first.statement)) {
                    Some(Some(Plan::Binary(binary))) => Some(binary),
                    _ => None,
                };
                if defined {
                    binary.into_iter().for_each(|binary| binary.columns.clear());
                    self.stage = Stage::Columns { count, left: count };
                } else if binary.is_some_and(|binary| binary.columns.len() == count) {
                    self.stage = Stage::Rows { count };
                } else {
                    return Err(Malformed("rows of columns that were never defined").into());
                }
                Ok(Taken::Part)
            }
            Head::Done(done) => {
                let (count, status) = (counts(&done), done.status);
                let kind = self.queue.front().map(|first| first.kind);
                if let Some(Kind::Load { rows }) = kind {
                    if let Some(failure) = load::loaded_less(&done, rows) {
                        self.fail(failure);
                    }
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
                let asked = matches!(self.queue.front().map(|first| first.kind), Some(Kind::Load { .. }));
                if !asked || !self.outbox.feed() {
                    return Err(WireError::Protocol("the server asks for a file that nobody wants to load".into()));
                }
                Ok(Taken::Part)
            }
        }
    }

    fn take_column(&mut self, packet: std::ops::Range<usize>, count: usize, left: usize) -> Result<Taken, WireError> {
        let first = self.queue.front().map(|first| self.statements.get_mut(first.statement));
        if let Some(Some(Plan::Binary(binary))) = first {
            binary.columns.push(column::column(self.connection.receive.at(packet))?.layout);
        }
        self.stage = match left - 1 {
            0 if self.connection.wording.deprecate_eof => Stage::Rows { count },
            0 => Stage::ColumnsEnd { count },
            left => Stage::Columns { count, left },
        };
        Ok(Taken::Part)
    }

    /// One answer of the server's is over.
    #[inline]
    fn end(&mut self, status: u16) -> Taken {
        self.connection.status = status;
        self.stage = Stage::Head;
        if status & MORE_RESULTS != 0 { Taken::Part } else { Taken::Complete }
    }

    /// The first statement is answered; the result, when it is the last of its call.
    #[inline]
    fn complete(&mut self) -> Option<Result<Answer, EngineError>> {
        self.stage = Stage::Head;
        self.connection.receive.answered();
        let first = self.queue.pop_front()?;
        if first.is_barrier() {
            self.outbox.barriers -= 1;
            if matches!(first.kind, Kind::Load { .. }) {
                self.outbox.fed();
            }
        }
        if !first.last && !self.leave_out_the_rest() {
            return None;
        }
        let answer = std::mem::take(&mut self.answer);
        Some(match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(answer),
        })
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
