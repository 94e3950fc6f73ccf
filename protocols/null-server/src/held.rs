//! For how long answers were held.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest time that is told exactly; what is longer counts as this.
const LONGEST: Duration = Duration::from_secs(600);

/// For how long the answers of a server with a delay were held: from the reading of a command until its answer was sent.
/// It is the delay and what the host's scheduler has added to it, and so what a client that measures truly has to report,
/// less only what the socket and the wait of the command in it take.
pub struct Held(Histogram<u64>);

impl Held {
    pub(crate) fn new() -> Self {
        // Bounds and digits that the histogram accepts, whatever happens.
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

    /// How many answers; those of commands that came together count as one.
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
