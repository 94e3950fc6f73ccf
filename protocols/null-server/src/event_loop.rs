//! One thread's loop over its connections.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::connection::{Connection, Received};
use crate::dialogue::Answers;
use crate::held::Held;
use crate::listener::{Acceptor, Arrival};

/// The events that are not a connection's.
const MAIL: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
/// Events taken at once, and bytes received at once.
const EVENTS: usize = 256;
const BUFFER: usize = 64 << 10;
/// Answers that are sent at most before the loop looks again for what has arrived.
const RELEASED: usize = 8;
/// How long nobody is let in when the host has no descriptor even to turn them away: the kernel would say that
/// somebody waits as often as it is asked.
const NOT_NOW: Duration = Duration::from_millis(100);

/// Sockets and the word to stop, for a loop of another thread.
pub struct Mailbox {
    sockets: Mutex<Vec<(OwnedFd, u32)>>,
    stop: AtomicBool,
    wake: OwnedFd,
}

impl Mailbox {
    /// An empty mailbox.
    ///
    /// # Errors
    /// When the host gives no descriptor.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { sockets: Mutex::default(), stop: AtomicBool::new(false), wake })
    }

    /// Gives a connection to the loop.
    pub fn give(&self, socket: OwnedFd, id: u32) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push((socket, id));
        self.ring();
    }

    /// Asks the loop to end.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
        self.ring();
    }

    fn ring(&self) {
        // It can only fail when it is full, and then the loop is awake anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// Answers that are held until their time.
struct Due {
    at: Instant,
    slot: usize,
    id: u32,
    bytes: usize,
}

/// A thread's loop.
pub struct EventLoop {
    epoll: OwnedFd,
    mail: Arc<Mailbox>,
    acceptor: Option<Acceptor>,
    /// When it lets clients in again, while it lets in nobody.
    lets_in: Option<Instant>,
    answers: Arc<Answers>,
    delay: Option<Duration>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// In the order of time, because every answer is as late as every other.
    due: VecDeque<Due>,
    held: Option<Held>,
    buffer: Box<[u8]>,
    out: Vec<u8>,
}

impl EventLoop {
    /// A loop; the one with the acceptor gives every loop its share of connections.
    ///
    /// # Errors
    /// When the host gives no descriptor.
    pub fn new(
        mail: Arc<Mailbox>,
        acceptor: Option<Acceptor>,
        answers: Arc<Answers>,
        delay: Option<Duration>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &mail.wake, EventData::new_u64(MAIL), EventFlags::IN)?;
        if let Some(acceptor) = &acceptor {
            epoll::add(&epoll, acceptor.as_fd(), EventData::new_u64(LISTENER), EventFlags::IN)?;
        }
        Ok(Self {
            epoll,
            mail,
            acceptor,
            lets_in: None,
            answers,
            delay,
            connections: Vec::new(),
            free: Vec::new(),
            due: VecDeque::new(),
            held: delay.map(|_| Held::new()),
            buffer: vec![0; BUFFER].into(),
            out: Vec::new(),
        })
    }

    /// Runs until it is asked to end.
    ///
    /// # Errors
    /// When the kernel refuses to wait, which it never does.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.is_stopped() {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), self.patience().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                self.event(*event);
                self.release();
            }
            self.release();
            self.let_in_again();
        }
        Ok(())
    }

    /// For how long it has held its answers, where it had to hold any.
    pub fn held(self) -> Option<Held> {
        self.held
    }

    /// Looked at wherever a client could hold the loop for as long as it likes.
    #[inline]
    fn is_stopped(&self) -> bool {
        self.mail.stop.load(Relaxed)
    }

    /// How long nothing is due.
    fn patience(&self) -> Option<Timespec> {
        let answer = self.due.front().map(|due| due.at);
        let next = [answer, self.lets_in].into_iter().flatten().min()?;
        let left = next.saturating_duration_since(Instant::now());
        Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event.data.u64() {
            MAIL => self.take_mail(),
            LISTENER => self.accept(),
            data => {
                let (slot, id) = ((data & 0xFFFF_FFFF) as usize, (data >> 32) as u32);
                let flags = event.flags;
                let Some(mut connection) = self.lift(slot, id) else { return };
                let mut lives = true;
                if flags.contains(EventFlags::OUT) {
                    lives = connection.flush(0).is_ok() && self.resume(slot, &mut connection);
                } else if connection.may_be_heard() {
                    lives = self.read(slot, &mut connection, flags.intersects(GOODBYE));
                }
                self.put_back(slot, connection, lives);
            }
        }
    }

    /// Takes a connection out of its slot, so that the loop and it can be used side by side.
    #[inline]
    fn lift(&mut self, slot: usize, id: u32) -> Option<Box<Connection>> {
        let place = self.connections.get_mut(slot)?;
        if place.as_ref()?.id == id { place.take() } else { None }
    }

    #[inline]
    fn put_back(&mut self, slot: usize, mut connection: Box<Connection>, lives: bool) {
        let lives = lives && self.watch_room(slot, &mut connection).is_ok();
        if lives {
            self.connections[slot] = Some(connection);
        } else {
            // Closing the socket takes it out of epoll; what it was due is forgotten by its id.
            self.free.push(slot);
        }
    }

    /// Has the loop told of room to send exactly while a client owes reading.
    #[inline]
    fn watch_room(&self, slot: usize, connection: &mut Connection) -> io::Result<()> {
        let blocked = connection.is_blocked();
        if blocked != connection.awaits_room {
            let more = if blocked { EventFlags::OUT } else { EventFlags::empty() };
            epoll::modify(&self.epoll, connection.socket(), data(slot, connection.id), INTEREST | more)?;
            connection.awaits_room = blocked;
        }
        Ok(())
    }

    /// Receives and answers; false at the connection's end. There is no further
    /// event when that is known to come, so that everything is received up to it.
    #[inline]
    fn read(&mut self, slot: usize, connection: &mut Connection, up_to_the_end: bool) -> bool {
        loop {
            match connection.receive(&mut self.buffer) {
                Received::End => return false,
                Received::Nothing => return true,
                Received::Bytes(bytes) => {
                    if !self.answer(slot, connection, bytes) {
                        return false;
                    }
                    // A short receive has emptied the socket; a client that does not read is not listened to.
                    if (bytes < self.buffer.len() && !up_to_the_end) || !connection.may_be_heard() {
                        return true;
                    }
                    if self.is_stopped() {
                        return false;
                    }
                }
            }
        }
    }

    /// Answers the first `bytes` of the buffer; false at the connection's end.
    #[inline]
    fn answer(&mut self, slot: usize, connection: &mut Connection, mut bytes: usize) -> bool {
        loop {
            self.out.clear();
            let taken = connection.take(&self.buffer[..bytes], &self.answers, &mut self.out);
            if !self.deliver(slot, connection, taken.commands) || taken.ended {
                return false;
            }
            connection.pause(taken.full);
            if !taken.full || !connection.may_be_heard() {
                return true;
            }
            bytes = 0;
        }
    }

    /// Goes on where a client's reluctance to read had made it stop.
    fn resume(&mut self, slot: usize, connection: &mut Connection) -> bool {
        connection.pause(false);
        if connection.is_blocked() {
            return true;
        }
        self.answer(slot, connection, 0) && (!connection.may_be_heard() || self.read(slot, connection, true))
    }

    /// Sends the answers in `out`, or holds those of commands until their time; false at the connection's end.
    ///
    /// Each delay counts from the moment at which its command was read. Counted from the moment at which the loop woke,
    /// commands that arrived apart would be answered together, and their clients, who then ask together, for ever after.
    #[inline]
    fn deliver(&mut self, slot: usize, connection: &mut Connection, commands: bool) -> bool {
        if self.out.is_empty() {
            return true;
        }
        match self.delay.filter(|_| commands) {
            Some(delay) => {
                connection.hold(&self.out);
                let at = Instant::now() + delay;
                self.due.push_back(Due { at, slot, id: connection.id, bytes: self.out.len() });
                true
            }
            None => connection.send(&self.out).is_ok(),
        }
    }

    /// Sends answers whose time has come: no more than a few, because commands arrive meanwhile, whose delay begins
    /// when they are read.
    #[inline]
    fn release(&mut self) {
        for _ in 0..RELEASED {
            let now = Instant::now();
            if self.is_stopped() || self.due.front().is_none_or(|due| due.at > now) {
                return;
            }
            let Some(due) = self.due.pop_front() else { return };
            if let (Some(held), Some(delay)) = (&mut self.held, self.delay) {
                held.record(now - due.at + delay);
            }
            let Some(mut connection) = self.lift(due.slot, due.id) else { continue };
            let mut lives = connection.flush(due.bytes).is_ok();
            if lives && connection.is_paused() {
                lives = self.resume(due.slot, &mut connection);
            }
            self.put_back(due.slot, connection, lives);
        }
    }

    fn take_mail(&mut self) {
        let _ = rustix::io::read(&self.mail.wake, &mut [0u8; 8]);
        let sockets = std::mem::take(&mut *self.mail.sockets.lock().unwrap_or_else(PoisonError::into_inner));
        for (socket, id) in sockets {
            self.adopt(socket, id);
        }
    }

    /// Lets clients in, as many as are taken at once: those who still wait are told of again.
    fn accept(&mut self) {
        let own = Arc::clone(&self.mail);
        for _ in 0..EVENTS {
            let Some(acceptor) = &mut self.acceptor else { return };
            match acceptor.accept() {
                Arrival::Client(socket, id, mail) if Arc::ptr_eq(&mail, &own) => self.adopt(socket, id),
                Arrival::Client(socket, id, mail) => mail.give(socket, id),
                Arrival::Gone => {}
                Arrival::Nobody => return,
                Arrival::NotNow => return self.let_nobody_in(),
            }
        }
    }

    fn let_nobody_in(&mut self) {
        // If it is refused, the loop is merely told more often.
        let _ = self.listen_for(EventFlags::empty());
        self.lets_in = Some(Instant::now() + NOT_NOW);
    }

    fn let_in_again(&mut self) {
        if self.lets_in.is_some_and(|at| at <= Instant::now()) {
            self.lets_in = self.listen_for(EventFlags::IN).is_err().then(|| Instant::now() + NOT_NOW);
        }
    }

    fn listen_for(&self, what: EventFlags) -> io::Result<()> {
        let Some(acceptor) = &self.acceptor else { return Ok(()) };
        Ok(epoll::modify(&self.epoll, acceptor.as_fd(), EventData::new_u64(LISTENER), what)?)
    }

    /// Greets a new connection.
    fn adopt(&mut self, socket: OwnedFd, id: u32) {
        self.out.clear();
        let mut connection = Box::new(Connection::new(id, socket, &self.answers, &mut self.out));
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let added = epoll::add(&self.epoll, connection.socket(), data(slot, id), INTEREST);
        // Where it is the client's to speak first, there is nothing to send.
        let lives = added.is_ok() && (self.out.is_empty() || connection.send(&self.out).is_ok());
        self.put_back(slot, connection, lives);
    }
}

/// Told once when something arrives: every receive empties the socket.
const INTEREST: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// The client has said its last.
const GOODBYE: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

fn data(slot: usize, id: u32) -> EventData {
    EventData::new_u64(slot as u64 | u64::from(id) << 32)
}
