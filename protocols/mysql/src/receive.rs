//! Packets out of the receive buffer.

use std::io;
use std::ops::Range;

use rumba_transport::{Incoming, Stream};

use crate::codec::frame::{self, Framed, HEADER};

/// Bytes that came and are not taken yet.
pub(crate) struct Receive {
    incoming: Incoming,
    /// The order number of the frame that answers the packet taken last by [`Receive::packet`].
    pub(crate) sequence: u8,
}

impl Receive {
    pub(crate) fn new() -> Self {
        Self { incoming: Incoming::new(HEADER), sequence: 0 }
    }

    /// Whether anything came that is not taken yet.
    #[inline]
    pub(crate) fn has_some(&self) -> bool {
        self.incoming.has_some()
    }

    /// The next packet, if all of it is there; [`Receive::at`] shows it until the next is filled in.
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

    /// What came and is not taken yet, for whom takes packets by [`frame::next`]
    /// and says with [`Receive::leave`] how far.
    #[inline]
    pub(crate) fn rest(&self) -> &[u8] {
        self.incoming.rest()
    }

    /// All but the last `left` bytes are taken.
    #[inline]
    pub(crate) fn leave(&mut self, left: usize) {
        self.incoming.leave(left);
    }

    /// Takes these bytes, if what came starts with them.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> bool {
        let is_next = !bytes.is_empty() && self.rest().starts_with(bytes);
        if is_next {
            self.incoming.take(bytes.len());
        }
        is_next
    }

    /// A packet with its frame; nothing of one that came in several.
    pub(crate) fn framed(&self, packet: Range<usize>) -> &[u8] {
        if packet.len() < frame::FULL { self.incoming.at(packet.start - HEADER..packet.end) } else { &[] }
    }

    /// The bytes of a packet.
    #[inline]
    pub(crate) fn at(&self, packet: Range<usize>) -> &[u8] {
        self.incoming.at(packet)
    }

    /// Takes everything that has come, as far as there is room; whether there may be more.
    #[inline]
    pub(crate) fn fill(&mut self, stream: &mut Stream) -> io::Result<bool> {
        self.incoming.fill(stream)
    }

    /// Lends the buffer to others until something is received.
    pub(crate) fn lend(&mut self) {
        self.incoming.lend();
    }

    /// Nothing of the answer is needed any more: a buffer that is larger than
    /// the last answers needed is given back.
    #[inline]
    pub(crate) fn answered(&mut self) {
        self.incoming.answered();
    }
}
