//! Per-client counters: events and their times, statements by kind, errors and reconnects.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rumba_engine_api::worker::StatementCounts;

/// How long a client's events took; the shortest and the longest since [`Counters::begin_extremes`].
pub use crate::cli::report::ThreadTimes as EventTimes;

/// The counters, in the order of the numbers that scripts use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Statements without rows or changes.
    Other,
    /// Statements that returned rows.
    Read,
    /// Statements that changed rows.
    Write,
    /// Events, where a script counts them.
    Transaction,
    /// Errors that were ignored.
    Error,
    /// Reconnects.
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

/// One client's counters, on separate cache lines: the client writes them, and reports read them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    counters: [AtomicU64; COUNTERS],
    events: AtomicU64,
    sum_ns: AtomicU64,
    /// The shortest time plus one; 0 without events.
    min_ns: AtomicU64,
    max_ns: AtomicU64,
    /// Statements that looked for rows and found none.
    not_found: AtomicU64,
    /// Whether a load has written rows whose bytes are not in [`Counter::BytesWritten`].
    wrote_uncounted: AtomicBool,
    /// The script's own counters, in the order of their declaration.
    own: Box<[AtomicU64]>,
    /// The logical bytes that the script declares, and whether it declares any.
    declared_bytes: AtomicI64,
    declares_bytes: AtomicBool,
    /// Errors after which events were restarted, by the engine's error code.
    errors: Mutex<BTreeMap<String, u64>>,
}

impl Counters {
    /// Counters with this many of the script's own.
    pub fn with_own(counters: usize) -> Self {
        Self { own: (0..counters).map(|_| AtomicU64::new(0)).collect(), ..Self::default() }
    }

    /// Adds to the script's own counter of this number, from 1. Only the client's own thread calls this.
    #[inline]
    pub fn count_own(&self, counter: usize, number: u64) {
        if let Some(cell) = counter.checked_sub(1).and_then(|place| self.own.get(place)) {
            add(cell, number);
        }
    }

    /// The script's own counters so far.
    pub fn own(&self) -> impl Iterator<Item = u64> {
        self.own.iter().map(|cell| cell.load(Relaxed))
    }

    /// Adds to the logical bytes that the script declares. Only the client's own thread calls this.
    #[inline]
    pub fn declare_bytes(&self, bytes: i64) {
        self.declared_bytes.store(self.declared_bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        self.declares_bytes.store(true, Relaxed);
    }

    /// The logical bytes that the script has declared so far; `None` if it declares none.
    pub fn declared_bytes(&self) -> Option<i64> {
        self.declares_bytes.load(Relaxed).then(|| self.declared_bytes.load(Relaxed))
    }

    /// Counts one. Only the client's own thread calls this.
    #[inline]
    pub fn count(&self, counter: Counter) {
        self.count_by(counter, 1);
    }

    /// Adds a number, such as bytes. Only the client's own thread calls this.
    #[inline]
    pub fn count_by(&self, counter: Counter, number: u64) {
        add(&self.counters[counter as usize], number);
    }

    /// Counts an event. Only the client's own thread calls this.
    #[inline]
    pub fn event(&self, ns: u64) {
        add(&self.events, 1);
        add(&self.sum_ns, ns);
        if self.max_ns.load(Relaxed) < ns {
            self.max_ns.store(ns, Relaxed);
        }
        if self.min_ns.load(Relaxed).wrapping_sub(1) > ns {
            self.min_ns.store(ns + 1, Relaxed);
        }
    }

    /// Counts a statement that looked for rows and found none. Only the client's own thread calls this.
    #[inline]
    pub fn count_not_found(&self) {
        add(&self.not_found, 1);
    }

    /// Statements so far that looked for rows and found none.
    pub fn not_found(&self) -> u64 {
        self.not_found.load(Relaxed)
    }

    /// Records that a load has written rows whose bytes are not counted.
    #[cold]
    pub fn note_uncounted(&self) {
        self.wrote_uncounted.store(true, Relaxed);
    }

    /// Whether [`Counters::note_uncounted`] was called.
    pub fn wrote_uncounted(&self) -> bool {
        self.wrote_uncounted.load(Relaxed)
    }

    /// Counts an error by its code.
    #[cold]
    pub fn error(&self, code: String) {
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    /// Restarts the search for the shortest and the longest event. An event that ends at this moment may be in neither
    /// span.
    pub fn begin_extremes(&self) {
        self.min_ns.store(0, Relaxed);
        self.max_ns.store(0, Relaxed);
    }

    /// Errors so far, by their codes.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long the events so far took.
    pub fn times(&self) -> EventTimes {
        EventTimes {
            events: self.events.load(Relaxed),
            sum_ns: self.sum_ns.load(Relaxed),
            min_ns: self.min_ns.load(Relaxed).saturating_sub(1),
            max_ns: self.max_ns.load(Relaxed),
        }
    }

    /// Statements so far: those that read, that write, and all others.
    #[inline]
    pub fn statements(&self) -> [u64; 3] {
        let count = |counter: Counter| self.counters[counter as usize].load(Relaxed);
        [count(Counter::Read), count(Counter::Write), count(Counter::Other)]
    }

    /// All counts so far, in the order of [`Counter`].
    pub fn read(&self) -> [u64; COUNTERS] {
        std::array::from_fn(|number| self.counters[number].load(Relaxed))
    }
}

/// The statements between two results of [`Counters::statements`]. A script may subtract from its counts.
#[inline]
pub(crate) fn counts_since([reads, writes, others]: [u64; 3], before: [u64; 3]) -> StatementCounts {
    StatementCounts {
        reads: reads.saturating_sub(before[0]) as u32,
        writes: writes.saturating_sub(before[1]) as u32,
        others: others.saturating_sub(before[2]) as u32,
    }
}

#[inline]
fn add(cell: &AtomicU64, number: u64) {
    // A script may subtract from its counts by adding -1, as in sysbench.
    cell.store(cell.load(Relaxed).wrapping_add(number), Relaxed);
}

/// The sum over clients.
pub fn total<'a>(clients: impl IntoIterator<Item = &'a Counters>) -> [u64; COUNTERS] {
    clients.into_iter().fold([0; COUNTERS], |mut total, counters| {
        total.iter_mut().zip(counters.read()).for_each(|(sum, count)| *sum += count);
        total
    })
}
