//! The closing report, and that of a checkpoint.

use super::number::{ms, rank, seconds};
use super::{Latency, Layout, Snapshot, StatementTimes, Subject, ThreadTimes, progress};

/// How a closing report is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The wording.
    pub layout: Layout,
    /// Whether queries are reported.
    pub subject: Subject,
    /// Whether each thread is reported, too.
    pub debug: bool,
}

/// The whole report, from [`Closing::subject`]'s queries to the fairness of threads.
pub fn cumulative(snapshot: &Snapshot, closing: Closing) -> String {
    let sql = match closing.subject {
        Subject::Sql => queries(snapshot) + &snapshot.statements.as_ref().map_or_else(String::new, statements),
        Subject::Other => String::new(),
    };
    sql + &general(snapshot, closing)
}

/// The part that every test reports.
pub(super) fn general(snapshot: &Snapshot, closing: Closing) -> String {
    let each = if closing.debug { each_thread(&snapshot.threads) } else { String::new() };
    [
        progress::unfinished(snapshot.unfinished_events),
        throughput(snapshot, closing.layout),
        latency(snapshot),
        fairness(snapshot),
        each,
    ]
    .concat()
}

fn queries(snapshot: &Snapshot) -> String {
    let counts = &snapshot.counts;
    let all = counts.queries();
    let row = |name: &str, count: u64| {
        format!("    {:<36} {count:<6} ({:.2} per sec.)\n", format!("{name}:"), snapshot.per_s(count))
    };
    format!(
        "SQL statistics:
    queries performed:
        read:                            {}
        write:                           {}
        other:                           {}
        total:                           {all}
{}{}{}{}",
        counts.reads,
        counts.writes,
        counts.others,
        row("transactions", counts.events),
        row("queries", all),
        row("ignored errors", counts.ignored_errors),
        row("reconnects", counts.reconnects),
    )
}

/// The ignored errors by their codes, to be printed after the closing report; empty without any.
///
/// sysbench has no such lines, and a program that counts the report's numbers must not find them within it.
pub fn ignored_errors(snapshot: &Snapshot) -> String {
    if snapshot.errors_by_code.is_empty() {
        return String::new();
    }
    let codes = snapshot.errors_by_code.iter().map(|(code, count)| format!("    {:<36} {count}\n", format!("{code}:")));
    format!("Ignored errors by code:\n{}\n", codes.collect::<String>())
}

fn statements(times: &StatementTimes) -> String {
    let part = |title: &str, of: &Latency| {
        let rows = [("    min", of.min_ns), ("    avg", of.avg_ns), ("    max", of.max_ns), ("  total", of.sum_ns)];
        let rows =
            rows.map(|(name, ns)| format!("DEBUG: {name}:                                {:.4}s\n", seconds(ns)));
        format!("DEBUG: {title}:\n{}", rows.concat())
    };
    let executing = part("Query execution statistics", &times.executing);
    format!("DEBUG: \n{executing}{}", part("Results fetching statistics", &times.fetching))
}

fn throughput(snapshot: &Snapshot, layout: Layout) -> String {
    let (elapsed_s, events) = (snapshot.elapsed_s, snapshot.counts.events);
    match layout {
        Layout::V1_1 => format!(
            "
Throughput:
    events/s (eps):                      {:.4}
    time elapsed:                        {elapsed_s:.4}s
    total number of events:              {events}

",
            snapshot.events_per_s()
        ),
        Layout::V1_0 => format!(
            "
General statistics:
    total time:                          {elapsed_s:.4}s
    total number of events:              {events}

"
        ),
    }
}

fn latency(snapshot: &Snapshot) -> String {
    latency_in(snapshot, 52, |name, ns| format!("         {name}: {:39.2}\n", ms(ns)))
}

/// The latencies in columns of this width, with these rows.
pub(super) fn latency_in(snapshot: &Snapshot, columns: usize, row: impl Fn(&str, u64) -> String) -> String {
    let of = &snapshot.latency;
    let percentile = |percent: f64, latency_ms: f64| {
        let label = format!("        {:>3}th percentile:", rank(percent));
        // In 52 columns, the label of an integer leaves 27 for the digits. The decimal points are then in one column.
        format!("{label} {latency_ms:width$.2}\n", width = columns.saturating_sub(label.len()))
    };
    let percentiles = match snapshot.percentiles.as_slice() {
        [] => "         percentile stats:               disabled\n".to_owned(),
        all => all.iter().map(|of| percentile(of.percent, of.latency_ms)).collect(),
    };
    format!(
        "Latency (ms):\n{}{}{}{percentiles}{}\n",
        row("min", of.min_ns),
        row("avg", of.avg_ns),
        row("max", of.max_ns),
        row("sum", of.sum_ns)
    )
}

fn fairness(snapshot: &Snapshot) -> String {
    let even = snapshot.fairness();
    format!(
        "Threads fairness:
    events (avg/stddev):           {:.4}/{:.2}
    execution time (avg/stddev):   {:.4}/{:.2}

",
        even.events_avg, even.events_stddev, even.time_avg_s, even.time_stddev_s
    )
}

fn each_thread(threads: &[ThreadTimes]) -> String {
    let mut text = "DEBUG: Verbose per-thread statistics:\n\n".to_owned();
    for (thread, times) in threads.iter().enumerate() {
        let events = times.events;
        let min_ns = if events > 0 { times.min_ns } else { 0 };
        let avg_ns = times.sum_ns.checked_div(events).unwrap_or(0);
        text += &format!(
            "DEBUG:     thread #{thread:3}: min: {:.4}s  avg: {:.4}s  max: {:.4}s  events: {events}\n",
            seconds(min_ns),
            seconds(avg_ns),
            seconds(times.max_ns),
        );
        text +=
            &format!("DEBUG:                  total time taken by event execution: {:.4}s\n", seconds(times.sum_ns));
    }
    text + "\n"
}
