//! Receives answers, parses them in place, and passes on each document.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use rumba_engine_api::document::{Done, Visit};
use rumba_engine_api::error::{EngineError, Result};
use rumba_transport::{Linked, call_failed};

use super::failure::usual;
use super::{MongoCounts, MongoSession, Pending, Transaction};
use crate::MongoError;
use crate::codec::Malformed;
use crate::codec::reply::{Cursor, Labels, Refusal, Reply};
use crate::error::lost;

/// The result of a message.
enum Taken {
    /// The command is completely answered.
    Complete,
    /// More documents were requested.
    Part,
    /// The server reported an error.
    Refused(EngineError),
}

impl MongoSession {
    /// Sends pending data, handles received messages, and waits in between.
    #[inline]
    pub(super) fn advance(&mut self, visit: Visit<'_>) -> Poll<Result<Done>> {
        while self.link.is_up() {
            let pending = match self.pending {
                Some(Pending::Nothing) => {
                    self.pending = None;
                    return Poll::Ready(Ok(Done::default()));
                }
                Some(pending) => pending,
                None => return Poll::Ready(Err(call_failed("poll_answer", "no command waits for an answer"))),
            };
            let taken = match self.connection.message() {
                Ok(Some(place)) => self.take(pending, place, visit),
                Ok(None) if self.exchange().is_pending() => return Poll::Pending,
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match taken {
                Ok(Taken::Part) => self.connection.channel.incoming.answered(),
                Ok(Taken::Complete) => return Poll::Ready(Ok(self.complete())),
                Ok(Taken::Refused(error)) => {
                    self.complete();
                    return Poll::Ready(Err(error));
                }
                Err(error) => self.lose(&error),
            }
        }
        self.without_link()
    }

    /// The result of the answered command, except failures.
    #[inline]
    fn complete(&mut self) -> Done {
        self.pending = None;
        self.connection.channel.incoming.answered();
        std::mem::take(&mut self.done)
    }

    /// Handles a message. An error means that the connection is unusable.
    #[inline]
    fn take(&mut self, pending: Pending, place: Range<usize>, visit: Visit<'_>) -> Result<Taken, MongoError> {
        let answer = self.connection.answer(place)?;
        let reply = match Cursor::of_usual(answer) {
            Some(cursor) if pending == Pending::Find => Reply { cursor: Some(cursor), ..Reply::default() },
            _ => Reply::of(answer)?,
        };
        if let Some(refusal) = reply.refusal {
            let (code, labels) = (refusal.code, reply.labels);
            if self.is_as_good_as_done(pending, code) {
                return Ok(self.ended(pending));
            }
            let reported = reported(&refusal, labels, &self.options.counts)?;
            return Ok(self.refused(pending, labels, reported));
        }
        let done = &mut self.done;
        match pending {
            Pending::Find => {
                let cursor = reply.cursor.ok_or(Malformed("an answer to find without a cursor"))?;
                for document in cursor.documents() {
                    visit(document?);
                    done.documents += 1;
                }
                if cursor.id != 0 {
                    self.write_more(cursor.id);
                    return Ok(Taken::Part);
                }
            }
            Pending::Write => {
                (done.matched, done.modified, done.upserted) = (reply.matched, reply.modified, reply.upserted)
            }
            Pending::FindAndModify => {
                (done.matched, done.modified, done.upserted) = (reply.matched, reply.modified, reply.upserted);
                if let Some(document) = reply.value {
                    visit(document);
                    done.documents = 1;
                }
            }
            Pending::Count => {
                let cursor = reply.cursor.ok_or(Malformed("an answer to aggregate without a cursor"))?;
                // Without documents the pipeline returns no group.
                if let Some(document) = cursor.documents().next() {
                    done.matched =
                        u64::try_from(document?.int("n")?).map_err(|_| Malformed("a count below nothing"))?;
                }
            }
            Pending::Commit { .. } | Pending::Abort => return Ok(self.ended(pending)),
            Pending::Nothing => {}
        }
        Ok(Taken::Complete)
    }

    /// Whether a transaction to be aborted is already over, so that the server's error does not matter.
    fn is_as_good_as_done(&self, pending: Pending, code: i32) -> bool {
        let aborts = match pending {
            Pending::Abort => true,
            Pending::Commit { .. } => self.transaction == Transaction::Failed,
            _ => false,
        };
        aborts && !lost(code)
    }

    fn ended(&mut self, pending: Pending) -> Taken {
        let before = std::mem::replace(&mut self.transaction, Transaction::None);
        if pending != Pending::Abort && before == Transaction::Failed {
            return Taken::Refused(call_failed(
                "commit",
                "a command of the transaction had failed, and it was aborted",
            ));
        }
        Taken::Complete
    }

    /// Handles an error of the server. A commit with an unknown outcome, or one that the server says may be retried, is
    /// sent once more. That is safe because the server identifies the transaction by its number.
    #[cold]
    fn refused(&mut self, pending: Pending, labels: Labels, reported: EngineError) -> Taken {
        match pending {
            Pending::Commit { again: false } if labels.unknown_commit || labels.retryable => {
                self.options.counts.commits_repeated.fetch_add(1, Relaxed);
                self.pending = Some(self.write_commit(true));
                return Taken::Part;
            }
            Pending::Commit { .. } => self.transaction = Transaction::None,
            _ if self.transaction != Transaction::None => self.transaction = Transaction::Failed,
            _ => {}
        }
        Taken::Refused(reported)
    }
}

/// Converts a server's error for the worker.
///
/// # Errors
/// The server accepts no more requests, so the connection is unusable.
#[cold]
fn reported(refusal: &Refusal<'_>, labels: Labels, counts: &MongoCounts) -> Result<EngineError, MongoError> {
    if lost(refusal.code) {
        return Err(MongoError::refused(refusal));
    }
    Ok(usual(refusal.code, labels, counts).unwrap_or_else(|| MongoError::refused(refusal).during("execute")))
}
