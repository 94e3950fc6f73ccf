//! The search for lost writes.

/// A write to one place, by the mark that it leaves there; times are nanoseconds since the ledger began.
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
    fn doubtful_write_may_be_the_last_and_is_never_lost() {
        let writes = [write('a', 10, Some(20)), write('b', 12, None), write('c', 40, Some(60))];
        assert_eq!(lost_of(&writes, 'b'), "");
        assert_eq!(lost_of(&writes, 'a'), "c");
        assert_eq!(lost_of(&writes, '-'), "ac");
    }

    #[test]
    fn write_with_the_mark_of_a_doubtful_one_is_not_lost() {
        let writes = [write('a', 10, None), write('a', 20, Some(30)), write('b', 5, Some(8))];
        assert_eq!(lost_of(&writes, '-'), "b");
        // It had ended before the other began.
        let writes = [write('a', 20, Some(30)), write('a', 40, None)];
        assert_eq!(lost_of(&writes, '-'), "a");
    }

    #[test]
    fn later_of_two_equal_writes_may_be_present() {
        let writes = [write('a', 10, Some(20)), write('b', 30, Some(40)), write('a', 50, Some(60))];
        assert_eq!(lost_of(&writes, 'a'), "");
        assert_eq!(lost_of(&writes, 'b'), "a");
    }
}
