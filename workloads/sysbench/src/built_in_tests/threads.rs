//! `threads`: an event locks a mutex, yields the processor and unlocks, many times. Events take mutexes in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::cli::settings::ThreadsSettings;

use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::posix_mutex::PosixMutex;
use crate::built_in_tests::task::Task;

/// The shared state of all threads.
pub(crate) struct Locks {
    mutexes: Box<[PosixMutex]>,
    yields: u32,
    events: AtomicU32,
}

impl Locks {
    /// Adjacent mutexes, as in sysbench: neighbours share cache lines.
    pub(crate) fn new(requested: &ThreadsSettings) -> Self {
        let mutexes = (0..requested.locks).map(|_| PosixMutex::new()).collect();
        Self { mutexes, yields: requested.yields, events: AtomicU32::new(0) }
    }
}

pub(crate) struct Threads(pub(crate) Arc<Locks>);

impl Task for Threads {
    /// The mutex.
    type Event = usize;

    fn next(&mut self) -> Option<usize> {
        let number = self.0.events.fetch_add(1, Relaxed);
        Some(number as usize % self.0.mutexes.len())
    }

    fn execute(&mut self, mutex: usize) -> Result<(), Failure> {
        let mutex = &self.0.mutexes[mutex];
        for _ in 0..self.0.yields {
            mutex.locked(std::thread::yield_now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_all_threads_take_mutexes_in_turn() {
        let locks = Arc::new(Locks::new(&ThreadsSettings { yields: 3, locks: 2 }));
        let (mut one, mut other) = (Threads(locks.clone()), Threads(locks));
        let taken = [one.next(), other.next(), other.next(), one.next()];
        assert_eq!(taken, [Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(one.execute(1), Ok(()));
    }
}
