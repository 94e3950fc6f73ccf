//! The memory of a server's many processes, sampled in turns.

use std::collections::HashMap;

use super::Known;
use super::process::MemoryShare;

/// The last sampled memory of each process, and the next process to sample.
#[derive(Default)]
pub(super) struct MemoryInTurns {
    shares: HashMap<u32, MemoryShare>,
    turn: usize,
}

impl MemoryInTurns {
    /// The memory of these processes together, bytes. `look` samples one process; `None` if it has ended. Each sample
    /// takes time. When `is_late` is true, the other processes keep their last value and come first at the next
    /// reading. Processes without a value come before all others. If one still has no value, the sum would be too small
    /// and an error is returned. `is_late` is called with whether the process has a value.
    pub(super) fn sum(
        &mut self,
        mut pids: Vec<u32>,
        mut look: impl FnMut(u32) -> Known<Option<MemoryShare>>,
        mut is_late: impl FnMut(bool) -> bool,
    ) -> Known<u64> {
        self.shares.retain(|pid, _| pids.contains(pid));
        let turn = self.turn % pids.len().max(1);
        pids.rotate_left(turn);
        pids.sort_by_key(|pid| self.shares.contains_key(pid));
        let (mut looked, mut missing) = (0, false);
        for pid in pids {
            let is_known = self.shares.contains_key(&pid);
            if looked > 0 && is_late(is_known) {
                missing |= !is_known;
                continue;
            }
            looked += 1;
            // The pages of a process that has just ended count in full for the others now.
            match look(pid)? {
                Some(share) => self.shares.insert(pid, share),
                None => self.shares.remove(&pid),
            };
        }
        self.turn = turn + looked;
        if missing {
            return Err("the host was too busy to look at the memory of all of the server's processes".to_owned());
        }
        let shares = || self.shares.values();
        // All processes share at least as many huge pages as one of them shares.
        let shared_huge = shares().map(|share| share.shared_huge).max().unwrap_or_default();
        Ok(shares().map(|share| share.own).sum::<u64>() + shared_huge)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn own(bytes: u64) -> MemoryShare {
        MemoryShare { own: bytes, ..MemoryShare::default() }
    }

    /// A reading with time for `looks` samples: the sampled processes, and the sum. Each process has its pid in bytes,
    /// times `factor`.
    fn read(memory: &mut MemoryInTurns, pids: &[u32], looks: usize, factor: u64) -> (Vec<u32>, Known<u64>) {
        let looked = RefCell::new(Vec::new());
        let look = |pid: u32| {
            looked.borrow_mut().push(pid);
            Ok(Some(own(u64::from(pid) * factor)))
        };
        let sum = memory.sum(pids.to_vec(), look, |_| looked.borrow().len() >= looks);
        (looked.into_inner(), sum)
    }

    #[test]
    fn a_reading_ends_in_time_and_the_next_ones_go_on_from_there() {
        let mut memory = MemoryInTurns::default();
        let pids = [1, 2, 3, 4, 5];
        let (looked, sum) = read(&mut memory, &pids, 3, 10);
        assert_eq!(looked, [1, 2, 3]);
        assert!(sum.unwrap_err().contains("too busy"), "a sum of three of five is none");
        let (looked, sum) = read(&mut memory, &pids, 3, 10);
        assert_eq!(looked[..2], [4, 5], "processes without a sample come first");
        assert_eq!(sum, Ok(150));
        // All have grown tenfold: each reading sees a part of them, and two readings see all.
        let mut seen: Vec<u32> = Vec::new();
        for _ in 0..2 {
            seen.extend(read(&mut memory, &pids, 3, 100).0);
        }
        assert!(pids.iter().all(|pid| seen.contains(pid)), "{seen:?}");
        assert_eq!(read(&mut memory, &pids, 1, 100).1, Ok(1500));
    }

    #[test]
    fn at_least_one_process_is_read_even_if_late() {
        let mut memory = MemoryInTurns::default();
        for _ in 0..3 {
            assert_eq!(read(&mut memory, &[7, 8, 9], 0, 1).0.len(), 1);
        }
        assert_eq!(read(&mut memory, &[7, 8, 9], 0, 1).1, Ok(24));
    }

    #[test]
    fn unsampled_processes_have_a_separate_time_budget() {
        let mut memory = MemoryInTurns::default();
        let look = |_: u32| Ok(Some(own(10)));
        assert_eq!(memory.sum(vec![1, 2, 3], look, |is_known| is_known), Ok(30), "none of them was known");
        let mut looked = Vec::new();
        let grown = |pid: u32| {
            looked.push(pid);
            Ok(Some(own(100)))
        };
        assert_eq!(memory.sum(vec![1, 2, 3, 4], grown, |is_known| is_known), Ok(3 * 10 + 100));
        assert_eq!(looked, [4]);
    }

    #[test]
    fn huge_pages_that_processes_have_in_common_count_once() {
        let mut memory = MemoryInTurns::default();
        let look = |pid: u32| Ok(Some(MemoryShare { own: 1, shared_huge: 100 * u64::from(pid) }));
        assert_eq!(memory.sum(vec![1, 2, 3], look, |_| false), Ok(3 + 300));
    }

    #[test]
    fn ended_process_leaves_memory_sum_and_errors_drop_no_process() {
        let mut memory = MemoryInTurns::default();
        assert_eq!(read(&mut memory, &[1, 2, 3], 9, 1).1, Ok(6));
        assert_eq!(memory.sum(vec![1, 2, 3], |pid| Ok((pid != 2).then_some(own(10))), |_| false), Ok(20));
        assert_eq!(read(&mut memory, &[1, 3], 9, 1).1, Ok(4), "process 2 is no longer among the requested ones");
        assert!(memory.sum(vec![1, 3], |_| Err("no".to_owned()), |_| false).is_err());
        assert_eq!(read(&mut memory, &[1, 3], 1, 1).1, Ok(4));
    }
}
