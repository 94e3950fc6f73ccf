//! The baseline of an engine's last run: for each figure, the last earlier one that supports a verdict.
//!
//! Otherwise a failed run, or one with an incomplete figure, would hide every step across it from a gate, although the
//! lines of the history show the step.

use std::collections::BTreeMap;

use rumba_results::comparison::{Figure, Part, PhaseFigures, Row, Summary};

/// The baseline rows of an engine from the runs before its last one, the latest first.
///
/// Numbers of clients that neither the latest nor the last run has are left out, because they are no longer run.
pub fn rows(latest_first: &[&Summary], last: &Summary, engine: &str) -> Vec<Row> {
    let neighbours = latest_first.first().copied().into_iter().chain([last]).flat_map(|summary| &summary.rows);
    let mut clients: Vec<u32> = neighbours.filter(|row| row.engine == engine).map(|row| row.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let of_clients = |clients: u32| {
        let rows: Vec<&Row> = latest_first.iter().filter_map(|summary| summary.row(engine, clients)).collect();
        standing(&rows)
    };
    clients.into_iter().filter_map(of_clients).collect()
}

/// The baseline row from several runs. If no run has a part that may be judged, it is the latest row with figures,
/// which carries the reason.
fn standing(latest_first: &[&Row]) -> Option<Row> {
    let has = |row: &Row, part: Part| row.part(part).is_some();
    let is_judged = |row: &Row, part: Part| has(row, part) && row.why_not_judged(part).is_none();
    let latest = |is_it: &dyn Fn(&Row, Part) -> bool| {
        latest_first.iter().find(|row| is_it(row, Part::Load) || is_it(row, Part::Run))
    };
    let mut standing = Row::clone(latest(&is_judged).or_else(|| latest(&has)).or(latest_first.first())?);
    for part in [Part::Load, Part::Run] {
        let judged = || latest_first.iter().filter(|row| is_judged(row, part));
        let Some(latest) = judged().next() else { continue };
        let figures = figures(judged().filter_map(|row| row.part(part)));
        match part {
            Part::Load => standing.load = figures,
            Part::Run => (standing.run, standing.loads) = (figures, latest.loads),
        }
    }
    Some(standing)
}

/// The figures of a part from several runs, the latest first.
fn figures<'a>(mut latest_first: impl Iterator<Item = &'a PhaseFigures>) -> Option<PhaseFigures> {
    let mut standing = latest_first.next()?.clone();
    for earlier in latest_first {
        fill(&mut standing.metrics, &earlier.metrics);
        for (name, op) in &earlier.op_types {
            let own = standing.op_types.entry(name.clone()).or_insert_with(|| op.clone());
            fill(&mut own.response, &op.response);
        }
    }
    Some(standing)
}

/// Replaces incomplete figures by complete ones of an earlier run.
fn fill(standing: &mut BTreeMap<String, Figure>, earlier: &BTreeMap<String, Figure>) {
    for (name, figure) in earlier.iter().filter(|(_, figure)| is_whole(figure)) {
        if standing.get(name).is_none_or(|own| !is_whole(own)) {
            standing.insert(name.clone(), figure.clone());
        }
    }
}

/// Whether a verdict may use it. If some repeats lack the number, the remaining ones are a biased selection.
fn is_whole(figure: &Figure) -> bool {
    !figure.numbers().is_empty() && figure.lacking().is_none()
}
