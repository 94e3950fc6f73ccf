//! plan: an experiment becomes its trials in the order they will run.

use rumba_core::engine::EngineConfig;
use rumba_core::record::{RunPlan, TrialPlan};
use rumba_core::units::show_bytes;
use rumba_core::warning::Warning;
use rumba_core::workload::Bound;

use crate::registry::Registry;
use crate::spec::Experiment;

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
                        warmup_most_s: run.warmup_most_s,
                        loops: run.loops,
                        loop_s: run.loop_s,
                        rate: run.rate,
                        seed: run.seed,
                        verify: run.verify,
                        keep_data: run.keep_data,
                        interval_s: run.interval_s,
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
    let has_cache = |engine: &EngineConfig| registry.engine(&engine.engine).is_some_and(|engine| engine.has_cache());
    let mut warnings = Vec::new();
    let engines = &experiment.engines;
    let list = |what: &dyn Fn(usize) -> String| {
        (0..engines.len()).map(|n| format!("{} {}", engines[n].name, what(n))).collect::<Vec<_>>().join(", ")
    };
    if engines.iter().any(|engine| engine.durability != engines[0].durability) {
        warnings.push(Warning::new(
            "durability-differs",
            format!(
                "the engines promise different things at commit: {}",
                list(&|n| engines[n].durability.name().into())
            ),
            "set durability in [common], or compare only engines that promise the same",
        ));
    }
    let without: Vec<&str> =
        engines.iter().filter(|engine| !has_cache(engine)).map(|engine| engine.name.as_str()).collect();
    if !without.is_empty() && without.len() < engines.len() {
        warnings.push(Warning::new(
            "no-cache",
            format!(
                "{} has no cache of its own: it uses as much of the page cache as the host gives",
                without.join(", ")
            ),
            "compare it under a limit of memory, or with the page cache in mind",
        ));
    }
    let caches: Vec<u64> = engines.iter().filter(|engine| has_cache(engine)).map(|engine| engine.cache).collect();
    if caches.iter().any(|cache| *cache != caches[0]) {
        warnings.push(Warning::new(
            "cache-differs",
            format!("the engines' caches differ: {}", list(&|n| show_bytes(engines[n].cache as f64))),
            "set cache in [common]",
        ));
    }
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
