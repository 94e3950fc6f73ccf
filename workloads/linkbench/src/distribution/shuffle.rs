//! A permutation of ranks over ids, computed and not stored.

/// A bijection of 0..n in both directions.
///
/// Ranks give the frequency of use; ids give the position in storage. The originals scatter ranks over ids by rotating
/// 1024 residue classes. This one mixes the bits; each step is a bijection of the next power of two. It repeats until
/// the value is below n, which takes less than two steps on average.
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    n: u64,
    mask: u64,
    shift: u32,
    keys: [u64; ROUNDS],
    inverses: [u64; ROUNDS],
}

const ROUNDS: usize = 3;

impl Shuffle {
    /// The permutation of 0..`n` for `seed`; `n` must be positive.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).clamp(2, 63);
        let mask = (1u64 << bits) - 1;
        let keys = std::array::from_fn(|round| rumba_workload_kit::stream_seed(seed, round as u64) | 1);
        Self { n, mask, shift: bits.div_ceil(2), keys, inverses: keys.map(inverse) }
    }

    #[inline]
    pub fn id(&self, rank: u64) -> u64 {
        let mut x = rank;
        loop {
            for key in self.keys {
                x = x.wrapping_mul(key).wrapping_add(key >> 7) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }

    #[inline]
    pub fn rank(&self, id: u64) -> u64 {
        let mut x = id;
        loop {
            for round in (0..ROUNDS).rev() {
                // The shift is at least half the width, so that the xor undoes itself.
                x ^= x >> self.shift;
                x = x.wrapping_sub(self.keys[round] >> 7).wrapping_mul(self.inverses[round]) & self.mask;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration. Each step doubles the number of correct bits, of
/// which an odd number has three at once.
fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_maps_every_rank_to_a_unique_id() {
        for n in [1, 2, 3, 5, 64, 1000, 1023, 1024, 1025, 99_999] {
            let shuffle = Shuffle::new(n, 42);
            let mut seen = vec![false; n as usize];
            for rank in 0..n {
                let id = shuffle.id(rank);
                assert_eq!(shuffle.rank(id), rank);
                assert!(!std::mem::replace(&mut seen[id as usize], true), "{n}: {id} twice");
            }
        }
    }

    #[test]
    fn the_hottest_ranks_are_spread_over_the_whole_graph() {
        let n = 1_000_003;
        let shuffle = Shuffle::new(n, 7);
        let mut tenths = [0u32; 10];
        for rank in 0..10_000 {
            tenths[(shuffle.id(rank) * 10 / n) as usize] += 1;
        }
        // Chi-square with 9 degrees of freedom exceeds 27.9 once in a thousand times.
        let chi: f64 = tenths.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 27.9, "{tenths:?}");
    }

    #[test]
    fn hot_ranks_share_a_page_no_more_often_than_chance_has_it() {
        // 1000 hot rows of a million, 50 rows to a page: about 1000²/2 · 50/10⁶ = 25 pairs share one.
        let shuffle = Shuffle::new(1_000_000, 99);
        let mut pages: Vec<u64> = (0..1000).map(|rank| shuffle.id(rank) / 50).collect();
        pages.sort_unstable();
        let pairs = pages.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((8..=45).contains(&pairs), "{pairs}");
    }

    #[test]
    fn a_billion_ids_cost_no_memory_and_come_back() {
        let shuffle = Shuffle::new(1_000_000_000, 3);
        for rank in [0, 1, 2, 999_999_999, 123_456_789] {
            assert_eq!(shuffle.rank(shuffle.id(rank)), rank);
        }
    }
}
