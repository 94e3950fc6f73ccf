//! One thread's event loop over its connections.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::connection::{Connection, Received};
use crate::dialogue::Answers;
use crate::held::Held;
use crate::listener::{Acceptor, Arrival};
use crate::mailbox::Mailbox;

/// Events that do not belong to a connection.
const MAIL: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
/// The most events taken at once, and the most bytes received at once.
const EVENTS: usize = 256;
const BUFFER: usize = 64 << 10;
/// The most answers sent before the loop checks for new input.
const RELEASED: usize = 8;
/// The pause in accepting when the host has no descriptor even to refuse clients. Otherwise epoll would report the
/// waiting clients continuously.
const NOT_NOW: Duration = Duration::from_millis(100);

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
    /// When it resumes accepting clients, if it is paused.
    lets_in: Option<Instant>,
    answers: Arc<Answers>,
    delay: Option<Duration>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<usize>,
    /// Ordered by time, because the delay is constant.
    due: VecDeque<Due>,
    held: Option<Held>,
    buffer: Box<[u8]>,
    out: Vec<u8>,
}

impl EventLoop {
    /// A loop; the one with the acceptor distributes connections among all loops.
    ///
    /// # Errors
    /// The host has no free descriptor.
    pub fn new(
        mail: Arc<Mailbox>,
        acceptor: Option<Acceptor>,
        answers: Arc<Answers>,
        delay: Option<Duration>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, mail.wake(), EventData::new_u64(MAIL), EventFlags::IN)?;
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

    /// Runs until it is stopped.
    ///
    /// # Errors
    /// The kernel refuses to wait, which never happens.
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

    /// How long answers were held, if there is a delay.
    pub fn held(self) -> Option<Held> {
        self.held
    }

    /// Checked in every loop that a client could keep running forever.
    #[inline]
    fn is_stopped(&self) -> bool {
        self.mail.is_stopped()
    }

    /// The time until the next answer is due.
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
                } else if connection.may_be_received() {
                    lives = self.read(slot, &mut connection, flags.intersects(GOODBYE));
                }
                self.put_back(slot, connection, lives);
            }
        }
    }

    /// Takes a connection out of its slot, so that both it and the loop can be borrowed.
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
            // Closing the socket removes it from epoll; its due answers are dropped because their id no longer matches.
            self.free.push(slot);
        }
    }

    /// Watches for space to send exactly while a client has unread answers.
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

    /// Receives and answers; false at the connection's end. If the end is known to come there is no further event, so
    /// everything up to it is received.
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
                    // A short receive has emptied the socket. Input of a client that does not read its answers is not
                    // received.
                    if (bytes < self.buffer.len() && !up_to_the_end) || !connection.may_be_received() {
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
            if !taken.full || !connection.may_be_received() {
                return true;
            }
            bytes = 0;
        }
    }

    /// Resumes a client that had not read its answers.
    fn resume(&mut self, slot: usize, connection: &mut Connection) -> bool {
        connection.pause(false);
        if connection.is_blocked() {
            return true;
        }
        self.answer(slot, connection, 0) && (!connection.may_be_received() || self.read(slot, connection, true))
    }

    /// Sends the answers in `out`, or holds those of commands until their time; false at the connection's end.
    ///
    /// Each delay counts from the time at which its command was read. If it counted from the loop's wakeup, commands
    /// that arrived separately would be answered together. Their clients would then stay synchronized forever.
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

    /// Sends a few answers whose time has come. The number is limited because new commands arrive meanwhile, and their
    /// delay begins when they are read.
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
        let sockets = self.mail.take();
        for (socket, id) in sockets {
            self.adopt(socket, id);
        }
    }

    /// Accepts clients, up to a limit; epoll reports the remaining ones again.
    fn accept(&mut self) {
        let own = Arc::clone(&self.mail);
        for _ in 0..EVENTS {
            let Some(acceptor) = &mut self.acceptor else { return };
            match acceptor.accept() {
                Arrival::Client(socket, id, mail) if Arc::ptr_eq(&mail, &own) => self.adopt(socket, id),
                Arrival::Client(socket, id, mail) => mail.give(socket, id),
                Arrival::Gone => {}
                Arrival::NoUser => return,
                Arrival::NotNow => return self.let_no_user_in(),
            }
        }
    }

    fn let_no_user_in(&mut self) {
        // If this fails, the loop is only woken more often.
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
        // If the client speaks first, there is no greeting to send.
        let lives = added.is_ok() && (self.out.is_empty() || connection.send(&self.out).is_ok());
        self.put_back(slot, connection, lives);
    }
}

/// Edge-triggered: one event for each arrival is enough, because every receive empties the socket.
const INTEREST: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// The client sends no more data.
const GOODBYE: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

fn data(slot: usize, id: u32) -> EventData {
    EventData::new_u64(slot as u64 | u64::from(id) << 32)
}
