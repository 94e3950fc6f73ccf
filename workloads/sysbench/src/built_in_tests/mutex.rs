//! `mutex`: in its single event a thread loops, locks a random mutex and increments its number, many times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::cli::settings::MutexSettings;
use crate::random::Random;

use crate::built_in_tests::barrier::barrier;
use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::posix_mutex::PosixMutex;
use crate::built_in_tests::task::Task;

/// A mutex with padding, so that two rarely share a cache line.
#[repr(C)]
struct Padded {
    mutex: PosixMutex,
    room: [u8; 256],
}

/// The shared state of all threads.
pub(crate) struct Locks {
    mutexes: Box<[Padded]>,
    requested: MutexSettings,
    number: AtomicU32,
}

impl Locks {
    pub(crate) fn new(requested: &MutexSettings) -> Self {
        let mutexes = (0..requested.mutexes).map(|_| Padded { mutex: PosixMutex::new(), room: [0; 256] }).collect();
        Self { mutexes, requested: *requested, number: AtomicU32::new(0) }
    }
}

/// One thread.
pub(crate) struct Mutex {
    locks: Arc<Locks>,
    random: Random,
    is_done: bool,
}

impl Mutex {
    pub(crate) fn new(locks: Arc<Locks>, random: Random) -> Self {
        Self { locks, random, is_done: false }
    }
}

impl Task for Mutex {
    type Event = ();

    fn next(&mut self) -> Option<()> {
        (!std::mem::replace(&mut self.is_done, true)).then_some(())
    }

    fn execute(&mut self, (): ()) -> Result<(), Failure> {
        let Locks { mutexes, requested, number } = &*self.locks;
        for _ in 0..requested.locks {
            let mutex = &mutexes[self.random.uniform(0, requested.mutexes - 1) as usize].mutex;
            (0..requested.loops).for_each(|_| barrier());
            // Threads that hold different mutexes lose each other's additions, as in sysbench; an atomic addition would
            // be another test.
            mutex.locked(|| number.store(number.load(Relaxed).wrapping_add(1), Relaxed));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Shapes;

    fn task(locks: &Arc<Locks>, number: u32) -> Mutex {
        Mutex::new(locks.clone(), Random::new(1, number, Shapes::default()))
    }

    #[test]
    fn thread_takes_the_requested_number_of_locks_and_finishes() {
        let locks = Arc::new(Locks::new(&MutexSettings { mutexes: 7, locks: 100, loops: 5 }));
        for number in 0..3 {
            let mut task = task(&locks, number);
            assert_eq!(task.next(), Some(()));
            assert_eq!(task.execute(()), Ok(()));
            assert_eq!(task.next(), None);
        }
        assert_eq!(locks.number.load(Relaxed), 300);
        assert!(locks.mutexes.iter().all(|padded| padded.room[0] == 0));
    }

    #[test]
    fn one_mutex_loses_no_addition() {
        let locks = Arc::new(Locks::new(&MutexSettings { mutexes: 1, locks: 5000, loops: 0 }));
        std::thread::scope(|scope| {
            for number in 0..4 {
                let mut task = task(&locks, number);
                scope.spawn(move || task.execute(()));
            }
        });
        assert_eq!(locks.number.load(Relaxed), 20_000);
    }
}
