//! The receive buffer, which stays small while answers are small.

use std::io;
use std::ops::Range;

use crate::lent::{give_back, lent};
use crate::stream::Stream;

/// The initial size: a thousand connections take 1 MiB, and a full buffer grows.
const FIRST: usize = 1 << 10;
/// The size up to which the buffer grows to reduce the number of receive calls.
const AMPLE: usize = 16 << 10;
/// The number of smaller answers after which a buffer that grew for one message shrinks.
const PATIENCE: u32 = 64;
/// The longest message accepted: 1 GiB, and the headers of its parts.
pub(crate) const LONGEST: usize = (1 << 30) + (64 << 10);

/// Bytes received but not yet taken. The protocol decides where a message ends.
#[derive(Debug)]
pub struct Incoming {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The known length of the next message from `start` on; 0 after bytes were taken.
    needed: usize,
    /// The longest message of the current answer.
    longest: usize,
    /// The number of consecutive answers that would have fitted into an ample buffer.
    modest: u32,
}

impl Incoming {
    /// An empty buffer, for messages of at least this many bytes.
    pub fn new(shortest: usize) -> Self {
        Self { buffer: vec![0; FIRST], start: 0, end: 0, needed: shortest, longest: 0, modest: 0 }
    }

    /// Whether there are bytes not yet taken.
    #[inline]
    pub fn has_some(&self) -> bool {
        self.start < self.end
    }

    /// The bytes not yet taken.
    #[inline]
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes bytes and returns their range; [`Incoming::at`] shows them until the next [`Incoming::fill`].
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Range<usize> {
        let at = self.start;
        self.start += bytes;
        self.needed = 0;
        at..self.start
    }

    /// Takes all but the last `left` bytes.
    #[inline]
    pub fn leave(&mut self, left: usize) {
        self.start = self.end - left;
        self.needed = 0;
    }

    /// Sets the minimum length of the next, incomplete message.
    #[inline]
    pub fn need(&mut self, bytes: usize) {
        self.needed = bytes;
    }

    /// Takes these bytes, if the received bytes start with them.
    #[inline]
    pub fn skip(&mut self, bytes: &[u8]) -> bool {
        let is_next = !bytes.is_empty() && self.rest().starts_with(bytes);
        if is_next {
            self.take(bytes.len());
        }
        is_next
    }

    /// The minimum length of the next, incomplete message.
    pub(crate) fn needed(&self) -> usize {
        self.needed
    }

    /// Returns bytes that were taken.
    #[inline]
    pub fn at(&self, place: Range<usize>) -> &[u8] {
        &self.buffer[place]
    }

    /// Returns bytes that were taken, for changes in place.
    #[inline]
    pub fn at_mut(&mut self, place: Range<usize>) -> &mut [u8] {
        &mut self.buffer[place]
    }

    /// Receives the available bytes, up to the free space. Returns whether there may be more.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived, `UnexpectedEof` at the connection's end, `InvalidData` for a message of more
    /// than 1 GiB, and the system's own.
    #[inline]
    pub fn fill(&mut self, stream: &mut Stream) -> io::Result<bool> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        if self.start + self.needed > self.buffer.len() || self.buffer.len() - self.end < FIRST / 4 {
            self.make_room()?;
        }
        let room = &mut self.buffer[self.end..];
        let space = room.len();
        debug_assert!(space > 0, "nothing read would be taken for the end");
        let taken = stream.read(room)?;
        if taken == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.end += taken;
        if taken < space {
            return Ok(false);
        }
        if self.buffer.len() < AMPLE {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        Ok(true)
    }

    /// Returns an empty buffer to the thread's pool, from which the next fill takes one.
    pub fn lend(&mut self) {
        if !self.has_some() {
            (self.start, self.end) = (0, 0);
            give_back(std::mem::take(&mut self.buffer));
        }
    }

    #[cold]
    fn make_room(&mut self) -> io::Result<()> {
        if self.needed > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if self.buffer.is_empty() {
            self.buffer = lent();
            self.buffer.resize(self.buffer.capacity().max(FIRST), 0);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.longest = self.longest.max(self.needed);
        // A length field alone must not allocate memory: the size is limited to a few times the bytes received.
        let wanted = self.needed.min((4 * self.end).max(4 * AMPLE));
        if wanted > self.buffer.len() {
            self.buffer.resize(wanted.next_multiple_of(FIRST), 0);
        }
        Ok(())
    }

    /// Marks the answer as processed. A buffer larger than the last answers needed shrinks.
    #[inline]
    pub fn answered(&mut self) {
        if self.buffer.len() > AMPLE {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.modest = if self.longest > AMPLE { 0 } else { self.modest + 1 };
        self.longest = 0;
        if self.modest < PATIENCE || self.end - self.start > AMPLE {
            return;
        }
        self.modest = 0;
        let mut buffer = vec![0; AMPLE];
        buffer[..self.end - self.start].copy_from_slice(&self.buffer[self.start..self.end]);
        self.end -= self.start;
        self.start = 0;
        self.buffer = buffer;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Address, Ready};

    /// A stream and its other end.
    fn pair() -> (Stream, std::os::unix::net::UnixStream) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let stream = Stream::connect(&Address::Socket(path), Instant::now() + Duration::from_secs(10)).unwrap();
        (stream, listener.accept().unwrap().0)
    }

    fn receive(incoming: &mut Incoming, stream: &mut Stream, until: usize) {
        while incoming.rest().len() < until {
            match incoming.fill(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.block(Ready::ToRead, None).unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn length_without_content_takes_no_memory() {
        let (mut stream, mut other) = pair();
        let mut incoming = Incoming::new(5);
        other.write_all(&[1; 5]).unwrap();
        receive(&mut incoming, &mut stream, 5);
        incoming.need(1 << 30);
        other.write_all(&[2; 100]).unwrap();
        receive(&mut incoming, &mut stream, 105);
        assert!(incoming.buffer.len() <= 4 * AMPLE, "{}", incoming.buffer.len());
    }

    #[test]
    fn a_long_message_comes_through_and_its_room_is_given_back() {
        const LONG: usize = 5 << 20;
        let (mut stream, mut other) = pair();
        let mut incoming = Incoming::new(5);
        let sender = std::thread::spawn(move || {
            let bytes: Vec<u8> = (0..LONG).map(|at| (at % 251) as u8).collect();
            other.write_all(&[9; 7]).and_then(|()| other.write_all(&bytes)).unwrap();
            other
        });
        receive(&mut incoming, &mut stream, 7);
        incoming.take(7);
        incoming.need(LONG);
        receive(&mut incoming, &mut stream, LONG);
        let place = incoming.take(LONG);
        assert!(incoming.at(place).iter().enumerate().all(|(at, &byte)| byte == (at % 251) as u8));
        incoming.answered();
        let mut other = sender.join().unwrap();
        for answer in 0..PATIENCE {
            other.write_all(&[3; 10]).unwrap();
            receive(&mut incoming, &mut stream, 10);
            incoming.take(10);
            assert!(incoming.buffer.len() > AMPLE, "answer {answer}");
            incoming.answered();
        }
        assert_eq!(incoming.buffer.len(), AMPLE);
    }
}
