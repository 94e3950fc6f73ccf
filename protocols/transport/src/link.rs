//! Handling of a session's lost connection: the session ends, or it reconnects with growing pauses.

use std::fmt::{self, Display};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::wait::{Wait, wait_for};

use crate::{Address, Channel, Ready, TransportError};

/// Timeout of one connection attempt, including setup.
pub const CONNECT: Duration = Duration::from_secs(10);
/// How long to retry a reconnect.
const GIVE_UP: Duration = Duration::from_secs(30);
/// The pause after the first attempt; it doubles after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The reaction of a session to a lost connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// The trial fails.
    #[default]
    Fail,
    /// The session reconnects; the current operation is abandoned and counted.
    Reconnect,
}

/// A connection that was lost.
#[derive(Clone, Copy)]
pub struct Loss<'a> {
    /// The address of the server.
    pub to: &'a Address,
    /// The observed error.
    pub error: &'a dyn Display,
    /// Whether the server ended or closed the connection. Otherwise it violated the protocol, and a reconnect would not
    /// help.
    pub is_lost: bool,
    /// The session's reaction.
    pub on_lost: OnLost,
}

impl Loss<'_> {
    /// Whether to reconnect.
    fn is_made_good(&self) -> bool {
        self.is_lost && self.on_lost == OnLost::Reconnect
    }
}

/// Includes the likely cause and the remedy if the session does not reconnect.
impl Display for Loss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { to, error, .. } = self;
        write!(f, "the connection to {to} was lost: {error}; ")?;
        match (self.is_lost, self.on_lost) {
            (false, _) => f.write_str("see that it is a server of this protocol, and report it with its version if so"),
            (true, OnLost::Fail) => f.write_str(
                "the server's log says whether it ended or closed the connection; on_lost = \"reconnect\" goes on after \
                 its restart (rumba sysbench: list the error in --mysql-ignore-errors or --pgsql-ignore-errors)",
            ),
            (true, OnLost::Reconnect) => f.write_str("the server's log shows whether it came back"),
        }
    }
}

/// Reconnects, blocking, with the same retries as a session that may reconnect.
pub fn insist<T, E>(mut connect: impl FnMut() -> Result<T, E>, may_pass: impl Fn(&E) -> bool) -> Result<T, E> {
    let since = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match connect() {
            Err(error) if may_pass(&error) && since.elapsed() <= GIVE_UP => std::thread::sleep(pause),
            made => return made,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The state of a session's connection.
#[derive(Debug, Default)]
pub enum Link {
    /// The connection is open.
    #[default]
    Up,
    /// The session has reconnected, and this many answers were lost.
    Dropped(usize),
    /// The connection is lost, and a reconnect is pending.
    Down(Down),
    /// The connection is lost for good, for this reason.
    Gone(String),
}

/// A pending reconnect.
#[derive(Clone, Copy, Debug)]
pub struct Down {
    /// When the connection was lost.
    since: Instant,
    /// When to retry.
    next: Instant,
    /// The pause after that attempt.
    pause: Duration,
    /// The number of lost answers, without that of the current statement.
    dropped: usize,
}

/// The client's error for a call whose connection was lost and reopened.
const CUT_OFF: EngineError = EngineError::CutOff("operations in progress may or may not be done");

/// The client's error for a statement that the server skipped.
#[cold]
pub fn left_out() -> EngineError {
    let message = "left out, because a statement before it in the same transaction failed".to_owned();
    EngineError::Failed { call: "execute", message }
}

impl Link {
    /// Whether the connection is open and no answers were lost.
    #[inline]
    pub fn is_up(&self) -> bool {
        matches!(self, Link::Up)
    }

    /// The state after a connection is lost; `under_way` is the number of pending answers.
    fn lost(loss: &Loss<'_>, under_way: usize) -> Self {
        let now = Instant::now();
        if loss.is_made_good() {
            Link::Down(Down { since: now, next: now, pause: FIRST_PAUSE, dropped: under_way.saturating_sub(1) })
        } else {
            Link::Gone(loss.to_string())
        }
    }

    /// Ensures a connection before a statement is submitted, and blocks while reconnecting.
    fn restore(&mut self, connect: &mut dyn FnMut() -> Result<(), Refused>) -> Result<()> {
        loop {
            match self {
                Link::Up => return Ok(()),
                Link::Dropped(_) => *self = Link::Up,
                Link::Gone(why) => return Err(EngineError::Lost(why.clone())),
                Link::Down(down) => {
                    std::thread::sleep(down.next.saturating_duration_since(Instant::now()));
                    self.try_again(connect);
                }
            }
        }
    }

    /// The result of waiting for an answer that was lost, or while there is no connection.
    fn poll_lost(&mut self, connect: &mut dyn FnMut() -> Result<(), Refused>) -> Poll<EngineError> {
        loop {
            match self {
                Link::Up => return Poll::Ready(CUT_OFF),
                Link::Dropped(left) => {
                    *left -= 1;
                    if *left == 0 {
                        *self = Link::Up;
                    }
                    return Poll::Ready(CUT_OFF);
                }
                Link::Gone(why) => return Poll::Ready(EngineError::Lost(why.clone())),
                Link::Down(down) => {
                    let (next, left) = (down.next, down.next.saturating_duration_since(Instant::now()));
                    if !left.is_zero() {
                        if wait_for(Wait::Until(next)) {
                            return Poll::Pending;
                        }
                        std::thread::sleep(left);
                    }
                    if self.try_again(connect) {
                        return Poll::Ready(CUT_OFF);
                    }
                }
            }
        }
    }

    /// Tries once to reconnect; returns whether there is a connection now.
    fn try_again(&mut self, connect: &mut dyn FnMut() -> Result<(), Refused>) -> bool {
        let Link::Down(down) = *self else { return self.is_up() };
        let Err(refused) = connect() else {
            *self = if down.dropped == 0 { Link::Up } else { Link::Dropped(down.dropped) };
            return true;
        };
        let now = Instant::now();
        *self = if refused.may_pass && now.duration_since(down.since) < GIVE_UP {
            Link::Down(Down { next: now + down.pause, pause: (down.pause * 2).min(LONGEST_PAUSE), ..down })
        } else {
            Link::Gone(format!(
                "the connection was lost, and reconnecting failed: {}; the server must be back and let the user in within {} s",
                refused.why,
                GIVE_UP.as_secs()
            ))
        };
        false
    }
}

/// Counters of lost connections, shared by all sessions of an instance. A session only updates them for rare events.
#[derive(Debug, Default)]
pub struct LinkCounts {
    /// Connections lost.
    pub connections_lost: AtomicU64,
    /// Connections reopened.
    pub reconnects: AtomicU64,
}

/// A session over a link, for any protocol, that handles a lost connection.
pub trait Linked {
    /// The protocol's error.
    type Error: Display + From<TransportError>;

    /// The state of its connection.
    fn link(&mut self) -> &mut Link;

    /// Its connection.
    fn channel(&mut self) -> &mut Channel;

    /// The server's address, the reaction to a lost connection, and the counters.
    fn settings(&self) -> (&Address, OnLost, &LinkCounts);

    /// Whether an error means that the connection is lost, so that a new one may help.
    fn is_lost(error: &Self::Error) -> bool;

    /// Whether the reason for a failed connection may be temporary: the server is starting, or it has too many
    /// connections.
    fn may_pass(error: &Self::Error) -> bool;

    /// Replaces the connection, and restores the session's state on the new one.
    fn reconnect(&mut self) -> Result<(), Self::Error>;

    /// Forgets the requests in progress after the connection is lost, and returns the number of their answers.
    fn forget(&mut self) -> usize;

    /// Sends as much as there is space for. Returns whether the session must wait for space.
    #[inline]
    fn flush(&mut self) -> bool {
        self.channel().flush()
    }

    /// Sends and receives as much as possible, and waits first if no data has arrived. `Pending` means that a driver
    /// waits. The connection may be lost afterwards.
    #[inline(never)]
    fn exchange(&mut self) -> Poll<()> {
        let ready = if self.flush() { Ready::ToWrite } else { Ready::ToRead };
        self.channel().receive(ready).map(|received| {
            if let Err(error) = received {
                self.lose(&error.into());
            }
        })
    }

    /// Records that the connection is lost.
    #[cold]
    fn lose(&mut self, error: &Self::Error) {
        let under_way = self.forget();
        self.channel().reset();
        let (to, on_lost, counts) = self.settings();
        counts.connections_lost.fetch_add(1, Relaxed);
        let loss = Loss { to, error, is_lost: Self::is_lost(error), on_lost };
        let link = Link::lost(&loss, under_way);
        *self.link() = link;
    }

    /// Ensures a connection before a submit, and blocks while reconnecting.
    ///
    /// # Errors
    /// There is no connection, and reconnecting failed.
    #[inline]
    fn link_up(&mut self) -> Result<()> {
        if self.link().is_up() { Ok(()) } else { self.link_up_again() }
    }

    /// The slow path of [`Linked::link_up`].
    ///
    /// # Errors
    /// There is no connection, and reconnecting failed.
    #[cold]
    fn link_up_again(&mut self) -> Result<()> {
        let mut link = std::mem::take(self.link());
        let restored = link.restore(&mut || attempt(self));
        *self.link() = link;
        restored
    }

    /// The client's result for a lost answer, or while there is no connection.
    #[cold]
    fn without_link<T>(&mut self) -> Poll<Result<T>> {
        let mut link = std::mem::take(self.link());
        let received = link.poll_lost(&mut || attempt(self));
        *self.link() = link;
        received.map(Err)
    }

    /// The client's error for a blocking call that lost the connection. It reconnects before the next call.
    #[cold]
    fn cut_off(&mut self, error: &Self::Error) -> EngineError {
        self.lose(error);
        match self.link() {
            // All later calls return the same error.
            Link::Gone(why) => EngineError::Lost(why.clone()),
            _ => self.link_up_again().err().unwrap_or(CUT_OFF),
        }
    }
}

/// Reconnects once.
fn attempt<S: Linked + ?Sized>(session: &mut S) -> Result<(), Refused> {
    session.reconnect().map_err(|error| Refused { why: error.to_string(), may_pass: S::may_pass(&error) })?;
    session.settings().2.reconnects.fetch_add(1, Relaxed);
    Ok(())
}

/// A failed connection attempt.
struct Refused {
    /// The reason.
    why: String,
    /// Whether it is temporary.
    may_pass: bool,
}
