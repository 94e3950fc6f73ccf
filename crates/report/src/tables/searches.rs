//! The searches for the highest rate that keeps a response time, with their results.

use rumba_results::comparison::Summary;
use rumba_results::metric::Metric;
use rumba_results::search::{Found, Probe, Purpose, Searched};

use crate::format::{counted, significant};

/// A line for each search; empty if there is none.
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

/// `rocksdb, 8 clients, repeat 1, max(p99 < 10 ms): 1440/s (p99 was 9.1 ms, confirmed), and not 1451/s (p99 was 10.2
/// ms); 12 probes, of them 5 to confirm, 1 to repeat one that was disturbed`.
pub fn lines(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    summary.searches.iter().map(|found| {
        let Searched { engine, repeat, search, .. } = found;
        let clients = counted(found.clients as usize, "client");
        let ended = if found.ended { "" } else { "; cut off before its end" };
        format!("{engine}, {clients}, repeat {repeat}, {search}: {}; {}{ended}", limits(found), probes(&found.probes))
    })
}

/// The number of probes by purpose.
fn probes(all: &[Probe]) -> String {
    let of = |purpose: Purpose| all.iter().filter(|probe| probe.purpose == purpose).count();
    let reported =
        [(of(Purpose::Confirmation), "to confirm"), (of(Purpose::Repetition), "to repeat one that was disturbed")];
    let reported: Vec<String> =
        reported.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let all = counted(all.len(), "probe");
    if reported.is_empty() { all } else { format!("{all}, of them {}", reported.join(", ")) }
}

fn limits(found: &Searched) -> String {
    // The last probe of a rate is the one that confirmed it.
    let reason = |rate: &f64, kind: Found| {
        let is_it = |probe: &&Probe| probe.found == kind && probe.rate == Some(*rate);
        found.probes.iter().rfind(is_it).map_or("", |probe| probe.reason.as_str())
    };
    let highest = match &found.highest {
        Metric::Value(rate) => {
            let confirmed = if found.confirmed { "confirmed" } else { "not confirmed" };
            format!("{}/s ({}, {confirmed})", significant(*rate), reason(rate, Found::Kept))
        }
        Metric::Absent { absent } => absent.clone(),
    };
    let missed = match &found.lowest_missed {
        Metric::Value(rate) => format!(", and not {}/s ({})", significant(*rate), reason(rate, Found::Missed)),
        Metric::Absent { .. } => String::new(),
    };
    format!("{highest}{missed}")
}

#[cfg(test)]
mod tests {
    use rumba_results::search::{Percentile, Search};

    use super::*;

    #[test]
    fn line_reports_the_bracket_and_the_purpose_of_its_probes() {
        let probe = |rate, purpose, found, reason: &str| Probe {
            trial: 1,
            rate,
            ops_per_s: Metric::Value(1.0),
            percentile_ms: Metric::Value(1.0),
            purpose,
            found,
            reason: reason.to_owned(),
            disturbed: None,
        };
        use {Found::*, Purpose::*};
        let mut found = Searched {
            engine: "a".to_owned(),
            clients: 8,
            repeat: 1,
            search: Search { percentile: Percentile::P99, limit_ms: 10.0 },
            probes: vec![
                probe(None, Step, Reference, "a closed loop served 1000/s"),
                probe(Some(750.0), Step, Kept, "p99 was 8.0 ms"),
                probe(Some(756.0), Step, Disturbed, "p99 was 90.0 ms; disturbed: by others"),
                probe(Some(756.0), Repetition, Missed, "p99 was 10.1 ms"),
                probe(Some(756.0), Confirmation, Missed, "p99 was 10.2 ms"),
                probe(Some(750.0), Confirmation, Kept, "p99 was 8.1 ms"),
            ],
            highest: Metric::Value(750.0),
            confirmed: true,
            lowest_missed: Metric::Value(756.0),
            trial: Some(6),
            ended: true,
        };
        let line = |found: &Searched| {
            let summary = Summary { searches: vec![found.clone()], ..Summary::default() };
            lines(&summary).collect::<String>()
        };
        assert_eq!(
            line(&found),
            "a, 8 clients, repeat 1, max(p99 < 10 ms): 750/s (p99 was 8.1 ms, confirmed), and not 756/s (p99 was 10.2 ms); \
             6 probes, of them 2 to confirm, 1 to repeat one that was disturbed"
        );
        found.probes.truncate(2);
        (found.confirmed, found.ended) = (false, false);
        found.lowest_missed = Metric::absent("no rate missed it");
        assert_eq!(
            line(&found),
            "a, 8 clients, repeat 1, max(p99 < 10 ms): 750/s (p99 was 8.0 ms, not confirmed); 2 probes; cut off before \
             its end"
        );
    }
}
