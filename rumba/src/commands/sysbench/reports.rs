//! The figures of reports: counts of a span and of each client.

use std::collections::BTreeMap;
use std::time::Duration;

use rumba_lab::run::buckets;
use rumba_lab::run::cells::{Counts as SpanCounts, Times};
use rumba_workload_sysbench::cli::Snapshot;
use rumba_workload_sysbench::cli::report::{Counts, Latency, Percentile, ThreadTimes};
use rumba_workload_sysbench::cli::settings::Settings;
use rumba_workload_sysbench::counters::{Counter, EventTimes};

use super::clients::Figures;

/// The clients' counts and the time at the last report, so that the next report covers what came after.
/// Each kind of report has its own, because one kind does not reset the other.
pub struct Since {
    at: Duration,
    figures: Figures,
    /// The events of the span and their times.
    pub span: SpanCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An interval. sysbench does not include single threads in it, nor their shortest and longest events.
    Intermediate,
    /// Everything since the last report of this kind, or since the start.
    Cumulative,
}

impl Since {
    /// A start at the present counts, at this time after the start.
    pub fn now(figures: Figures, at: Duration) -> Self {
        Self { at, figures, span: SpanCounts::new(1) }
    }

    /// Whether clients have counted statements.
    pub fn has_statements(&self) -> bool {
        [Counter::Read, Counter::Write, Counter::Other].iter().any(|of| self.figures.counters[*of as usize] > 0)
    }

    /// A report of the time since the last one, at `elapsed` after the start. Later events belong to the next report.
    pub fn notify(
        &mut self,
        kind: Kind,
        settings: &Settings,
        figures: Figures,
        running: u32,
        elapsed: Duration,
    ) -> Snapshot {
        let before = std::mem::replace(self, Self::now(figures, elapsed));
        let (now, earlier) = (&self.figures, &before.figures);
        let threads: Vec<ThreadTimes> = match kind {
            Kind::Intermediate => Vec::new(),
            // Before the first events there are no clients.
            Kind::Cumulative => {
                let earlier = earlier.times.iter().copied().chain(std::iter::repeat(EventTimes::default()));
                now.times.iter().zip(earlier).map(|(now, before)| times(*now, before)).collect()
            }
        };
        let since = |counter: Counter| now.counters[counter as usize].wrapping_sub(earlier.counters[counter as usize]);
        let response = &before.span.kinds[0].response;
        Snapshot {
            threads_running: running,
            interval_s: elapsed.saturating_sub(before.at).as_secs_f64(),
            elapsed_s: elapsed.as_secs_f64(),
            counts: Counts {
                // sysbench has one counter for both, which scripts can increment too.
                events: before.span.ops().wrapping_add(since(Counter::Transaction)),
                reads: since(Counter::Read),
                writes: since(Counter::Write),
                others: since(Counter::Other),
                not_found: now.not_found.saturating_sub(earlier.not_found),
                ignored_errors: since(Counter::Error),
                reconnects: since(Counter::Reconnect),
                bytes_read: since(Counter::BytesRead),
                bytes_written: since(Counter::BytesWritten),
            },
            latency: Latency::of(&threads),
            percentiles: percentiles(settings, response),
            queue: None,
            threads,
            unfinished_events: 0,
            statements: None,
            errors_by_code: difference(&now.errors, &earlier.errors),
            histogram: if settings.histogram { histogram(settings, response) } else { Vec::new() },
        }
    }
}

fn times(now: EventTimes, before: EventTimes) -> ThreadTimes {
    // The counts of a lost host are missing.
    ThreadTimes {
        events: now.events.saturating_sub(before.events),
        min_ns: now.min_ns,
        max_ns: now.max_ns,
        sum_ns: now.sum_ns.saturating_sub(before.sum_ns),
    }
}

/// How often each error was counted since then.
fn difference(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let since =
        |(code, count): (&String, &u64)| (code.clone(), count.saturating_sub(before.get(code).copied().unwrap_or(0)));
    now.iter().map(since).filter(|(_, count)| *count > 0).collect()
}

fn percentiles(settings: &Settings, response: &Times) -> Vec<Percentile> {
    let histogram = buckets::to_histogram(&response.buckets);
    let latency = |percent: f64| {
        let ns = histogram.value_at_quantile(percent / 100.0).min(response.max_ns);
        Percentile { percent, latency_ms: ns as f64 / 1e6 }
    };
    settings.percentiles.iter().map(|&percent| latency(percent)).collect()
}

fn histogram(settings: &Settings, response: &Times) -> Vec<rumba_workload_sysbench::cli::histogram::Bucket> {
    let mut histogram = settings.latencies();
    for value in buckets::to_histogram(&response.buckets).iter_recorded() {
        histogram.record_many(value.value_iterated_to() as f64 / 1e6, value.count_at_value());
    }
    histogram.buckets().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rumba_workload_sysbench::cli::OptionSet;
    use rumba_workload_sysbench::cli::options::Source;
    use rumba_workload_sysbench::counters::Counters;

    use super::*;

    /// A client that has counted this many events of this duration, each with a read and an error.
    fn events(client: &Counters, span: [&mut Since; 2], count: u64, ns: u64) {
        let [first, second] = span;
        for _ in 0..count {
            client.event(ns);
            client.count(Counter::Read);
            client.count(Counter::Error);
            client.error("1213".to_owned());
            first.span.kinds[0].count += 1;
            second.span.kinds[0].count += 1;
        }
    }

    #[test]
    fn script_transactions_are_reported_with_the_events() {
        let settings = Settings::read(&mut OptionSet::general()).unwrap().0;
        let clients = [Arc::<Counters>::default()];
        let [mut interval, mut all] = [(); 2].map(|()| Since::now(Figures::of(&clients), Duration::ZERO));
        events(&clients[0], [&mut interval, &mut all], 3, 5);
        clients[0].count_by(Counter::Transaction, 4);
        let reported = all.notify(Kind::Cumulative, &settings, Figures::of(&clients), 1, Duration::from_secs(1));
        assert_eq!((reported.counts.events, reported.threads[0].events, reported.latency.avg_ns), (7, 3, 5));
    }

    /// Events of 1 to 100 ms, one of each, so percentile N is N ms.
    #[test]
    fn reported_percentiles_follow_the_option_order() {
        let mut options = OptionSet::general();
        options.set("percentile", Some("99,50,12.5,100"), Source::CommandLine).unwrap();
        let settings = Settings::read(&mut options).unwrap().0;
        let clients = [Arc::<Counters>::default()];
        let mut all = Since::now(Figures::of(&clients), Duration::ZERO);
        (1..=100).for_each(|ms| all.span.kinds[0].response.add(ms * 1_000_000));
        let reported =
            all.notify(Kind::Cumulative, &settings, Figures::of(&clients), 1, Duration::from_secs(1)).percentiles;
        let requested: Vec<f64> = reported.iter().map(|of| of.percent).collect();
        assert_eq!(requested, [99.0, 50.0, 12.5, 100.0]);
        for (of, took_ms) in reported.iter().zip([99.0, 50.0, 13.0, 100.0]) {
            // No bucket is wider than this.
            assert!((of.latency_ms / took_ms - 1.0).abs() < 0.008, "{of:?} and not {took_ms} ms");
        }
    }

    /// A checkpoint once took counts away from the intervals, so that the next rates covered the whole time.
    #[test]
    fn checkpoint_starts_its_own_span_and_keeps_intervals() {
        let settings = Settings::read(&mut OptionSet::general()).unwrap().0;
        let clients = [Arc::<Counters>::default()];
        let at = Duration::from_secs;
        let (mut interval, mut all) =
            (Since::now(Figures::of(&clients), at(0)), Since::now(Figures::of(&clients), at(0)));
        let notify = |since: &mut Since, kind, s| {
            let reported = since.notify(kind, &settings, Figures::of(&clients), 1, at(s));
            if kind == Kind::Cumulative {
                clients[0].begin_extremes();
            }
            reported
        };
        events(&clients[0], [&mut interval, &mut all], 30, 5);
        assert_eq!(notify(&mut interval, Kind::Intermediate, 1).counts.reads, 30);
        events(&clients[0], [&mut interval, &mut all], 10, 4);
        let checkpoint = notify(&mut all, Kind::Cumulative, 3);
        assert_eq!((checkpoint.interval_s, checkpoint.counts.reads, checkpoint.latency.min_ns), (3.0, 40, 4));
        events(&clients[0], [&mut interval, &mut all], 6, 7);
        let second = notify(&mut interval, Kind::Intermediate, 4);
        assert_eq!((second.interval_s, second.counts.reads, second.counts.events), (3.0, 16, 16));
        assert_eq!((second.counts.ignored_errors, second.errors_by_code["1213"]), (16, 16));
        assert_eq!(second.latency, Latency::default(), "only closing reports contain it");
        let closing = notify(&mut all, Kind::Cumulative, 5);
        assert_eq!((closing.interval_s, closing.elapsed_s, closing.counts.reads), (2.0, 5.0, 6));
        assert_eq!(closing.latency, Latency { min_ns: 7, avg_ns: 7, max_ns: 7, sum_ns: 42 });
        assert_eq!((closing.threads[0].events, closing.errors_by_code["1213"]), (6, 6));
        assert!(notify(&mut all, Kind::Cumulative, 6).errors_by_code.is_empty());
    }
}
