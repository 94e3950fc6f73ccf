//! The receive buffer: small while answers are small.

use std::io;
use std::ops::Range;

use crate::codec::frame::{self, Framed, HEADER};
use crate::stream::Stream;

/// What a connection starts with: a thousand of them take 4 MiB.
const FIRST: usize = 4 << 10;
/// How far the buffer grows only to be filled in fewer calls.
const AMPLE: usize = 16 << 10;
/// A buffer that grew for one packet is kept for so many answers that do not need it.
const PATIENCE: u32 = 64;

/// Bytes that came and are not taken yet.
pub(crate) struct Receive {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// What the next packet needs from `start` on, so far as is known.
    needed: usize,
    /// The longest packet of the current answer.
    longest: usize,
    /// Answers in a row that would have fitted into an ample buffer.
    modest: u32,
    /// The order number of the frame that answers the packet taken last by [`Receive::packet`].
    pub(crate) sequence: u8,
}

impl Receive {
    pub(crate) fn new() -> Self {
        let buffer = vec![0; FIRST];
        Self { buffer, start: 0, end: 0, needed: HEADER, longest: 0, modest: 0, sequence: 0 }
    }

    /// Whether anything came that is not taken yet.
    #[inline]
    pub(crate) fn has_some(&self) -> bool {
        self.start < self.end
    }

    /// The next packet, if all of it is there; [`Receive::at`] shows it until the next is filled in.
    #[inline]
    pub(crate) fn packet(&mut self) -> Option<Range<usize>> {
        match frame::framed(&self.buffer[self.start..self.end]) {
            Framed::Whole { length, sequence } => {
                let at = self.start + HEADER;
                self.start = at + length;
                self.sequence = sequence;
                Some(at..at + length)
            }
            Framed::Split { span, sequence } => {
                let frames = self.start..self.start + span;
                let at = self.start + HEADER;
                self.start = frames.end;
                self.sequence = sequence;
                let length = frame::join(&mut self.buffer[frames]);
                Some(at..at + length)
            }
            Framed::Short(needed) => {
                self.needed = needed;
                None
            }
        }
    }

    /// What came and is not taken yet, for whom takes packets by [`frame::next`]
    /// and says with [`Receive::leave`] how far.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// All but the last `left` bytes are taken.
    #[inline]
    pub(crate) fn leave(&mut self, left: usize) {
        self.start = self.end - left;
    }

    /// Takes these bytes, if what came starts with them.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> bool {
        let is_next = !bytes.is_empty() && self.rest().starts_with(bytes);
        if is_next {
            self.start += bytes.len();
        }
        is_next
    }

    /// A packet with its frame; nothing of one that came in several.
    pub(crate) fn framed(&self, packet: Range<usize>) -> &[u8] {
        if packet.len() < frame::FULL { &self.buffer[packet.start - HEADER..packet.end] } else { &[] }
    }

    /// The bytes of a packet.
    #[inline]
    pub(crate) fn at(&self, packet: Range<usize>) -> &[u8] {
        &self.buffer[packet]
    }

    /// Takes everything that has come, as far as there is room; whether there may be more.
    #[inline]
    pub(crate) fn fill(&mut self, stream: &mut Stream) -> io::Result<bool> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        if self.start + self.needed > self.buffer.len() || self.buffer.len() - self.end < FIRST / 4 {
            self.make_room();
        }
        let room = &mut self.buffer[self.end..];
        let space = room.len();
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

    #[cold]
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        self.longest = self.longest.max(self.needed);
        if self.needed > self.buffer.len() {
            self.buffer.resize(self.needed.next_multiple_of(FIRST), 0);
        }
    }

    /// Nothing of the answer is needed any more: a buffer that is larger than
    /// the last answers needed is given back.
    #[inline]
    pub(crate) fn answered(&mut self) {
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
