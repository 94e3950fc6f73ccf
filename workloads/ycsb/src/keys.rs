//! Records by number, and their keys as text.

/// The beginning of every key.
const PREFIX: &[u8] = b"user";
/// The most digits of a number of 64 bits.
const DIGITS: usize = 20;
/// The most digits that a key is filled up to.
pub const MOST_DIGITS: usize = 100;
/// The longest key in bytes.
pub const LONGEST: usize = PREFIX.len() + MOST_DIGITS;

/// FNV-1a of 64 bits over the number's eight bytes, the lowest first, without its sign. It scatters records over keys,
/// and ranks over records.
#[inline]
pub fn scattered(number: u64) -> u64 {
    const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let hash = number.to_le_bytes().iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    (hash as i64).unsigned_abs()
}

/// How keys are made of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyForm {
    /// Whether the number is scattered.
    pub is_hashed: bool,
    /// The number of digits, padded with zeros, at most [`MOST_DIGITS`].
    pub digits: usize,
}

#[derive(Clone, Debug)]
pub struct Key {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Key {
    /// Its text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The first eight digits as a number: two keys that differ in them have the same order as these numbers.
    #[inline]
    pub fn beginning(&self) -> u64 {
        // A shorter key is padded with zero bytes, which sort before any digit.
        self.bytes[PREFIX.len()..].first_chunk().map_or(0, |digits| u64::from_be_bytes(*digits))
    }
}

impl KeyForm {
    #[inline]
    pub fn key(self, number: u64) -> Key {
        let mut rest = if self.is_hashed { scattered(number) } else { number };
        let (mut digits, mut first) = ([b'0'; DIGITS], DIGITS);
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let digits = &digits[first..];
        let zeros = self.digits.min(MOST_DIGITS).saturating_sub(digits.len());
        let mut key = Key { bytes: [b'0'; LONGEST], length: PREFIX.len() + zeros + digits.len() };
        key.bytes[..PREFIX.len()].copy_from_slice(PREFIX);
        key.bytes[PREFIX.len() + zeros..key.length].copy_from_slice(digits);
        key
    }

    /// The length of an average key in bytes.
    pub fn mean_length(self) -> u64 {
        // Nine in ten numbers below 2^63 have 19 digits.
        (PREFIX.len() + self.digits.max(if self.is_hashed { 19 } else { 7 })) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64, is_hashed: bool, digits: usize) -> String {
        String::from_utf8_lossy(KeyForm { is_hashed, digits }.key(number).bytes()).into_owned()
    }

    /// The keys that YCSB's own loader writes first.
    #[test]
    fn keys_are_those_of_ycsb() {
        assert_eq!(key(0, true, 1), "user6284781860667377211");
        assert_eq!(key(1, true, 1), "user8517097267634966620");
        assert_eq!(key(0, false, 1), "user0");
        assert_eq!(key(42, false, 8), "user00000042");
        assert_eq!(key(42, false, 1), "user42");
        assert_eq!(key(u64::MAX, false, 500).len(), LONGEST);
    }

    #[test]
    fn key_prefixes_order_like_their_keys() {
        for (is_hashed, digits) in [(true, 1), (false, 1), (false, 12), (false, 100)] {
            let keys: Vec<Key> = (0..2000).map(|number| KeyForm { is_hashed, digits }.key(number)).collect();
            let first = &keys[1234];
            for other in &keys {
                let by_beginning = first.beginning().cmp(&other.beginning());
                let is_right = by_beginning.is_eq() || by_beginning == first.bytes().cmp(other.bytes());
                assert!(is_right, "{first:?}, {other:?}");
            }
        }
    }

    #[test]
    fn a_million_records_have_keys_of_their_own() {
        let mut all: Vec<u64> = (0..1_000_000).map(scattered).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
