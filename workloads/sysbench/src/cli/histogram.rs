//! sysbench's histogram: buckets whose width grows with the value, so that each factor of ten has the same number of
//! buckets.
//!
//! Percentiles are values of buckets, and equal sysbench's to the last digit.

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
    /// A higher `max_ms` adds buckets of the same relative width, so percentiles up to [`LATENCY_MAX_MS`] stay the
    /// same.
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

    /// Adds the counts of another histogram of the same shape.
    ///
    /// # Panics
    /// It has another shape.
    pub fn merge(&mut self, other: &Histogram) {
        assert_eq!(
            (self.counts.len(), self.low, self.per_unit),
            (other.counts.len(), other.low, other.per_unit),
            "histograms of other ranges do not add up"
        );
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The bucket at or below which this percentage of the values lies. Without values it is the lowest, which sysbench
    /// prints as 0.00.
    pub fn percentile(&self, percent: f64) -> f64 {
        let wanted = (self.count() as f64 * percent / 100.0 + 0.5).floor() as u64;
        let mut met = 0;
        let reaches = |count: &u64| {
            met += count;
            met >= wanted
        };
        // Above 100 percent it is beyond the last, as in sysbench.
        self.value(self.counts.iter().position(reaches).unwrap_or(self.counts.len()))
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
        assert_eq!(histogram.count(), 6);
    }

    #[test]
    fn nothing_was_counted() {
        assert_eq!(of([]).text(), "");
        assert_eq!(format!("{:.2}", of([]).percentile(95.0)), "0.00");
    }

    /// Percentiles that sysbench often reports, because they are its buckets: 1.44, 1.47, 1.50 ms and so on.
    #[test]
    fn percentiles_are_the_values_of_sysbenchs_buckets() {
        let shown = |value: f64| format!("{:.2}", of([value]).percentile(95.0));
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

    /// The rank is rounded to the nearest event: of ten, 94% and less is the ninth, 95% the tenth.
    #[test]
    fn ranks_are_rounded() {
        let histogram = of((1..=10).map(f64::from));
        let near = |percent: f64, value: f64| (histogram.percentile(percent) / value - 1.0).abs() < 0.01;
        assert!(near(50.0, 5.0));
        assert!(near(94.0, 9.0));
        assert!(near(95.0, 10.0));
        assert!(near(100.0, 10.0));
        assert!(near(1.0, 1e-3), "the rank of 1% of ten is none");
    }

    #[test]
    fn raised_histogram_limit_resolves_longer_latencies_only() {
        let mut raised = Histogram::of_latencies(600_000.0);
        raised.record(300_000.0);
        assert!((raised.percentile(100.0) / 300_000.0 - 1.0).abs() < 0.01);
        raised.record(1e9);
        assert!((raised.percentile(100.0) / 600_000.0 - 1.0).abs() < 0.01);
        assert_eq!(Histogram::of_latencies(LATENCY_MAX_MS), Histogram::new(1024, 1e-3, 1e5));
        assert_eq!(Histogram::of_latencies(1.0), Histogram::new(1024, 1e-3, 1e5));
    }

    #[test]
    fn merged_is_as_recorded_by_one() {
        let mut one = of([1.0, 2.0]);
        one.merge(&of([2.0, 3.0]));
        assert_eq!(one, of([1.0, 2.0, 2.0, 3.0]));
        one.clear();
        assert_eq!(one, of([]));
    }

    proptest! {
        /// Half a bucket is 0.9% of the value.
        #[test]
        fn value_is_printed_to_two_decimals(value in 1e-3..1e5_f64, percent in 1.0..100.0_f64) {
            let reported = of([value; 100]).percentile(percent);
            prop_assert!((reported / value - 1.0).abs() < 0.01, "{value}: {reported}");
        }

        #[test]
        fn raised_limit_keeps_percentiles_below_sysbenchs_limit(
            values in prop::collection::vec(1e-4..9.9e4_f64, 1..50),
            percent in 0.0..100.0_f64,
            max_ms in 1e5..1e8_f64,
        ) {
            let mut raised = Histogram::of_latencies(max_ms);
            values.iter().for_each(|value| raised.record(*value));
            prop_assert_eq!(raised.percentile(percent), of(values).percentile(percent));
        }

        #[test]
        fn a_higher_rank_is_no_lower_latency(values in prop::collection::vec(0.0..1e6_f64, 1..50), percent in 0.0..99.0_f64) {
            let histogram = of(values);
            prop_assert!(histogram.percentile(percent) <= histogram.percentile(percent + 1.0));
        }
    }
}
