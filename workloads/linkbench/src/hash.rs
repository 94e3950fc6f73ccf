//! Hashes that show whether two rows have the same content.

pub fn hash<const N: usize>(numbers: [u64; N], data: &[u8]) -> u64 {
    let mix = |sum: u64, part: u64| rumba_workload_kit::stream_seed(sum, part);
    let sum = numbers.into_iter().chain([data.len() as u64]).fold(0, mix);
    data.chunks(8).fold(sum, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_le_bytes(word))
    })
}
