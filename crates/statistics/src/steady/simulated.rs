//! Time series with known properties, to verify the error rates of the tests.

use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::testing::normal;

/// Gaussian noise of variance 1; each second is φ times the one before plus new noise.
pub struct Noise {
    random: Xoshiro256PlusPlus,
    phi: f64,
}

impl Noise {
    pub fn new(seed: u64, phi: f64) -> Self {
        Self { random: Xoshiro256PlusPlus::seed_from_u64(seed), phi }
    }

    pub fn draw(&mut self, n: usize) -> Vec<f64> {
        let mut last = normal(&mut self.random);
        let fresh = (1.0 - self.phi * self.phi).sqrt();
        let next = |_| {
            last = self.phi * last + fresh * normal(&mut self.random);
            last
        };
        (0..n).map(next).collect()
    }
}
