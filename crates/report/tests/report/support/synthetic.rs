//! Synthetic results, only for development and tests: their shapes are invented, and their name and conditions say so.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Durability, EngineConfig, EngineFacts, Family, Form, Gauge};
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_api::workload::Short;
use rumba_results::claim::Claim;
use rumba_results::comparison::Comparison;
use rumba_results::engine_samples::EngineTimeSeries;
use rumba_results::metric::{Metric, Metrics, without_logs};
use rumba_results::record::{
    Interval, OpStats, Percentiles, PhaseKind, PhaseRecord, Record, RunPlan, Spent, Status, TrialPlan,
};
use rumba_results::results::{Results, Trial};
use rumba_results::samples;
use rumba_results::warning::Warning;

/// The properties of a synthetic engine.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub name: &'static str,
    pub engine: &'static str,
    pub rows_per_s: f64,
    pub ops_per_s: f64,
    pub reads_per_op: f64,
    pub kb_per_read: f64,
    pub wkb_per_op: f64,
    /// Deferred KB per operation when the loops end.
    pub debt_kb_per_op: f64,
    pub cpu_us: f64,
    pub size: f64,
    pub p99_ms: f64,
    /// The interval between stalls in seconds; 0 for none.
    pub stall_every_s: u64,
    pub background: bool,
    pub server: Option<&'static str>,
}

const MIB: f64 = 1024.0 * 1024.0;
const LOGICAL: f64 = 1450.0 * MIB;

pub const LSM: Shape = Shape {
    name: "rocksdb.none",
    engine: "rocksdb",
    rows_per_s: 212_000.0,
    ops_per_s: 24_800.0,
    reads_per_op: 1.16,
    kb_per_read: 19.3,
    wkb_per_op: 0.63,
    debt_kb_per_op: 0.31,
    cpu_us: 92.0,
    size: 1690.0 * MIB,
    p99_ms: 0.9,
    stall_every_s: 47,
    background: true,
    server: None,
};
pub const LSM_ZSTD: Shape = Shape {
    name: "rocksdb.zstd",
    rows_per_s: 187_000.0,
    ops_per_s: 23_900.0,
    reads_per_op: 1.08,
    kb_per_read: 12.2,
    wkb_per_op: 0.55,
    debt_kb_per_op: 0.22,
    cpu_us: 118.0,
    size: 790.0 * MIB,
    p99_ms: 1.1,
    stall_every_s: 61,
    ..LSM
};
pub const BTREE: Shape = Shape {
    name: "wiredtiger.snappy",
    engine: "wiredtiger",
    rows_per_s: 176_000.0,
    ops_per_s: 16_700.0,
    reads_per_op: 1.21,
    kb_per_read: 16.0,
    wkb_per_op: 9.4,
    debt_kb_per_op: 1.9,
    cpu_us: 131.0,
    size: 1580.0 * MIB,
    p99_ms: 2.3,
    stall_every_s: 30,
    background: true,
    server: None,
};
pub const COPY_ON_WRITE: Shape = Shape {
    name: "lmdb",
    engine: "lmdb",
    rows_per_s: 98_000.0,
    ops_per_s: 12_100.0,
    reads_per_op: 1.32,
    kb_per_read: 4.4,
    wkb_per_op: 14.8,
    debt_kb_per_op: 0.0,
    cpu_us: 74.0,
    size: 3240.0 * MIB,
    p99_ms: 3.4,
    stall_every_s: 0,
    background: false,
    server: None,
};

pub const SERVER_BTREE: Shape = Shape {
    name: "innodb",
    engine: "innodb",
    ops_per_s: 14_100.0,
    wkb_per_op: 11.6,
    cpu_us: 196.0,
    size: 2210.0 * MIB,
    p99_ms: 3.1,
    server: Some("mariadb@10.11"),
    ..BTREE
};
pub const SERVER_LSM: Shape = Shape {
    name: "myrocks.zstd",
    engine: "myrocks",
    ops_per_s: 12_700.0,
    wkb_per_op: 0.61,
    cpu_us: 224.0,
    size: 860.0 * MIB,
    server: Some("mariadb@10.11"),
    ..LSM_ZSTD
};

/// The plan of the synthetic experiment.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub clients: &'static [u32],
    pub repeats: u32,
    pub loops: u32,
    pub loop_s: u64,
}

const OPS: [(&str, f64, f64); 6] = [
    ("get_node", 0.43, 0.7),
    ("get_links_list", 0.23, 1.0),
    ("get_link", 0.12, 0.8),
    ("add_link", 0.10, 1.6),
    ("update_link", 0.06, 1.7),
    ("update_node", 0.06, 1.2),
];

/// Claims that hold, fail, and cannot be decided.
const CLAIMS: &str = r#"
[[claim]]
text = "An LSM writes an eighth of what a copy-on-write tree writes."
source = "an imagined post"
holds = 'wkb_per_op("lmdb") >= 8 * wkb_per_op("rocksdb.none")'
measure = 'wkb_per_op("lmdb") / wkb_per_op("rocksdb.none")'
published = 9.5
[[claim]]
text = "It is three times as fast."
holds = 'ops_per_s("rocksdb.none") >= 3 * ops_per_s("lmdb")'
[[claim]]
text = "It is twice as fast."
holds = 'ops_per_s("rocksdb.none") >= 2 * ops_per_s("lmdb")'
"#;

fn claims(text: &str) -> Vec<Claim> {
    #[derive(serde::Deserialize)]
    struct Claims {
        claim: Vec<Claim>,
    }
    toml_edit::de::from_str::<Claims>(text).unwrap().claim
}

/// Results of these engines under this plan; the same every time.
pub fn results(shapes: &[Shape], plan: Plan) -> Results {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2017);
    let mut trials = Vec::new();
    for repeat in 1..=plan.repeats {
        for &clients in plan.clients {
            for shape in shapes {
                let number = trials.len() as u32 + 1;
                trials.push(trial(shape, plan, clients, repeat, number, &mut random));
            }
        }
    }
    let text = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Results {
        name: "synthetic-sample".to_owned(),
        source: Some("made-up figures for the development of this page; nothing was measured".to_owned()),
        experiment: "name = \"synthetic-sample\"\n[workload.linkbench]\nprofile = \"2017\"\nmaxid1 = 1_400_000\n"
            .to_owned(),
        started: "2024-01-01T12:00:00Z".to_owned(),
        conditions: text(&[
            ("synthetic", "yes: these figures are made up"),
            ("cpu", "an imagined processor, 4 cores"),
            ("kernel", "6.1.0"),
            ("filesystem", "ext4"),
            ("governor", "performance"),
        ]),
        warnings: vec![Warning::new(
            "turbo-on",
            "the processor's boost is on: clock speeds differ between trials",
            "switch it off for the time of the experiment",
        )],
        ..samples::results(trials)
    }
}

fn trial(s: &Shape, plan: Plan, clients: u32, repeat: u32, number: u32, random: &mut Xoshiro256PlusPlus) -> Trial {
    let mut noise = || 1.0 + 0.04 * (random.random_range(0.0..1.0) - 0.5);
    let scale = f64::from(clients) / (f64::from(clients) + 6.0) * 1.375;
    let mut shape = *s;
    shape.ops_per_s *= noise() * scale;
    shape.rows_per_s *= noise();
    shape.wkb_per_op *= noise();
    shape.cpu_us *= noise();
    shape.p99_ms *= noise() * scale;
    let mut phases = Vec::new();
    let mut intervals = Vec::new();
    let load_s = (6_400_000.0 / shape.rows_per_s).ceil() as u64;
    let mut spans = vec![(PhaseKind::Load, load_s), (PhaseKind::Settle, 6), (PhaseKind::Warmup, 30)];
    spans.extend((1..=plan.loops).map(|number| (PhaseKind::Loop(number), plan.loop_s)));
    spans.push((PhaseKind::Drain, if shape.debt_kb_per_op > 0.0 { 9 } else { 1 }));
    let mut start_s = 1.0;
    for (kind, seconds) in spans {
        let own: Vec<Interval> =
            (0..seconds).map(|second| interval(&shape, kind, start_s + second as f64, second, random)).collect();
        phases.push(phase(&shape, kind, start_s, &own));
        intervals.extend(own);
        start_s += seconds as f64;
    }
    let looped: Vec<Interval> = intervals.iter().filter(|i| matches!(i.phase, PhaseKind::Loop(_))).cloned().collect();
    let start = looped.first().map_or(0.0, |i| i.start_s);
    let at = phases.len() - 1;
    phases.insert(at, phase(&shape, PhaseKind::Loops, start, &looped));
    let mut verify = phase(&shape, PhaseKind::Verify, start_s, &[]);
    verify.checks.push(Check {
        name: "every count equals its visible links".to_owned(),
        examined: 1_400_000,
        wrong: 0,
        examples: Vec::new(),
    });
    phases.push(verify);
    let record = record(&shape, plan, clients, repeat, number, phases);
    Trial {
        directory: format!("trials/{number:03}-{}", shape.name),
        record,
        intervals,
        course: EngineTimeSeries::default(),
    }
}

/// The short names of the main operations in tables.
const SHORT: [(&str, Short); 4] = [
    ("update_node", Short::new("un", 1)),
    ("get_node", Short::new("gn", 2)),
    ("update_link", Short::new("ul", 3)),
    ("get_links_list", Short::new("gl", 4)),
];

fn facts(s: &Shape) -> EngineFacts {
    let form = if s.server.is_some() { Form::Server } else { Form::BuiltIn };
    EngineFacts {
        keeps_data: s.engine != "null",
        has_cache: s.engine != "lmdb",
        ..EngineFacts::new(Family::KeyValue, form)
    }
}

fn record(s: &Shape, plan: Plan, clients: u32, repeat: u32, number: u32, phases: Vec<PhaseRecord>) -> Record {
    let engine = EngineConfig {
        name: s.name.to_owned(),
        cache: 160 << 20,
        durability: if s.background { Durability::NoSync } else { Durability::None },
        compression: s.name.split_once('.').map(|(_, compression)| compression.to_owned()),
        server: s.server.map(str::to_owned),
        ..EngineConfig::new(s.engine)
    };
    let workload_settings = BTreeMap::from([
        ("maxid1".to_owned(), Value::Int(1_400_000)),
        ("profile".to_owned(), Value::Text("2017".to_owned())),
    ]);
    let plan = TrialPlan {
        number,
        engine,
        facts: Some(facts(s)),
        workload_settings: Settings(workload_settings),
        clients,
        repeat,
        run: RunPlan {
            load_clients: 4,
            warmup_s: 30.0,
            loops: plan.loops,
            loop_s: plan.loop_s as f64,
            ..samples::run_plan()
        },
        ..samples::trial_plan()
    };
    Record {
        status: Status::Done,
        version: Some("0.0 (imagined)".to_owned()),
        source: Some(s.server.map_or("built in", |_| "an imagined server's path").to_owned()),
        // All synthetic engines differ.
        effective_settings: [("cache_size", (160u64 << 20).to_string()), ("imagined_as", s.name.to_owned())]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        conditions: BTreeMap::from([
            ("driver".to_owned(), "threads".to_owned()),
            ("data over cache".to_owned(), "9.1: IO-bound".to_owned()),
        ]),
        phases,
        ..Record::of_plan(plan, "2024-01-01T12:00:00Z".to_owned())
    }
}

fn interval(s: &Shape, phase: PhaseKind, start_s: f64, second: u64, random: &mut Xoshiro256PlusPlus) -> Interval {
    let mut noise = || 1.0 + 0.12 * (random.random_range(0.0..1.0) - 0.5);
    let stalled = s.stall_every_s > 0 && second % s.stall_every_s == s.stall_every_s - 1;
    let running = matches!(phase, PhaseKind::Warmup | PhaseKind::Loop(_));
    let ops = match phase {
        PhaseKind::Load => s.rows_per_s * noise(),
        _ if running && stalled => s.ops_per_s * 0.22 * noise(),
        _ if running => s.ops_per_s * noise(),
        _ => 0.0,
    };
    let written = match phase {
        PhaseKind::Load => ops * 1.05 * 1024.0,
        PhaseKind::Settle => 60.0 * MIB,
        PhaseKind::Drain => s.debt_kb_per_op * s.ops_per_s * 400.0 / 9.0 * 1024.0,
        _ => s.ops_per_s * s.wkb_per_op * 1024.0 * if stalled { 2.4 } else { 1.0 } * noise(),
    };
    let cpu = if phase == PhaseKind::Load { ops * 6.0e-6 } else { ops.max(900.0) * s.cpu_us * 1e-6 };
    let reads = if running { ops * s.reads_per_op } else { 0.0 };
    let p99 = s.p99_ms * noise() * if stalled { 14.0 } else { 1.0 };
    let timed = |ms: f64| if running { Metric::from(ms) } else { Metric::absent("no operations") };
    Interval {
        ops: ops as u64,
        p50_ms: timed(p99 / 5.0),
        p99_ms: timed(p99),
        max_ms: timed(p99 * 6.0),
        spent: spent(s, reads, written, cpu),
        ..samples::interval(phase, start_s)
    }
}

fn spent(s: &Shape, reads: f64, written: f64, cpu: f64) -> Spent {
    Spent {
        device_reads: Metric::from(reads),
        device_writes: Metric::from(written / 16384.0),
        device_submitted: Metric::from(reads + written / 8192.0),
        device_read_bytes: Metric::from(reads * s.kb_per_read * 1024.0),
        device_write_bytes: Metric::from(written),
        device_discard_bytes: Metric::from(0.0),
        device_read_s: Metric::from(reads * 0.0001),
        device_write_s: Metric::from(written / 16384.0 * 0.0002),
        device_queue_s: Metric::from(reads * 0.0001 + written / 16384.0 * 0.0002),
        device_busy_s: Metric::from(reads * 0.00005 + written / 16384.0 * 0.0001),
        process_read_bytes: Metric::from(reads * s.kb_per_read * 1024.0),
        process_write_bytes: Metric::from(written * 0.97),
        client_cpu_s: Metric::from(match s.server {
            Some(_) => cpu * 0.3,
            None if s.background => cpu * 0.8,
            None => cpu,
        }),
        background_cpu_s: match s.server {
            Some(_) => Metric::from(0.0),
            None if s.background => Metric::from(cpu * 0.2),
            None => Metric::absent("the library starts no threads of its own"),
        },
        server_cpu_s: s.server.map_or_else(embedded, |_| Metric::from(cpu * 0.7)),
        cpu_s: Metric::from(cpu),
        client_run_delay_s: s.server.map_or_else(embedded, |_| Metric::from(cpu * 0.001)),
        harness_cpu_s: Metric::from(0.01),
        host_cpu_s: Metric::from(cpu * 1.04 + 0.05),
        steal_s: Metric::from(0.0),
        others_cpu_s: Metric::from(0.04),
        ctx_switches: Metric::from(reads * 2.0),
        server_ctx_switches: s.server.map_or_else(embedded, |_| Metric::from(reads * 3.0)),
        host_ctx_switches: Metric::from(reads * 6.0),
        rss_bytes: Metric::from(214.0 * MIB),
        client_rss_bytes: s.server.map_or_else(embedded, |_| Metric::from(31.0 * MIB)),
    }
}

fn embedded() -> Metric {
    Metric::absent("the engine is embedded, so it has no process")
}

fn phase(s: &Shape, kind: PhaseKind, start_s: f64, intervals: &[Interval]) -> PhaseRecord {
    let seconds = intervals.iter().map(|i| i.seconds).sum::<f64>();
    let ops: u64 = intervals.iter().map(|i| i.ops).sum();
    let sum = |get: fn(&Spent) -> &Metric| intervals.iter().filter_map(|i| get(&i.spent).value()).sum::<f64>();
    let (reads, written) = (sum(|spent| &spent.device_reads), sum(|spent| &spent.device_write_bytes));
    let cpu = sum(|spent| &spent.cpu_s);
    let per_op = |value: f64| Metric::from(value).per(ops as f64, "operations");
    let per_s = |value: f64| Metric::from(value).per(seconds, "time");
    let read = reads * s.kb_per_read;
    let mut metrics = Metrics { ops_per_s: per_s(ops as f64), ..Metrics::default() };
    metrics.wkb_per_op = per_op(written / 1024.0);
    metrics.cpu_us_per_op = per_op(cpu * 1e6);
    let in_all = total(s, intervals);
    let us = |part: &Metric| part.map(|seconds| seconds * 1e6).per(ops as f64, "operations");
    metrics.client_cpu_us_per_op = us(&in_all.client_cpu_s);
    metrics.server_cpu_us_per_op = us(&in_all.server_cpu_s);
    metrics.client_rss_bytes = in_all.client_rss_bytes.clone();
    metrics.host_cpu_us_per_op = us(&in_all.cpu_s.map(|seconds| seconds * 1.04));
    metrics.write_mb_s = per_s(written / MIB);
    metrics.host_cpu_percent = per_s(cpu / 4.0 * 100.0);
    metrics.rss_bytes = Metric::from(214.0 * MIB);
    metrics.size_bytes = Metric::from(s.size * if kind == PhaseKind::Load { 0.94 } else { 1.0 });
    metrics.log_bytes = Metric::from(64.0 * MIB);
    metrics.logical_bytes = Metric::from(LOGICAL);
    metrics.data_bytes = without_logs(&metrics.size_bytes, &metrics.log_bytes);
    metrics.space_amp = metrics.data_bytes.map(|size| size / LOGICAL);
    if kind == PhaseKind::Load {
        metrics.write_amp = Metric::from(written / LOGICAL);
    } else {
        metrics.write_amp = Metric::absent("measured in the load only");
        metrics.reads_per_op = per_op(reads);
        metrics.writes_per_op = per_op(written / 16384.0);
        metrics.writes_per_s = per_s(written / 16384.0);
        metrics.rkb_per_op = per_op(read);
        metrics.reads_per_s = per_s(reads);
        metrics.read_mb_s = per_s(read / 1024.0);
    }
    let running = matches!(kind, PhaseKind::Warmup | PhaseKind::Loop(_) | PhaseKind::Loops);
    let debt =
        |bytes: f64| vec![Gauge::new("pending_compaction_bytes", bytes), Gauge::new("host_dirty_bytes", bytes / 4.0)];
    PhaseRecord {
        start_s,
        ops,
        op_types: if running { op_types(s, ops) } else { BTreeMap::new() },
        metrics,
        spent: in_all,
        debt_start: if s.debt_kb_per_op > 0.0 { debt(1e6) } else { Vec::new() },
        debt_end: if s.debt_kb_per_op > 0.0 { debt(2e8) } else { Vec::new() },
        ..samples::phase(kind, seconds)
    }
}

fn total(s: &Shape, intervals: &[Interval]) -> Spent {
    let sum = |get: fn(&Spent) -> &Metric| intervals.iter().filter_map(|i| get(&i.spent).value()).sum::<f64>();
    spent(s, sum(|spent| &spent.device_reads), sum(|spent| &spent.device_write_bytes), sum(|spent| &spent.cpu_s))
}

fn op_types(s: &Shape, ops: u64) -> BTreeMap<String, OpStats> {
    let stats = OPS.map(|(name, share, weight)| {
        let p99 = s.p99_ms * weight;
        // A heavy tail: time grows with the fourth root of the rarity.
        let at = |percentile: f64| p99 * (0.01 / (1.0 - percentile / 100.0)).powf(0.42);
        let percentiles = |factor: f64| Percentiles {
            mean_ms: Metric::from(at(50.0) * 1.3 * factor),
            p50_ms: Metric::from(at(50.0) * factor),
            p95_ms: Metric::from(at(95.0) * factor),
            p99_ms: Metric::from(p99 * factor),
            p999_ms: Metric::from(at(99.9) * factor),
            max_ms: Metric::from(at(99.9999) * factor),
        };
        let spectrum = (0..80).map(|step| {
            let percentile = 100.0 * (1.0 - 0.5f64.powf(f64::from(step) / 4.0));
            (percentile, at(percentile))
        });
        let stats = OpStats {
            short: SHORT.iter().find(|(op, _)| *op == name).map(|(_, short)| short.clone()),
            count: (ops as f64 * share) as u64,
            retries: (ops as f64 * share / 9000.0) as u64,
            rows: (ops as f64 * share) as u64,
            service: percentiles(0.96),
            response: percentiles(1.0),
            spectrum: spectrum.collect(),
            ..OpStats::default()
        };
        (name.to_owned(), stats)
    });
    stats.into()
}

/// Four engines, four repeats; the last repeat of the fourth failed in its second loop.
pub fn sample() -> Results {
    let plan = Plan { clients: &[16], repeats: 4, loops: 3, loop_s: 120 };
    let mut results = results(&[LSM, LSM_ZSTD, BTREE, COPY_ON_WRITE], plan);
    results.experiment += CLAIMS;
    results.claims = claims(CLAIMS);
    for trial in results.trials.iter_mut().filter(|trial| trial.record.plan.engine.name == "lmdb") {
        let cause = "the library starts no threads of its own; its CPU is in client_cpu_us_per_op";
        for phase in &mut trial.record.phases {
            phase.metrics.background_cpu_us_per_op = Metric::absent(cause);
        }
    }
    let last = results.trials.last_mut().unwrap();
    last.record.status = Status::Failed {
        phase: PhaseKind::Loop(2),
        cause: "the engine was killed by its memory group (limit 480 MiB, 480 MiB used): give it more memory or a \
                smaller cache"
            .to_owned(),
    };
    last.record.phases.truncate(4);
    last.intervals.truncate(290);
    results.missing.push("trials/017: not run, the experiment ended after trial 16".to_owned());
    results
}

/// Two engines in a server and one embedded, two repeats.
pub fn servers() -> Results {
    results(&[SERVER_BTREE, SERVER_LSM, LSM], Plan { clients: &[16], repeats: 2, loops: 3, loop_s: 60 })
}

/// The comparison of these runs as if their trials had taken turns.
pub fn in_turns(base: &Results, other: &Results) -> Comparison {
    let begun = |run: &Results, first: usize| {
        let mut run = run.clone();
        for (trial, turn) in run.trials.iter_mut().zip(0..) {
            trial.record.started = format!("2024-01-01T10:{:02}:00Z", 2 * turn + first);
        }
        run
    };
    super::compare::compare(&begun(base, 0), &begun(other, 1))
}
