//! How long values are.

use std::sync::Arc;

use rumba_workload_kit::share;

use crate::zipf::Zipf;

/// How long values are, in bytes.
#[derive(Clone, Debug)]
pub enum Lengths {
    /// All values have this length.
    Constant(usize),
    /// From the first length to the second, uniformly.
    Uniform(usize, usize),
    /// From the first to the second, by Zipf's law: mostly short.
    Zipfian(usize, usize, Zipf),
    /// As often as was given.
    Histogram(Arc<Histogram>),
}

impl Lengths {
    /// A length for random bits.
    #[inline]
    pub fn draw(&self, bits: u64) -> usize {
        match self {
            Lengths::Constant(length) => *length,
            Lengths::Uniform(least, most) => least + (share(bits) * (most - least + 1) as f64) as usize,
            Lengths::Zipfian(least, _, zipf) => least + zipf.rank(share(bits)) as usize,
            Lengths::Histogram(histogram) => histogram.draw(share(bits)),
        }
    }

    /// The shortest and the longest.
    pub fn bounds(&self) -> (usize, usize) {
        match self {
            Lengths::Constant(length) => (*length, *length),
            Lengths::Uniform(least, most) | Lengths::Zipfian(least, most, _) => (*least, *most),
            Lengths::Histogram(histogram) => histogram.bounds(),
        }
    }

    pub fn mean(&self) -> f64 {
        match self {
            Lengths::Constant(length) => *length as f64,
            Lengths::Uniform(least, most) => (least + most) as f64 / 2.0,
            Lengths::Zipfian(least, most, zipf) => {
                // Ten thousand shares, each in the middle of its part.
                let shares = 10_000;
                let sum: u64 = (0..shares).map(|part| zipf.rank((f64::from(part) + 0.5) / f64::from(shares))).sum();
                (*least as f64 + sum as f64 / f64::from(shares)).min(*most as f64)
            }
            Lengths::Histogram(histogram) => histogram.mean(),
        }
    }
}

/// Lengths with their weights: the share of values up to each length.
#[derive(Debug, PartialEq)]
pub struct Histogram(Box<[(usize, f64)]>);

impl Histogram {
    /// Parses the setting's text: `10:3,100:1`, lengths with their weights, or the content of an original histogram
    /// file. A histogram file has a line `BlockSize` with the bytes of a bucket. Then it has a line for each bucket,
    /// with its number from 0 on and its weight.
    ///
    /// # Errors
    /// A description of the mistake.
    pub fn parse(text: &str, longest: usize) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut weights = match words.next() {
            Some("BlockSize") => buckets(&words.collect::<Vec<_>>())?,
            _ => text.split(',').map(|pair| weight(pair, ':')).collect::<Result<Vec<_>, _>>()?,
        };
        if let Some((length, _)) = weights.iter().find(|(length, _)| !(1..=longest).contains(length)) {
            return Err(format!("{length} bytes are too many or too few: a field has 1 to {longest}"));
        }
        weights.retain(|(_, weight)| *weight > 0.0);
        weights.sort_unstable_by_key(|(length, _)| *length);
        let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
        if all <= 0.0 {
            return Err("no length has a weight".to_owned());
        }
        let mut upto = 0.0;
        let shares = weights.into_iter().map(|(length, weight)| {
            upto += weight / all;
            (length, upto)
        });
        Ok(Self(shares.collect()))
    }

    fn draw(&self, share: f64) -> usize {
        let place = self.0.partition_point(|(_, upto)| *upto <= share);
        // The last length takes the remainder of rounding.
        self.0.get(place).or(self.0.last()).map_or(1, |(length, _)| *length)
    }

    fn bounds(&self) -> (usize, usize) {
        let length = |place: Option<&(usize, f64)>| place.map_or(1, |(length, _)| *length);
        (length(self.0.first()), length(self.0.last()))
    }

    fn mean(&self) -> f64 {
        let mut before = 0.0;
        let parts = self.0.iter().map(|(length, upto)| *length as f64 * (upto - std::mem::replace(&mut before, *upto)));
        parts.sum()
    }
}

/// A length and its weight, or a bucket's number and its.
fn weight(pair: &str, between: char) -> Result<(usize, f64), String> {
    let wrong = || format!("`{}` is not a length with its weight", pair.trim());
    let (length, weight) = pair.split_once(between).ok_or_else(wrong)?;
    let weight: f64 = weight.trim().parse().map_err(|_| wrong())?;
    let length = length.trim().parse().map_err(|_| wrong())?;
    if weight.is_finite() && weight >= 0.0 { Ok((length, weight)) } else { Err(wrong()) }
}

/// The buckets after the word `BlockSize`.
fn buckets(words: &[&str]) -> Result<Vec<(usize, f64)>, String> {
    let (size, pairs) = words.split_first().ok_or("a histogram's `BlockSize` is missing")?;
    let size: usize = size.parse().map_err(|_| format!("`{size}` is not a bucket size"))?;
    let pairs = pairs.chunks(2).map(|pair| weight(&pair.join(" "), ' '));
    // A value has the length of its bucket's end, also in the last bucket, which the original makes as long as the
    // previous one. The original also gives the first bucket one extra draw.
    pairs.map(|pair| pair.map(|(bucket, weight)| ((bucket.saturating_add(1)).saturating_mul(size), weight))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 65_535;

    fn histogram(text: &str) -> Lengths {
        Lengths::Histogram(Arc::new(Histogram::parse(text, LONGEST).unwrap()))
    }

    #[test]
    fn lengths_follow_their_weights() {
        let lengths = histogram("100:1, 10:3");
        assert_eq!((lengths.bounds(), lengths.mean()), ((10, 100), 32.5));
        let draws = 4000_u64;
        let bits = |draw: u64| (draw * 2 + 1) * (u64::MAX / (2 * draws));
        let short = (0..draws).filter(|draw| lengths.draw(bits(*draw)) == 10).count();
        assert!((2999..=3001).contains(&short), "{short}");
        assert_eq!(lengths.draw(u64::MAX), 100);
    }

    #[test]
    fn a_file_of_the_original_is_read_as_it_stands() {
        let lengths = histogram("BlockSize\t8\n0\t1\n1\t0\n3\t1\n");
        assert_eq!((lengths.bounds(), lengths.mean()), ((8, 32), 20.0));
    }

    #[test]
    fn invalid_length_histogram_is_refused_with_the_reason() {
        for (text, words) in [
            ("", "`` is not a length with its weight"),
            ("10", "`10` is not a length with its weight"),
            ("10:x", "`10:x` is not a length with its weight"),
            ("10:-1", "not a length with its weight"),
            ("10:0", "no length has a weight"),
            ("0:1", "0 bytes are too many or too few"),
            ("70000:1", "70000 bytes are too many or too few"),
            ("BlockSize", "`BlockSize` is missing"),
            ("BlockSize x 0 1", "`x` is not a bucket size"),
            ("BlockSize 8 0", "`0` is not a length with its weight"),
        ] {
            let error = Histogram::parse(text, LONGEST).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
