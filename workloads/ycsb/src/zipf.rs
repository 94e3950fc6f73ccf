//! Zipf's law as in YCSB, by a formula of Gray and others (*Quickly Generating Billion-Record Synthetic Databases*,
//! SIGMOD 1994). It is exact for the first two ranks, and close for the others.

use std::sync::LazyLock;

/// The exponent of all of YCSB's Zipfian distributions.
pub const CONSTANT: f64 = 0.99;

/// The number of ranks of the scrambled distribution, for any number of records.
pub const SCRAMBLED_ITEMS: u64 = 10_000_000_001;

/// The sum of their weights. YCSB has it as a constant, because the addition takes minutes.
pub const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// The number of terms of a sum that are added one by one.
const EXACT: u64 = 1000;

/// The difference between the sum of the first ranks' weights and Euler and Maclaurin's terms at its end. It is kept
/// because the sum is needed again for each inserted record, and a thousand powers take ten microseconds.
static BEFORE: LazyLock<f64> = LazyLock::new(|| one_by_one(EXACT) - euler_maclaurin(EXACT));

/// The sum of 1 / rank^CONSTANT over the first ranks. The first thousand terms are added one by one; the others by
/// Euler and Maclaurin, whose next term is below 1e-12.
pub fn zeta(items: u64) -> f64 {
    if items <= EXACT { one_by_one(items) } else { *BEFORE + euler_maclaurin(items) }
}

fn one_by_one(items: u64) -> f64 {
    (1..=items).map(|rank| (rank as f64).powf(-CONSTANT)).sum()
}

/// The sum without a constant.
fn euler_maclaurin(items: u64) -> f64 {
    let x = items as f64;
    let power = x.powf(-CONSTANT);
    x * power / (1.0 - CONSTANT) + power / 2.0 - CONSTANT * power / (12.0 * x)
}

/// Ranks from 0, the most frequent.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    items: f64,
    zeta: f64,
    /// The weight of the first two ranks.
    two: f64,
    eta: f64,
}

impl Zipf {
    /// Creates the law for this many ranks, at least one.
    pub fn new(items: u64) -> Self {
        Self::with_zeta(items, zeta(items))
    }

    /// The ranks that are scrambled over the records.
    pub fn scrambled() -> Self {
        Self::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA)
    }

    fn with_zeta(items: u64, zeta: f64) -> Self {
        let items = items as f64;
        let two = 1.0 + 0.5_f64.powf(CONSTANT);
        // The formula is not used for two ranks or fewer.
        let eta = if items > 2.0 { (1.0 - (2.0 / items).powf(1.0 - CONSTANT)) / (1.0 - two / zeta) } else { 0.0 };
        Self { items, zeta, two, eta }
    }

    /// How many ranks there are.
    pub fn items(&self) -> u64 {
        self.items as u64
    }

    /// The rank for a uniform share from 0 up to but not including 1.
    #[inline]
    pub fn rank(&self, share: f64) -> u64 {
        let weight = share * self.zeta;
        if weight < 1.0 || self.items < 2.0 {
            return 0;
        }
        if weight < self.two || self.items < 3.0 {
            return 1;
        }
        let place = self.items * (self.eta * share - self.eta + 1.0).powf(1.0 / (1.0 - CONSTANT));
        (place as u64).min(self.items as u64 - 1)
    }
}

#[cfg(test)]
impl Zipf {
    /// The frequency of a rank by the formula itself: from its start to the next rank's start.
    pub fn share_of(&self, rank: u64) -> f64 {
        self.begins(rank + 1) - self.begins(rank)
    }

    fn begins(&self, rank: u64) -> f64 {
        match rank {
            0 => 0.0,
            1 => 1.0 / self.zeta,
            2 => self.two / self.zeta,
            _ if rank as f64 >= self.items => 1.0,
            _ => {
                let root = (rank as f64 / self.items).powf(1.0 - CONSTANT);
                ((root - 1.0 + self.eta) / self.eta).max(self.begins(2))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rumba_workload_kit::{Random, share};

    use super::*;

    #[test]
    fn the_sum_is_the_one_that_ycsb_has_for_ten_billion() {
        assert!((zeta(SCRAMBLED_ITEMS - 1) - SCRAMBLED_ZETA).abs() < 1e-8, "{}", zeta(SCRAMBLED_ITEMS - 1));
        for items in [1, 2, 999, 1000, 1001, 50_000] {
            let added: f64 = (1..=items).map(|rank| (rank as f64).powf(-CONSTANT)).sum();
            assert!((zeta(items) - added).abs() < 1e-9, "{items}: {} {added}", zeta(items));
        }
    }

    #[test]
    fn heads_have_the_shares_of_the_law() {
        const DRAWS: u32 = 400_000;
        let mut random = Random::seed_from_u64(5);
        for (zipf, items) in [(Zipf::scrambled(), SCRAMBLED_ITEMS), (Zipf::new(1_000_000), 1_000_000)] {
            let ranks: Vec<u64> = (0..DRAWS).map(|_| zipf.rank(share(random.next_u64()))).collect();
            assert!(ranks.iter().all(|rank| *rank < items));
            for head in [1, 2, 10_000, 500_000] {
                let expected = zeta(head) / zeta(items);
                let seen = ranks.iter().filter(|rank| **rank < head).count() as f64 / f64::from(DRAWS);
                let deviation = (expected * (1.0 - expected) / f64::from(DRAWS)).sqrt();
                // Four deviations are exceeded once in 16,000 times; the formula itself is off by up to 0.4%.
                assert!((seen - expected).abs() < 4.0 * deviation + 0.004, "{items}, {head}: {seen} {expected}");
            }
        }
    }

    #[test]
    fn few_ranks_are_ranks_too() {
        for items in 1..=4 {
            let zipf = Zipf::new(items);
            let all = (0..1000).map(|place| zipf.rank(f64::from(place) / 1000.0));
            let mut seen: Vec<u64> = all.collect();
            seen.dedup();
            assert_eq!(seen, (0..items).collect::<Vec<_>>(), "of {items}");
        }
    }
}
