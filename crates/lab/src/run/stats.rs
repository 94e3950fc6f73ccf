//! Turns counts into a record's statistics: percentiles, spectrum, standard logs.

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use rumba_engine_api::workload::{OpInfo, ResponseLimit};
use rumba_results::metric::{Metric, TOO_FEW_SAMPLES};
use rumba_results::record::{LatencySlo, OpStats, Percentiles};
use rumba_results::statements::StatementTotals;

use super::buckets::{LARGEST_NS, index, limit_ns, to_histogram};
use super::cells::{Counts, KindCounts, Times};
use super::tail::{Tail, Unended};

/// A percentile is reported when at least this many samples lie above it.
const SAMPLES_BEYOND: f64 = 10.0;
/// Why a type has no statistics.
const NONE: &str = "no operations of this type";

/// The points of a spectrum, as in HdrHistogram's plots: half of the remainder at each step, in four steps.
fn spectrum_points() -> impl Iterator<Item = f64> {
    (0..).map(|step| 100.0 * (1.0 - 0.5f64.powf(f64::from(step) / 4.0))).take_while(|percentile| *percentile < 99.9999)
}

/// Percentiles of service or response times, if all operations have ended.
pub fn percentiles(times: &Times) -> Percentiles {
    percentiles_but(times, &Unended::default())
}

/// Percentiles if some operations have not ended. A percentile is known if it lies below the shortest time of an open
/// operation at the cut. All open operations will end above it.
fn percentiles_but(times: &Times, unended: &Unended) -> Percentiles {
    let known = Known::new(times, unended);
    Percentiles {
        mean_ms: known.over_all(times.sum_ns as f64 / known.samples() as f64),
        p50_ms: known.at(50.0),
        p95_ms: known.at(95.0),
        p99_ms: known.at(99.0),
        p999_ms: known.at(99.9),
        max_ms: known.over_all(times.max_ns as f64),
    }
}

/// Times, and how far they are known.
struct Known<'a> {
    /// All times, with open operations at their time until the cut.
    histogram: Histogram<u64>,
    max_ns: u64,
    unended: &'a Unended,
}

impl<'a> Known<'a> {
    fn new(times: &Times, unended: &'a Unended) -> Self {
        let mut histogram = to_histogram(&times.buckets);
        // In range by construction; the saturating call has no error to handle.
        histogram.saturating_record_n(unended.shortest_ns.clamp(1, LARGEST_NS), unended.apart);
        Self { histogram, max_ns: times.max_ns.max(unended.longest_ns), unended }
    }

    fn samples(&self) -> u64 {
        self.histogram.len()
    }

    fn unknown(&self) -> Metric {
        let share = 100.0 * self.unended.count() as f64 / self.samples() as f64;
        let longest_ms = self.unended.longest_ns as f64 / 1e6;
        Metric::absent(format!(
            "{share:.1}% of the operations had not ended at the end, after up to {longest_ms:.0} ms"
        ))
    }

    /// A statistic in nanoseconds to which all times contribute.
    fn over_all(&self, ns: f64) -> Metric {
        match (self.samples(), self.unended.count()) {
            (0, _) => Metric::absent(NONE),
            (_, 0) => Metric::from(ns / 1e6),
            _ => self.unknown(),
        }
    }

    /// The upper end of the bucket, as HdrHistogram reports it, but never above the largest value seen; `None` if an
    /// open operation may end below it.
    fn value_ns(&self, percentile: f64) -> Option<u64> {
        let value_ns = self.histogram.value_at_percentile(percentile);
        let is_known = self.unended.count() == 0 || index(value_ns) < index(self.unended.shortest_ns);
        is_known.then_some(value_ns.min(self.max_ns))
    }

    fn at(&self, percentile: f64) -> Metric {
        let samples = self.samples();
        if samples == 0 {
            return Metric::absent(NONE);
        }
        if samples as f64 * (100.0 - percentile) / 100.0 < SAMPLES_BEYOND {
            return Metric::absent(format!(
                "{samples} {TOO_FEW_SAMPLES} for p{percentile}: fewer than {SAMPLES_BEYOND} lie beyond it"
            ));
        }
        self.value_ns(percentile).map_or_else(|| self.unknown(), |ns| Metric::from(ns as f64 / 1e6))
    }

    /// The percentage of operations that succeeded within the limit; `given_up` failed within it. Unknown if an open
    /// operation may still meet the limit.
    fn within_percent(&self, limit: &ResponseLimit, given_up: u64) -> Metric {
        let limit_ns = limit_ns(limit);
        if self.samples() == 0 {
            return Metric::absent(NONE);
        }
        if self.unended.count() > 0 && index(limit_ns) >= index(self.unended.shortest_ns) {
            return self.unknown();
        }
        let within = self.histogram.count_between(0, limit_ns).saturating_sub(given_up);
        Metric::from(100.0 * within as f64 / self.samples() as f64)
    }

    fn spectrum(&self) -> Vec<(f64, f64)> {
        let samples = self.samples() as f64;
        let supported = |percentile: &f64| samples * (100.0 - percentile) / 100.0 >= 1.0;
        let at = |percentile| Some((percentile, self.value_ns(percentile)? as f64 / 1e6));
        spectrum_points().take_while(supported).map_while(at).collect()
    }
}

/// The statistics of each operation type, in a span and in its tail; types without operations are left out.
pub fn op_stats(infos: &[OpInfo], counts: &Counts, tail: Option<&Tail>) -> BTreeMap<String, OpStats> {
    let begun = |kind: usize| {
        let late = tail.map_or(0, |tail| tail.ended_late(kind) + tail.open_count(kind));
        counts.kinds[kind].count + counts.kinds[kind].errors + late
    };
    let all: u64 = (0..counts.kinds.len()).map(begun).sum();
    let kinds = infos.iter().enumerate().filter(|(kind, _)| begun(*kind) > 0);
    kinds
        .map(|(kind, info)| {
            let share = begun(kind) as f64 / all as f64;
            (info.name.to_string(), kind_stats(kind, info, &counts.kinds[kind], share, tail))
        })
        .collect()
}

/// The same for one type, which has this share of all operations.
fn kind_stats(kind: usize, info: &OpInfo, counts: &KindCounts, share: f64, tail: Option<&Tail>) -> OpStats {
    let mut times = counts.clone();
    let (mut service, mut response) = (Unended::default(), Unended::default());
    if let Some(tail) = tail {
        tail.enter(kind, &mut times);
        (service, response) = (tail.unended_service(kind), tail.unended_response(kind, share));
    }
    let known = Known::new(&times.response, &response);
    let kept =
        |limit: ResponseLimit| LatencySlo { within_percent: known.within_percent(&limit, times.errors_within), limit };
    OpStats {
        short: info.short.clone(),
        rate: info.rate.clone(),
        limit: info.limit.clone().map(kept),
        count: counts.count,
        errors: times.errors,
        retries: times.retries,
        rows: counts.rows,
        statements: StatementTotals::counted(times.statements),
        ended_late: tail.map_or(0, |tail| tail.ended_late(kind)),
        open: tail.map_or(0, |tail| tail.open_count(kind)),
        service: percentiles_but(&times.service, &service),
        response: percentiles_but(&times.response, &response),
        spectrum: known.spectrum(),
    }
}

pub fn all_responses(counts: &Counts) -> Times {
    let mut all = Times::default();
    counts.kinds.iter().for_each(|kind| all.merge(&kind.response));
    all
}

/// The histograms of an interval in the HdrHistogram V2 compressed encoding, base64: tag, largest value in nanoseconds,
/// text.
pub fn encode(infos: &[OpInfo], counts: &Counts) -> Vec<(String, u64, String)> {
    let mut serializer = V2DeflateSerializer::new();
    let mut encoded = Vec::new();
    for (info, kind) in infos.iter().zip(&counts.kinds) {
        for (what, times) in [("service", &kind.service), ("response", &kind.response)] {
            let histogram = to_histogram(&times.buckets);
            let mut bytes = Vec::new();
            // Writing into memory cannot fail; an empty histogram is left out.
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
    use rumba_engine_api::worker::Op;

    use super::super::cells::{Cells, Collector};
    use super::super::cut::{Censored, Open};
    use super::*;

    const OPS: &[OpInfo] = &[OpInfo::new("get")];

    fn counts(times_ns: impl Iterator<Item = u64>) -> Counts {
        let cells = std::sync::Arc::new(Cells::new(1));
        for ns in times_ns {
            cells.record(0, Op::default(), ns, ns, 0);
        }
        Collector::new(vec![cells], 1).collect()
    }

    #[test]
    fn percentiles_match_samples_and_never_exceed_the_maximum() {
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

    /// A tail in which no operation ended, these operations are open, and this many arrivals have waited 40 ms and
    /// more.
    fn tail(open_ms: &[u64], not_begun: u64) -> Tail {
        let open = |ms: &u64| Open { kind: 0, service_ns: ms * 1_000_000, response_ns: ms * 1_000_000 };
        let not_begun_ns = (not_begun > 0).then_some((40_000_000, 90_000_000));
        let censored = Censored { open: open_ms.iter().map(open).collect(), not_begun, not_begun_ns };
        Tail::new(std::time::Duration::from_secs(1), Counts::new(1), censored)
    }

    #[test]
    fn percentile_is_omitted_if_an_open_operation_could_change_it() {
        // 19,600 operations of 1 ms, 200 of 20 ms; 200 are open.
        let ended = || (0..19_600).map(|_| 1_000_000).chain((0..200).map(|_| 20_000_000));
        let stats =
            |open_ms: u64| op_stats(OPS, &counts(ended()), Some(&tail(&[open_ms; 200], 0))).remove("get").unwrap();
        let long = stats(50);
        assert_eq!((long.count, long.open), (19_800, 200));
        assert!(long.response.p50_ms.value().is_some_and(|ms| ms < 1.01));
        assert!(
            long.response.p99_ms.value().is_some_and(|ms| (20.0..20.2).contains(&ms)),
            "{:?}",
            long.response.p99_ms
        );
        let reason = "1.0% of the operations had not ended at the end, after up to 50 ms";
        for unknown in [&long.response.p999_ms, &long.response.max_ms, &long.response.mean_ms, &long.service.p999_ms] {
            assert_eq!(unknown.reason(), Some(reason));
        }
        assert!(long.spectrum.iter().all(|(_, ms)| *ms < 21.0), "the spectrum ends where knowledge does");
        // Open for only 5 ms: they may end below or above the 20 ms of others.
        let short = stats(5);
        assert!(short.response.p95_ms.value().is_some() && short.response.p99_ms.value().is_none());
    }

    #[test]
    fn unbegun_arrivals_count_against_each_type_by_its_share() {
        const TWO: &[OpInfo] = &[OpInfo::new("get"), OpInfo::new("put")];
        let cells = std::sync::Arc::new(Cells::new(2));
        for number in 0..10_000 {
            cells.record(usize::from(number % 4 == 0), Op::default(), 1_000_000, 1_000_000, 0);
        }
        let counts = Collector::new(vec![cells], 2).collect();
        let reported = op_stats(TWO, &counts, Some(&tail(&[], 1_000)));
        for (name, percent) in [("get", "9.1%"), ("put", "9.1%")] {
            let response = &reported[name].response;
            assert!(response.p50_ms.value().is_some(), "{response:?}");
            assert!(response.p95_ms.reason().is_some_and(|reason| reason.starts_with(percent)), "{response:?}");
            assert!(reported[name].service.max_ms.value().is_some(), "what was not begun has no service time");
        }
        assert_eq!(op_stats(TWO, &counts, Some(&tail(&[], 0)))["get"].ended_late, 0);
    }

    #[test]
    fn a_limit_is_held_against_every_response_that_is_known() {
        let info = |seconds| [OpInfo::new("get").with_limit(ResponseLimit { percent: 90.0, seconds })];
        let times = || (0..800).map(|_| 1_000_000).chain((0..200).map(|_| 20_000_000));
        let kept = |seconds, tail: Option<&Tail>| {
            op_stats(&info(seconds), &counts(times()), tail).remove("get").unwrap().limit.unwrap()
        };
        let (short, long) = (kept(0.01, None), kept(0.03, None));
        assert_eq!((short.within_percent.clone(), short.is_kept()), (Metric::Value(80.0), Some(false)));
        assert_eq!((long.within_percent.clone(), long.is_kept()), (Metric::Value(100.0), Some(true)));
        // Still open after 15 ms: above the first limit for sure, and unknown for the second.
        let open = tail(&[15; 1000], 0);
        assert_eq!(kept(0.01, Some(&open)).within_percent, Metric::Value(40.0));
        assert_eq!(kept(0.03, Some(&open)).is_kept(), None);
    }

    /// Guards against counting fast failures as answers in time, by which an engine that refuses quickly met every
    /// limit.
    #[test]
    fn failed_operations_are_never_within_the_limit() {
        let info = [OpInfo::new("get").with_limit(ResponseLimit { percent: 90.0, seconds: 0.01 })];
        let cells = std::sync::Arc::new(Cells::new(1));
        cells.hold_to(&info);
        let mut collector = Collector::new(vec![cells.clone()], 1);
        let mut record = |times: u64, ms: u64, failed: bool| {
            (0..times).for_each(|_| cells.record(0, Op { failed, ..Op::default() }, ms * 1_000_000, ms * 1_000_000, 0));
            collector.collect()
        };
        let mut counts = record(850, 1, false);
        counts.merge(&record(100, 1, true));
        counts.merge(&record(50, 20, true));
        let mut late = tail(&[], 0);
        late.ended = record(1000, 2, true);
        let within = |tail: Option<&Tail>| op_stats(&info, &counts, tail).remove("get").unwrap().limit.unwrap();
        assert_eq!(within(None).within_percent, Metric::Value(85.0));
        assert_eq!(within(Some(&late)).within_percent, Metric::Value(42.5));
    }

    #[test]
    fn late_operations_count_in_times_and_not_in_the_rate() {
        let mut tail = tail(&[], 0);
        tail.ended = counts([3_000_000_000].into_iter());
        tail.ended.kinds[0].errors = 2;
        let stats = op_stats(OPS, &counts((0..100).map(|_| 1_000_000)), Some(&tail)).remove("get").unwrap();
        assert_eq!((stats.count, stats.ended_late, stats.errors), (100, 3, 2));
        assert_eq!(stats.response.max_ms, Metric::Value(3_000.0));
        let reported = tail.reported();
        assert_eq!((reported.ended, reported.open, reported.not_begun), (3, 0, 0));
    }
}
