//! `memory`: an event reads or writes a block word by word, in order or at random.

use std::sync::Arc;

use crate::cli::log::Rank;
use crate::cli::settings::{MemoryOperation, MemoryScope, MemorySettings};
use crate::random::Random;

use crate::built_in_tests::barrier::barrier;
use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::pages::Pages;
use crate::built_in_tests::task::Task;

pub(crate) struct Blocks {
    requested: MemorySettings,
    /// One, or one for each thread.
    blocks: Vec<Arc<Pages>>,
    threads: u32,
}

impl Blocks {
    /// Allocates the blocks. As in sysbench, this thread writes all of them first, so they are near its processor.
    pub(crate) fn new(requested: &MemorySettings, threads: u32) -> Result<Self, Failure> {
        let is_shared = requested.scope == MemoryScope::Global;
        let bytes = usize::try_from(requested.block_bytes).unwrap_or(usize::MAX);
        let block = |thread: u32| {
            let whose = if is_shared { String::new() } else { format!(" for thread #{thread}") };
            let failed = |error| failed(requested, &format!("Failed to allocate buffer{whose}!"), &error);
            Pages::new(bytes, requested.huge_pages).map(Arc::new).map_err(failed)
        };
        let number = if is_shared { 1 } else { threads };
        let blocks = (0..number).map(block).collect::<Result<_, _>>()?;
        Ok(Self { requested: *requested, blocks, threads })
    }

    pub(crate) fn task(&self, thread: u32, random: Random) -> Memory {
        let words = self.requested.block_bytes / size_of::<usize>() as u64;
        Memory {
            requested: self.requested,
            events: self.events_of_thread(),
            block: self.blocks[thread as usize % self.blocks.len()].clone(),
            words: words as usize,
            thread: thread as usize,
            random,
        }
    }

    /// `None` without a limit. A remainder is left out.
    fn events_of_thread(&self) -> Option<u64> {
        let total_bytes = self.requested.total_bytes;
        (total_bytes > 0).then(|| total_bytes / self.requested.block_bytes / u64::from(self.threads))
    }
}

fn failed(requested: &MemorySettings, words: &str, error: &std::io::Error) -> Failure {
    if requested.huge_pages {
        let pool = format!("Failed to allocate {} bytes from HugeTLB memory.", requested.block_bytes);
        return Failure::system(&pool, error).and(Rank::Fatal, words);
    }
    Failure::system(words, error)
}

/// One thread.
pub(crate) struct Memory {
    requested: MemorySettings,
    /// That are left.
    events: Option<u64>,
    block: Arc<Pages>,
    words: usize,
    thread: usize,
    random: Random,
}

impl Task for Memory {
    type Event = ();

    fn next(&mut self) -> Option<()> {
        if let Some(left) = &mut self.events {
            *left = left.checked_sub(1)?;
        }
        Some(())
    }

    fn execute(&mut self, (): ()) -> Result<(), Failure> {
        if self.requested.is_random {
            self.at_random()
        } else {
            self.in_order()
        }
        Ok(())
    }
}

impl Memory {
    /// sysbench leaves out the last word of a block when it reads or writes in order.
    fn in_order(&self) {
        // Copied out of `self`, which would be read again after each barrier.
        let (start, words, thread) = (self.block.start().cast::<usize>(), self.words, self.thread);
        match self.requested.operation {
            MemoryOperation::None => (0..words).for_each(|_| barrier()),
            // SAFETY: the block has this many words.
            MemoryOperation::Read => (0..words - 1).for_each(|word| read(unsafe { start.add(word) })),
            // SAFETY: the same.
            MemoryOperation::Write => (0..words - 1).for_each(|word| write(unsafe { start.add(word) }, thread)),
        }
    }

    fn at_random(&mut self) {
        let (start, words) = (self.block.start().cast::<usize>(), self.words);
        let last = (words - 1) as u32;
        for turn in 0..words {
            let drawn = self.random.default(0, last) as usize;
            match self.requested.operation {
                MemoryOperation::None => _ = std::hint::black_box(drawn),
                // SAFETY: the block has this many words.
                MemoryOperation::Read => read(unsafe { start.add(drawn) }),
                // SAFETY: the same.
                MemoryOperation::Write => write(unsafe { start.add(drawn) }, turn),
            }
        }
    }
}

/// Loads a word only for the load itself. Other threads may access it too; no code relies on its content.
#[inline(always)]
fn read(word: *mut usize) {
    // SAFETY: the caller's pointer is into a block.
    unsafe { word.read_volatile() };
    barrier();
}

/// Stores a word only for the store itself.
#[inline(always)]
fn write(word: *mut usize, value: usize) {
    // SAFETY: the same.
    unsafe { word.write_volatile(value) };
    barrier();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Shapes;

    fn requested(operation: MemoryOperation, scope: MemoryScope, is_random: bool) -> MemorySettings {
        MemorySettings { block_bytes: 4096, total_bytes: 1 << 20, scope, huge_pages: false, operation, is_random }
    }

    fn words(blocks: &Blocks, block: usize) -> Vec<usize> {
        let start = blocks.blocks[block].start().cast::<usize>();
        // SAFETY: a block has 512 words.
        (0..512).map(|word| unsafe { start.add(word).read() }).collect()
    }

    fn task(blocks: &Blocks, thread: u32) -> Memory {
        blocks.task(thread, Random::new(1, thread, Shapes::default()))
    }

    #[test]
    fn threads_share_the_requested_bytes() {
        let requested = requested(MemoryOperation::Read, MemoryScope::Global, false);
        let blocks = Blocks::new(&requested, 3).unwrap();
        let mut task = task(&blocks, 2);
        // 256 blocks, 85 for each of three.
        assert_eq!(std::iter::from_fn(|| task.next()).count(), 85);
        let endless = Blocks::new(&MemorySettings { total_bytes: 0, ..requested }, 3).unwrap();
        assert_eq!(endless.events_of_thread(), None);
    }

    #[test]
    fn writes_in_order_write_all_but_the_last_word() {
        let blocks = Blocks::new(&requested(MemoryOperation::Write, MemoryScope::Local, false), 3).unwrap();
        for thread in 0..3 {
            task(&blocks, thread).execute(()).unwrap();
        }
        for thread in 0..3 {
            let words = words(&blocks, thread);
            assert!(words[..511].iter().all(|&word| word == thread), "{thread}");
            assert_eq!(words[511], 0);
        }
    }

    #[test]
    fn writes_at_random_write_all_over_one_block() {
        let blocks = Blocks::new(&requested(MemoryOperation::Write, MemoryScope::Global, true), 2).unwrap();
        let mut task = task(&blocks, 1);
        (0..20).for_each(|_| task.execute(()).unwrap());
        let words = words(&blocks, 0);
        // The first turn writes 0. It is practically impossible that the 10240 others never write a word.
        assert!(words.iter().filter(|&&word| word > 0).count() > 500);
        assert!(words.iter().all(|&word| word < 512));
    }

    #[test]
    fn other_causes_write_nothing() {
        for operation in [MemoryOperation::Read, MemoryOperation::None] {
            for is_random in [false, true] {
                let blocks = Blocks::new(&requested(operation, MemoryScope::Global, is_random), 1).unwrap();
                task(&blocks, 0).execute(()).unwrap();
                assert_eq!(words(&blocks, 0), vec![0; 512]);
            }
        }
    }

    #[test]
    fn unavailable_memory_is_refused_with_sysbenchs_message() {
        let requested =
            MemorySettings { block_bytes: 1 << 62, ..requested(MemoryOperation::Read, MemoryScope::Local, false) };
        let words = Blocks::new(&requested, 1).err().unwrap().to_string();
        assert!(words.starts_with("FATAL: Failed to allocate buffer for thread #0! errno = 12 ("), "{words}");
        let huge = MemorySettings { huge_pages: true, ..requested };
        let words = Blocks::new(&huge, 1).err().unwrap().to_string();
        assert!(words.starts_with("FATAL: Failed to allocate 4611686018427387904 bytes from HugeTLB memory. errno = "));
        assert!(words.ends_with("\nFATAL: Failed to allocate buffer for thread #0!"), "{words}");
    }
}
