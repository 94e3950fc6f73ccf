//! What happens when the connection is lost.

use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

use rumba_core::engine::EngineError;
use rumba_core::sql::Answer;
use rumba_core::wait::{Wait, wait_for};

use super::failure::{call_failed, in_statement, usual, wire_failed};
use super::{COLLATION, OnLost, SessionOptions, Stage, WireSession};
use crate::again::{CONNECT, FIRST_PAUSE, GIVE_UP, LONGEST_PAUSE, may_pass};
use crate::codec::answer::Refusal;
use crate::connection::Connection;
use crate::query::query;
use crate::{Target, WireError};

/// Whether there is a connection.
#[derive(Debug)]
pub(super) enum Link {
    /// There is.
    Up,
    /// There is, after another was lost: so many answers will never come.
    Dropped(usize),
    /// There is none, and one is to be made.
    Down {
        /// When it was lost.
        since: Instant,
        /// When to try next.
        next: Instant,
        /// How long to wait after that.
        pause: Duration,
        /// Answers that will never come, that of the statement at hand apart.
        dropped: usize,
    },
    /// There is none, and none will be made.
    Gone(String),
}

/// Connects and sets the session up.
pub(super) fn enter(target: &Target, options: &SessionOptions) -> Result<Connection, WireError> {
    let deadline = Instant::now() + CONNECT;
    let mut connection = Connection::open(target, COLLATION, deadline)?;
    for statement in &options.setup {
        query(&mut connection, statement, Some(deadline)).map_err(|error| match error {
            WireError::Server { code, sqlstate, message } => {
                WireError::Server { code, sqlstate, message: message + &in_statement(statement) }
            }
            other => other,
        })?;
    }
    Ok(connection)
}

const CUT_OFF: EngineError = EngineError::CutOff("what was under way may have been done or not");

impl WireSession {
    /// Makes sure of a connection before a statement is submitted, blocking if one is being made.
    #[inline]
    pub(super) fn link_up(&mut self) -> Result<(), EngineError> {
        match self.link {
            Link::Up => Ok(()),
            _ => self.link_up_again(),
        }
    }

    #[cold]
    fn link_up_again(&mut self) -> Result<(), EngineError> {
        loop {
            match &self.link {
                Link::Up => return Ok(()),
                Link::Dropped(_) => self.link = Link::Up,
                Link::Gone(why) => return Err(call_failed("connection", why)),
                Link::Down { next, .. } => {
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    if let Some(Err(error)) = self.try_again().filter(|made| *made != Err(CUT_OFF)) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// The connection is of no more use.
    #[cold]
    pub(super) fn lose(&mut self, error: &WireError) {
        self.options.counts.connections_lost.fetch_add(1, Relaxed);
        let now = Instant::now();
        // A server that breaks the protocol does so again.
        let again = self.options.on_lost == OnLost::Reconnect && error.is_lost();
        self.link = if again {
            let dropped = self.queue.iter().filter(|pending| pending.last).count().saturating_sub(1);
            Link::Down { since: now, next: now, pause: FIRST_PAUSE, dropped }
        } else {
            Link::Gone(format!("the connection was lost: {error}"))
        };
        self.queue.clear();
        self.outbox.reset();
        self.connection.send.clear();
        self.connection.sent = 0;
        self.stage = Stage::Head;
        self.answer = Answer::default();
        self.failure = None;
        self.waited = false;
    }

    /// What the client hears while there is no connection, or of one that was lost.
    #[cold]
    pub(super) fn without_link(&mut self) -> Poll<Result<Answer, EngineError>> {
        loop {
            match &mut self.link {
                Link::Up => return Poll::Ready(Err(CUT_OFF)),
                Link::Dropped(left) => {
                    *left -= 1;
                    if *left == 0 {
                        self.link = Link::Up;
                    }
                    return Poll::Ready(Err(CUT_OFF));
                }
                Link::Gone(why) => return Poll::Ready(Err(call_failed("connection", why))),
                Link::Down { next, .. } => {
                    let left = next.saturating_duration_since(Instant::now());
                    if !left.is_zero() {
                        if wait_for(Wait::Until(*next)) {
                            return Poll::Pending;
                        }
                        std::thread::sleep(left);
                    }
                    if let Some(made) = self.try_again() {
                        return Poll::Ready(made);
                    }
                }
            }
        }
    }

    /// Tries once to connect anew; `None` when it is to be tried once more.
    fn try_again(&mut self) -> Option<Result<Answer, EngineError>> {
        let Link::Down { since, pause, dropped, .. } = self.link else { return None };
        let error = match self.connect_anew() {
            Ok(connection) => {
                self.connection = connection;
                self.options.counts.reconnects.fetch_add(1, Relaxed);
                self.link = if dropped == 0 { Link::Up } else { Link::Dropped(dropped) };
                return Some(Err(CUT_OFF));
            }
            Err(error) => error,
        };
        let now = Instant::now();
        if may_pass(&error) && now.duration_since(since) < GIVE_UP {
            self.link = Link::Down { since, next: now + pause, pause: (pause * 2).min(LONGEST_PAUSE), dropped };
            return None;
        }
        let why = format!("the connection was lost, and none could be made anew: {error}");
        self.link = Link::Gone(why.clone());
        Some(Err(call_failed("connection", &why)))
    }

    fn connect_anew(&mut self) -> Result<Connection, WireError> {
        let mut connection = enter(&self.target, &self.options)?;
        for statement in &mut self.statements {
            statement.prepare_again(&mut connection)?;
        }
        Ok(connection)
    }

    /// A call that blocked has failed; a connection that is lost is made anew before the next.
    #[cold]
    pub(super) fn blocked_call_failed(&mut self, call: &'static str, error: WireError, sql: &str) -> EngineError {
        if let WireError::Server { code, sqlstate, message } = &error {
            let state = sqlstate.as_bytes().try_into().unwrap_or(*b"HY000");
            let refusal = Refusal { code: *code, state, message: message.as_bytes() };
            if !error.is_lost() {
                let named = WireError::Server {
                    code: *code,
                    sqlstate: sqlstate.clone(),
                    message: format!("{message}{}", in_statement(sql)),
                };
                return usual(&refusal, &self.options.counts).unwrap_or_else(|| wire_failed(call, &named));
            }
        }
        self.lose(&error);
        match &self.link {
            // In the words of all later calls, so that who watches the server knows it for the same.
            Link::Gone(why) => call_failed("connection", why),
            _ => self.link_up_again().err().unwrap_or(CUT_OFF),
        }
    }
}
