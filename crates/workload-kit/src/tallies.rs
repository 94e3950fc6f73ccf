//! Counts of acknowledged work, which the data is checked against later. Each client counts for itself.
//!
//! Each number has one writer, which stores it without a read-modify-write and on separate cache lines. A reader
//! between two operations sees exact numbers, so the sums also hold when clients are stopped.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::workload::State;

#[derive(Debug)]
#[repr(align(128))]
struct Numbers<const N: usize>([AtomicI64; N]);

/// One writer's numbers. They stay in the sums after it has ended.
#[derive(Debug)]
pub struct Tally<const N: usize>(Arc<Numbers<N>>);

impl<const N: usize> Tally<N> {
    /// Adds to the number at this position of the `N`; it wraps.
    ///
    /// # Panics
    /// There is no such position.
    #[inline]
    pub fn add(&mut self, place: usize, change: i64) {
        let number = &self.0.0[place];
        number.store(number.load(Relaxed).wrapping_add(change), Relaxed);
    }
}

/// The tallies of one instance, each of `N` numbers.
#[derive(Debug)]
pub struct Tallies<const N: usize>(Mutex<Vec<Arc<Numbers<N>>>>);

impl<const N: usize> Default for Tallies<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<const N: usize> Tallies<N> {
    /// A tally for one writer.
    pub fn open(&self) -> Tally<N> {
        self.with([0; N])
    }

    /// Adds other counts, for example those of another process.
    pub fn add(&self, sums: [i64; N]) {
        self.with(sums);
    }

    fn with(&self, sums: [i64; N]) -> Tally<N> {
        let numbers = Arc::new(Numbers(sums.map(AtomicI64::new)));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(numbers.clone());
        Tally(numbers)
    }

    /// The sums over all tallies as of now.
    pub fn sums(&self) -> [i64; N] {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::array::from_fn(|place| all.iter().fold(0, |sum: i64, each| sum.wrapping_add(each.0[place].load(Relaxed))))
    }
}

/// Sums by the names under which they are stored with a copy of the data.
pub fn state_of<const N: usize>(names: [impl Into<String>; N], sums: [i64; N]) -> State {
    names.into_iter().map(Into::into).zip(sums.map(i64::cast_unsigned)).collect()
}

/// The sums that were stored with a copy of the data.
///
/// # Errors
/// The name of the first missing sum.
pub fn sums_of<const N: usize, Name: AsRef<str>>(names: [Name; N], state: &State) -> Result<[i64; N], Name> {
    let mut sums = [0; N];
    for (sum, name) in sums.iter_mut().zip(names) {
        *sum = match state.get(name.as_ref()) {
            Some(number) => number.cast_signed(),
            None => return Err(name),
        };
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sums_outlive_their_writers_and_go_to_another_process() {
        let tallies = Tallies::<2>::default();
        let (mut one, mut two) = (tallies.open(), tallies.open());
        one.add(0, 3);
        two.add(0, 4);
        two.add(1, -1);
        drop((one, two));
        assert_eq!(tallies.sums(), [7, -1]);
        let state = state_of(["rows", "bytes"], tallies.sums());
        let other = Tallies::<2>::default();
        other.add(sums_of(["rows", "bytes"], &state).unwrap());
        assert_eq!(other.sums(), tallies.sums());
        assert_eq!(sums_of(["rows", "lines"], &state), Err("lines"));
    }
}
