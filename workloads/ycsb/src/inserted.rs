//! The numbers for new records, and the number below which all records exist.
//!
//! Clients on several hosts cannot count together. Each host counts its own inserts from the first new record on, and
//! [`Inserted::record`] spreads these numbers over the records. No two hosts insert the same one.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use rumba_workload_kit::{Padded, Partition};

/// The maximum number of inserts in progress after the oldest one. Clients do not choose records after it.
const WINDOW: u64 = 1 << 20;

/// The numbers of records, shared by all clients of an instance. An inserting client updates them with every insert,
/// because the next key and the existing records are the same for all clients. Other clients read one number that
/// changes as rarely.
#[derive(Debug)]
pub struct Inserted {
    next: Padded,
    there: Padded,
    /// The turn of sequential requests.
    turns: Padded,
    is_advanced: AtomicBool,
    /// A bit for each insert that has ended before one that began earlier.
    ended: Box<[AtomicU64]>,
    /// The first number that clients take.
    first: AtomicU64,
    /// This host's share of the new records.
    pub partition: Partition,
}

impl Inserted {
    /// This many records exist, numbered from 0.
    pub fn new(records: u64) -> Self {
        Self {
            next: Padded(AtomicU64::new(records)),
            there: Padded(AtomicU64::new(records)),
            turns: Padded::default(),
            is_advanced: AtomicBool::new(false),
            ended: (0..WINDOW / 64).map(|_| AtomicU64::new(0)).collect(),
            first: AtomicU64::new(records),
            partition: Partition::default(),
        }
    }

    #[inline]
    pub fn record(&self, number: u64) -> u64 {
        let first = self.first.load(Relaxed);
        number.checked_sub(first).map_or(number, |own| first + self.partition.share().nth(own))
    }

    /// Continues from an unused number; called before any client takes one.
    pub fn set(&self, next: u64) {
        self.next.0.store(next, Relaxed);
        self.there.0.store(next, Relaxed);
        self.first.store(next, Relaxed);
    }

    /// The next turn, from 0. Clients share it, as in YCSB: no client knows which others are active.
    pub fn turn(&self) -> u64 {
        self.partition.next(&self.turns)
    }

    /// Takes an unused number.
    pub fn claim(&self) -> u64 {
        self.next.0.fetch_add(1, Relaxed)
    }

    /// A record from which on this host has inserted none. If the growth of this number is added over several hosts,
    /// none of them has inserted a record from the sum on.
    pub fn next_record(&self) -> u64 {
        let first = self.first.load(Relaxed);
        first + u64::from(self.partition.share().hosts) * (self.next.0.load(Relaxed) - first)
    }

    /// All inserts of numbers below this have ended.
    #[inline]
    pub fn there(&self) -> u64 {
        self.there.0.load(Acquire)
    }

    fn bit(&self, number: u64) -> (&AtomicU64, u64) {
        let place = number % WINDOW;
        (&self.ended[(place / 64) as usize], 1 << (place % 64))
    }

    /// The insert of a number has ended, with any outcome.
    pub fn end(&self, number: u64) {
        if number >= self.there() + WINDOW {
            return;
        }
        let (word, bit) = self.bit(number);
        word.fetch_or(bit, SeqCst);
        // A client that finds another one advancing leaves the work to it; that client checks again when it is done.
        while !self.is_advanced.swap(true, SeqCst) {
            self.advance();
            self.is_advanced.store(false, SeqCst);
            let (word, bit) = self.bit(self.there());
            if word.load(SeqCst) & bit == 0 {
                return;
            }
        }
    }

    /// Advances over the ended inserts that leave no gap.
    fn advance(&self) {
        let mut there = self.there();
        loop {
            let (word, bit) = self.bit(there);
            if word.load(Acquire) & bit == 0 {
                return;
            }
            word.fetch_and(!bit, AcqRel);
            there += 1;
            self.there.0.store(there, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::worker::HostShare;

    use super::*;

    #[test]
    fn readable_records_end_before_the_oldest_pending_insert() {
        let inserted = Inserted::new(100);
        let [first, second, third] = [(); 3].map(|()| inserted.claim());
        assert_eq!((first, second, third, inserted.there()), (100, 101, 102, 100));
        inserted.end(second);
        assert_eq!(inserted.there(), 100);
        inserted.end(first);
        assert_eq!(inserted.there(), 102);
        inserted.end(third);
        assert_eq!((inserted.there(), inserted.next_record()), (103, 103));
    }

    #[test]
    fn hosts_insert_different_records_below_the_sum_of_their_growth() {
        let (mut records, mut sum) = (Vec::new(), 100);
        for (host, inserts) in [(0, 4), (1, 0), (2, 1)] {
            let inserted = Inserted::new(7);
            inserted.partition.set(HostShare { host, hosts: 3 });
            inserted.set(100);
            assert_eq!(inserted.record(99), 99, "a loaded record has its number on all hosts");
            records.extend((0..inserts).map(|_| inserted.record(inserted.claim())));
            sum += inserted.next_record() - 100;
        }
        assert_eq!(records, [100, 103, 106, 109, 102]);
        assert!(records.iter().all(|record| *record < sum), "{sum}");
    }

    #[test]
    fn the_window_comes_round_for_many_clients_at_once() {
        let inserted = Inserted::new(7);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..600_000 {
                        // No client gets that far ahead of a stalled one.
                        while inserted.next_record() > inserted.there() + WINDOW / 2 {
                            std::thread::yield_now();
                        }
                        inserted.end(inserted.claim());
                    }
                });
            }
        });
        assert_eq!((inserted.next_record(), inserted.there()), (2_400_007, 2_400_007));
    }
}
