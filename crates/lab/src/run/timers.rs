//! The times that an event loop's clients wait for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// A client's wait for a time. Ordered by time, then by request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    at: Instant,
    order: u64,
    pub client: usize,
    /// The client's poll that added the timer: if it has been polled since, the timer is obsolete.
    pub turn: u64,
}

/// The timers of a loop. The storage grows to the largest size needed and stays.
#[derive(Debug, Default)]
pub struct Timers {
    waiting: BinaryHeap<Reverse<Timer>>,
    due: Vec<Timer>,
    order: u64,
}

impl Timers {
    /// No timers, and storage for one per client.
    pub fn with_capacity(clients: usize) -> Self {
        Self { waiting: BinaryHeap::with_capacity(clients), due: Vec::with_capacity(clients), order: 0 }
    }

    /// Adds a wait of a client for this time, with its current poll number.
    pub fn add(&mut self, at: Instant, client: usize, turn: u64) {
        self.order += 1;
        self.waiting.push(Reverse(Timer { at, order: self.order, client, turn }));
    }

    /// The earliest timer.
    pub fn first(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse(timer)| timer.at)
    }

    /// Takes the timers that are due, in order. Timers that are added while their clients are polled are taken the next
    /// time. Return the list with [`Timers::recycle`].
    pub fn take_due(&mut self, now: impl FnOnce() -> Instant) -> Vec<Timer> {
        let mut due = std::mem::take(&mut self.due);
        if self.waiting.is_empty() {
            return due;
        }
        let now = now();
        while let Some(Reverse(timer)) = self.waiting.peek().copied()
            && timer.at <= now
        {
            self.waiting.pop();
            due.push(timer);
        }
        due
    }

    /// Takes the storage back.
    pub fn recycle(&mut self, mut due: Vec<Timer>) {
        due.clear();
        self.due = due;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timers_are_due_by_time_and_then_by_insertion_order() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        for (client, ms) in [30, 10, 20, 10, 40].into_iter().enumerate() {
            timers.add(at(ms), client, 1);
        }
        assert_eq!(timers.first(), Some(at(10)));
        let due = timers.take_due(|| at(30));
        assert_eq!(due.iter().map(|timer| timer.client).collect::<Vec<_>>(), [1, 3, 2, 0]);
        timers.recycle(due);
        assert_eq!(timers.first(), Some(at(40)));
        assert!(timers.take_due(|| at(39)).is_empty());
    }

    #[test]
    fn client_that_waits_again_at_once_starves_no_other() {
        let now = Instant::now();
        let mut timers = Timers::default();
        timers.add(now, 0, 1);
        for timer in timers.take_due(|| now) {
            timers.add(now, timer.client, timer.turn + 1);
        }
        assert_eq!(timers.take_due(|| now).len(), 1);
    }
}
