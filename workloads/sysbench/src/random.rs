//! The random numbers of scripts: sysbench's distributions over integers from `a` to `b`, both included.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use crate::cli::settings::{Distribution, Shapes};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_engine_api::worker::HostShare;

/// One client's source of random numbers.
#[derive(Debug)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
    shapes: Shapes,
    pareto_power: f64,
    zipf: Zipf,
}

impl Random {
    /// The source of a client of a run.
    pub fn new(seed: u64, client: u32, shapes: Shapes) -> Self {
        let generator =
            Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(client) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let pareto_power = shapes.pareto_h.ln() / (1.0 - shapes.pareto_h).ln();
        Self { generator, shapes, pareto_power, zipf: Zipf::new(shapes.zipfian_exponent) }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number from 0 up to and without 1.
    #[inline]
    pub fn share(&mut self) -> f64 {
        self.generator.random()
    }

    /// A number of the default distribution.
    #[inline]
    pub fn default(&mut self, a: u32, b: u32) -> u32 {
        match self.shapes.default {
            Distribution::Uniform => self.uniform(a, b),
            Distribution::Gaussian => self.gaussian(a, b),
            Distribution::Special => self.special(a, b),
            Distribution::Pareto => self.pareto(a, b),
            Distribution::Zipfian => self.zipfian(a, b),
        }
    }

    /// Uniform numbers.
    #[inline]
    pub fn uniform(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_add((self.share() * width(a, b)) as u32)
    }

    /// The mean of several uniform numbers.
    pub fn gaussian(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_add((self.mean_of_several() * width(a, b)) as u32)
    }

    fn mean_of_several(&mut self) -> f64 {
        let iterations = self.shapes.iterations.max(1);
        (0..iterations).map(|_| self.share()).sum::<f64>() / f64::from(iterations)
    }

    /// A share of the draws falls uniformly on a part of the range around its middle; the others are a bell over all of
    /// it.
    /// In sysbench the number that chooses between both also gives the place within the part. As a result, a beginning
    /// of the part, as long as the other draws' share, is never drawn, and the drawn values lie after the middle. The
    /// range is one shorter than for the other distributions, and the part one longer.
    pub fn special(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_add(self.special_in(f64::from(b.wrapping_sub(a))) as u32)
    }

    /// The place of a special number in a range of this length, less 1.
    fn special_in(&mut self, span: f64) -> f64 {
        let place = self.share();
        if place < 1.0 - self.shapes.special_res / 100.0 {
            return self.mean_of_several() * span;
        }
        let part = span * self.shapes.special_pct / 100.0;
        (span - part) / 2.0 + place * (part + 1.0)
    }

    /// A power of a uniform share.
    pub fn pareto(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_add((width(a, b) * self.share().powf(self.pareto_power)) as u32)
    }

    /// Rank `k` of the range with a probability proportional to 1 / k^exponent.
    pub fn zipfian(&mut self, a: u32, b: u32) -> u32 {
        if is_empty(a, b) {
            // As in sysbench, whose rank is 0 then. The other distributions give `a`, except `special`, which gives any
            // number, as there.
            return b;
        }
        let ranks = b.wrapping_sub(a).saturating_add(1);
        a.wrapping_add(self.rank(f64::from(ranks)) as u32 - 1)
    }

    /// A Zipfian rank, from 1.
    fn rank(&mut self, ranks: f64) -> f64 {
        loop {
            let share = self.share();
            if let Some(rank) = self.zipf.rank(ranks, share) {
                return rank;
            }
        }
    }

    /// A number of a distribution, or of the default one, in a range that exceeds 32 bits, both ends included. It is
    /// exact up to 2^53, where Lua's own whole numbers end.
    pub fn wide(&mut self, distribution: Option<Distribution>, a: f64, b: f64) -> f64 {
        let span = b - a;
        let place = match distribution.unwrap_or(self.shapes.default) {
            Distribution::Uniform => self.share() * (span + 1.0),
            Distribution::Gaussian => self.mean_of_several() * (span + 1.0),
            Distribution::Special => self.special_in(span),
            Distribution::Pareto => (span + 1.0) * self.share().powf(self.pareto_power),
            Distribution::Zipfian => self.rank(span + 1.0) - 1.0,
        };
        // Near 2^53 a product may be rounded up.
        a + place.floor().min(span)
    }

    /// Fills `out` from a format of its length: `#` becomes a digit, `@` a letter, and other characters are copied. Up
    /// to twelve adjacent digits come from one draw.
    pub fn string(&mut self, mut format: &[u8], mut out: &mut [u8]) {
        while let Some(&mark) = format.first() {
            let done = match (mark, format.first_chunk(), out.first_chunk_mut()) {
                (b'#', Some(format), Some(out)) => {
                    // After the marks it writes too much; the next writes overwrite it.
                    *out = self.digits();
                    if are_eleven(format) {
                        out[DRAWN - 1] = format[DRAWN - 1];
                        DRAWN
                    } else {
                        marks(format)
                    }
                }
                (b'#', ..) => {
                    let done = format.iter().take_while(|&&mark| mark == b'#').count();
                    out[..done].copy_from_slice(&self.digits()[..done]);
                    done
                }
                (mark, ..) => {
                    out[0] = if mark == b'@' { b'a' + self.below(26) } else { mark };
                    1
                }
            };
            (format, out) = (&format[done..], &mut out[done..]);
        }
    }

    /// Digits from one draw. A random number is a binary fraction. Multiplied by a thousand, its integer part gives
    /// three digits, and the rest is the fraction for the next step. After four steps the bias is below 1 in 10^7.
    #[inline]
    fn digits(&mut self) -> [u8; DRAWN] {
        let mut fraction = self.generator.next_u64();
        let mut next = || {
            let product = u128::from(fraction) * 1000;
            fraction = product as u64;
            u64::from(THREES[(product >> 64) as usize])
        };
        let (a, b, c, d) = (next(), next(), next(), next());
        let [eight, four] = [a | (b << 24) | (c << 48), (c >> 16) | (d << 8)].map(u64::to_le_bytes);
        let mut digits = [0; DRAWN];
        digits[..8].copy_from_slice(&eight);
        digits[8..].copy_from_slice(&four[..4]);
        digits
    }

    /// Fills `out` with characters from `0` to `z`.
    pub fn characters(&mut self, out: &mut [u8]) {
        out.fill_with(|| b'0' + self.below(b'z' - b'0' + 1));
    }

    #[inline]
    fn below(&mut self, bound: u8) -> u8 {
        // The upper half of the bits, scaled; the bias is below 1 in 10^7.
        (((self.generator.next_u64() >> 32) * u64::from(bound)) >> 32) as u8
    }
}

/// Digits of one draw.
const DRAWN: usize = 12;

/// The numbers from 0 to 999 in three digits each, the first in the lowest byte; the highest is empty.
static THREES: [u32; 1000] = {
    let mut threes = [0; 1000];
    let mut number = 0;
    while number < threes.len() {
        let [a, b, c] = [number / 100, number / 10 % 10, number % 10];
        threes[number] = u32::from_le_bytes([b'0' + a as u8, b'0' + b as u8, b'0' + c as u8, 0]);
        number += 1;
    }
    threes
};

/// Whether a format begins with eleven marks and a copied character, like the templates of sysbench's rows. The start
/// of the next group is then known in advance, and need not wait until the marks are counted.
#[inline]
fn are_eleven(format: &[u8; DRAWN]) -> bool {
    let [marks @ .., last] = format;
    *marks == [b'#'; DRAWN - 1] && !matches!(last, b'#' | b'@')
}

#[inline]
fn marks(format: &[u8; DRAWN]) -> usize {
    // The lowest byte that differs is the first.
    let [a, b, c, d, e, f, g, h, last @ ..] = *format;
    let others = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ u64::from_le_bytes([b'#'; 8]);
    let first = others.trailing_zeros() / 8;
    let more = (u32::from_le_bytes(last) ^ u32::from_le_bytes([b'#'; 4])).trailing_zeros() / 8;
    (if first < 8 { first } else { first + more }) as usize
}

fn width(a: u32, b: u32) -> f64 {
    if is_empty(a, b) { 0.0 } else { f64::from(b.wrapping_sub(a)) + 1.0 }
}

/// From 1 to 0, the range that a script uses for an empty table.
#[inline]
fn is_empty(a: u32, b: u32) -> bool {
    b.checked_add(1) == Some(a)
}

/// Zipf's law by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6.3 (1996), 169–184; for every exponent from 0.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    exponent: f64,
    /// Points closer than this to their integer are accepted without further tests.
    shortcut: f64,
    /// The integral of the density at 1.5, less the density at 1.
    first: f64,
    /// The integral at the end of the last range, and that range.
    last: (f64, f64),
}

impl Zipf {
    fn new(exponent: f64) -> Self {
        let mut zipf = Self { exponent, shortcut: 0.0, first: 0.0, last: (0.0, 0.0) };
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf
    }

    /// The rank for a uniform share, or `None` if another share must be drawn.
    #[inline]
    fn rank(&mut self, ranks: f64, share: f64) -> Option<f64> {
        if self.last.0 != ranks {
            self.last = (ranks, self.integral(ranks + 0.5));
        }
        let end = self.last.1;
        let area = end + share * (self.first - end);
        let point = self.inverse(area);
        let rank = (point + 0.5).clamp(1.0, ranks).floor();
        let accepted = rank - point <= self.shortcut || area >= self.integral(rank + 0.5) - self.density(rank);
        accepted.then_some(rank)
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_less_one_by((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, x: f64) -> f64 {
        // Rounding may bring it below the domain of the logarithm.
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        (log_one_plus_by(t) * x).exp()
    }
}

/// ln(1 + x) / x, also where x is 0.
fn log_one_plus_by(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x * (0.5 - x / 3.0) }
}

/// (e^x - 1) / x, also where x is 0.
fn exp_less_one_by(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x * (0.5 + x / 6.0) }
}

/// Numbers of 32 bits that repeat only after all have occurred, shared by all clients of a run; clones draw from the
/// same sequence. Squares modulo a prime p of the form 4k + 3, folded at p / 2, are a permutation of the numbers below
/// p.
#[derive(Clone, Debug)]
pub struct Unique {
    next: Arc<AtomicU32>,
    /// The distance of a host's numbers in the sequence.
    step: u32,
    offset: u32,
}

impl Unique {
    /// A separate sequence for each seed.
    pub fn new(seed: u64) -> Self {
        Self::of_host(seed, HostShare::ALL)
    }

    /// One host's part of the sequence of a seed.
    pub fn of_host(seed: u64, share: HostShare) -> Self {
        let mut seeded = Xoshiro256PlusPlus::seed_from_u64(seed);
        let first = seeded.next_u32().wrapping_add(share.host);
        Self { next: Arc::new(AtomicU32::new(first)), step: share.hosts, offset: seeded.next_u32() }
    }

    /// The next number.
    pub fn next(&self) -> u32 {
        let index = self.next.fetch_add(self.step, Relaxed);
        permuted(permuted(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

fn permuted(x: u32) -> u32 {
    const PRIME: u32 = 4_294_967_291;
    if x >= PRIME {
        return x;
    }
    let square = (u64::from(x) * u64::from(x) % u64::from(PRIME)) as u32;
    if x <= PRIME / 2 { square } else { PRIME - square }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn unique_numbers_of_hosts_are_those_of_one() {
        let of_host = |host| Unique::of_host(1, HostShare { host, hosts: 3 });
        let hosts: Vec<Unique> = (0..3).map(of_host).collect();
        let all: Vec<u32> = (0..300).map(|turn: usize| hosts[turn % 3].next()).collect();
        let one = Unique::new(1);
        assert_eq!(all, (0..300).map(|_| one.next()).collect::<Vec<u32>>());
    }

    #[test]
    fn unique_numbers_do_not_come_again() {
        let unique = Unique::new(1);
        let seen: HashSet<u32> = (0..1_000_000).map(|_| unique.next()).collect();
        assert_eq!(seen.len(), 1_000_000);
    }

    #[test]
    fn characters_are_from_zero_to_z() {
        let mut out = [0; 500];
        Random::new(1, 0, Shapes::default()).characters(&mut out);
        assert!(out.iter().all(|byte| (b'0'..=b'z').contains(byte)) && out.contains(&b'0') && out.contains(&b'z'));
    }

    #[test]
    fn string_format_fills_every_mark_and_keeps_other_bytes() {
        let mut random = Random::new(2, 0, Shapes::default());
        for length in 0..60 {
            let format: Vec<u8> = (0..length).map(|_| b"####@@-\xa3"[usize::from(random.below(8))]).collect();
            let mut out = vec![0; length];
            random.string(&format, &mut out);
            for (mark, byte) in format.iter().zip(out) {
                let is_right = match mark {
                    b'#' => byte.is_ascii_digit(),
                    b'@' => byte.is_ascii_lowercase(),
                    other => byte == *other,
                };
                assert!(is_right, "{byte} in the place of {mark}");
            }
        }
    }

    /// Tables that were filled with a seed in the past must equal the ones that it fills now.
    #[test]
    fn a_seed_writes_the_text_that_it_has_always_written() {
        let mut random = Random::new(1, 0, Shapes::default());
        let format = b"###########-#############@@-#";
        let mut out = [0; 29];
        random.string(format, &mut out);
        // Digit by digit: up to twelve of a run are those of one fraction.
        let mut again = Random::new(1, 0, Shapes::default());
        let mut expected = Vec::new();
        for run in [11, 12, 1] {
            let mut fraction = again.bits();
            for _ in 0..run {
                let product = u128::from(fraction) * 10;
                fraction = product as u64;
                expected.push(b'0' + (product >> 64) as u8);
            }
            if run == 11 {
                expected.push(b'-');
            }
        }
        assert_eq!(out[..expected.len()], expected);
    }

    /// With nine degrees of freedom, the statistic exceeds 33.7 once in ten thousand times; with 99, it exceeds 161.
    fn are_alike(counts: &[f64], most: f64) {
        let expected = counts.iter().sum::<f64>() / counts.len() as f64;
        let statistic: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        assert!(statistic < most, "{statistic}: {counts:?}");
    }

    #[test]
    fn format_digits_and_adjacent_pairs_are_uniform() {
        const LENGTH: usize = 25;
        let mut random = Random::new(5, 0, Shapes::default());
        let mut counts = [[0.0; 10]; LENGTH];
        let mut pairs = [[0.0; 100]; LENGTH - 1];
        let mut out = [0; LENGTH];
        for _ in 0..20_000 {
            random.string(&[b'#'; LENGTH], &mut out);
            let digits = out.map(|digit| usize::from(digit - b'0'));
            for (counts, digit) in counts.iter_mut().zip(digits) {
                counts[digit] += 1.0;
            }
            for (pairs, digits) in pairs.iter_mut().zip(digits.windows(2)) {
                pairs[10 * digits[0] + digits[1]] += 1.0;
            }
        }
        counts.iter().for_each(|counts| are_alike(counts, 33.7));
        pairs.iter().for_each(|counts| are_alike(counts, 161.0));
    }

    /// They were ranges of all numbers.
    #[test]
    fn empty_ranges_return_an_endpoint() {
        let mut random = Random::new(3, 0, Shapes::default());
        for (a, b) in [(1, 0), (8, 7), (u32::MAX, u32::MAX - 1)] {
            let drawn = [random.uniform(a, b), random.gaussian(a, b), random.pareto(a, b), random.zipfian(a, b)];
            assert_eq!(drawn, [a, a, a, b]);
        }
        assert!((0..100).any(|_| random.uniform(0, u32::MAX) > u32::MAX / 2));
    }

    /// sysbench reads only a part of a table of 34,000,000,000 rows (its issue 446).
    #[test]
    fn ranges_beyond_32_bits_are_drawn_whole() {
        const EACH: f64 = 340_000_000.0;
        let (mut narrow, mut wide) = (Random::new(4, 0, Shapes::default()), Random::new(4, 0, Shapes::default()));
        for _ in 0..1000 {
            for (distribution, narrow) in [
                (Distribution::Uniform, narrow.uniform(1, 100)),
                (Distribution::Gaussian, narrow.gaussian(1, 100)),
                (Distribution::Pareto, narrow.pareto(1, 100)),
            ] {
                let drawn = wide.wide(Some(distribution), 1.0, 100.0 * EACH);
                assert_eq!(((drawn - 1.0) / EACH).floor() + 1.0, f64::from(narrow), "{distribution:?}: {drawn}");
            }
        }
        for (distribution, least, most) in [(Distribution::Special, 0.9, 1.0), (Distribution::Zipfian, 0.25, 0.45)] {
            let drawn: Vec<f64> = (0..10_000).map(|_| wide.wide(Some(distribution), 1.0, 100.0 * EACH)).collect();
            assert!(drawn.iter().all(|n| (1.0..=100.0 * EACH).contains(n) && n.fract() == 0.0), "{distribution:?}");
            let above = drawn.iter().filter(|n| **n > f64::from(u32::MAX)).count() as f64 / drawn.len() as f64;
            assert!((least..=most).contains(&above), "{distribution:?}: {above}");
        }
    }

    #[test]
    fn clients_draw_differently_and_a_seed_repeats() {
        let draws = |seed, client| {
            let mut random = Random::new(seed, client, Shapes::default());
            [random.bits(), random.bits()]
        };
        assert_eq!(draws(1, 0), draws(1, 0));
        assert_ne!(draws(1, 0), draws(1, 1));
        assert_ne!(draws(1, 0), draws(2, 0));
    }
}
