//! The arguments, ids and CPU time of the examples with point selects.

use std::collections::BTreeMap;
use std::error::Error;

/// Any error, with its words.
pub type Failure = Box<dyn Error + Send + Sync>;

/// `key=value` arguments, with defaults.
pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// The first argument of the program, and the rest.
    pub fn read() -> Result<(String, Self), Failure> {
        let mut arguments = std::env::args().skip(1);
        let server = arguments.next().ok_or("the path of the server's socket, or HOST:PORT, is missing")?;
        let pairs = arguments.map(|text| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())));
        Ok((server, Self(pairs.collect::<Option<_>>().ok_or("arguments are written key=value")?)))
    }

    pub fn number(&self, key: &str, default: u32) -> Result<u32, Failure> {
        self.0
            .get(key)
            .map_or(Ok(default), |text| text.parse().map_err(|error| format!("{key}={text}: {error}").into()))
    }

    pub fn text(&self, key: &str, default: &str) -> String {
        self.0.get(key).map_or_else(|| default.to_owned(), Clone::clone)
    }
}

/// The next of this many ids, by SplitMix64: uniform, and with almost no cost.
pub fn next_id(random: &mut u64, rows: u64) -> u64 {
    *random = random.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *random;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * u128::from(rows)) >> 64) as u64 + 1
}

/// The CPU time of this process so far, including ended threads, in microseconds.
pub fn cpu_us() -> Result<f64, Failure> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: it fills the structure that it is given, or says that it did not.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage.assume_init()
    };
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    Ok(us(usage.ru_utime) + us(usage.ru_stime))
}
