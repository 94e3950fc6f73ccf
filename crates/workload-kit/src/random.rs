//! The random numbers of workloads.

use rand::Rng;
use rumba_engine_api::worker::ClientAddress;

/// The generator of all randomness: small, fast, and the same on every machine.
pub type Random = rand_xoshiro::Xoshiro256PlusPlus;

/// Mixes a seed and a stream's number so that neighbouring streams are unrelated (the finaliser of SplitMix64).
pub fn stream_seed(seed: u64, stream: u64) -> u64 {
    let mut mixed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The seed of the client or loader at this address.
pub fn client_seed(seed: u64, at: ClientAddress) -> u64 {
    stream_seed(seed, u64::from(at.host) << 32 | u64::from(at.client))
}

/// A uniform number below `bound` (Lemire's multiplication; the bias is below `bound` / 2^64).
#[inline]
pub fn below(random: &mut Random, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A uniform share from 0 up to but not including 1, of 53 of these random bits.
#[inline]
pub fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// A probability as a threshold to compare random numbers with.
#[derive(Clone, Copy, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The chance of `probability`, which is clamped to 0..=1.
    pub fn new(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * u64::MAX as f64) as u64)
    }

    /// Whether it happens this time.
    #[inline]
    pub fn happens(self, random: &mut Random) -> bool {
        random.next_u64() < self.0 || self.0 == u64::MAX
    }
}
