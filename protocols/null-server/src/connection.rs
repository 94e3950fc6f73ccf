//! One client's socket with its incoming and outgoing data.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::dialogue::{Answers, Dialogue};
use crate::taken::{ENOUGH, Taken};

/// The capacity that a buffer keeps between uses.
const KEPT: usize = 64 << 10;

/// A client's connection.
pub struct Connection {
    /// The connection's number, which unlike a descriptor is never reused.
    pub id: u32,
    socket: OwnedFd,
    dialogue: Dialogue,
    /// Received bytes of an incomplete packet, or of packets not yet taken.
    input: Vec<u8>,
    /// Answers that wait for their time or for the client to read.
    output: Vec<u8>,
    /// The number of sent bytes in `output`.
    sent: usize,
    /// The number of bytes in `output` that may be sent.
    released: usize,
    /// Whether the loop watches for space to send.
    pub awaits_room: bool,
    /// Whether commands wait in `input` until answers are sent.
    paused: bool,
}

/// The result of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The number of received bytes.
    Bytes(usize),
    /// No data is available now.
    Nothing,
    /// The connection has ended.
    End,
}

impl Connection {
    /// A new connection; its greeting is appended to `out`.
    pub fn new(id: u32, socket: OwnedFd, answers: &Answers, out: &mut Vec<u8>) -> Self {
        Self {
            id,
            socket,
            dialogue: Dialogue::start(answers, id, out),
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            released: 0,
            awaits_room: false,
            paused: false,
        }
    }

    /// The socket.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives available bytes.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> Received {
        loop {
            return match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => Received::End,
                Ok((bytes, _)) => Received::Bytes(bytes),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Received::Nothing,
                Err(_) => Received::End,
            };
        }
    }

    /// Handles received bytes and appends the answers; an incomplete packet is kept.
    #[inline]
    pub fn take(&mut self, arrived: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Taken {
        if self.input.is_empty() {
            let taken = self.dialogue.take(arrived, answers, out);
            self.input.extend_from_slice(&arrived[taken.bytes..]);
            return taken;
        }
        self.input.extend_from_slice(arrived);
        let taken = self.dialogue.take(&self.input, answers, out);
        self.input.drain(..taken.bytes);
        shrink(&mut self.input);
        taken
    }

    /// Whether to receive more from the client: it reads its answers, and few of them are waiting.
    #[inline]
    pub fn may_be_received(&self) -> bool {
        !self.is_blocked() && !self.paused
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Pauses if answers remain to be made and many are held already; otherwise resumes.
    #[inline]
    pub fn pause(&mut self, full: bool) {
        self.paused = full && self.output.len() >= ENOUGH;
    }

    /// Whether the client has not read answers that may be sent.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.sent < self.released
    }

    /// Sends answers immediately, and keeps those for which the client has no space.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub fn send(&mut self, answers: &[u8]) -> io::Result<()> {
        let mut now = 0;
        if !self.is_blocked() {
            now = self.send_some(answers)?;
        }
        if now < answers.len() {
            self.output.extend_from_slice(&answers[now..]);
            self.released = self.output.len();
        }
        Ok(())
    }

    /// Keeps answers until they are released.
    pub fn hold(&mut self, answers: &[u8]) {
        self.output.extend_from_slice(answers);
    }

    /// Sends waiting answers, after releasing `more` bytes of the held ones.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self, more: usize) -> io::Result<()> {
        self.released += more;
        while self.is_blocked() {
            match self.send_some(&self.output[self.sent..self.released])? {
                0 => return Ok(()),
                bytes => self.sent += bytes,
            }
        }
        if self.sent == self.output.len() {
            self.output.clear();
            shrink(&mut self.output);
            (self.sent, self.released) = (0, 0);
        }
        Ok(())
    }

    #[inline]
    fn send_some(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            return match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => Ok(sent),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Ok(0),
                Err(error) => Err(error.into()),
            };
        }
    }
}

fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT && buffer.len() < KEPT {
        buffer.shrink_to(KEPT);
    }
}
