//! How long answers were held.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest time that is recorded exactly; longer ones are recorded as this.
const LONGEST: Duration = Duration::from_secs(600);

/// How long a server with a delay held its answers, from reading a command until sending its answer. That is the delay
/// plus what the host's scheduler added to it. An accurate client must report this time, plus the time that the socket
/// and the waiting command take.
pub struct Held(Histogram<u64>);

impl Held {
    pub(crate) fn new() -> Self {
        // The histogram always accepts these bounds and digits.
        #[allow(clippy::expect_used)]
        Self(Histogram::new_with_bounds(1_000, LONGEST.as_nanos() as u64, 3).expect("bounds of a histogram"))
    }

    #[inline]
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(time.as_nanos() as u64);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// The number of answers; commands that arrived together count as one.
    pub fn answers(&self) -> u64 {
        self.0.len()
    }

    /// The time that this share of the answers did not exceed, to three digits.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share))
    }
}

/// `12,800 answers, held for 20.1 ms in the median, 20.6 ms at the 99th percentile`.
impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |share| self.quantile(share).as_secs_f64() * 1e3;
        let (p50, p99) = (ms(0.5), ms(0.99));
        write!(f, "{} answers, held for {p50:.2} ms in the median, {p99:.2} ms at the 99th percentile", self.answers())
    }
}
