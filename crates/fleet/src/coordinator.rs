//! The coordinator's side: gathers the hosts of a trial, measures their clocks, and sends requests.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::PINGS;
use crate::clock::{ClockOffset, MonotonicClock};
use crate::error::FleetError;
use crate::frame::{self, Frame, MOST_BYTES_OF_HELLO};
use crate::link::{Link, thread};
use crate::message::{FromAgent, Hello, HostFacts, ToAgent, VERSION};
use crate::token::Token;

/// The interval between checks of a listener without connections.
const NAP: Duration = Duration::from_millis(10);
/// The longest wait for the first message of a connection.
const INTRODUCTION: Duration = Duration::from_secs(2);
/// The longest wait for the answers to one ping of each host.
const PING: Duration = Duration::from_secs(1);
/// The most refusals that an error names.
const NAMED: usize = 3;

/// Who may take part.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The number of hosts.
    pub hosts: u32,
    /// The run's token.
    pub token: Token,
    /// rumba's version and commit, which agents must have too.
    pub program: String,
}

impl Terms {
    /// Why a host is refused.
    fn refusal(&self, hello: &Hello, has_rank: impl Fn(u32) -> bool) -> Option<String> {
        // The token comes first: without it, an agent learns nothing else.
        if !self.token.is(&hello.token) {
            return Some("wrong token: give the run and all agents the same".to_owned());
        }
        if hello.protocol != VERSION || hello.program != self.program {
            let (theirs, own) = (&hello.program, &self.program);
            return Some(format!("wrong version: the agent is {theirs}, the coordinator {own}; use the same build"));
        }
        let (rank, size, hosts) = (hello.rank, hello.size, self.hosts);
        if size != hosts {
            return Some(format!("the agent belongs to {size} hosts, and the experiment has fleet.hosts = {hosts}"));
        }
        if rank >= hosts {
            return Some(format!("rank {rank} is above the last, {}: ranks count from 0", hosts - 1));
        }
        has_rank(rank).then(|| format!("duplicate rank {rank}: give each agent its own"))
    }
}

/// One client host.
pub struct Peer {
    link: Link,
    /// Its facts.
    pub host: HostFacts,
    /// The address that it dialled from.
    pub address: IpAddr,
    /// Its clock.
    pub clock: ClockOffset,
}

/// Something that came from a host.
#[derive(Debug)]
pub struct Arrival {
    /// The host.
    pub rank: u32,
    /// When it came.
    pub at: Instant,
    /// Its contents.
    pub what: Received,
}

/// The contents of a message, or the loss of its host.
#[derive(Debug)]
pub enum Received {
    /// The answer to a request, with its binary tail.
    Answer(u64, Result<Value, String>, Vec<u8>),
    /// Something without a request.
    Notice(Value),
    /// The answer to a ping: its number, and the host's clock.
    Pong(u32, u64),
    /// The host is lost; why.
    Lost(String),
}

/// All hosts of a trial. Dropping it ends the trial for them.
pub struct Coordinator {
    peers: Vec<Peer>,
    arrivals: Receiver<Arrival>,
    clock: MonotonicClock,
    next: u64,
    doorman: Arc<AtomicBool>,
}

/// The ranks of lost hosts, which may come back for the next trial.
type Lost = Arc<Mutex<BTreeSet<u32>>>;

impl Coordinator {
    /// Waits until all hosts are there. Hosts that do not belong are refused with the reason.
    ///
    /// # Errors
    /// Hosts that did not come in time, with the refusals until then; an interrupt.
    pub fn gather(
        listener: TcpListener,
        terms: &Terms,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Result<Self, FleetError> {
        listener.set_nonblocking(true).map_err(FleetError::io("the fleet's listener"))?;
        let (send, arrivals) = channel();
        let (mut peers, mut refusals, lost) = (BTreeMap::new(), Vec::new(), Lost::default());
        let until = Instant::now() + patience;
        while peers.len() < terms.hosts as usize {
            if stop.load(Relaxed) {
                return Err(FleetError::Interrupted);
            }
            if Instant::now() >= until {
                return Err(incomplete(terms, &peers, &refusals, patience));
            }
            let Some((mut stream, from)) = accept(&listener) else { continue };
            match introduction(&mut stream, terms, |rank| peers.contains_key(&rank)) {
                Ok(hello) => match welcome(stream, &hello, send.clone(), lost.clone()) {
                    Ok(peer) => drop(peers.insert(hello.rank, peer)),
                    Err(error) => refusals.push(format!("{from}: {error}")),
                },
                Err(reason) => refusals.push(format!("{from}: {reason}")),
            }
        }
        let doorman = Arc::new(AtomicBool::new(true));
        watch_door(listener, terms.clone(), doorman.clone(), lost).map_err(FleetError::io("the fleet's threads"))?;
        let (peers, clock) = (peers.into_values().collect(), MonotonicClock::default());
        Ok(Self { peers, arrivals, clock, next: 0, doorman })
    }

    /// The hosts, by rank.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The coordinator's clock.
    pub fn clock(&self) -> MonotonicClock {
        self.clock
    }

    /// Measures the clocks of these hosts again. `other` gets what is no answer to a ping.
    pub fn measure_clocks(&mut self, ranks: &[u32], mut other: impl FnMut(Arrival)) {
        let mut best: BTreeMap<u32, ClockOffset> = BTreeMap::new();
        for number in 0..PINGS {
            let mut sent = BTreeMap::new();
            for &rank in ranks {
                sent.insert(rank, self.clock.now_ns());
                // A lost host is reported by its reading thread.
                let _ = self.peers[rank as usize].link.send(&ToAgent::Ping { number }, &[]);
            }
            let until = Instant::now() + PING;
            while !sent.is_empty() {
                let Some(arrival) = self.receive(until) else { break };
                match arrival.what {
                    Received::Pong(answered, at_ns) if answered == number => {
                        let Some(sent_ns) = sent.remove(&arrival.rank) else { continue };
                        let offset = ClockOffset::of_ping(sent_ns, at_ns, self.clock.at_ns(arrival.at));
                        best.entry(arrival.rank).and_modify(|best| *best = best.or_better(offset)).or_insert(offset);
                    }
                    // The answer to an earlier ping came too late.
                    Received::Pong(..) => {}
                    Received::Lost(_) => {
                        sent.remove(&arrival.rank);
                        other(arrival);
                    }
                    _ => other(arrival),
                }
            }
        }
        best.into_iter().for_each(|(rank, offset)| self.peers[rank as usize].clock = offset);
    }

    /// Sends a request to a host and returns its number. A host that cannot be reached is reported as lost.
    pub fn request(&mut self, rank: u32, body: Value) -> u64 {
        self.next += 1;
        let number = self.next;
        let link = &self.peers[rank as usize].link;
        if link.send(&ToAgent::Request { number, body }, &[]).is_err() {
            // The reading thread then reports the loss.
            link.close();
        }
        number
    }

    /// The next arrival; `None` if it has not come by this time.
    pub fn receive(&mut self, until: Instant) -> Option<Arrival> {
        self.arrivals.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    }

    /// Ends a host's part in the trial.
    pub fn dismiss(&self, rank: u32) {
        self.peers[rank as usize].link.close();
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        // First, so that agents that dial again for the next trial are not refused.
        self.doorman.store(false, Relaxed);
        std::thread::sleep(2 * NAP);
        for peer in &self.peers {
            let _ = peer.link.send(&ToAgent::Bye, &[]);
        }
    }
}

fn accept(listener: &TcpListener) -> Option<(TcpStream, String)> {
    match listener.accept() {
        Ok((stream, from)) => Some((stream, from.to_string())),
        Err(_) => {
            std::thread::sleep(NAP);
            None
        }
    }
}

/// Reads an agent's introduction, and refuses it if it does not belong.
fn introduction(stream: &mut TcpStream, terms: &Terms, has_rank: impl Fn(u32) -> bool) -> Result<Hello, String> {
    let read = |stream: &mut TcpStream| -> io::Result<FromAgent> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(INTRODUCTION))?;
        stream.set_write_timeout(Some(INTRODUCTION))?;
        Ok(frame::read(stream, MOST_BYTES_OF_HELLO)?.head)
    };
    let reason = match read(stream) {
        Ok(FromAgent::Hello(hello)) => match terms.refusal(&hello, has_rank) {
            None => return Ok(hello),
            Some(reason) => reason,
        },
        Ok(_) => "it did not introduce itself".to_owned(),
        Err(error) => format!("no introduction: {error}"),
    };
    let _ = frame::write(stream, &ToAgent::Refused { reason: reason.clone() }, &[]);
    Err(reason)
}

fn welcome(mut stream: TcpStream, hello: &Hello, send: Sender<Arrival>, lost: Lost) -> io::Result<Peer> {
    let address = stream.peer_addr()?.ip().to_canonical();
    frame::write(&mut stream, &ToAgent::Welcome, &[])?;
    let rank = hello.rank;
    let take = move |_: &Link, frame: Result<Frame<FromAgent>, String>, at: Instant| {
        let what = match frame {
            Ok(Frame { head: FromAgent::Answer { number, body }, tail }) => Received::Answer(number, body, tail),
            Ok(Frame { head: FromAgent::Notice { body }, .. }) => Received::Notice(body),
            Ok(Frame { head: FromAgent::Pong { number, at_ns }, .. }) => Received::Pong(number, at_ns),
            Ok(Frame { head: FromAgent::Alive | FromAgent::Hello(_), .. }) => return,
            Err(why) => {
                lost.lock().unwrap_or_else(PoisonError::into_inner).insert(rank);
                Received::Lost(why)
            }
        };
        let _ = send.send(Arrival { rank, at, what });
    };
    let link = Link::new(stream, ToAgent::Alive, take)?;
    Ok(Peer { link, host: hello.host.clone(), address, clock: ClockOffset::default() })
}

/// Refuses every host that comes after the trial has begun. A lost one may wait for the next trial.
fn watch_door(listener: TcpListener, terms: Terms, is_open: Arc<AtomicBool>, lost: Lost) -> io::Result<()> {
    thread("fleet-door", move || {
        while is_open.load(Relaxed) {
            let Some((mut stream, _)) = accept(&listener) else { continue };
            let late = |hello: &Hello| format!("rank {} is too late or a duplicate: the trial has begun", hello.rank);
            if let Ok(hello) = introduction(&mut stream, &terms, |_| false) {
                let is_lost = lost.lock().unwrap_or_else(PoisonError::into_inner).contains(&hello.rank);
                let refused = ToAgent::Refused { reason: late(&hello) };
                let _ = frame::write(&mut stream, if is_lost { &ToAgent::Later } else { &refused }, &[]);
            }
        }
    })
}

fn incomplete(terms: &Terms, peers: &BTreeMap<u32, Peer>, refusals: &[String], patience: Duration) -> FleetError {
    let missing: Vec<String> =
        (0..terms.hosts).filter(|rank| !peers.contains_key(rank)).map(|rank| rank.to_string()).collect();
    let mut words = format!(
        "{} of {} client hosts came within {} s; missing: rank {}",
        peers.len(),
        terms.hosts,
        patience.as_secs(),
        missing.join(", ")
    );
    if !refusals.is_empty() {
        let named: Vec<&str> = refusals.iter().take(NAMED).map(String::as_str).collect();
        words += &format!("; refused: {}", named.join("; "));
    }
    words += "; start `rumba agent` on each host (`fleet.wait` of an experiment allows more time)";
    FleetError::Incomplete(words)
}
