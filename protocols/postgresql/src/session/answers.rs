//! Receives answers, parses them in place, and passes on each row.

use std::ops::Range;
use std::task::Poll;

use rumba_engine_api::error::{Result, SqlState};
use rumba_engine_api::sql::{Answer, Visit};
use rumba_transport::{Linked, call_failed, left_out};

use super::PgSession;
use super::failure::{refused, usual};
use super::plan::Plan;
use super::queue::{Kind, Pending};
use super::statement::Control;
use crate::PgError;
use crate::codec::message::{self, Transaction, counted};
use crate::codec::row::{self, Column, PgRow};
use crate::codec::types::Layout;
use crate::codec::{Malformed, frame};
use crate::connection::Message;
use crate::error::lost;

/// The result of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// More messages belong to the answer.
    Part,
    /// The answer to the statement is complete.
    Complete,
}

impl PgSession {
    /// Sends pending data, handles received messages, and waits in between.
    #[inline]
    pub(super) fn advance(&mut self, visit: Visit<'_>) -> Poll<Result<Answer>> {
        // The most common case. The queue of a lost connection is empty.
        if let Some(&Pending { kind: Kind::Binary, statement, last: true, .. }) = self.queue.front()
            && !self.skipping
        {
            if !self.connection.channel.incoming.has_some() && self.exchange().is_pending() {
                return Poll::Pending;
            }
            if self.take_usual(statement, visit) {
                return Poll::Ready(Ok(self.complete()));
            }
        }
        self.advance_any(visit)
    }

    #[inline(never)]
    fn advance_any(&mut self, visit: Visit<'_>) -> Poll<Result<Answer>> {
        while self.link.is_up() {
            let pending = match self.queue.front() {
                Some(&pending) if pending.kind != Kind::Nothing => pending,
                first => {
                    let nothing = first.is_some();
                    return Poll::Ready(self.nothing_was_sent(nothing));
                }
            };
            if self.skipping && !pending.last {
                self.queue.pop();
                return Poll::Ready(Err(left_out()));
            }
            match self.take(pending, visit) {
                Ok(Taken::Complete) => {
                    let answer = self.complete();
                    return Poll::Ready(self.failure.take().map_or(Ok(answer), Err));
                }
                Ok(Taken::Part) => {
                    if self.exchange().is_pending() {
                        return Poll::Pending;
                    }
                }
                Err(error) => self.lose(&error),
            }
        }
        self.without_link()
    }

    /// Handles the common form of an answer to a prepared statement that is alone in its group. Returns whether it was
    /// complete. Messages of other kinds are left.
    #[inline]
    fn take_usual(&mut self, statement: usize, visit: Visit<'_>) -> bool {
        let Some(Plan::Binary(binary)) = self.statements.get_mut(statement) else { return false };
        let mut rest = self.connection.channel.incoming.rest();
        let mut left = rest.len();
        let mut complete = false;
        while let Some((kind, body)) = frame::next(&mut rest) {
            match (kind, body) {
                (b'D', _) if row::find(body, &mut binary.columns).is_ok() => {
                    visit(&PgRow { body, columns: &binary.columns });
                    self.answer.rows += 1;
                }
                (b'2', []) => {}
                // For a failed transaction, the tag of COMMIT is ROLLBACK.
                (b'C', &[first, ..]) if binary.control != Control::Commit || first == b'C' => {
                    if counts_changes(first) {
                        self.answer.affected = counted(body);
                    }
                }
                (b'Z', &[status @ (b'I' | b'T')]) if self.failure.is_none() => {
                    self.connection.transaction = if status == b'I' { Transaction::None } else { Transaction::Open };
                    self.answer.columns = binary.returned();
                    left = rest.len();
                    complete = true;
                    break;
                }
                _ => break,
            }
            left = rest.len();
        }
        self.connection.channel.incoming.leave(left);
        complete
    }

    /// Handles messages of any kind until the first statement is answered, or no messages are left.
    fn take(&mut self, pending: Pending, visit: Visit<'_>) -> Result<Taken, PgError> {
        while let Some(Message { kind, body }) = self.connection.message()? {
            if self.take_message(pending, kind, body, visit)? == Taken::Complete {
                return Ok(Taken::Complete);
            }
        }
        Ok(Taken::Part)
    }

    fn take_message(
        &mut self,
        pending: Pending,
        kind: u8,
        place: Range<usize>,
        visit: Visit<'_>,
    ) -> Result<Taken, PgError> {
        match kind {
            b'D' => self.take_row(pending, place, visit)?,
            b'C' => return self.take_tag(pending, place),
            b'E' => return self.take_error(pending, place),
            b'Z' => {
                if !pending.last {
                    return Err(Malformed("ReadyForQuery in the middle of a group").into());
                }
                self.connection.transaction = Transaction::of(self.connection.channel.incoming.at(place))?;
                if std::mem::take(&mut self.skipping) && self.failure.is_none() {
                    self.failure = Some(left_out());
                }
                return Ok(Taken::Complete);
            }
            b'T' => {
                let body = self.connection.channel.incoming.at(place);
                let columns = &mut self.text_columns;
                columns.clear();
                message::columns(body, |column| columns.push(Layout::of_text(column.oid).into()))?;
                self.answer.columns = Some(columns.len() as u32);
            }
            // An empty statement, whose end is its only answer.
            b'I' => return Ok(if pending.last { Taken::Part } else { Taken::Complete }),
            // Bound; closed; described; rows may follow; messages that may come at any time.
            b'2' | b'3' | b'n' | b'G' | b'N' | b'S' | b'A' => {}
            other => {
                return Err(PgError::Protocol(format!("{:?} in answer to a statement", char::from(other))));
            }
        }
        Ok(Taken::Part)
    }

    fn take_row(&mut self, pending: Pending, place: Range<usize>, visit: Visit<'_>) -> Result<(), PgError> {
        let columns: &mut [Column] = match self.statements.get_mut(pending.statement) {
            Some(Plan::Binary(binary)) => &mut binary.columns,
            _ => &mut self.text_columns,
        };
        let incoming = &mut self.connection.channel.incoming;
        row::find(incoming.at(place.clone()), columns)?;
        if columns.iter().any(|column| column.layout() == Layout::TextBytes) {
            row::decode(incoming.at_mut(place.clone()), columns)?;
        }
        self.answer.rows += 1;
        visit(&PgRow { body: incoming.at(place), columns });
        Ok(())
    }

    /// Handles the end of a successful statement.
    fn take_tag(&mut self, pending: Pending, place: Range<usize>) -> Result<Taken, PgError> {
        let tag = self.connection.channel.incoming.at(place);
        if tag.first().is_some_and(|&first| counts_changes(first)) {
            self.answer.affected += counted(tag);
        }
        let plan = self.statements.get(pending.statement);
        let control = plan.map_or(Control::Nothing, Plan::control);
        if let Some(Plan::Binary(binary)) = plan {
            self.answer.columns = binary.returned();
        }
        if control == Control::Commit && tag.starts_with(b"ROLLBACK") {
            self.failure.get_or_insert(call_failed(
                "COMMIT",
                "a statement of the transaction had failed, and the server has rolled it back",
            ));
        }
        Ok(if pending.last { Taken::Part } else { Taken::Complete })
    }

    /// Handles a refusal; an error means that the connection is lost.
    fn take_error(&mut self, pending: Pending, place: Range<usize>) -> Result<Taken, PgError> {
        let refusal = message::refusal(self.connection.channel.incoming.at(place))?;
        if refusal.is_fatal() || lost(&refusal.sqlstate) {
            return Err(PgError::refused(&refusal));
        }
        let sql = self.statements.get(pending.statement).map(Plan::sql).unwrap_or_default();
        let failure = usual(SqlState(refusal.sqlstate), &self.options.counts).unwrap_or_else(|| refused(&refusal, sql));
        self.failure.get_or_insert(failure);
        // The server does not answer the rest of the group, but reports that it is ready after it.
        self.skipping = !pending.last;
        Ok(if pending.last { Taken::Part } else { Taken::Complete })
    }

    #[cold]
    fn nothing_was_sent(&mut self, nothing: bool) -> Result<Answer> {
        if !nothing {
            return Err(call_failed("poll_answer", "no statement waits for an answer"));
        }
        self.queue.pop();
        Ok(Answer::default())
    }

    /// The first statement is answered; returns its result, except failures.
    #[inline]
    fn complete(&mut self) -> Answer {
        self.queue.pop();
        self.connection.channel.incoming.answered();
        if self.queue.front().is_none() {
            self.in_block = self.connection.transaction != Transaction::None;
        }
        self.answer.matched = self.answer.affected;
        std::mem::take(&mut self.answer)
    }
}

/// Whether the row count in a tag counts changed rows. SELECT and FETCH count returned rows. The other tags with the
/// same first letters (SET, START, SAVEPOINT) have no count.
#[inline]
fn counts_changes(first: u8) -> bool {
    !matches!(first, b'S' | b'F')
}
