//! Finds the engine with the least of each resource, and with the most operations.

use std::fmt::Write as _;

use rumba_results::comparability::why_not_ranked;
use rumba_results::comparison::{Figure, Part, Row, Summary};
use rumba_results::headline::CpuHeadline;
use rumba_results::prices::PRICED;
use rumba_results::ratio::{Change, HEADLINE_CPU};
use rumba_results::starts::{Scope, Starts};
use serde::Serialize;

use crate::format::{RESOLUTION, SizeUnit, price, significant};

/// One question and the engine that answers it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The number of clients.
    pub clients: u32,
    /// The question: `least written per operation`.
    pub question: &'static str,
    /// The metric that answers it.
    pub metric: &'static str,
    /// The engine with the best median.
    pub engine: String,
    /// That median with its unit.
    pub value: String,
    /// Engines that the exact test does not find worse, or whose medians are within a percent: no significant
    /// difference.
    pub close: Vec<String>,
    /// Whether it is a single run; with one repeat no difference is significant, however large.
    pub single_run: bool,
    /// The scope of the verdict: other loads too, or this load only.
    pub scope: Scope,
    /// Engines left out, each with the reason.
    pub left_out: Vec<String>,
    /// The reason why CPU is that of clients and engine, and not that of the host, which includes kernel work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not_host: Option<String>,
}

/// A question, whether more is better, and the metrics that answer it in order of preference: the first that every
/// engine has. Metrics that include deferred work come first.
const QUESTIONS: [(&str, bool, &[&str]); 5] = [
    ("most operations per second", true, &["ops_per_s"]),
    ("least written per operation", false, &["wkb_per_op_with_drain", "wkb_per_op", "proc_wkb_per_op"]),
    ("least CPU per operation", false, &[HEADLINE_CPU[0], HEADLINE_CPU[1], "cpu_us_per_op"]),
    ("smallest on disk, without logs", false, &["data_bytes"]),
    ("cheapest, for a million operations", false, &[PRICED[0]]),
];

/// The verdicts per number of clients; empty if fewer than two engines can be compared.
pub fn verdicts(summary: &Summary) -> Vec<Verdict> {
    let mut all = Vec::new();
    for clients in summary.clients() {
        // A suite has too many tests for sentences; the table of ratios has them.
        let of_clients = |row: &&Row| row.clients == clients && row.test.is_none();
        let rows: Vec<&Row> = summary.rows.iter().filter(of_clients).collect();
        for (question, more, metrics) in QUESTIONS {
            all.extend(verdict(summary, &rows, clients, question, more, metrics));
        }
    }
    all
}

fn verdict(
    summary: &Summary,
    rows: &[&Row],
    clients: u32,
    question: &'static str,
    more: bool,
    metrics: &'static [&'static str],
) -> Option<Verdict> {
    let (fit, mut left_out) = contestants(rows);
    let cpu = CpuHeadline::of_rows(fit.iter().copied());
    let has = |row: &&Row, metric: &str| figure(row, metric).is_some();
    let metric = metrics
        .iter()
        .filter(|metric| !(**metric == HEADLINE_CPU[0] && cpu.excludes(metric)))
        .copied()
        .find(|metric| fit.iter().all(|row| has(row, metric)))
        .or_else(|| {
            metrics
                .iter()
                .copied()
                .filter(|metric| !cpu.excludes(metric))
                .max_by_key(|metric| fit.iter().filter(|row| has(row, metric)).count())
        })?;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for row in fit {
        match figure(row, metric).and_then(|figure| Some((figure, figure.median.value()?))) {
            Some((figure, median)) => entries.push((row, figure, median)),
            None => left_out.push(format!("{} has no {metric}", row.engine)),
        }
    }
    let mut entries = comparable(summary, entries, metric, &mut left_out);
    if entries.len() < 2 {
        return None;
    }
    entries.sort_by(|a, b| if more { b.2.total_cmp(&a.2) } else { a.2.total_cmp(&b.2) });
    let (best, _, median) = entries[0];
    // A price is small in any currency, and not measured by a counter with a resolution.
    if !PRICED.contains(&metric) && entries.iter().all(|(.., median)| *median < RESOLUTION) {
        return None;
    }
    let against = compression_against(summary, best, &entries[1..], metric);
    let near = |other: f64| (other - median).abs() <= median.abs() * 0.01;
    let tested = |row: &Row| summary.relative(&best.engine, &row.engine, clients)?.metric(metric);
    let change = |row: &Row| Some(tested(row)?.change);
    let apart = |row: &Row| matches!(change(row), Some(Change::Worse | Change::SingleRun));
    let close = entries[1..].iter().filter(|(row, _, other)| !apart(row) || near(*other));
    let single_run = entries[1..].iter().any(|(row, ..)| change(row) == Some(Change::SingleRun));
    let is_of_one_load =
        |row: &Row| tested(row).is_some_and(|ratio| ratio.change == Change::Worse && ratio.scope == Scope::ThisLoad);
    let scope = match entries[1..].iter().any(|(row, ..)| is_of_one_load(row)) {
        true => Scope::ThisLoad,
        false => Scope::Loads,
    };
    Some(Verdict {
        clients,
        question,
        metric,
        engine: best.engine.clone(),
        value: with_unit(metric, median) + &against.map(|words| format!(" ({words})")).unwrap_or_default(),
        close: close.map(|(row, ..)| row.engine.clone()).collect(),
        single_run,
        scope,
        left_out,
        why_not_host: cpu.why_not_host.filter(|_| metrics.contains(&HEADLINE_CPU[0])),
    })
}

type Entry<'a> = (&'a Row, &'a Figure, f64);

/// The largest set of entries that may be ranked with each other, because their engines had the same memory. Among sets
/// of equal size, the first engine's is used. The reasons for leaving out the others are added.
fn comparable<'a>(
    summary: &Summary,
    entries: Vec<Entry<'a>>,
    metric: &str,
    left_out: &mut Vec<String>,
) -> Vec<Entry<'a>> {
    let why_not = |one: &Row, other: &Row| {
        let against = summary.relative(&one.engine, &other.engine, other.clients)?;
        why_not_ranked(&against.comparability, metric)
    };
    let size = |(one, ..): &Entry<'a>| entries.iter().filter(|(other, ..)| why_not(one, other).is_none()).count();
    // The first of the largest: `max_by_key` takes the last.
    let Some((chosen, ..)) = entries.iter().rev().max_by_key(|entry| size(entry)).copied() else { return entries };
    let (kept, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(row, ..)| why_not(chosen, row).is_none());
    left_out.extend(others.iter().filter_map(|(row, ..)| {
        Some(format!("{} is not ranked with {}: {}", row.engine, chosen.engine, why_not(chosen, row)?))
    }));
    kept
}

/// `zstd against none`, if the winner's compression differs from others' and the metric depends on it.
fn compression_against(summary: &Summary, best: &Row, others: &[Entry<'_>], metric: &str) -> Option<String> {
    let mut words: Option<(String, Vec<String>)> = None;
    for (row, ..) in others {
        let Some(against) = summary.relative(&row.engine, &best.engine, best.clients) else { continue };
        for unequal in against.comparability.iter().filter(|unequal| unequal.is_said_of(metric)) {
            let (_, all) = words.get_or_insert_with(|| (unequal.one.clone(), Vec::new()));
            if !all.contains(&unequal.other) {
                all.push(unequal.other.clone());
            }
        }
    }
    words.map(|(own, others)| format!("{own} against {}", others.join(", ")))
}

/// The rows that may be ranked, and the reasons for leaving out the others.
fn contestants<'a>(rows: &[&'a Row]) -> (Vec<&'a Row>, Vec<String>) {
    let (mut fit, mut left_out) = (Vec::new(), Vec::new());
    for row in rows {
        if row.keeps_nothing() {
            left_out.push(format!("{} keeps no data", row.engine));
        } else if row.is_broken() {
            left_out.push(format!("{} failed its verification", row.engine));
        } else if !row.unsound.is_empty() {
            left_out.push(format!("{} did not end its verification", row.engine));
        } else if row.is_partial(Part::Run) {
            left_out.push(format!("{} did not come to its end", row.engine));
        } else if row.run.is_none() && !row.suspended.is_empty() {
            left_out.push(format!("{} was suspended", row.engine));
        } else if row.run.is_none() {
            left_out.push(format!("{} ended no loop", row.engine));
        } else {
            fit.push(*row);
        }
    }
    (fit, left_out)
}

fn figure<'a>(row: &'a Row, metric: &str) -> Option<&'a Figure> {
    let figure = row.run.as_ref()?.metrics.get(metric)?;
    figure.median.value().map(|_| figure)
}

fn with_unit(metric: &str, value: f64) -> String {
    match metric {
        "data_bytes" => SizeUnit::for_largest(value).show_with_unit(value),
        "ops_per_s" => format!("{value:.0}/s"),
        name if PRICED.contains(&name) => price(value),
        name if name.contains("cpu_us") => format!("{} µs", significant(value)),
        _ => format!("{} KB", significant(value)),
    }
}

/// The verdicts in words, one line per number of clients; empty if there is nothing to compare.
pub fn verdict_line(summary: &Summary) -> String {
    let all = verdicts(summary);
    let mut text = String::new();
    for clients in summary.clients() {
        let of_these: Vec<&Verdict> = all.iter().filter(|verdict| verdict.clients == clients).collect();
        if of_these.is_empty() {
            continue;
        }
        let _ = writeln!(text, "with {}:", summary.clients_in_words(clients));
        let width = of_these.iter().map(|verdict| verdict.question.len()).max().unwrap_or(0);
        for verdict in &of_these {
            let close = match verdict.close.is_empty() {
                true => String::new(),
                false => format!("; no significant difference: {}", verdict.close.join(", ")),
            };
            let drain = if verdict.metric.ends_with("_with_drain") { " with the drain" } else { "" };
            let once = if verdict.single_run { "; single run" } else { "" };
            let host = if verdict.metric.starts_with("host_") { ", of the host" } else { "" };
            let scope = if verdict.scope == Scope::ThisLoad { "; for this load" } else { "" };
            let (question, engine, value) = (verdict.question, &verdict.engine, &verdict.value);
            let _ = writeln!(text, "  {question:width$}  {engine} ({value}{drain}{host}{once}{scope}{close})");
        }
        let mut left_out: Vec<&String> = of_these.iter().flat_map(|verdict| &verdict.left_out).collect();
        left_out.sort_unstable();
        left_out.dedup();
        for reason in left_out {
            let _ = writeln!(text, "  left out: {reason}");
        }
        for reason in of_these.iter().filter_map(|verdict| verdict.why_not_host.as_ref()) {
            let _ = writeln!(
                text,
                "  CPU is that of clients and engine; the host's, with the kernel's work, is not known: {reason}"
            );
        }
    }
    text
}

/// The loads behind the rows' repeats, in words, which is the scope of the verdicts.
pub(crate) fn repeats_from(summary: &Summary) -> String {
    // An engine that stores no data has no load to start from.
    let rows = || summary.rows.iter().filter(|row| !row.keeps_nothing());
    let starts = || rows().map(|row| row.starts(Part::Run)).filter(|starts| starts.repeats > 1);
    let mut words: Vec<String> = starts().map(|starts| Starts::words(&[starts])).collect();
    words.dedup();
    match words.as_slice() {
        [] => String::new(),
        [own] if own.starts_with(',') => own.clone(),
        [one] if one.is_empty() => String::new(),
        [one] => format!("{one} of each engine"),
        _ => {
            let loads = || starts().map(|starts| starts.loads);
            format!(" from {} to {} loads of each engine", loads().min().unwrap_or(0), loads().max().unwrap_or(0))
        }
    }
}
