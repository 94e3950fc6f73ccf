//! The agent's side: dials the coordinator, answers pings, and receives requests.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde_json::Value;

use crate::clock::MonotonicClock;
use crate::error::FleetError;
use crate::frame::{self, Frame, MOST_BYTES};
use crate::link::{Link, SILENCE};
use crate::message::{FromAgent, Hello, HostFacts, ToAgent, VERSION};
use crate::token::Token;

/// The pause between two attempts to reach the coordinator, or to take part in the next trial.
const AGAIN: Duration = Duration::from_millis(200);

/// The identity of an agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The coordinator's address: `host:port`.
    pub coordinator: String,
    /// The run's token.
    pub token: Token,
    /// rumba's version and commit.
    pub program: String,
    /// The agent's number, from 0.
    pub rank: u32,
    /// The number of agents.
    pub size: u32,
    /// Its host.
    pub host: HostFacts,
}

/// A welcome agent.
pub struct Dialled {
    link: Link,
    clock: MonotonicClock,
    incoming: Receiver<Incoming>,
}

/// A message that an agent receives.
#[derive(Debug)]
pub enum Incoming {
    /// A request with its number.
    Request(u64, Value),
    /// The trial has ended.
    Bye,
    /// The coordinator is lost; why.
    Lost(String),
}

/// Dials the coordinator until it answers, for at most `patience`. The agent is then welcome once the coordinator
/// begins a trial, which may take any time.
///
/// # Errors
/// No coordinator; it refuses this agent; a broken connection.
pub fn dial(agent: &Agent, patience: Duration) -> Result<Dialled, FleetError> {
    let first = introduce(agent, || connect(&agent.coordinator, patience, |_| true))?;
    first.map_or_else(|| dial_again(agent, patience), link)
}

/// As [`dial`], after a trial. If no process listens, the run has ended; an unreachable host may come back.
///
/// # Errors
/// As [`dial`].
pub fn dial_again(agent: &Agent, patience: Duration) -> Result<Dialled, FleetError> {
    let may_listen = |error: &io::Error| error.kind() != io::ErrorKind::ConnectionRefused;
    let until = Instant::now() + patience;
    loop {
        match introduce(agent, || connect(&agent.coordinator, patience, may_listen)) {
            Ok(Some(stream)) => return link(stream),
            Ok(None) => {}
            // The trial may have ended meanwhile.
            Err(FleetError::Broken(_)) if Instant::now() < until => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(AGAIN);
    }
}

/// Introduces an agent to the coordinator. Returns the connection if it is welcome, and `None` if it must dial again.
fn introduce(
    agent: &Agent,
    connect: impl FnOnce() -> Result<TcpStream, FleetError>,
) -> Result<Option<TcpStream>, FleetError> {
    let mut stream = connect()?;
    let hello = Hello {
        protocol: VERSION,
        program: agent.program.clone(),
        token: agent.token.reveal().to_owned(),
        rank: agent.rank,
        size: agent.size,
        host: agent.host.clone(),
    };
    frame::write(&mut stream, &FromAgent::Hello(hello), &[]).map_err(FleetError::Broken)?;
    let Frame { head, .. } = frame::read::<ToAgent>(&mut stream, MOST_BYTES).map_err(FleetError::Broken)?;
    match head {
        ToAgent::Welcome => Ok(Some(stream)),
        ToAgent::Later => Ok(None),
        ToAgent::Refused { reason } => Err(FleetError::Refused(reason)),
        _ => Err(FleetError::Broken(io::Error::other("the coordinator did not begin with a welcome"))),
    }
}

fn link(stream: TcpStream) -> Result<Dialled, FleetError> {
    let (clock, (send, incoming)) = (MonotonicClock::default(), channel());
    let take = move |link: &Link, frame: Result<Frame<ToAgent>, String>, _: Instant| {
        let incoming = match frame.map(|frame| frame.head) {
            Ok(ToAgent::Ping { number }) => {
                // On this thread, so that the answer waits for no client.
                let _ = link.send(&FromAgent::Pong { number, at_ns: clock.now_ns() }, &[]);
                return;
            }
            Ok(ToAgent::Alive | ToAgent::Welcome | ToAgent::Later) => return,
            Ok(ToAgent::Request { number, body }) => Incoming::Request(number, body),
            Ok(ToAgent::Bye) => Incoming::Bye,
            Ok(ToAgent::Refused { reason }) => Incoming::Lost(reason),
            Err(why) => Incoming::Lost(why),
        };
        let _ = send.send(incoming);
    };
    let link = Link::new(stream, FromAgent::Alive, take).map_err(FleetError::Broken)?;
    Ok(Dialled { link, clock, incoming })
}

/// Connects, and tries again after errors that `may_pass`.
fn connect(address: &str, patience: Duration, may_pass: impl Fn(&io::Error) -> bool) -> Result<TcpStream, FleetError> {
    let until = Instant::now() + patience;
    loop {
        match attempt(address) {
            Ok(stream) => return Ok(stream),
            Err(error) if may_pass(&error) && Instant::now() + AGAIN < until => std::thread::sleep(AGAIN),
            Err(cause) => return Err(FleetError::Unreachable { address: address.to_owned(), cause }),
        }
    }
}

fn attempt(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, SILENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(SILENCE))?;
                // Between two trials the coordinator says nothing. The kernels then find out whether it is still there.
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, SILENCE)?;
                sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(1))?;
                sockopt::set_tcp_keepcnt(&stream, 3)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Dialled {
    /// The agent's clock, which pings ask for.
    pub fn clock(&self) -> MonotonicClock {
        self.clock
    }

    /// The next message; `None` if this time passes without one.
    pub fn receive(&self, within: Duration) -> Option<Incoming> {
        match self.incoming.recv_timeout(within) {
            Ok(incoming) => Some(incoming),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Incoming::Lost("the connection has ended".to_owned())),
        }
    }

    /// Answers a request.
    ///
    /// # Errors
    /// The connection's.
    pub fn answer(&self, number: u64, body: Result<Value, String>, tail: &[u8]) -> io::Result<()> {
        self.link.send(&FromAgent::Answer { number, body }, tail)
    }

    /// Reports something without a request.
    ///
    /// # Errors
    /// The connection's.
    pub fn notice(&self, body: Value) -> io::Result<()> {
        self.link.send(&FromAgent::Notice { body }, &[])
    }
}
