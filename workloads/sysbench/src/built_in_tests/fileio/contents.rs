//! The content of blocks under `--validate`: random bytes, their checksum and their offset, in sysbench's layout.

use crate::cli::log::Rank;
use crate::random::Random;

use crate::built_in_tests::failure::Failure;

const CHECKSUM_BYTES: usize = 4;
const OFFSET_BYTES: usize = 8;

/// The bytes at the end of a block.
pub(super) const MARK_BYTES: usize = CHECKSUM_BYTES + OFFSET_BYTES;

/// Fills blocks that begin at an offset of a file; each has its own mark, also if several are written at once.
pub(super) fn fill(blocks: &mut [u8], block_bytes: usize, offset: u64, random: &mut Random) {
    for (block, at) in blocks.chunks_exact_mut(block_bytes).zip((offset..).step_by(block_bytes)) {
        let (bytes, mark) = block.split_at_mut(block_bytes - MARK_BYTES);
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&random.bits().to_ne_bytes()[..chunk.len()]);
        }
        mark[..CHECKSUM_BYTES].copy_from_slice(&crc32fast::hash(bytes).to_ne_bytes());
        mark[CHECKSUM_BYTES..].copy_from_slice(&at.to_ne_bytes());
    }
}

pub(super) fn check(blocks: &[u8], block_bytes: usize, file: u32, offset: u64) -> Result<(), Failure> {
    for (block, at) in blocks.chunks_exact(block_bytes).zip((offset..).step_by(block_bytes)) {
        check_block(block, at).map_err(|failure| {
            failure.and(Rank::Fatal, format!("Validation failed on file {file}, block offset {at}, exiting..."))
        })?;
    }
    Ok(())
}

fn check_block(block: &[u8], offset: u64) -> Result<(), Failure> {
    let (bytes, mark) = block.split_at(block.len() - MARK_BYTES);
    let calculated = crc32fast::hash(bytes);
    let stored = u32::from_ne_bytes(std::array::from_fn(|at| mark[at]));
    if calculated != stored {
        let values = format!("    Calculated value: {calculated:#x}    Stored value: {stored:#x}");
        let words = format!("Checksum mismatch in block with offset: {offset}");
        return Err(Failure::fatal(words).and(Rank::Fatal, values));
    }
    let stored = u64::from_ne_bytes(std::array::from_fn(|at| mark[CHECKSUM_BYTES + at]));
    if stored != offset {
        let values = format!("   Actual offset: {offset}    Stored offset: {stored}");
        return Err(Failure::fatal("Offset mismatch in block:").and(Rank::Fatal, values));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Shapes;

    #[test]
    fn misplaced_block_is_reported_in_sysbench_wording() {
        let mut blocks = vec![0; 64];
        fill(&mut blocks, 32, 0, &mut Random::new(1, 0, Shapes::default()));
        assert_eq!(
            check(&blocks, 32, 7, 64).unwrap_err().to_string(),
            "FATAL: Offset mismatch in block:\nFATAL:    Actual offset: 64    Stored offset: 0\nFATAL: Validation failed \
             on file 7, block offset 64, exiting..."
        );
    }
}
