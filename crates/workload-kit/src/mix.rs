//! The shares of a workload's operations.

use rand::Rng;
use rumba_engine_api::setting::{SettingError, Settings};

use crate::random::Random;

/// Draws one of `N` types of operations by their shares.
#[derive(Clone, Copy, Debug)]
pub struct Mix<const N: usize> {
    /// Upper bounds of the types' shares of 2^64.
    bounds: [u64; N],
}

impl<const N: usize> Mix<N> {
    /// The mix with these shares of their sum.
    pub fn new(shares: &[f64; N]) -> Self {
        let sum: f64 = shares.iter().sum();
        let mut upto = 0.0;
        let mut bounds = shares.map(|share| {
            upto += share / sum;
            (upto * u64::MAX as f64) as u64
        });
        // The last type that occurs takes the remainder of rounding.
        if let Some(last) = shares.iter().rposition(|share| *share > 0.0) {
            bounds[last..].fill(u64::MAX);
        }
        Self { bounds }
    }

    /// The position of the next type.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> usize {
        let bits = random.next_u64();
        self.bounds.iter().position(|&bound| bits <= bound).unwrap_or(0)
    }
}

/// The shares that settings give, and a profile's shares for the others.
///
/// # Errors
/// They do not add up to `whole`, which is 1 or 100; a profile's own shares are not checked.
pub fn shares<const N: usize>(
    settings: &Settings,
    names: [&'static str; N],
    of_profile: [f64; N],
    whole: f64,
) -> Result<[f64; N], SettingError> {
    let (mut shares, mut given) = (of_profile, None);
    for (share, name) in shares.iter_mut().zip(names) {
        if let Some(value) = settings.float(name) {
            (*share, given) = (value, Some(name));
        }
    }
    let sum: f64 = shares.iter().sum();
    let (noun, digits) = if whole > 1.0 { ("percentages", 2) } else { ("proportions", 4) };
    match given {
        Some(name) if (sum - whole).abs() > whole * 1e-4 => Err(SettingError::new(
            name,
            format!("the operations' {noun} add up to {sum:.digits$}, not to {whole}"),
            format!("settings that are not given are the profile's; see the others of {} too", names.join(", ")),
        )),
        _ => Ok(shares),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn types_come_by_their_shares_and_those_without_a_share_never() {
        let shares = [0.0, 30.0, 0.0, 60.0, 0.0];
        let (mix, mut random) = (Mix::new(&shares), Random::seed_from_u64(1));
        assert_eq!((mix.bounds[0], mix.bounds[3], mix.bounds[4]), (0, u64::MAX, u64::MAX));
        let mut counts = [0_u32; 5];
        (0..90_000).for_each(|_| counts[mix.draw(&mut random)] += 1);
        assert_eq!((counts[0], counts[2], counts[4]), (0, 0, 0));
        // Five deviations of 141.
        assert!((29_290..=30_710).contains(&counts[1]), "{counts:?}");
    }
}
