//! Payloads: log-normal sizes, and bytes that compress as the originals' do.
//!
//! A payload is filled in chunks. A chunk is new random bytes with the
//! probability `uniqueness`, and otherwise a piece of a fixed motif. Alone a
//! payload hardly compresses; a page of them does.

use rand::Rng;
use rand_distr::{Distribution, LogNormal};
use rumba_workload_kit::{Chance, Random, below};

/// The maximum length of a chunk, as in the originals.
const CHUNK: usize = 128;

/// The sizes and contents of payloads.
#[derive(Clone, Copy, Debug)]
pub struct PayloadShape {
    /// The median size in bytes; sizes are log-normal with σ = 1.
    pub median: f64,
    /// The largest size in bytes.
    pub cap: usize,
    /// The lowest byte.
    pub from: u8,
    /// The highest byte.
    pub to: u8,
    /// The probability that a chunk is new.
    pub uniqueness: f64,
    /// The length of the motif in bytes.
    pub motif_length: usize,
}

impl PayloadShape {
    /// The mean size in bytes: ∫ min(x, cap) over the log-normal law, by 10 000 quantiles.
    pub fn mean(&self) -> f64 {
        if self.median <= 0.0 {
            return 0.0;
        }
        let sizes = (0..20_000).map(|step| {
            // The normal density over ±8 deviations.
            let z = -8.0 + (f64::from(step) + 0.5) * 16.0 / 20_000.0;
            let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            density * (self.median * z.exp()).min(self.cap as f64)
        });
        sizes.sum::<f64>() * 16.0 / 20_000.0
    }
}

/// Generates payloads of one shape.
#[derive(Clone, Debug)]
pub struct Payload {
    sizes: Option<LogNormal<f64>>,
    cap: usize,
    from: u8,
    range: u64,
    unique: Chance,
    motif: Box<[u8]>,
    chunk: usize,
}

impl Payload {
    /// A generator whose motif is drawn from `random`.
    pub fn new(shape: &PayloadShape, random: &mut Random) -> Self {
        let range = u64::from(shape.to.saturating_sub(shape.from)) + 1;
        let mut motif = vec![0; shape.motif_length.max(1)].into_boxed_slice();
        fill_random(&mut motif, shape.from, range, random);
        Self {
            sizes: if shape.median > 0.0 { LogNormal::new(shape.median.ln(), 1.0).ok() } else { None },
            cap: shape.cap,
            from: shape.from,
            range,
            unique: Chance::new(shape.uniqueness),
            chunk: CHUNK.min(motif.len()),
            motif,
        }
    }

    /// Replaces the content of `data` by a new payload.
    #[inline]
    pub fn fill(&self, random: &mut Random, data: &mut Vec<u8>) {
        let size = self.sizes.map_or(0, |sizes| (sizes.sample(random) + 0.5) as usize).min(self.cap);
        data.clear();
        data.resize(size, 0);
        for chunk in data.chunks_mut(self.chunk) {
            if self.unique.happens(random) {
                fill_random(chunk, self.from, self.range, random);
            } else {
                let start = below(random, (self.motif.len() - chunk.len() + 1) as u64) as usize;
                chunk.copy_from_slice(&self.motif[start..start + chunk.len()]);
            }
        }
    }
}

/// Fills with uniform bytes of `from..from + range`: sixteen random bits each, four to a draw.
fn fill_random(bytes: &mut [u8], from: u8, range: u64, random: &mut Random) {
    let scale = |bits: u64, byte: u32| {
        let sixteen = (bits >> (16 * byte)) & 0xFFFF;
        from.wrapping_add(((sixteen * range) >> 16) as u8)
    };
    let (fours, rest) = bytes.as_chunks_mut::<4>();
    for four in fours {
        let bits = random.next_u64();
        *four = [scale(bits, 0), scale(bits, 1), scale(bits, 2), scale(bits, 3)];
    }
    if !rest.is_empty() {
        let bits = random.next_u64();
        rest.iter_mut().zip(0..).for_each(|(byte, index)| *byte = scale(bits, index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::io::Write;

    fn links(motif_length: usize) -> PayloadShape {
        PayloadShape { median: 23.0, cap: 255, from: 32, to: 100, uniqueness: 0.225, motif_length }
    }

    fn nodes(motif_length: usize) -> PayloadShape {
        PayloadShape { median: 168.0, cap: 1 << 20, from: 50, to: 220, uniqueness: 0.63, motif_length }
    }

    fn sizes(shape: &PayloadShape) -> Vec<usize> {
        let mut random = Random::seed_from_u64(1);
        let payload = Payload::new(shape, &mut random);
        let mut data = Vec::new();
        let mut sizes: Vec<usize> = (0..100_000)
            .map(|_| {
                payload.fill(&mut random, &mut data);
                data.len()
            })
            .collect();
        sizes.sort_unstable();
        sizes
    }

    /// The size of 16 KB blocks of payloads after zlib, percent.
    fn zlib_percent(shape: &PayloadShape) -> f64 {
        let mut random = Random::seed_from_u64(3);
        let payload = Payload::new(shape, &mut random);
        let (mut data, mut all) = (Vec::new(), Vec::new());
        while all.len() < 4 << 20 {
            payload.fill(&mut random, &mut data);
            all.extend_from_slice(&data);
        }
        let left: usize = all
            .chunks_exact(16 << 10)
            .map(|block| {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(block).unwrap();
                encoder.finish().unwrap().len()
            })
            .sum();
        100.0 * left as f64 / (all.len() / (16 << 10) * (16 << 10)) as f64
    }

    #[test]
    fn sizes_have_the_published_median_and_cap() {
        for (shape, median) in [(links(128), 23), (nodes(128), 168)] {
            let sizes = sizes(&shape);
            assert!(sizes[50_000].abs_diff(median) * 50 <= median, "{}", sizes[50_000]);
            assert!(*sizes.last().unwrap() <= shape.cap);
            let mean = sizes.iter().sum::<usize>() as f64 / 1e5;
            assert!((mean / shape.mean() - 1.0).abs() < 0.02, "{mean} {}", shape.mean());
        }
        assert_eq!(*sizes(&links(128)).last().unwrap(), 255);
    }

    #[test]
    fn payloads_compress_at_the_published_2017_ratio() {
        // As the 2017 runs had it: about 27% of links and 65% of nodes are left.
        let (link, node) = (zlib_percent(&links(512)), zlib_percent(&nodes(512)));
        assert!((26.0..28.5).contains(&link), "links {link}");
        assert!((62.5..66.0).contains(&node), "nodes {node}");
    }

    #[test]
    fn motif_of_128_bytes_compresses_at_the_2011_ratio() {
        // "~30%" for links of median 8 and "~60%" for nodes of median 128.
        let link = zlib_percent(&PayloadShape { median: 8.0, ..links(128) });
        let node = zlib_percent(&PayloadShape { median: 128.0, ..nodes(128) });
        assert!((28.0..33.0).contains(&link), "links {link}");
        assert!((58.0..63.0).contains(&node), "nodes {node}");
    }

    #[test]
    fn bytes_stay_within_their_range_and_use_all_of_it() {
        let mut random = Random::seed_from_u64(9);
        let mut bytes = vec![0; 100_003];
        fill_random(&mut bytes, 50, 171, &mut random);
        assert_eq!(bytes.iter().min(), Some(&50));
        assert_eq!(bytes.iter().max(), Some(&220));
    }

    #[test]
    fn a_median_of_zero_means_no_payload() {
        let shape = PayloadShape { median: 0.0, ..links(128) };
        assert_eq!(shape.mean(), 0.0);
        assert_eq!(sizes(&shape).pop(), Some(0));
    }
}
