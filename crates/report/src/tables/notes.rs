//! The sections below the tables: warnings with remedies, failures, missing parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rumba_engine_api::printable::on_a_line;
use rumba_engine_api::units::counted;
use rumba_results::comparison::{About, Proof, Row, Summary, TrialName, Unfinished};
use rumba_results::record::{OpStats, PhaseKind, Record, Status};
use rumba_results::results::Results;
use rumba_results::waits::waits_by_event;
use rumba_results::{distinct, entry};

use super::warnings::{Warnings, whom};
use crate::format::significant;
use crate::server::in_server;

/// Everything that a reader must know before trusting the tables.
pub fn all(results: &Results, summary: &Summary, warnings: &Warnings<'_>, report: &str) -> String {
    let mut text = unsound(summary);
    text.push_str(&suspended(summary));
    text.push_str(&partial(summary));
    text.push_str(&failures("Did not end as planned", &summary.unfinished));
    text.push_str(&warnings.render(report));
    if !results.missing.is_empty() {
        text.push_str("\nMissing from these results\n");
        for missing in &results.missing {
            // Names of trials' directories are untrusted text.
            let _ = writeln!(text, "  {}", on_a_line(missing));
        }
    }
    text
}

/// The server of each engine, if there are servers; versions and builds are part of the comparison.
pub fn servers(results: &Results) -> String {
    let in_servers = results.trials.iter().map(|trial| &trial.record).filter(|record| in_server(record));
    let lines = distinct(in_servers.map(|record| {
        let version = record.version.as_deref().unwrap_or("unknown version");
        let source = record.source.as_deref().map(|source| format!(" ({source})")).unwrap_or_default();
        let requested = record.plan.engine.server.as_deref().map(|server| format!("{server}: ")).unwrap_or_default();
        // An engine is the same in all tests of a suite.
        let (name, test) = (record.plan.engine.name.as_str(), record.plan.test.as_deref());
        let alone = test.and_then(|test| name.strip_suffix(test)?.strip_suffix('/')).unwrap_or(name);
        format!("  {alone}: {requested}{version}{source}")
    }));
    if lines.is_empty() { String::new() } else { format!("\nServers\n{}\n", lines.join("\n")) }
}

/// The hosts of the clients, for each trial that had several.
pub fn client_hosts(results: &Results) -> String {
    let mut text = String::new();
    for record in results.trials.iter().map(|trial| &trial.record).filter(|record| !record.hosts.is_empty()) {
        let plan = &record.plan;
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  {}, {}, repeat {}", plan.engine.name, plan.clients_in_words(), plan.repeat);
        record.hosts.iter().for_each(|host| {
            let _ = writeln!(text, "    {}", on_a_line(&host.to_string()));
        });
    }
    if text.is_empty() { text } else { format!("\nClient hosts\n{text}") }
}

/// The number of clients beyond which throughput did not grow, and what clients waited for there. It reduces the trust
/// in no figure, and is the purpose of a ladder.
pub fn scaling(summary: &Summary) -> String {
    let ended = summary.remarks.iter().filter(|remark| remark.warning.code == "scaling-ended");
    let lines: String =
        ended.map(|remark| format!("  {}: {}\n", remark.about.engine, remark.warning.message)).collect();
    if lines.is_empty() { lines } else { format!("\nWhat stopped scaling\n{lines}") }
}

type ClientsEngine<'a> = (String, &'a str);

/// The number of waits that are listed by name; the others are added up.
const WAITS: usize = 5;

/// Waits of clients in the loops by the engine's own names, over all repeats, the longest first.
pub fn waits(results: &Results) -> String {
    let mut all: Vec<(ClientsEngine<'_>, Vec<&Record>)> = Vec::new();
    for trial in &results.trials {
        let plan = &trial.record.plan;
        let of = (plan.clients_in_words(), plan.engine.name.as_str());
        entry(&mut all, of).push(&trial.record);
    }
    let mut text = String::new();
    for ((clients, engine), records) in all {
        let waits = waits_by_event(records.into_iter());
        let (longest, others) = waits.split_at(WAITS.min(waits.len()));
        let others_us = others.iter().map(|(_, us)| us).sum::<f64>();
        let others = (!others.is_empty()).then(|| format!("others {}", significant(others_us)));
        let each = longest.iter().map(|(event, us)| format!("{} {}", on_a_line(event), significant(*us))).chain(others);
        let each: Vec<String> = each.collect();
        if !each.is_empty() {
            let _ = writeln!(text, "  {engine}, {clients}: {}", each.join(", "));
        }
    }
    let heading = "\nWaits of clients in the loops, microseconds per operation, by the engine's own names\n";
    if text.is_empty() { text } else { format!("{heading}{text}") }
}

/// Programs of the CPU profile whose functions have no names, with the remedy. The repeats of an engine lack the same.
pub fn symbols(summary: &Summary) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut known: Vec<(&str, u32, &str)> = Vec::new();
    for remark in summary.remarks.iter().filter(|remark| remark.warning.code == "missing-symbols") {
        let (About { engine, clients, .. }, warning) = (&remark.about, &remark.warning);
        let of = (engine.as_str(), *clients, warning.remedy.as_str());
        if !known.contains(&of) {
            known.push(of);
            let (message, remedy) = (on_a_line(&warning.message), on_a_line(&warning.remedy));
            lines.push(format!("  {engine}, {}: {message}; {remedy}\n", counted(*clients as usize, "client")));
        }
    }
    if lines.is_empty() {
        String::new()
    } else {
        format!("\nFunctions without names in the CPU profile\n{}", lines.concat())
    }
}

/// The reasons for retried transactions in the loops, over all repeats, the most frequent first.
pub fn conflicts(results: &Results) -> String {
    let mut all: Vec<(ClientsEngine<'_>, BTreeMap<&str, u64>)> = Vec::new();
    for trial in &results.trials {
        let (plan, loops) = (&trial.record.plan, trial.record.phase(PhaseKind::Loops));
        for (name, count) in loops.iter().flat_map(|loops| &loops.conflicts) {
            let of = (plan.clients_in_words(), plan.engine.name.as_str());
            *entry(&mut all, of).entry(name).or_default() += count;
        }
    }
    let mut text = String::new();
    for ((clients, engine), counts) in all {
        let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} × {name}")).collect();
        let _ = writeln!(text, "  {engine}, {clients}: {}", counts.join("; "));
    }
    if text.is_empty() { text } else { format!("\nTried again in the loops, all repeats together\n{text}") }
}

/// Operations of the loops that are counted separately, over all repeats: rolled back on purpose, as the workload's
/// specification requires, and given up. They are included in no rate and no cost.
pub fn apart(results: &Results) -> String {
    let mut all: Vec<(ClientsEngine<'_>, [u64; 3])> = Vec::new();
    for trial in &results.trials {
        let (plan, loops) = (&trial.record.plan, trial.record.phase(PhaseKind::Loops));
        let Some(loops) = loops else { continue };
        let sum = |count: fn(&OpStats) -> u64| {
            loops.op_types.values().fold(0_u64, |sum, stats| sum.saturating_add(count(stats)))
        };
        // Completed operations that are not in `ops` were rolled back on purpose.
        let counts = [loops.ops, sum(|stats| stats.count).saturating_sub(loops.ops), sum(|stats| stats.errors)];
        let of = (plan.clients_in_words(), plan.engine.name.as_str());
        let sums = entry(&mut all, of);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }
    let mut text = String::new();
    for ((clients, engine), [ops, undone, given_up]) in all {
        let parts = [(undone, "undone on purpose"), (given_up, "given up")];
        let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            let _ = writeln!(text, "  {engine}, {clients}: {}; in addition to {ops} operations", parts.join(", "));
        }
    }
    if text.is_empty() { text } else { format!("\nApart from the operations of the loops, all repeats\n{text}") }
}

/// Repeats whose data failed its verification, and those whose verification did not end. They are listed by name, and
/// are in no figure above.
fn unsound(summary: &Summary) -> String {
    let headings = [
        (Proof::Failed, "Failed their verification and are in no figure, verdict or claim"),
        (Proof::CutOff, "Did not end their verification and are in no figure, verdict or claim"),
    ];
    let mut text = String::new();
    for (proof, heading) in headings {
        let mut lines = String::new();
        for row in &summary.rows {
            for unsound in row.unsound.iter().filter(|unsound| unsound.proof == proof) {
                let clients = row.clients_in_words();
                let _ = writeln!(lines, "  {}, {clients}: repeat {}: {}", row.engine, unsound.repeat, unsound.reason);
            }
        }
        if !lines.is_empty() {
            let _ = write!(text, "\n{heading}\n{lines}");
        }
    }
    text
}

/// Repeats whose measurement was suspended: they are listed by name, and the suspended part is in no figure above.
fn suspended(summary: &Summary) -> String {
    let of_rows = summary.rows.iter().flat_map(|row| row.suspended.iter().map(move |suspended| (row, suspended)));
    let lines = distinct(of_rows.map(|(row, suspended)| {
        let clients = row.clients_in_words();
        format!("  {}, {clients}: repeat {}: {}\n", row.engine, suspended.repeat, suspended.reason)
    }));
    let heading = "\nSuspended while they were measured, and in no figure, verdict or claim\n";
    if lines.is_empty() { String::new() } else { format!("{heading}{}", lines.concat()) }
}

fn partial(summary: &Summary) -> String {
    let text: String = partial_lines(summary).map(|line| format!("  {line}\n")).collect();
    if text.is_empty() { text } else { format!("\nPartial figures\n{text}") }
}

/// Notes on incomplete figures of the loops or of the load.
pub fn partial_lines(summary: &Summary) -> impl Iterator<Item = String> {
    let reported = |row: &Row| {
        let of = format!("{}, {}", row.engine, row.clients_in_words());
        let of_run = row.run.iter().flat_map(|run| &run.notes).map(|note| format!("{of}: {note}"));
        let of_load = row.load.iter().flat_map(|load| &load.notes).map(|note| format!("{of}, load: {note}"));
        of_run.chain(of_load).collect::<Vec<_>>()
    };
    summary.rows.iter().flat_map(reported)
}

/// Trials that did not end, each with its cause; empty if there are none.
pub fn failures(title: &str, unfinished: &[Unfinished]) -> String {
    if unfinished.is_empty() {
        return String::new();
    }
    let lines: String = ended_lines(unfinished).iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{title}\n{lines}")
}

/// The same, a line each. Trials with the same end share a line, for example all whose load failed.
pub fn ended_lines(unfinished: &[Unfinished]) -> Vec<String> {
    let mut alike: Vec<(&Status, Vec<&TrialName>)> = Vec::new();
    for Unfinished { name, status, .. } in unfinished {
        entry(&mut alike, status).push(name);
    }
    alike.into_iter().map(|(status, names)| format!("{}: {}", trial_names(&names), ending(status))).collect()
}

fn trial_names(names: &[&TrialName]) -> String {
    if let [name] = names {
        return format!("trial {}, {}", name.trial, whom(&About::from((*name).clone())));
    }
    let mut engines: Vec<&str> = names.iter().map(|name| name.engine.as_str()).collect();
    engines.sort_unstable();
    engines.dedup();
    let numbers: Vec<String> = names.iter().map(|name| name.trial.to_string()).collect();
    format!("trials {} ({})", numbers.join(", "), engines.join(", "))
}

/// How a trial ended, in words.
pub fn ending(status: &Status) -> String {
    match status {
        Status::Running => "cut off while it ran".to_owned(),
        Status::Done => "done".to_owned(),
        Status::Failed { phase, cause } => format!("failed in {phase}: {cause}"),
        Status::Interrupted => "interrupted by its user".to_owned(),
        Status::Suspended { phase, cause } => format!("suspended in {phase}: {cause}"),
    }
}
