//! What the last run of an engine is judged against: of each figure the last one before it that a verdict may rest on.
//!
//! A run in which the engine failed, or of which a figure is not whole, would else hide from a gate every step across it,
//! which the lines of the history show.

use std::collections::BTreeMap;

use rumba_core::comparison::{Figure, Part, PhaseFigures, Row, Summary};

/// The rows of an engine as the runs before its last leave them, the latest of these first.
///
/// Numbers of clients that neither the latest nor the last has are left out: they are not run any more.
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

/// What several runs leave of a row. Where none of them has a part that may be judged, it is as the latest that has
/// figures has it, which says why not.
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

/// The figures of a part as several runs leave them, the latest first.
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

/// Puts in the place of figures that are not whole those of an earlier run that are.
fn fill(standing: &mut BTreeMap<String, Figure>, earlier: &BTreeMap<String, Figure>) {
    for (name, figure) in earlier.iter().filter(|(_, figure)| is_whole(figure)) {
        if standing.get(name).is_none_or(|own| !is_whole(own)) {
            standing.insert(name.clone(), figure.clone());
        }
    }
}

/// Whether a verdict may rest on it: what is left where some repeats lack it has been chosen by what happened to them.
fn is_whole(figure: &Figure) -> bool {
    !figure.numbers().is_empty() && figure.lacking().is_none()
}
