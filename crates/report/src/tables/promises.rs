//! Transaction guarantees and how they were kept: a row for each engine with its durability, over its repeats.

use rumba_engine_api::acid::{Outcome, Promise, Recovery};
use rumba_results::distinct;
use rumba_results::record::{PhaseRecord, Record};
use rumba_results::results::Results;

use super::grid::Grid;

/// The headings of the columns about the kill.
const AFTER_KILL: [&str; 5] = ["durability", "acked", "lost", "wrong", "open s"];

/// The results of an engine with a number of clients, over its repeats.
struct AcidRow<'a> {
    engine: &'a str,
    durability: String,
    clients: u32,
    records: Vec<&'a Record>,
}

impl AcidRow<'_> {
    /// The worst result of a guarantee over all repeats.
    fn worst(&self, short: &str) -> Option<&Promise> {
        let all = self.records.iter().flat_map(|record| record.promises());
        all.filter(|promise| promise.short == short).max_by_key(|promise| promise.outcome)
    }

    /// The results after each kill.
    fn found(&self) -> impl Iterator<Item = (&PhaseRecord, &Recovery)> {
        let phases = self.records.iter().flat_map(|record| &record.phases);
        phases.filter_map(|phase| Some((phase, phase.recovery.as_ref()?)))
    }

    fn sum(&self, number: impl Fn(&PhaseRecord, &Recovery) -> u64) -> Option<u64> {
        let mut found = self.found().peekable();
        found.peek()?;
        Some(found.map(|(phase, recovery)| number(phase, recovery)).sum())
    }

    /// The longest time to reopen the database.
    fn open_s(&self) -> Option<f64> {
        self.found().map(|(_, recovery)| recovery.open_s).max_by(f64::total_cmp)
    }

    /// The cells about the kill.
    fn after_kill(&self) -> [String; 5] {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        [
            self.durability.clone(),
            number(self.sum(|_, recovery| recovery.acknowledged)),
            number(self.sum(|_, recovery| recovery.lost)),
            number(self.sum(wrong)),
            self.open_s().map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2}")),
        ]
    }
}

/// The number of failed checks after the kill, whether or not the durability allows them.
fn wrong(phase: &PhaseRecord, recovery: &Recovery) -> u64 {
    (recovery.damage.len() + phase.checks.iter().filter(|check| check.wrong > 0).count()) as u64
}

fn engines(results: &Results) -> Vec<AcidRow<'_>> {
    let mut engines: Vec<AcidRow<'_>> = Vec::new();
    for record in results.trials.iter().map(|trial| &trial.record) {
        if record.promises().next().is_none() && record.recovery().is_none() {
            continue;
        }
        let (engine, clients) = (record.plan.engine.name.as_str(), record.plan.clients);
        match engines.iter_mut().find(|kept| (kept.engine, kept.clients) == (engine, clients)) {
            Some(kept) => kept.records.push(record),
            None => {
                let durability = record.plan.given_durability().to_string();
                engines.push(AcidRow { engine, durability, clients, records: vec![record] });
            }
        }
    }
    engines
}

/// The table; empty if the experiment has no such test.
pub fn promises(results: &Results) -> String {
    let engines = engines(results);
    let Some(first) = engines.first() else { return String::new() };
    let named = first.records.iter().flat_map(|record| record.promises());
    let shorts = distinct(named.map(|promise| (promise.short.as_str(), promise.name.as_str())));
    let several = engines.iter().any(|kept| kept.clients != first.clients);
    let heads = shorts.iter().map(|(short, _)| (*short).to_owned()).chain(AFTER_KILL.map(str::to_owned));
    let heads = heads.chain(several.then(|| "clients".to_owned())).chain(["engine".to_owned()]);
    let mut grid = Grid::new(heads.collect());
    for kept in &engines {
        let cell = |(short, _): &(&str, &str)| match kept.worst(short) {
            Some(promise) if promise.outcome == Outcome::Broken => "BROKEN".to_owned(),
            Some(promise) => promise.how.clone(),
            None => "-".to_owned(),
        };
        let cells = shorts.iter().map(cell).chain(kept.after_kill());
        let cells = cells.chain(several.then(|| kept.clients.to_string())).chain([kept.engine.to_owned()]);
        grid.push(cells.collect());
    }
    let mut text = format!("\nPromises to transactions, and acknowledged transactions after a kill\n{}", grid.render());
    shorts.iter().for_each(|(short, name)| text.push_str(&format!("  {short:<6} {name}\n")));
    text.push_str("  acked  transactions that wrote and were acknowledged before the database was killed\n");
    text.push_str("  lost   those of them that were missing after the database was opened again, in at most open s\n");
    text.push_str("  wrong  checks of the remaining data that failed: without a log, a kill may damage the data\n");
    for kept in &engines {
        let seen = shorts.iter().filter_map(|(short, _)| kept.worst(short));
        for Promise { name, seen, .. } in seen.filter(|promise| promise.outcome != Outcome::Kept) {
            let clause = name.split(':').next().unwrap_or(name);
            text.push_str(&format!("  {}, {clause}: {seen}\n", kept.engine));
        }
    }
    text
}
