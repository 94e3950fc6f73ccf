//! The line of each `--report-interval`.

use super::number::rank;
use super::{Percentile, Queue, Snapshot, Subject};

/// The figures since the last such line; with `--rate`, a second line with the queue.
pub fn intermediate(snapshot: &Snapshot, subject: Subject) -> String {
    let Snapshot { elapsed_s, threads_running, .. } = snapshot;
    let latencies = latencies(snapshot);
    let line = match subject {
        Subject::Other => format!("thds: {threads_running} eps: {:.2} {latencies}", snapshot.events_per_s()),
        Subject::Sql => format!(
            "thds: {threads_running} tps: {:.2} {} {latencies} err/s: {:.2} reconn/s: {:.2}",
            snapshot.events_per_s(),
            queries(snapshot),
            snapshot.per_s(snapshot.counts.ignored_errors),
            snapshot.per_s(snapshot.counts.reconnects),
        ),
    };
    let queue = snapshot.queue.map_or_else(String::new, |queue| waiting(queue, *elapsed_s, subject));
    format!("[ {elapsed_s:.0}s ] {line}\n{queue}")
}

/// Queries in a second, of every kind.
pub(super) fn queries(snapshot: &Snapshot) -> String {
    let counts = &snapshot.counts;
    format!(
        "qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2})",
        snapshot.per_s(counts.queries()),
        snapshot.per_s(counts.reads),
        snapshot.per_s(counts.writes),
        snapshot.per_s(counts.others),
    )
}

/// Each requested percentile; without any, sysbench prints the shortest latency as the 0th.
pub(super) fn latencies(snapshot: &Snapshot) -> String {
    let show = |of: &Percentile| format!("lat (ms,{}%): {:.2}", rank(of.percent), of.latency_ms);
    match snapshot.percentiles.as_slice() {
        [] => show(&Percentile { percent: 0.0, latency_ms: 0.0 }),
        all => all.iter().map(show).collect::<Vec<_>>().join(" "),
    }
}

/// sysbench has a comma here, but only with SQL.
fn waiting(queue: Queue, elapsed_s: f64, subject: Subject) -> String {
    let Queue { length, concurrency } = queue;
    let comma = if subject == Subject::Sql { "," } else { "" };
    format!("[ {elapsed_s:.0}s ] queue length: {length}{comma} concurrency: {concurrency}\n")
}
