//! The alternative reports of a script's hooks: `sysbench.report_default`, `report_csv` and `report_json`.

use super::Snapshot;
use super::intermediate::{latencies, queries};

/// A line in sysbench's usual form: that of [`super::intermediate`], but with a colon after `err/s`, and always with
/// queries.
pub fn default_line(snapshot: &Snapshot) -> String {
    format!(
        "[ {:.0}s ] thds: {} tps: {:.2} {} {} err/s {:.2} reconn/s: {:.2}\n",
        snapshot.elapsed_s,
        snapshot.threads_running,
        snapshot.events_per_s(),
        queries(snapshot),
        latencies(snapshot),
        snapshot.per_s(snapshot.counts.ignored_errors),
        snapshot.per_s(snapshot.counts.reconnects),
    )
}

/// A line of seconds, threads, events, queries, reads, writes, others, latency in ms, errors, reconnects. All except
/// the first two and the latency are rates per second. The latency is the first percentile.
pub fn csv_line(snapshot: &Snapshot) -> String {
    let counts = &snapshot.counts;
    let per_s = [counts.events, counts.queries(), counts.reads, counts.writes, counts.others];
    let per_s: Vec<String> = per_s.map(|count| format!("{:.2}", snapshot.per_s(count))).into();
    format!(
        "{:.0},{},{},{:.2},{:.2},{:.2}\n",
        snapshot.elapsed_s,
        snapshot.threads_running,
        per_s.join(","),
        first_latency_ms(snapshot),
        snapshot.per_s(counts.ignored_errors),
        snapshot.per_s(counts.reconnects),
    )
}

/// The end of the array of [`json_row`]s, printed when a Lua state that has printed any is closed.
pub const JSON_END: &str = "\n]\n";

/// An object of a JSON array, preceded by the array's beginning or a comma.
pub fn json_row(snapshot: &Snapshot, is_first: bool) -> String {
    let counts = &snapshot.counts;
    let before = if is_first { "[" } else { "," };
    format!(
        r#"{before}
  {{
    "time": {:4.0},
    "threads": {},
    "tps": {:.2},
    "qps": {{
      "total": {:.2},
      "reads": {:.2},
      "writes": {:.2},
      "other": {:.2}
    }},
    "latency": {:.2},
    "errors": {:.2},
    "reconnects": {:.2}
  }}"#,
        snapshot.elapsed_s,
        snapshot.threads_running,
        snapshot.events_per_s(),
        snapshot.per_s(counts.queries()),
        snapshot.per_s(counts.reads),
        snapshot.per_s(counts.writes),
        snapshot.per_s(counts.others),
        first_latency_ms(snapshot),
        snapshot.per_s(counts.ignored_errors),
        snapshot.per_s(counts.reconnects),
    )
}

fn first_latency_ms(snapshot: &Snapshot) -> f64 {
    snapshot.percentiles.first().map_or(0.0, |of| of.latency_ms)
}
