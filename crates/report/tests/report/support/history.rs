//! A synthetic history.
#![allow(dead_code)]

use rumba_results::build::Build;
use rumba_results::record::{PhaseKind, Status};

use super::compare::Run;
use super::synthetic::{BTREE, LSM, Plan, Shape, results};

const PLAN: Plan = Plan { clients: &[4, 16], repeats: 4, loops: 2, loop_s: 10 };
/// The rates of the first engine, relative to its shape: a fifth less from the sixth commit on.
const RATES: [f64; 9] = [1.0, 1.004, 0.997, 1.002, 0.995, 0.8, 0.803, 0.797, 0.801];
/// The commit at which the second engine fails.
const FAILED: usize = 3;

/// Nine commits of rumba with two engines.
pub fn commits() -> Vec<Run> {
    let run = |(number, rate): (usize, f64)| {
        let slower = |shape: Shape, rate: f64| Shape { ops_per_s: shape.ops_per_s * rate, ..shape };
        let mut results = results(&[slower(LSM, rate), slower(BTREE, 1.0 + 0.002 * number as f64)], PLAN);
        let day = format!("2026-03-{:02}", number + 1);
        results.started = format!("{day}T02:00:00Z");
        results.build = Some(Build {
            commit: Some(format!("{number:x}").repeat(40)),
            committed: Some(format!("{day}T01:00:00Z")),
            ..Build::default()
        });
        let is_failed = |engine: &str| number == FAILED && engine == BTREE.name;
        for trial in results.trials.iter_mut().filter(|trial| is_failed(&trial.record.plan.engine.name)) {
            trial.record.status = Status::Failed { phase: PhaseKind::Load, cause: "the disk was full".to_owned() };
            trial.record.phases.clear();
        }
        Run { directory: format!("results/{day}"), results }
    };
    RATES.into_iter().enumerate().map(run).collect()
}
