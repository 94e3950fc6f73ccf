//! What happened, as reports tell it: counts of a span and of each client.

use std::sync::Arc;
use std::time::Duration;

use rumba_lab::run::buckets;
use rumba_lab::run::cells::{Counts as SpanCounts, Times};
use rumba_sysbench::Snapshot;
use rumba_sysbench::report::{Counts, Latency, Percentile, Queue, ThreadTimes};
use rumba_sysbench::settings::Settings;
use rumba_workload_sysbench::counters::{COUNTERS, Counter, Counters, total};

/// What was told last, so that the next report tells what came after.
pub struct Since {
    counters: [u64; COUNTERS],
    at: Duration,
    /// Events of the span, their times.
    pub span: SpanCounts,
}

impl Since {
    /// From the start.
    pub fn start() -> Self {
        Self { counters: [0; COUNTERS], at: Duration::ZERO, span: SpanCounts::new(1) }
    }

    /// A report of what happened since the last, `elapsed` after the start.
    pub fn tell(
        &mut self,
        settings: &Settings,
        clients: &[Arc<Counters>],
        running: u32,
        elapsed: Duration,
        queue: Option<Queue>,
    ) -> Snapshot {
        let now = total(clients.iter().map(Arc::as_ref));
        let before = std::mem::replace(&mut self.counters, now);
        let interval = elapsed.saturating_sub(std::mem::replace(&mut self.at, elapsed));
        let span = std::mem::replace(&mut self.span, SpanCounts::new(1));
        let since = |counter: Counter| now[counter as usize].saturating_sub(before[counter as usize]);
        let response = &span.kinds[0].response;
        let threads: Vec<ThreadTimes> = clients.iter().map(|client| times(client)).collect();
        Snapshot {
            threads_running: running,
            interval_s: interval.as_secs_f64(),
            elapsed_s: elapsed.as_secs_f64(),
            counts: Counts {
                events: span.ops(),
                reads: since(Counter::Read),
                writes: since(Counter::Write),
                others: since(Counter::Other),
                ignored_errors: since(Counter::Error),
                reconnects: since(Counter::Reconnect),
                bytes_read: since(Counter::BytesRead),
                bytes_written: since(Counter::BytesWritten),
            },
            latency: Latency::of(&threads),
            percentiles: percentiles(settings, response),
            queue,
            threads,
            unfinished_events: 0,
            statements: None,
            errors_by_code: errors(clients),
            histogram: if settings.histogram { histogram(settings, response) } else { Vec::new() },
        }
    }
}

fn times(client: &Counters) -> ThreadTimes {
    let times = client.times();
    ThreadTimes { events: times.events, min_ns: times.min_ns, max_ns: times.max_ns, sum_ns: times.sum_ns }
}

fn percentiles(settings: &Settings, response: &Times) -> Vec<Percentile> {
    let histogram = buckets::to_histogram(&response.buckets);
    let latency = |percent: f64| {
        let ns = histogram.value_at_quantile(percent / 100.0).min(response.max_ns);
        Percentile { percent, latency_ms: ns as f64 / 1e6 }
    };
    settings.percentiles.iter().map(|&percent| latency(percent)).collect()
}

fn histogram(settings: &Settings, response: &Times) -> Vec<rumba_sysbench::histogram::Bucket> {
    let mut histogram = settings.latencies();
    for value in buckets::to_histogram(&response.buckets).iter_recorded() {
        histogram.record_many(value.value_iterated_to() as f64 / 1e6, value.count_at_value());
    }
    histogram.buckets().collect()
}

fn errors(clients: &[Arc<Counters>]) -> std::collections::BTreeMap<String, u64> {
    clients.iter().fold(std::collections::BTreeMap::new(), |mut all, client| {
        client.errors().into_iter().for_each(|(code, count)| *all.entry(code).or_default() += count);
        all
    })
}
