//! sysbench's histogram: buckets whose width grows with the value, so that each factor of ten has the same number of
//! buckets.

use serde::Serialize;

/// Buckets of the histogram of latencies.
const LATENCY_BUCKETS: usize = 1024;
/// The lower end.
const LATENCY_MIN_MS: f64 = 1e-3;
/// The upper end of sysbench's histogram: 100 s.
pub const LATENCY_MAX_MS: f64 = 1e5;

/// The maximum number of stars in a row of the printed histogram.
const STARS: usize = 40;

/// The counts of values by range.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Vec<u64>,
    /// Logarithm of the lowest value.
    low: f64,
    /// Buckets per unit of the logarithm.
    per_unit: f64,
}

/// A range of values with a count above 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bucket {
    /// The value that represents it, which JSON reports call a latency.
    #[serde(rename = "latency_ms")]
    pub value: f64,
    /// The count.
    pub count: u64,
}

impl Histogram {
    /// This many buckets from `min` to `max`, as `sysbench.histogram.new` makes them. Values outside count as the
    /// lowest or highest.
    ///
    /// There are at least two buckets; the values must be above 0, and the second above the first.
    pub fn new(buckets: usize, min: f64, max: f64) -> Self {
        let buckets = buckets.max(2);
        let low = min.ln();
        Self { counts: vec![0; buckets], low, per_unit: (buckets - 1) as f64 / (max.ln() - low) }
    }

    /// A histogram of latencies in milliseconds, from a microsecond to `max_ms`, which is [`LATENCY_MAX_MS`] for
    /// sysbench's own.
    ///
    /// A higher `max_ms` adds buckets of the same relative width; those up to [`LATENCY_MAX_MS`] stay the same.
    pub fn of_latencies(max_ms: f64) -> Self {
        let mut histogram = Self::new(LATENCY_BUCKETS, LATENCY_MIN_MS, LATENCY_MAX_MS);
        // Four times as many reach to the age of the universe.
        let buckets = (histogram.position(max_ms) as usize).clamp(LATENCY_BUCKETS - 1, 4 * LATENCY_BUCKETS) + 1;
        histogram.counts.resize(buckets, 0);
        histogram
    }

    /// Counts a value.
    pub fn record(&mut self, value: f64) {
        self.record_many(value, 1);
    }

    /// Counts a value `count` times.
    pub fn record_many(&mut self, value: f64, count: u64) {
        let bucket = self.bucket(value);
        self.counts[bucket] += count;
    }

    /// The buckets with values, lowest first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let all = self.counts.iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(index, count)| Bucket { value: self.value(index), count: *count })
    }

    /// sysbench's output; empty if there are no values.
    pub fn text(&self) -> String {
        text(&self.buckets().collect::<Vec<_>>())
    }

    fn value(&self, bucket: usize) -> f64 {
        (bucket as f64 / self.per_unit + self.low).exp()
    }

    fn bucket(&self, value: f64) -> usize {
        // For 0 the position is minus infinity, and below 0 it is not a number: `max` turns both into 0.
        (self.position(value).max(0.0) as usize).min(self.counts.len() - 1)
    }

    fn position(&self, value: f64) -> f64 {
        ((value.ln() - self.low) * self.per_unit + 0.5).floor()
    }
}

/// Buckets in sysbench's format; empty if there are none.
pub fn text(buckets: &[Bucket]) -> String {
    let Some(most) = buckets.iter().map(|bucket| bucket.count).max() else { return String::new() };
    let mut text = "       value  ------------- distribution ------------- count\n".to_owned();
    for Bucket { value, count } in buckets {
        let stars = (*count as f64 * STARS as f64 / most as f64 + 0.5).floor() as usize;
        text += &format!("{value:12.3} |{:<STARS$} {count}\n", "*".repeat(stars));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Histogram {
        let mut histogram = Histogram::of_latencies(LATENCY_MAX_MS);
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    /// The value of its highest bucket.
    fn highest(histogram: &Histogram) -> f64 {
        histogram.buckets().last().unwrap().value
    }

    /// From api_histogram.t.
    #[test]
    fn prints_what_sysbench_prints() {
        let mut histogram = Histogram::new(1000, 1.0, 10.0);
        [1.0, 2.0, 0.0, 10.0, 100.0, 5.001].into_iter().for_each(|value| histogram.record(value));
        let expected = "       value  ------------- distribution ------------- count
       1.000 |**************************************** 2
       2.001 |********************                     1
       4.997 |********************                     1
      10.000 |**************************************** 2
";
        assert_eq!(histogram.text(), expected);
        assert_eq!(of([]).text(), "");
    }

    /// Latencies that sysbench often reports, because they are its buckets: 1.44, 1.47, 1.50 ms and so on.
    #[test]
    fn buckets_have_sysbenchs_values() {
        let shown = |value: f64| format!("{:.2}", highest(&of([value])));
        for (value, expected) in [
            (1.44, "1.44"),
            (1.47, "1.47"),
            (1.5, "1.50"),
            (9.0, "9.06"),
            (10.1, "10.09"),
            (20.0, "20.00"),
            (100.0, "99.33"),
        ] {
            assert_eq!(shown(value), expected, "{value}");
        }
        assert_eq!(shown(1e5), "100000.00");
        assert_eq!(shown(1e9), "100000.00");
        assert_eq!(shown(1e-9), "0.00");
        assert_eq!(shown(-1.0), "0.00");
    }

    #[test]
    fn raised_histogram_limit_resolves_longer_latencies_only() {
        let mut raised = Histogram::of_latencies(600_000.0);
        raised.record(300_000.0);
        assert!((highest(&raised) / 300_000.0 - 1.0).abs() < 0.01);
        raised.record(1e9);
        assert!((highest(&raised) / 600_000.0 - 1.0).abs() < 0.01);
        assert_eq!(Histogram::of_latencies(LATENCY_MAX_MS), Histogram::new(1024, 1e-3, 1e5));
        assert_eq!(Histogram::of_latencies(1.0), Histogram::new(1024, 1e-3, 1e5));
    }

    proptest! {
        /// Half a bucket is 0.9% of the value.
        #[test]
        fn value_is_printed_to_two_decimals(value in 1e-3..1e5_f64) {
            let reported = highest(&of([value]));
            prop_assert!((reported / value - 1.0).abs() < 0.01, "{value}: {reported}");
        }

        #[test]
        fn raised_limit_keeps_buckets_below_sysbenchs_limit(
            values in prop::collection::vec(1e-4..9.9e4_f64, 1..50),
            max_ms in 1e5..1e8_f64,
        ) {
            let mut raised = Histogram::of_latencies(max_ms);
            values.iter().for_each(|value| raised.record(*value));
            prop_assert_eq!(raised.text(), of(values).text());
        }
    }
}
