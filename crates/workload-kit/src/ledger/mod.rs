//! The ledger answers one question for every workload: which writes were acknowledged, and are they there?
//!
//! - A [`Ledger`] belongs to one instance, and each client or loader has an [`Account`] in it.
//! - An account counts: [`counters!`](crate::counters) names a workload's numbers. Each number has one writer, which
//!   stores it without a read-modify-write and on its own cache lines. A reader between two operations sees exact sums.
//! - A write is in doubt from [`Account::begin`] until [`Account::acknowledge`] or [`Account::undo`]. A client that is
//!   stopped, loses its connection or gets another error therefore leaves the write in doubt.
//! - Before a kill, accounts also append each beginning and end to a file outside the data volume. A line has a fixed
//!   length and is appended by one system call before the account returns, so it survives the death of the client. It
//!   holds the kind of write, the expected content in the workload's encoding, and the times.
//! - After the kill, [`Entries::read`] returns the acknowledged writes and those in doubt. The workload looks at every
//!   place that they wrote, and [`lost`] decides which acknowledged writes are missing there. [`RowCount`] compares
//!   tables with the counts.
//!
//! Without a file an account only adds numbers. No path allocates memory.

mod counters;
mod file;
mod lost;
mod row_count;

use std::fs::File;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::workload::State;

pub use file::{Entries, Entry, Write, entry_of, numbers_of};
pub use lost::{Noted, lost};
pub use row_count::RowCount;

use file::{Form, append};

#[derive(Debug)]
#[repr(align(128))]
struct Numbers<const N: usize>([AtomicI64; N]);

/// The acknowledged writes of one instance's clients and loaders: the sums of `N` numbers.
#[derive(Debug)]
pub struct Ledger<const N: usize> {
    names: [String; N],
    accounts: Mutex<Vec<Arc<Numbers<N>>>>,
    began: Instant,
}

impl<const N: usize> Ledger<N> {
    /// An empty ledger, whose sums are stored with a copy of the data under these names.
    pub fn new(names: [impl Into<String>; N]) -> Self {
        Self { names: names.map(Into::into), accounts: Mutex::default(), began: Instant::now() }
    }

    /// When the ledger began; all times in its file count from then.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// An account for one writer.
    pub fn open(&self) -> Account<N> {
        self.with([0; N])
    }

    /// The account of the client with this number, which also appends to this file if there is one.
    pub fn open_with(&self, file: Option<&Arc<File>>, client: u32) -> Account<N> {
        Account { file: file.cloned(), client, ..self.open() }
    }

    /// Adds other counts, for example those of another process.
    pub fn add(&self, sums: impl Into<[i64; N]>) {
        self.with(sums.into());
    }

    fn with(&self, sums: [i64; N]) -> Account<N> {
        let numbers = Arc::new(Numbers(sums.map(AtomicI64::new)));
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).push(numbers.clone());
        Account { numbers, began: self.began, doubt: None, file: None, client: 0, open: None }
    }

    /// The sums over all accounts as of now.
    pub fn sums<Sums: From<[i64; N]>>(&self) -> Sums {
        let all = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |at: usize| all.iter().fold(0, |sum: i64, each| sum.wrapping_add(each.0[at].load(Relaxed)));
        std::array::from_fn(sum).into()
    }

    /// The sums by name.
    pub fn state(&self) -> State {
        self.names.iter().cloned().zip(self.sums::<[i64; N]>().map(i64::cast_unsigned)).collect()
    }

    /// Adds the sums that were stored with a copy of the data.
    ///
    /// # Errors
    /// The name of a missing sum; nothing is added then.
    pub fn restore(&self, state: &State) -> Result<()> {
        let mut sums = [0; N];
        for (sum, name) in sums.iter_mut().zip(&self.names) {
            *sum = number_in(state, name)?.cast_signed();
        }
        self.add(sums);
        Ok(())
    }
}

/// A number that was stored with a copy of the data.
///
/// # Errors
/// It is missing.
pub fn number_in(state: &State, name: &str) -> Result<u64> {
    state
        .get(name)
        .copied()
        .ok_or_else(|| EngineError::failed("the workload's state", format!("{name} is missing in it")))
}

/// One writer's numbers, which stay in the sums after it has ended, and its writes.
#[derive(Debug)]
pub struct Account<const N: usize> {
    numbers: Arc<Numbers<N>>,
    began: Instant,
    /// The number that counts the write in progress as in doubt.
    doubt: Option<usize>,
    file: Option<Arc<File>>,
    client: u32,
    /// The write in progress, if there is a file.
    open: Option<Write>,
}

impl<const N: usize> Account<N> {
    /// Adds to the number at this position of the `N`; it wraps.
    ///
    /// # Panics
    /// There is no such position.
    #[inline]
    pub fn add(&mut self, at: usize, change: i64) {
        let number = &self.numbers.0[at];
        number.store(number.load(Relaxed).wrapping_add(change), Relaxed);
    }

    /// The number at this position.
    ///
    /// # Panics
    /// There is no such position.
    #[inline]
    pub fn get(&self, at: usize) -> i64 {
        self.numbers.0[at].load(Relaxed)
    }

    /// Nanoseconds since the ledger began, and never 0.
    pub fn now_ns(&self) -> u64 {
        1 + self.began.elapsed().as_nanos() as u64
    }

    /// A write of this kind begins, and will leave this entry as far as is known. Until it ends, the number at `doubt`
    /// counts it.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub fn begin(&mut self, kind: u32, doubt: Option<usize>, entry: impl FnOnce() -> Entry) -> Result<()> {
        if let Some(at) = doubt {
            self.add(at, 1);
        }
        self.doubt = doubt;
        let Some(file) = &self.file else { return Ok(()) };
        let write = Write { kind, entry: entry(), began_ns: self.now_ns(), ended_ns: None };
        self.open = Some(write);
        append(file, self.client, Form::Begun, &write)
    }

    /// The write has ended and was acknowledged; `complete` adds what its beginning did not know.
    ///
    /// # Errors
    /// The file cannot be written; later lines would prove nothing.
    #[inline]
    pub fn acknowledge(&mut self, complete: impl FnOnce(&mut Entry)) -> Result<()> {
        self.end_doubt();
        let (Some(file), Some(mut write)) = (&self.file, self.open.take()) else { return Ok(()) };
        complete(&mut write.entry);
        write.ended_ns = Some(self.now_ns());
        append(file, self.client, Form::Acknowledged, &write)
    }

    /// The write has ended without an effect.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub fn undo(&mut self) -> Result<()> {
        self.end_doubt();
        let (Some(file), Some(write)) = (&self.file, self.open.take()) else { return Ok(()) };
        append(file, self.client, Form::Undone, &write)
    }

    /// The outcome of the write stays unknown.
    #[inline]
    pub fn leave(&mut self) {
        (self.doubt, self.open) = (None, None);
    }

    /// Passes a write's result on. A conflict has undone the write, and any other error leaves it in doubt.
    ///
    /// # Errors
    /// The error of the write; the file cannot be written.
    #[inline]
    pub fn settle<T>(&mut self, result: Result<T>) -> Result<T> {
        match &result {
            Ok(_) => {}
            Err(error) if error.is_conflict() => self.undo()?,
            Err(_) => self.leave(),
        }
        result
    }

    #[inline]
    fn end_doubt(&mut self) {
        if let Some(at) = self.doubt.take() {
            self.add(at, -1);
        }
    }
}

#[cfg(test)]
mod tests;
