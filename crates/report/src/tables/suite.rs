//! A suite in a few lines: how far its tests reach, and what the slower ones cost.

use std::fmt::Write as _;

use rumba_results::comparison::{RelativeRow, Summary};
use rumba_results::ratio::Change;

use crate::format::{counted, ratio};

/// The costs that are reported for slower tests.
const COSTS: [(&str, &str); 3] =
    [("cpu_us_per_op", "CPU/op"), ("ctx_switches_per_op", "context switches/op"), ("wkb_per_op", "KB written/op")];

/// For each engine and number of clients: the smallest, median and largest relative rate of its tests, then the costs of
/// the tests with a lower rate. Empty with fewer than two tests.
pub fn group_lines(summary: &Summary, baseline: &str) -> String {
    let mut text = String::new();
    for clients in summary.clients() {
        for engine in summary.engines_alone() {
            let of_engine = summary.rows.iter().filter(|row| row.engine_alone() == engine && row.clients == clients);
            let tests = of_engine.filter_map(|row| {
                let judged = summary.relative(baseline, &row.engine, clients)?;
                Some((row.test.as_deref()?, judged.metric("ops_per_s")?.ratio.value()?, judged))
            });
            let mut tests: Vec<_> = tests.collect();
            tests.sort_by(|(_, one, _), (_, other, _)| one.total_cmp(other));
            if let [(slowest, least, _), .., (fastest, most, _)] = tests[..] {
                let median = f64::midpoint(tests[(tests.len() - 1) / 2].1, tests[tests.len() / 2].1);
                let (least, median, most) = (ratio(least), ratio(median), ratio(most));
                let head = format!("{engine}, {}", summary.clients_in_words(clients));
                let count = counted(tests.len(), "test");
                let _ = writeln!(
                    text,
                    "  {head}, tps of {count}: {least} ({slowest}), median {median}, {most} ({fastest})"
                );
                text.extend(tests.iter().filter_map(|(test, rate, judged)| slower(test, *rate, judged)));
            }
        }
    }
    text
}

/// `    slower in read-only: tps 0.80; CPU/op 1.20, KB written/op 1.00`, if the verdict is worse.
fn slower(test: &str, rate: f64, judged: &RelativeRow) -> Option<String> {
    if judged.metric("ops_per_s")?.change != Change::Worse {
        return None;
    }
    let cost = |(metric, name): &(&str, &str)| Some(format!("{name} {}", ratio(judged.metric(metric)?.ratio.value()?)));
    let costs: Vec<String> = COSTS.iter().filter_map(cost).collect();
    Some(format!("    slower in {test}: tps {}; {}\n", ratio(rate), costs.join(", ")))
}
