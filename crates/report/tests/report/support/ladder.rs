//! Synthetic ladders of clients: with counters of bytes written and waits, and with runs of an hour.
#![allow(dead_code)]

use std::collections::BTreeMap;

use rumba_engine_api::engine::Gauge;
use rumba_results::client_steps::ClientSteps;
use rumba_results::engine_samples::EngineSample;
use rumba_results::metric::Metric;
use rumba_results::record::{Interval, PhaseKind};
use rumba_results::results::Results;

use super::synthetic::{BTREE, COPY_ON_WRITE, LSM, LSM_ZSTD, Plan, SERVER_BTREE, SERVER_LSM, Shape, results};

/// A counter, and its growth per operation: KB, or microseconds at one client.
type Grows = (&'static str, f64);

const OF_BTREE: &[Grows] = &[
    ("written_redo_bytes", 2.1 * 1024.0),
    ("written_doublewrite_bytes", 4.4 * 1024.0),
    ("written_pages_bytes", 4.6 * 1024.0),
    ("written_binlog_bytes", 0.4 * 1024.0),
    ("waited_row_locks_us", 18.0),
    ("waited_index_us", 4.0),
];
const OF_LSM: &[Grows] = &[
    ("written_wal_bytes", 0.16 * 1024.0),
    ("written_flush_bytes", 0.14 * 1024.0),
    ("written_compaction_bytes", 0.3 * 1024.0),
    ("written_compaction_level1_bytes", 0.18 * 1024.0),
    ("written_compaction_level2_bytes", 0.1 * 1024.0),
    ("waited_stalls_us", 2.5),
];

/// Waits by name; they also grow with the active clients.
const EVENTS: &[Grows] = &[
    ("wait_event_synch/sxlock/innodb/index_tree_rw_lock_us", 9.0),
    ("wait_event_synch/mutex/innodb/trx_sys_mutex_us", 6.0),
    ("wait_event_io/file/innodb/innodb_log_file_us", 4.0),
    ("wait_event_synch/mutex/innodb/log_writer_mutex_us", 3.0),
    ("wait_event_synch/rwlock/innodb/lock_sys_global_rw_lock_us", 2.0),
    ("wait_event_synch/mutex/innodb/buf_pool_LRU_list_mutex_us", 1.5),
    ("wait_event_synch/mutex/sql/LOCK_log_us", 1.0),
    ("wait_event_io/file/innodb/innodb_data_file_us", 0.5),
];

const SEVENTH: Shape = Shape { name: "innodb[page_size=4k]", ops_per_s: 15_200.0, wkb_per_op: 7.1, ..SERVER_BTREE };
const EIGHTH: Shape = Shape { name: "myrocks.none", ops_per_s: 13_300.0, size: 1540.0 * 1024.0 * 1024.0, ..SERVER_LSM };

/// Three engines, four repeats: one with an offered rate that it does not reach with few clients.
pub fn ladder() -> Results {
    let plan = Plan { clients: &[1, 4, 16, 64], repeats: 4, loops: 3, loop_s: 40 };
    let mut results = results(&[SERVER_BTREE, SERVER_LSM, COPY_ON_WRITE], plan);
    count(&mut results, &[]);
    for trial in results.trials.iter_mut().filter(|trial| trial.record.plan.engine.name == SERVER_LSM.name) {
        trial.record.plan.run.rate = Some(9_000.0);
    }
    results
}

/// Two engines in three tests of a suite: the second is faster in one of them, slower in another.
pub fn suite() -> Results {
    let plan = Plan { clients: &[16], repeats: 4, loops: 2, loop_s: 20 };
    let tests = [("point-query", 1.3), ("distinct-pk", 1.0), ("read-only-100", 0.8)];
    let mut all: Option<Results> = None;
    for (test, factor) in tests {
        let faster =
            Shape { ops_per_s: SERVER_BTREE.ops_per_s * factor, name: "innodb[doublewrite=off]", ..SERVER_BTREE };
        let mut own = results(&[SERVER_BTREE, faster], plan);
        for trial in &mut own.trials {
            let name = &mut trial.record.plan.engine.name;
            *name = format!("{name}/{test}");
            trial.record.plan.test = Some(test.to_owned());
        }
        match &mut all {
            None => all = Some(own),
            Some(all) => all.trials.extend(own.trials),
        }
    }
    let mut all = all.unwrap_or_else(ladder);
    for (number, trial) in (1..).zip(&mut all.trials) {
        trial.record.plan.number = number;
    }
    all
}

/// An hour of loops of eight engines at eleven numbers of clients, an interval each second.
pub fn hour() -> Results {
    let plan = Plan { clients: &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], repeats: 1, loops: 12, loop_s: 300 };
    let shapes = [LSM, LSM_ZSTD, BTREE, COPY_ON_WRITE, SERVER_BTREE, SERVER_LSM, SEVENTH, EIGHTH];
    let mut results = results(&shapes, plan);
    count(&mut results, &[]);
    results
}

/// Two engines, two repeats: the number of active clients changes within each trial.
pub fn steps() -> Results {
    let plan = Plan { clients: &[16], repeats: 2, loops: 3, loop_s: 40 };
    let mut results = results(&[SERVER_BTREE, SERVER_LSM], plan);
    let steps = ClientSteps { points: vec![(0.0, 1), (30.0, 4), (60.0, 8), (90.0, 16)] };
    for trial in &mut results.trials {
        trial.record.plan.run.client_steps = Some(steps.clone());
        let is_loop = |interval: &&Interval| matches!(interval.phase, PhaseKind::Loop(_));
        let begun_s = trial.intervals.iter().find(is_loop).map_or(0.0, |first| first.start_s);
        for interval in &mut trial.intervals {
            if matches!(interval.phase, PhaseKind::Warmup | PhaseKind::Loop(_)) {
                let from_s = interval.start_s - begun_s;
                let active = steps.mean(from_s, from_s + interval.seconds);
                interval.active_clients = Some(active);
                interval.ops = (interval.ops as f64 * (active / 16.0).powf(0.7)) as u64;
                interval.p99_ms = interval.p99_ms.map(|ms| ms * (active / 16.0).powf(0.5));
            }
        }
    }
    count(&mut results, EVENTS);
    results
}

/// A growing counter; compactions and flushes write in bursts.
struct Growing {
    name: &'static str,
    per_op: f64,
    value: f64,
    owed: f64,
}

impl Growing {
    fn grow(&mut self, ops: u64, second: u64, active: f64) {
        let of_lsm = self.name.starts_with("written_compaction") || self.name.starts_with("written_flush");
        let factor = if self.name.starts_with("wait_event") { active } else { 1.0 };
        self.owed += ops as f64 * self.per_op * factor;
        if !of_lsm || second % 20 < 8 {
            (self.value, self.owed) = (self.value + self.owed, 0.0);
        }
    }
}

/// Counters that grow with the operations, and waits that also grow with the clients: sampled each second, and at the
/// ends of phases.
fn count(results: &mut Results, of_btree: &[Grows]) {
    for trial in &mut results.trials {
        let grows = match trial.record.plan.engine.engine.as_str() {
            "innodb" => [OF_BTREE, of_btree].concat(),
            "rocksdb" | "myrocks" => OF_LSM.to_vec(),
            _ => continue,
        };
        let clients = f64::from(trial.record.plan.clients);
        let growing = |(name, per_op): &Grows| {
            let factor = if name.starts_with("waited") { clients.sqrt() } else { 1.0 };
            Growing { name, per_op: per_op * factor, value: 0.0, owed: 0.0 }
        };
        let mut counters: Vec<Growing> = grows.iter().map(growing).collect();
        for interval in &trial.intervals {
            let second = interval.start_s as u64;
            let ops = if interval.phase == PhaseKind::Load { 0 } else { interval.ops };
            let active = interval.active_clients.unwrap_or(1.0);
            counters.iter_mut().for_each(|counter| counter.grow(ops, second, active));
            let end_s = interval.start_s + interval.seconds;
            if matches!(interval.phase, PhaseKind::Load | PhaseKind::Warmup | PhaseKind::Loop(_)) {
                let loaded = end_s / (trial.record.phases[0].start_s + trial.record.phases[0].seconds);
                trial.course.add(look(end_s, &trial.record.phases[0].metrics.size_bytes, loaded.min(1.0), &counters));
            }
            // `loops` covers no additional time, and ends with the last loop.
            for phase in
                trial.record.phases.iter_mut().filter(|phase| (phase.start_s + phase.seconds - end_s).abs() < 0.5)
            {
                phase.counters = counters.iter().map(|counter| Gauge::new(counter.name, counter.value)).collect();
            }
        }
    }
}

/// A sample with this much data loaded, and with redo that a checkpoint writes out each minute.
fn look(at_s: f64, size_bytes: &Metric, loaded: f64, counters: &[Growing]) -> EngineSample {
    let debt = BTreeMap::from([("checkpoint_age_bytes".to_owned(), 1e6 * (at_s % 60.0 + 5.0))]);
    let counters = counters.iter().map(|counter| (counter.name.to_owned(), counter.value)).collect();
    EngineSample { at_s, size_bytes: size_bytes.value().map(|size| size * loaded), debt, counters }
}
