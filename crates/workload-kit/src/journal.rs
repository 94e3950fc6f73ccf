//! Notes on the writes of clients whose database will be killed, and the search for lost writes.

use std::time::Instant;

use rumba_engine_api::acid::{Entry, Journal, Note};
use rumba_engine_api::error::EngineError;

/// Numbers that an entry has room for.
const NUMBERS: usize = size_of::<Entry>() / size_of::<u64>();

/// Stores numbers in an entry, the lower half of each first.
pub fn entry_of<const N: usize>(numbers: [u64; N]) -> Entry {
    const { assert!(N <= NUMBERS) };
    let mut entry = Entry::default();
    for (halves, number) in entry.chunks_exact_mut(2).zip(numbers) {
        halves.copy_from_slice(&[number as u32, (number >> 32) as u32]);
    }
    entry
}

/// The numbers of an entry; missing ones are 0.
pub fn numbers_of(entry: &Entry) -> [u64; NUMBERS] {
    std::array::from_fn(|place| u64::from(entry[2 * place]) | u64::from(entry[2 * place + 1]) << 32)
}

/// A client's notes of its writes.
pub struct Notes {
    journal: Box<dyn Journal>,
    /// When the process began; all of its clients have the same beginning.
    began: Instant,
}

/// The outcome of an answered write.
pub enum End {
    /// It was carried out, and left this entry.
    Acknowledged(Entry),
    /// It had no effect.
    Undone,
    /// It was carried out, but the remaining content is unknown.
    InDoubt,
}

impl Notes {
    /// Writes into a client's journal.
    pub fn new(journal: Box<dyn Journal>, began: Instant) -> Self {
        Self { journal, began }
    }

    /// Nanoseconds since the clients' process began, and never 0.
    pub fn now_ns(&self) -> u64 {
        1 + self.began.elapsed().as_nanos() as u64
    }

    /// A write of this kind begins, and will leave this entry.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn begin(&mut self, kind: u32, entry: Entry) -> Result<(), EngineError> {
        self.journal.note(&Note::Begun(kind, entry))
    }

    /// Notes the end of a write. A conflict leaves no trace, and any other error leaves the write in doubt. Otherwise
    /// `end` returns the outcome, at this time.
    ///
    /// # Errors
    /// The error of the write; the journal cannot be written.
    pub fn end<T>(
        &mut self,
        kind: u32,
        ended: Result<T, EngineError>,
        end: impl FnOnce(&T, u64) -> End,
    ) -> Result<T, EngineError> {
        let end = match &ended {
            Ok(reported) => end(reported, self.now_ns()),
            Err(error) if error.is_conflict() => End::Undone,
            Err(_) => End::InDoubt,
        };
        match end {
            End::Acknowledged(entry) => self.journal.note(&Note::Acknowledged(kind, entry))?,
            End::Undone => self.journal.note(&Note::Undone)?,
            End::InDoubt => {}
        }
        ended
    }
}

/// A write to one place, by the mark that it leaves there; times are nanoseconds since the clients' process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted<M> {
    /// The mark found there if no other write has replaced it.
    pub mark: M,
    /// When it began.
    pub began_ns: u64,
    /// When it was acknowledged; `None` if it is in doubt.
    pub ended_ns: Option<u64>,
}

/// The acknowledged writes to a place that are lost if this mark is found there.
///
/// A write is not lost if another write may have replaced it. The other write was acknowledged after it, was concurrent
/// with it, or was in doubt when the database was killed. A write is not lost either if it may have had no
/// effect, because a write in doubt had left the same mark. A mark that no write leaves was there before all of them.
pub fn lost<'a, M: PartialEq>(writes: &'a [Noted<M>], found: &M) -> impl Iterator<Item = &'a Noted<M>> {
    // The time after which later writes must have replaced this one; never, if this one may have been the last.
    let own = writes.iter().filter(|write| write.mark == *found);
    let since = own.map(|write| write.ended_ns.unwrap_or(u64::MAX)).max().unwrap_or(0);
    let open: Vec<&Noted<M>> = writes.iter().filter(|write| write.ended_ns.is_none()).collect();
    writes.iter().filter(move |write| {
        let had_nothing_to_do =
            |ended_ns: u64| open.iter().any(|open| open.mark == write.mark && open.began_ns < ended_ns);
        write.began_ns > since && write.ended_ns.is_some_and(|ended_ns| !had_nothing_to_do(ended_ns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_from_an_entry() {
        assert_eq!(numbers_of(&entry_of([1, 1 << 32, u64::MAX])), [1, 1 << 32, u64::MAX, 0, 0, 0, 0]);
    }

    /// A write of a mark, acknowledged after it began or in doubt.
    fn write(mark: char, began_ns: u64, ended_ns: Option<u64>) -> Noted<char> {
        Noted { mark, began_ns, ended_ns }
    }

    fn lost_of(writes: &[Noted<char>], found: char) -> String {
        lost(writes, &found).map(|write| write.mark).collect()
    }

    #[test]
    fn a_write_that_no_later_one_may_have_replaced_is_lost() {
        // The third begins before the second has ended.
        let writes = [write('a', 10, Some(20)), write('b', 30, Some(50)), write('c', 40, Some(60))];
        assert_eq!(lost_of(&writes, 'b'), "", "of two that met either may be last");
        assert_eq!(lost_of(&writes, 'c'), "");
        assert_eq!(lost_of(&writes, 'a'), "bc");
        assert_eq!(lost_of(&writes, '-'), "abc", "what was there before");
    }

    #[test]
    fn what_is_in_doubt_may_be_the_last_and_is_never_lost() {
        let writes = [write('a', 10, Some(20)), write('b', 12, None), write('c', 40, Some(60))];
        assert_eq!(lost_of(&writes, 'b'), "");
        assert_eq!(lost_of(&writes, 'a'), "c");
        assert_eq!(lost_of(&writes, '-'), "ac");
    }

    #[test]
    fn what_found_its_mark_there_by_one_in_doubt_is_not_lost() {
        let writes = [write('a', 10, None), write('a', 20, Some(30)), write('b', 5, Some(8))];
        assert_eq!(lost_of(&writes, '-'), "b");
        // It had ended before the other began.
        let writes = [write('a', 20, Some(30)), write('a', 40, None)];
        assert_eq!(lost_of(&writes, '-'), "a");
    }

    #[test]
    fn of_two_that_leave_the_same_the_later_may_be_there() {
        let writes = [write('a', 10, Some(20)), write('b', 30, Some(40)), write('a', 50, Some(60))];
        assert_eq!(lost_of(&writes, 'a'), "");
        assert_eq!(lost_of(&writes, 'b'), "a");
    }
}
