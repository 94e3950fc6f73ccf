//! plan: an experiment becomes its trials in the order they will run.

use rumba_core::engine::EngineConfig;
use rumba_core::record::{RunPlan, TrialPlan};
use rumba_core::units::show_bytes;
use rumba_core::warning::Warning;
use rumba_core::workload::Bound;

use crate::parity;
use crate::registry::Registry;
use crate::spec::Experiment;

/// Length of an interval: one second, because stalls of 1–4 s vanish in longer ones.
const INTERVAL_S: f64 = 1.0;

/// The trials. Repeats are interleaved (A B A B, not A A B B), so that a host
/// that grows slower does so for every engine.
pub fn plan(experiment: &Experiment) -> Vec<TrialPlan> {
    let run = &experiment.run;
    let mut trials = Vec::new();
    for repeat in 1..=run.repeats {
        for &clients in &run.clients {
            for engine in &experiment.engines {
                trials.push(TrialPlan {
                    number: trials.len() as u32 + 1,
                    engine: engine.clone(),
                    workload: experiment.workload.clone(),
                    workload_settings: experiment.workload_settings.clone(),
                    clients,
                    repeat,
                    run: RunPlan {
                        load_clients: run.load_clients,
                        driver: run.driver,
                        warmup_s: run.warmup_s,
                        loops: run.loops,
                        loop_s: run.loop_s,
                        rate: run.rate,
                        seed: run.seed,
                        verify: run.verify,
                        keep_data: run.keep_data,
                        interval_s: INTERVAL_S,
                    },
                });
            }
        }
    }
    trials
}

/// The name of a trial's directory: `003-rocksdb.zstd-c4-r1`.
pub fn directory(trial: &TrialPlan) -> String {
    let engine = trial.engine.name.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "_");
    format!("{:03}-{engine}-c{}-r{}", trial.number, trial.clients, trial.repeat)
}

/// How the data compares with each engine's cache, and where misses are served from.
pub fn data_over_cache(
    experiment: &Experiment,
    bound: &dyn Bound,
    memory_bytes: Option<u64>,
    registry: &Registry,
) -> Vec<(String, String)> {
    let data = bound.expected_logical_bytes();
    let label = |cache: u64, memory: Option<u64>| match memory {
        _ if data <= cache => "cached",
        Some(memory) if data <= memory => {
            "larger than the cache, smaller than memory: the page cache serves buffered reads"
        }
        Some(_) => "IO-bound: larger than the cache and than memory",
        None => "larger than the cache; the memory is not known",
    };
    experiment
        .engines
        .iter()
        .map(|engine| {
            let name = format!("data over cache, {}", engine.name);
            if !registry.engine(&engine.engine).is_some_and(|engine| engine.has_cache()) {
                return (name, "it has no cache of its own".to_owned());
            }
            let ratio = data as f64 / engine.cache as f64;
            (name, format!("{ratio:.1}, {}", label(engine.cache, memory_of(engine, memory_bytes))))
        })
        .collect()
}

/// The memory that an engine may use: the host's, unless it is limited to less.
fn memory_of(engine: &EngineConfig, host_bytes: Option<u64>) -> Option<u64> {
    let limit = engine.limits.memory_bytes;
    limit.map(|limit| host_bytes.map_or(limit, |host| host.min(limit))).or(host_bytes)
}

/// What breaks parity between the engines, or makes all their numbers mean
/// less than they seem to.
pub fn warnings(
    experiment: &Experiment,
    bound: &dyn Bound,
    memory_bytes: Option<u64>,
    registry: &Registry,
) -> Vec<Warning> {
    let engines = &experiment.engines;
    let mut warnings = parity::warnings(engines, registry);
    let data = bound.expected_logical_bytes();
    let most = engines.iter().filter_map(|engine| memory_of(engine, memory_bytes)).max();
    if let Some(memory) = most.filter(|memory| *memory > data) {
        warnings.push(Warning::new(
            "page-cache",
            format!(
                "the data (about {}) fits into the memory that an engine has ({}): reads that miss its cache are \
                 mostly served by the page cache, not by the device",
                show_bytes(data as f64),
                show_bytes(memory as f64)
            ),
            "limit the memory (limits.memory = \"data/4\"), use more data, or direct I/O where the engine has it",
        ));
    }
    if experiment.run.repeats == 1 {
        warnings.push(Warning::new(
            "one-repeat",
            "with one repeat there is no telling a difference from noise",
            "set repeats = 3 or more",
        ));
    }
    warnings
}
