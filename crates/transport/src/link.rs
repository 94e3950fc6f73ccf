//! What becomes of a session whose connection is lost: nothing more, or another
//! connection, which is tried for with growing pauses.

use std::fmt::{self, Display};
use std::task::Poll;
use std::time::{Duration, Instant};

use rumba_core::error::EngineError;
use rumba_core::wait::{Wait, wait_for};

use crate::target::Address;

/// How long one attempt to connect may take, setup included.
pub const CONNECT: Duration = Duration::from_secs(10);
/// How long connecting anew is tried.
const GIVE_UP: Duration = Duration::from_secs(30);
/// The pause after the first attempt; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a session does when its connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// The trial fails.
    #[default]
    Fail,
    /// It connects anew; the operation at hand is given up and counted.
    Reconnect,
}

/// A connection that was lost.
#[derive(Clone, Copy)]
pub struct Loss<'a> {
    /// To where it was.
    pub to: &'a Address,
    /// What was seen of it.
    pub error: &'a dyn Display,
    /// Whether the server is gone, or has closed it; else it broke the protocol, and would again.
    pub is_lost: bool,
    /// What the session is to do.
    pub on_lost: OnLost,
}

impl Loss<'_> {
    /// Whether another connection is to be made.
    fn is_made_good(&self) -> bool {
        self.is_lost && self.on_lost == OnLost::Reconnect
    }
}

/// With the likely cause and the remedy, where no other connection is made.
impl Display for Loss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { to, error, .. } = self;
        write!(f, "the connection to {to} was lost: {error}; ")?;
        match (self.is_lost, self.on_lost) {
            (false, _) => f.write_str("see that it is a server of this protocol, and report it with its version if so"),
            (true, OnLost::Fail) => f.write_str(
                "the server's log says whether it ended or closed the connection; on_lost = \"reconnect\" goes on after \
                 its restart",
            ),
            (true, OnLost::Reconnect) => f.write_str("the server's log says whether it came back"),
        }
    }
}

/// What kept a connection from being made.
#[derive(Clone, Debug)]
pub struct Refused {
    /// In words.
    pub why: String,
    /// Whether it may pass: a server that starts, or that has no room yet.
    pub may_pass: bool,
}

/// Connects anew, blocking, for as long as a session that may reconnect tries.
///
/// # Errors
/// What the last attempt met.
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

/// Whether a session has its connection.
#[derive(Debug, Default)]
pub enum Link {
    /// It has.
    #[default]
    Up,
    /// It has one, after another was lost: so many answers will never come.
    Dropped(usize),
    /// It has none, and one is to be made.
    Down(Down),
    /// It has none, and none will be made, because of this.
    Gone(String),
}

/// A connection that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Down {
    /// When the one before was lost.
    since: Instant,
    /// When to try next.
    next: Instant,
    /// How long to wait after that.
    pause: Duration,
    /// Answers that will never come, that of the statement at hand apart.
    dropped: usize,
}

/// What the client hears of a call whose connection was lost and made anew.
const CUT_OFF: EngineError = EngineError::CutOff("what was under way may have been done or not");

/// What the client hears of a statement that the server has passed over.
#[cold]
pub fn left_out() -> EngineError {
    let message = "left out, because a statement before it in the same transaction failed".to_owned();
    EngineError::Failed { call: "execute", message }
}

impl Link {
    /// Whether the connection is there and every answer on it will come.
    #[inline]
    pub fn is_up(&self) -> bool {
        matches!(self, Link::Up)
    }

    /// The connection is lost; `under_way` is how many answers were still to come.
    #[cold]
    pub fn lose(&mut self, loss: &Loss<'_>, under_way: usize) {
        let now = Instant::now();
        *self = if loss.is_made_good() {
            Link::Down(Down { since: now, next: now, pause: FIRST_PAUSE, dropped: under_way.saturating_sub(1) })
        } else {
            Link::Gone(loss.to_string())
        };
    }

    /// Makes sure of a connection before a statement is submitted, blocking while one is being made.
    ///
    /// # Errors
    /// There is none, and none could be made.
    #[cold]
    pub fn restore(&mut self, connect: &mut dyn FnMut() -> Result<(), Refused>) -> Result<(), EngineError> {
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

    /// What is heard in the place of an answer while there is no connection, or of one that was lost.
    #[cold]
    pub fn poll_lost(&mut self, connect: &mut dyn FnMut() -> Result<(), Refused>) -> Poll<EngineError> {
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

    /// Tries once to connect anew; whether there is a connection now.
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
                "the connection was lost, and none could be made anew: {}; the server has to be back and let the user in \
                 within {} s",
                refused.why,
                GIVE_UP.as_secs()
            ))
        };
        false
    }
}

/// A session over a link, whatever its protocol: what it does about a connection that is lost.
pub trait Linked {
    /// Whether it has its connection.
    fn link(&mut self) -> &mut Link;

    /// Makes another connection, and has on it what the lost one had: that is tried once.
    ///
    /// # Errors
    /// What kept it from being made.
    fn connect_anew(&mut self) -> Result<(), Refused>;

    /// Makes sure of a connection before something is submitted, blocking if one is being made.
    ///
    /// # Errors
    /// There is none, and none could be made.
    #[inline]
    fn link_up(&mut self) -> Result<(), EngineError> {
        if self.link().is_up() { Ok(()) } else { self.link_up_again() }
    }

    /// As [`Linked::link_up`], where there may be none.
    ///
    /// # Errors
    /// There is none, and none could be made.
    #[cold]
    fn link_up_again(&mut self) -> Result<(), EngineError> {
        let mut link = std::mem::take(self.link());
        let restored = link.restore(&mut || self.connect_anew());
        *self.link() = link;
        restored
    }

    /// What the client hears while there is no connection, or of one that was lost.
    #[cold]
    fn without_link<T>(&mut self) -> Poll<Result<T, EngineError>> {
        let mut link = std::mem::take(self.link());
        let heard = link.poll_lost(&mut || self.connect_anew());
        *self.link() = link;
        heard.map(Err)
    }

    /// What the client hears of a call that blocked and has lost the connection: that is made anew before the next.
    #[cold]
    fn cut_off(&mut self) -> EngineError {
        match self.link() {
            // As all later calls tell it.
            Link::Gone(why) => EngineError::Lost(why.clone()),
            _ => self.link_up_again().err().unwrap_or(CUT_OFF),
        }
    }
}
