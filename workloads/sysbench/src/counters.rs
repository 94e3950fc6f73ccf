//! What clients count, each by itself: statements by kind, errors, reconnects.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is counted, in the order of the numbers that scripts know them by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Statements that neither answered with rows nor changed any.
    Other,
    /// Statements that answered with rows.
    Read,
    /// Statements that changed rows.
    Write,
    /// Events, where a script counts them.
    Transaction,
    /// Errors that were ignored.
    Error,
    /// Connections made anew.
    Reconnect,
    /// Bytes read, by tests of files.
    BytesRead,
    /// Bytes written, by tests of files.
    BytesWritten,
}

/// How many counters there are.
pub const COUNTERS: usize = 8;

impl Counter {
    /// The counter of a script's number.
    pub fn of(number: i32) -> Option<Self> {
        use Counter::{BytesRead, BytesWritten, Error, Other, Read, Reconnect, Transaction, Write};
        let all = [Other, Read, Write, Transaction, Error, Reconnect, BytesRead, BytesWritten];
        usize::try_from(number).ok().and_then(|number| all.get(number).copied())
    }
}

/// One client's counters, on cache lines of their own: the client writes, whoever reports reads.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters([AtomicU64; COUNTERS]);

impl Counters {
    /// Counts one. Only the client's own thread calls this.
    #[inline]
    pub fn count(&self, counter: Counter) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Relaxed) + 1, Relaxed);
    }

    /// What was counted so far, in the order of [`Counter`].
    pub fn read(&self) -> [u64; COUNTERS] {
        std::array::from_fn(|number| self.0[number].load(Relaxed))
    }
}

/// The sum over clients.
pub fn total<'a>(clients: impl IntoIterator<Item = &'a Counters>) -> [u64; COUNTERS] {
    clients.into_iter().fold([0; COUNTERS], |mut total, counters| {
        total.iter_mut().zip(counters.read()).for_each(|(sum, count)| *sum += count);
        total
    })
}
