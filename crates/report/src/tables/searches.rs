//! The searches for the highest rate that keeps a response time: where each ended.

use rumba_core::comparison::Summary;
use rumba_core::metric::Metric;
use rumba_core::search::{Found, Probe, Searched};

use crate::format::{counted, significant};

/// A line for each search; empty where there is none.
pub fn section(summary: &Summary) -> String {
    let lines: String = lines(summary).map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "\nHighest rate that keeps a response time\n{lines}  each figure above is of the highest rate that was kept; of every \
         type of operation that is at least 5% of all, the rate served and nothing left open\n"
    )
}

/// `rocksdb, 8 clients, repeat 1, max(p99 < 10 ms): 1440/s, and not 1466/s (p99 10.2 ms); 6 probes`.
pub fn lines(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    summary.searches.iter().map(|found| {
        let Searched { engine, repeat, search, probes, .. } = found;
        let clients = counted(found.clients as usize, "client");
        let ended = if found.ended { "" } else { "; cut off before its end" };
        let probed = counted(probes.len(), "probe");
        format!("{engine}, {clients}, repeat {repeat}, {search}: {}; {probed}{ended}", limits(found))
    })
}

fn limits(found: &Searched) -> String {
    let with_reason = |rate: &f64, kind: Found| {
        let is_it = |probe: &&Probe| probe.found == kind && probe.rate == Some(*rate);
        let reason = found.probes.iter().find(is_it).map(|probe| format!(" ({})", probe.reason));
        format!("{}/s{}", significant(*rate), reason.unwrap_or_default())
    };
    let highest = match &found.highest {
        Metric::Value(rate) => with_reason(rate, Found::Kept),
        Metric::Absent { absent } => absent.clone(),
    };
    let missed = match &found.lowest_missed {
        Metric::Value(rate) => format!(", and not {}", with_reason(rate, Found::Missed)),
        Metric::Absent { .. } => String::new(),
    };
    format!("{highest}{missed}")
}
