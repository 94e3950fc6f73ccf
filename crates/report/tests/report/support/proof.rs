//! Synthetic results of tests of transaction guarantees: one engine, killed under each durability.
#![allow(dead_code)]

use rumba_engine_api::acid::{Outcome, Promise, Recovery};
use rumba_engine_api::engine::Durability;
use rumba_results::record::{PhaseKind, PhaseRecord, Record};
use rumba_results::results::Results;

use super::synthetic::{LSM, Plan, Shape, results};

/// Two repeats of each. Without a log a third is lost, and two checks of the data fail.
pub fn proof() -> Results {
    let names = ["rocksdb.sync", "rocksdb.no-sync", "rocksdb.none"];
    let shapes = names.map(|name| Shape { name, ..LSM });
    let mut results = results(&shapes, Plan { clients: &[16], repeats: 2, loops: 1, loop_s: 20 });
    results.trials.iter_mut().for_each(|trial| kill(&mut trial.record));
    results
}

fn kill(record: &mut Record) {
    let engine = &mut record.plan.engine;
    let named = |(name, _): &&(&str, Durability)| engine.name.ends_with(&format!(".{name}"));
    engine.durability = Durability::NAMES.iter().find(named).map(|(_, durability)| *durability).unwrap_or_default();
    let has_log = engine.durability != Durability::None;
    let Some(verify) = record.phase(PhaseKind::Verify).cloned() else { return };
    let promise = Promise {
        name: "3.4.2.7: a new order finds the same prices".to_owned(),
        short: "i7".to_owned(),
        outcome: Outcome::Anomaly,
        how: "non-repeatable".to_owned(),
        seen: "the price was another".to_owned(),
    };
    let recovery = Recovery {
        acknowledged: 1200,
        lost: if has_log { 0 } else { 400 },
        examples: Vec::new(),
        damage: if has_log { Vec::new() } else { vec!["3.3.2.1".to_owned(), "3.3.2.2".to_owned()] },
        open_s: 0.25,
    };
    record.phases.extend([
        PhaseRecord { phase: PhaseKind::Isolation, promises: vec![promise], ..verify.clone() },
        PhaseRecord { phase: PhaseKind::Recovery, recovery: Some(recovery), ..verify },
    ]);
}
