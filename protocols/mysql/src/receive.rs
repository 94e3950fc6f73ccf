//! Packets from the receive buffer.

use std::io;
use std::ops::Range;

use rumba_transport::{Incoming, Stream};

use crate::codec::frame::{self, Framed, HEADER};

/// The most bytes of a packet before the login is complete. Greetings, challenges, keys and errors take less than
/// 1 KiB.
pub(crate) const BEFORE_LOGIN: usize = 16 << 10;
/// The most bytes of a packet of a statement's answer: the largest `max_allowed_packet`, with the headers of its
/// frames.
pub(crate) const LONGEST: usize = (1 << 30) + (64 << 10);

/// Bytes received but not yet taken.
pub(crate) struct Receive {
    incoming: Incoming,
    /// The sequence number for the answer to the packet last taken by [`Receive::packet`].
    pub(crate) sequence: u8,
}

impl Receive {
    pub(crate) fn new() -> Self {
        Self { incoming: Incoming::new(HEADER), sequence: 0 }
    }

    /// Refuses packets of more than this many bytes from here on.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.incoming.limit(bytes);
    }

    /// Whether there are bytes not yet taken.
    #[inline]
    pub(crate) fn has_some(&self) -> bool {
        self.incoming.has_some()
    }

    /// The next packet, if it is complete; [`Receive::at`] shows it until the buffer is next filled.
    #[inline]
    pub(crate) fn packet(&mut self) -> Option<Range<usize>> {
        match frame::framed(self.incoming.rest()) {
            Framed::Whole { length, sequence } => {
                let frame = self.incoming.take(HEADER + length);
                self.sequence = sequence;
                Some(frame.start + HEADER..frame.end)
            }
            Framed::Split { span, sequence } => {
                let frames = self.incoming.take(span);
                self.sequence = sequence;
                let at = frames.start + HEADER;
                let length = frame::join(self.incoming.at_mut(frames));
                Some(at..at + length)
            }
            Framed::Short(needed) => {
                self.incoming.need(needed);
                None
            }
        }
    }

    /// The bytes not yet taken, for a caller that takes packets with [`frame::next`] and reports the rest with
    /// [`Receive::leave`].
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        self.incoming.rest()
    }

    /// Takes all but the last `left` bytes.
    #[inline]
    pub(crate) fn leave(&mut self, left: usize) {
        self.incoming.leave(left);
    }

    /// Takes these bytes, if the received bytes start with them.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> bool {
        let is_next = !bytes.is_empty() && self.rest().starts_with(bytes);
        if is_next {
            self.incoming.take(bytes.len());
        }
        is_next
    }

    /// A packet with its frame; empty if it came in several frames.
    pub(crate) fn framed(&self, packet: Range<usize>) -> &[u8] {
        if packet.len() < frame::FULL { self.incoming.at(packet.start - HEADER..packet.end) } else { &[] }
    }

    /// The bytes of a packet.
    #[inline]
    pub(crate) fn at(&self, packet: Range<usize>) -> &[u8] {
        self.incoming.at(packet)
    }

    /// Receives the available bytes, up to the free space. Returns whether there may be more.
    #[inline]
    pub(crate) fn fill(&mut self, stream: &mut Stream) -> io::Result<bool> {
        self.incoming.fill(stream)
    }

    /// Returns the buffer to the pool until the next receive.
    pub(crate) fn lend(&mut self) {
        self.incoming.lend();
    }

    /// Marks the answer as processed. A buffer larger than the last answers needed shrinks.
    #[inline]
    pub(crate) fn answered(&mut self) {
        self.incoming.answered();
    }
}
