//! A connection with its buffers in both directions, for any protocol.

use std::io;
use std::task::Poll;
use std::time::Instant;

use crate::lent::{give_back, lent};
use crate::{Address, Incoming, Ready, Stream, TransportError};

/// A send buffer larger than this shrinks when its size is no longer needed.
const AMPLE: usize = 16 << 10;
/// The number of consecutive flushes without need for the size after which it shrinks.
const PATIENCE: u32 = 64;
/// The bytes that a server may send until the login is complete. It sends about one KiB.
const LOGIN: usize = 64 << 10;

/// A connection with its buffers in both directions.
pub struct Channel {
    /// The socket.
    pub stream: Stream,
    /// The receive buffer.
    pub incoming: Incoming,
    /// The send buffer; its first [`Channel::sent`] bytes are sent.
    pub send: Vec<u8>,
    sent: usize,
    /// The stream position of the send buffer's first byte.
    base: u64,
    /// Consecutive flushes for which an ample buffer was enough.
    modest: u32,
    /// Whether the client waited for the socket since it last received data.
    waited: bool,
    /// The bytes that blocking reads may still receive.
    allowed: usize,
    /// The last limit for blocking reads.
    most: usize,
}

impl Channel {
    /// The bytes that a server may send in answer to a request whose answer is kept in memory.
    pub const ANSWER: usize = 16 << 20;

    /// Connects before `deadline`, for messages of at least `shortest` bytes. Until [`Channel::allow`] is called,
    /// blocking reads receive at most what a login needs.
    pub fn connect(address: &Address, shortest: usize, deadline: Instant) -> Result<Self, TransportError> {
        Ok(Self {
            stream: Stream::connect(address, deadline)?,
            incoming: Incoming::new(shortest),
            send: Vec::new(),
            sent: 0,
            base: 0,
            modest: 0,
            waited: false,
            allowed: LOGIN,
            most: LOGIN,
        })
    }

    /// The stream position at which the send buffer ends.
    #[inline]
    pub fn end(&self) -> u64 {
        self.base + self.send.len() as u64
    }

    /// The stream position up to which bytes are sent. Bytes that the encryption holds back are not sent, so the server
    /// would never answer them.
    pub fn sent_to(&self) -> u64 {
        self.base + self.sent.saturating_sub(self.stream.held_back()) as u64
    }

    /// The index of this stream position in the send buffer, if nothing from it on is sent.
    pub fn unsent(&self, position: u64) -> Option<usize> {
        let at = self.index_of(position)?;
        (self.sent <= at && at < self.send.len()).then_some(at)
    }

    /// The number of bytes of the send buffer that are sent.
    #[inline]
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// Skips unsent bytes up to a stream position.
    pub fn skip_to(&mut self, position: u64) {
        let skipped = self.index_of(position).unwrap_or_default();
        self.sent = skipped.min(self.send.len()).max(self.sent);
    }

    fn index_of(&self, position: u64) -> Option<usize> {
        usize::try_from(position.checked_sub(self.base)?).ok()
    }

    /// Sends as much as there is space for. Returns whether it must wait for space.
    #[inline]
    pub fn flush(&mut self) -> bool {
        self.flush_up_to(self.send.len())
    }

    /// Sends as much as there is space for, up to a stream position. Returns whether it must wait for space.
    pub fn flush_to(&mut self, position: u64) -> bool {
        let limit = self.index_of(position).unwrap_or_default();
        self.flush_up_to(limit.min(self.send.len()))
    }

    #[inline]
    fn flush_up_to(&mut self, limit: usize) -> bool {
        if self.stream.send_from(&self.send[..limit], &mut self.sent) {
            return true;
        }
        if self.sent == self.send.len() {
            self.base += self.sent as u64;
            self.clear_send();
        }
        false
    }

    #[inline]
    fn clear_send(&mut self) {
        let sent = self.send.len();
        self.send.clear();
        self.sent = 0;
        if self.send.capacity() > AMPLE {
            self.modest = if sent > AMPLE { 0 } else { self.modest + 1 };
            if self.modest >= PATIENCE {
                self.send.shrink_to(AMPLE);
            }
        }
    }

    /// Waits if no data has arrived, and receives what there is. `Pending` means that a driver waits.
    #[inline]
    pub fn receive(&mut self, ready: Ready) -> Poll<Result<(), TransportError>> {
        if !self.waited {
            self.waited = true;
            if self.stream.wait(ready) {
                return Poll::Pending;
            }
        }
        match self.incoming.fill(&mut self.stream) {
            Ok(more) => self.waited = more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.waited = false,
            Err(error) => return Poll::Ready(Err(TransportError::receiving(error))),
        }
        Poll::Ready(Ok(()))
    }

    /// Forgets what is to be sent, after the connection is lost.
    pub fn reset(&mut self) {
        self.send.clear();
        self.sent = 0;
        self.waited = false;
    }

    /// Returns empty buffers to the thread's pool until they are needed.
    pub fn lend(&mut self) {
        if self.send.is_empty() {
            self.incoming.lend();
            give_back(std::mem::take(&mut self.send));
        }
    }

    /// Takes a send buffer from the thread's pool, if it was returned to it.
    #[inline]
    pub fn take_back(&mut self) {
        if self.send.capacity() == 0 {
            self.send = lent();
        }
    }

    /// Sends everything queued, and blocks until it is sent.
    ///
    /// # Errors
    /// `TimedOut` after the deadline.
    pub fn write(&mut self, deadline: Option<Instant>) -> Result<(), TransportError> {
        while self.flush() {
            let waited = self.stream.block(Ready::ToWrite, deadline);
            waited.map_err(|cause| TransportError::io("sending to the server", cause))?;
        }
        Ok(())
    }

    /// Limits the bytes that blocking reads receive from here on, so that a hostile or broken server cannot fill the
    /// memory.
    pub fn allow(&mut self, bytes: usize) {
        (self.allowed, self.most) = (bytes, bytes);
    }

    /// Counts memory that is kept for an answer against its limit.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub fn charge(&mut self, bytes: usize) -> Result<(), TransportError> {
        let left = self.allowed.checked_sub(bytes);
        self.allowed = left.ok_or_else(|| TransportError::too_long(self.most))?;
        Ok(())
    }

    /// The message that `next` takes from the receive buffer; blocks until it is complete.
    ///
    /// # Errors
    /// Those of `next`; more bytes than [`Channel::allow`] permits; the connection is lost.
    pub fn read<M, E: From<TransportError>>(
        &mut self,
        deadline: Option<Instant>,
        mut next: impl FnMut(&mut Incoming) -> Result<Option<M>, E>,
    ) -> Result<M, E> {
        loop {
            let before = self.incoming.rest().len();
            if let Some(message) = next(&mut self.incoming)? {
                self.charge(before - self.incoming.rest().len())?;
                return Ok(message);
            }
            // Most messages begin with their length, so one that is too long is never received.
            if self.incoming.needed() > self.allowed {
                return Err(TransportError::too_long(self.most).into());
            }
            self.fill(deadline)?;
        }
    }

    /// Receives data; blocks until some arrives.
    ///
    /// # Errors
    /// `TimedOut` after the deadline; the connection is lost.
    pub fn fill(&mut self, deadline: Option<Instant>) -> Result<(), TransportError> {
        loop {
            match self.incoming.fill(&mut self.stream) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waited = self.stream.block(Ready::ToRead, deadline);
                    waited.map_err(|cause| TransportError::io("waiting for the server", cause))?;
                }
                Err(error) => return Err(TransportError::receiving(error)),
            }
        }
    }
}
