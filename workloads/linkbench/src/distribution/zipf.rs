//! The frequency of ids: Zipf's law over ranks, with ranks permuted over ids.

use rand_distr::{Distribution, Zipf};
use rumba_workload_kit::{Random, below};

use super::shuffle::Shuffle;

/// Chooses ids: the rank by Zipf's law with p(rank) ∝ 1 / rank^shape, the id by
/// a permutation of the ranks. Exact by rejection; set up in O(1).
#[derive(Clone, Copy, Debug)]
pub struct Access {
    ranks: Option<Zipf<f64>>,
    shuffle: Shuffle,
    n: u64,
    first: u64,
}

impl Access {
    /// Ids `first..first + n` by Zipf's law; `n` must be positive and `shape` not negative.
    /// Shape 0 is uniform.
    pub fn new(first: u64, n: u64, shape: f64, shuffle: Shuffle) -> Self {
        let ranks = if shape > 0.0 { Zipf::new(n as f64, shape).ok() } else { None };
        Self { ranks, shuffle, n, first }
    }

    /// The next rank, from 0 (the most used).
    #[inline]
    pub fn rank(&self, random: &mut Random) -> u64 {
        match &self.ranks {
            // Rounding may lift the last rank by one.
            Some(zipf) => (zipf.sample(random) as u64 - 1).min(self.n - 1),
            None => below(random, self.n),
        }
    }

    #[inline]
    pub fn id(&self, random: &mut Random) -> u64 {
        self.first + self.shuffle.id(self.rank(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// The exact probability of each rank.
    fn law(n: u64, shape: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-shape)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn ranks_follow_the_exact_law_for_every_shape_linkbench_uses() {
        let (n, draws) = (1000, 1_000_000);
        for shape in [0.8, 0.741, 0.625, 0.606, 0.0] {
            let access = Access::new(1, n, shape, Shuffle::new(n, 1));
            let mut random = Random::seed_from_u64(11);
            let mut counts = vec![0u64; n as usize];
            (0..draws).for_each(|_| counts[access.rank(&mut random) as usize] += 1);
            let chi: f64 = law(n, shape)
                .iter()
                .zip(&counts)
                .map(|(p, &count)| (count as f64 - p * draws as f64).powi(2) / (p * draws as f64))
                .sum();
            // 999 degrees of freedom: mean 999, deviation 45; it exceeds 1150 once in a thousand times.
            assert!(chi < 1150.0, "shape {shape}: {chi}");
        }
    }

    #[test]
    fn at_a_billion_ids_the_hot_head_keeps_its_share() {
        // The share of the first k ranks is H(k)/H(n), with H by Euler and Maclaurin.
        let harmonic = |n: f64, s: f64| {
            let exact: f64 = (1..1000).map(|k| f64::from(k).powf(-s)).sum();
            let rest = |x: f64| x.powf(1.0 - s) / (1.0 - s);
            exact + rest(n) - rest(1000.0) + (1000f64.powf(-s) + n.powf(-s)) / 2.0
        };
        let (n, draws) = (1_000_000_000u64, 400_000);
        for shape in [0.8, 0.606] {
            let access = Access::new(1, n, shape, Shuffle::new(n, 1));
            let mut random = Random::seed_from_u64(5);
            let ranks: Vec<u64> = (0..draws).map(|_| access.rank(&mut random)).collect();
            assert!(ranks.iter().all(|&rank| rank < n));
            for head in [10_000.0, 1_000_000.0, 100_000_000.0] {
                let expected = harmonic(head, shape) / harmonic(n as f64, shape);
                let seen = ranks.iter().filter(|&&rank| (rank as f64) < head).count() as f64 / f64::from(draws);
                let deviation = (expected * (1.0 - expected) / f64::from(draws)).sqrt();
                assert!((seen - expected).abs() < 4.0 * deviation, "{shape} {head}: {seen} {expected}");
            }
        }
    }

    #[test]
    fn ids_stay_within_the_loaded_graph() {
        let access = Access::new(5, 3, 0.8, Shuffle::new(3, 1));
        let mut random = Random::seed_from_u64(5);
        let mut seen = [0; 3];
        (0..1000).for_each(|_| seen[(access.id(&mut random) - 5) as usize] += 1);
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }
}
