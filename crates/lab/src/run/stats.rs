//! Counts become what a record holds: percentiles, spectrum, standard logs.

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use rumba_core::metric::Metric;
use rumba_core::record::{OpStats, Percentiles};
use rumba_core::workload::OpInfo;

use super::buckets::to_histogram;
use super::cells::{Counts, KindCounts, Times};

/// A percentile is given when at least this many samples lie beyond it.
const SAMPLES_BEYOND: f64 = 10.0;

/// The points of a spectrum, as HdrHistogram's plots have them: half of what is
/// left at each step, in four steps.
fn spectrum_points() -> impl Iterator<Item = f64> {
    (0..).map(|step| 100.0 * (1.0 - 0.5f64.powf(f64::from(step) / 4.0))).take_while(|percentile| *percentile < 99.9999)
}

/// Percentiles of one kind of time.
pub fn percentiles(times: &Times) -> Percentiles {
    let histogram = to_histogram(&times.buckets);
    let samples = histogram.len();
    if samples == 0 {
        let none = || Metric::absent("no operations of this type");
        return Percentiles {
            mean_ms: none(),
            p50_ms: none(),
            p95_ms: none(),
            p99_ms: none(),
            p999_ms: none(),
            max_ms: none(),
        };
    }
    let at = |percentile: f64| at_percentile(&histogram, percentile, times.max_ns);
    Percentiles {
        mean_ms: Metric::from(times.sum_ns as f64 / samples as f64 / 1e6),
        p50_ms: at(50.0),
        p95_ms: at(95.0),
        p99_ms: at(99.0),
        p999_ms: at(99.9),
        max_ms: Metric::from(times.max_ns as f64 / 1e6),
    }
}

fn at_percentile(histogram: &Histogram<u64>, percentile: f64, max_ns: u64) -> Metric {
    let beyond = histogram.len() as f64 * (100.0 - percentile) / 100.0;
    if beyond < SAMPLES_BEYOND {
        return Metric::absent(format!(
            "{} samples are too few for p{percentile}: fewer than {SAMPLES_BEYOND} lie beyond it",
            histogram.len()
        ));
    }
    Metric::from(value_ns(histogram, percentile, max_ns) as f64 / 1e6)
}

/// The upper end of the bucket, as HdrHistogram reports it, but never above the largest value seen.
fn value_ns(histogram: &Histogram<u64>, percentile: f64, max_ns: u64) -> u64 {
    histogram.value_at_percentile(percentile).min(max_ns)
}

fn spectrum(times: &Times) -> Vec<(f64, f64)> {
    let histogram = to_histogram(&times.buckets);
    let samples = histogram.len() as f64;
    let supported = |percentile: &f64| samples * (100.0 - percentile) / 100.0 >= 1.0;
    spectrum_points()
        .take_while(supported)
        .map(|percentile| (percentile, value_ns(&histogram, percentile, times.max_ns) as f64 / 1e6))
        .collect()
}

/// What each type of operation did; types that never ran are left out.
pub fn op_stats(infos: &[OpInfo], counts: &Counts) -> BTreeMap<String, OpStats> {
    let stats = |kind: &KindCounts| OpStats {
        count: kind.count,
        errors: kind.errors,
        retries: kind.retries,
        rows: kind.rows,
        service: percentiles(&kind.service),
        response: percentiles(&kind.response),
        spectrum: spectrum(&kind.response),
    };
    infos
        .iter()
        .zip(&counts.kinds)
        .filter(|(_, kind)| kind.count + kind.errors > 0)
        .map(|(info, kind)| (info.name.to_owned(), stats(kind)))
        .collect()
}

/// Response times of all types together.
pub fn all_responses(counts: &Counts) -> Times {
    let mut all = Times { sum_ns: 0, max_ns: 0, buckets: Vec::new() };
    for kind in &counts.kinds {
        if all.buckets.is_empty() {
            all.buckets.resize(kind.response.buckets.len(), 0);
        }
        all.sum_ns += kind.response.sum_ns;
        all.max_ns = all.max_ns.max(kind.response.max_ns);
        for (mine, theirs) in all.buckets.iter_mut().zip(&kind.response.buckets) {
            *mine += theirs;
        }
    }
    all
}

/// The histograms of an interval in the HdrHistogram V2 compressed encoding,
/// base64: tag, largest value in nanoseconds, text.
pub fn encode(infos: &[OpInfo], counts: &Counts) -> Vec<(String, u64, String)> {
    let mut serializer = V2DeflateSerializer::new();
    let mut encoded = Vec::new();
    for (info, kind) in infos.iter().zip(&counts.kinds) {
        for (what, times) in [("service", &kind.service), ("response", &kind.response)] {
            let histogram = to_histogram(&times.buckets);
            let mut bytes = Vec::new();
            // Writing into memory cannot fail; an empty histogram says nothing.
            if histogram.is_empty() || serializer.serialize(&histogram, &mut bytes).is_err() {
                continue;
            }
            let text = base64::engine::general_purpose::STANDARD.encode(&bytes);
            encoded.push((format!("{}.{what}", info.name), times.max_ns, text));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use rumba_core::worker::Op;

    use super::super::cells::{Cells, Collector};
    use super::*;

    const OPS: &[OpInfo] = &[OpInfo { name: "get", short: None }];

    fn counts(times_ns: impl Iterator<Item = u64>) -> Counts {
        let cells = std::sync::Arc::new(Cells::new(1));
        for ns in times_ns {
            cells.record(0, Op::default(), ns, ns, 0);
        }
        Collector::new(vec![cells], 1).collect()
    }

    #[test]
    fn percentiles_are_those_of_the_samples_and_never_above_the_largest() {
        let stats = percentiles(&counts((1..=100_000).map(|n| n * 1000)).kinds[0].service);
        let near = |metric: &Metric, ms: f64| (metric.value().unwrap() / ms - 1.0).abs() < 0.01;
        assert!(near(&stats.p50_ms, 50.0) && near(&stats.p99_ms, 99.0) && near(&stats.p999_ms, 99.9));
        assert_eq!(stats.max_ms, Metric::Value(100.0));
        assert!(stats.p999_ms.value() <= stats.max_ms.value());
    }

    #[test]
    fn a_percentile_that_few_samples_support_is_absent() {
        let stats = percentiles(&counts((1..=500).map(|n| n * 1000)).kinds[0].service);
        assert!(stats.p95_ms.value().is_some());
        assert_eq!(stats.p999_ms.value(), None, "p99.9 of 500 operations is not printed");
    }

    #[test]
    fn the_encoding_is_the_standard_one() {
        let encoded = encode(OPS, &counts([5_000, 7_000_000].into_iter()));
        let (tag, max_ns, text) = &encoded[0];
        assert_eq!((tag.as_str(), *max_ns), ("get.service", 7_000_000));
        assert!(text.starts_with("HISTFAAA"), "the prefix that HdrHistogram tools look for: {text}");
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(histogram.len(), 2);
    }
}
