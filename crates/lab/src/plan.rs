//! plan: turns an experiment into its trials, in running order.

mod rest;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::limits::{Limits, StorageLimit};
use rumba_engine_api::parity::Reads;
use rumba_engine_api::units::{counted, show_bytes};
use rumba_engine_api::workload::{Test, engine_in_test};
use rumba_results::engine_name;
use rumba_results::record::{TrialPart, TrialPlan};
use rumba_results::warning::Warning;
use rumba_statistics::LEAST_REPEATS;
use rumba_statistics::steady::FEWEST_INTERVALS;

use crate::parity;
use crate::registry::Registry;
use crate::spec::{Experiment, RepeatsFrom, SHORTEST_INTERVAL_S};

pub use rest::rest;

/// The trials, repeat by repeat. A repeat begins with the loads that its trials start from. With
/// `repeats_from = "kept"` only the first repeat has loads, and all others start from these. An engine with one trial
/// in a repeat loads within that trial.
///
/// Engines alternate (A B, not A A B B), so that a host that slows down affects all engines. Every second round is in
/// reverse order (A B B A), so that the aftereffects of a trial reach all engines. In a suite, all engines run a test
/// before the next test begins.
pub fn plan(experiment: &Experiment, registry: &Registry) -> Vec<TrialPlan> {
    let run = &experiment.run;
    let tests: Vec<Option<&Test>> = match experiment.tests.as_slice() {
        [] => vec![None],
        tests => tests.iter().map(Some).collect(),
    };
    let mut trials: Vec<TrialPlan> = Vec::new();
    let mut loads = Vec::new();
    for repeat in 1..=run.repeats {
        if repeat == 1 || run.repeats_from == RepeatsFrom::Load {
            let (of_repeat, names) = loads_of_repeat(experiment, registry, &tests, repeat, trials.len());
            trials.extend(of_repeat);
            loads = names;
        }
        for start in 1..=run.starts {
            for &clients in &run.clients {
                for test in &tests {
                    for engine in turn(experiment, repeat + start) {
                        let loaded =
                            engine_in_test(&engine.name, test.filter(|test| test.loads).map(|test| test.name.as_str()));
                        let load = loads.iter().find(|(name, _)| *name == loaded).map(|(_, number)| *number);
                        let part = if load.is_some() { TrialPart::Run } else { TrialPart::Whole };
                        let planned = trial(experiment, engine, registry, trials.len(), clients, repeat, part);
                        trials.push(in_test(TrialPlan { start, loaded_by: load, ..planned }, *test));
                    }
                }
            }
        }
    }
    trials
}

/// The engines in the order of a round: reversed in every second one.
fn turn(experiment: &Experiment, number: u32) -> Vec<&EngineConfig> {
    let mut turn: Vec<&EngineConfig> = experiment.engines.iter().collect();
    if number % 2 == 1 {
        turn.reverse();
    }
    turn
}

/// The engine as it loads for other trials: its storage throttle may apply to the trials only.
fn while_loading(engine: &EngineConfig) -> EngineConfig {
    let storage = engine.limits.storage.as_ref().map(StorageLimit::while_loading);
    EngineConfig { limits: Limits { storage, ..engine.limits.clone() }, ..engine.clone() }
}

/// Whether the storage is throttled after the load only.
fn loads_freely(engine: &EngineConfig) -> bool {
    engine.limits.storage.as_ref().is_some_and(|storage| !storage.throttle_load)
}

/// Whether one load serves both engines, because they differ only in a throttle after the load. Other equal engines
/// load separately: a user who runs an engine against itself wants to see how loads differ.
fn load_alike(one: &TrialPlan, other: &TrialPlan) -> bool {
    loads_freely(&other.engine)
        && EngineConfig { name: other.engine.name.clone(), ..one.engine.clone() } == other.engine
        && (&one.test, &one.workload_settings) == (&other.test, &other.workload_settings)
}

/// The loads of a repeat, numbered after `before` trials. Also the load's number for each name that starts from one: an
/// engine, or an engine in a test with its own data.
fn loads_of_repeat(
    experiment: &Experiment,
    registry: &Registry,
    tests: &[Option<&Test>],
    repeat: u32,
    before: usize,
) -> (Vec<TrialPlan>, Vec<(String, u32)>) {
    let run = &experiment.run;
    // Ageing takes less time with more clients.
    let clients = if run.age_s.is_some() { run.clients.iter().max() } else { run.clients.first() };
    let clients = clients.copied().unwrap_or(1);
    let mut of_tests: Vec<Option<&Test>> = Vec::new();
    for test in tests.iter().map(|test| test.filter(|test| test.loads)) {
        if !of_tests.contains(&test) {
            of_tests.push(test);
        }
    }
    let (mut trials, mut loads): (Vec<TrialPlan>, _) = (Vec::new(), Vec::new());
    for engine in turn(experiment, repeat + 1) {
        for test in of_tests.iter().filter(|test| is_kept(experiment, engine, **test, registry)) {
            let number = before + trials.len();
            let load = trial(experiment, &while_loading(engine), registry, number, clients, repeat, TrialPart::Load);
            let load = in_test(load, *test);
            let alike = trials.iter().find(|other| load_alike(other, &load)).map(|other| other.number);
            loads.push((load.engine.name.clone(), alike.unwrap_or(load.number)));
            if alike.is_none() {
                trials.push(load);
            }
        }
    }
    (trials, loads)
}

fn in_test(mut trial: TrialPlan, test: Option<&Test>) -> TrialPlan {
    if let Some(test) = test {
        trial.engine.name = engine_in_test(&trial.engine.name, Some(&test.name));
        trial.workload_settings = test.settings.clone();
        trial.test = Some(test.name.clone());
    }
    trial
}

/// Whether an engine's trials start from copies of a kept load. `test` is a test with its own data, or `None` for the
/// tests that share data. A load for only one trial would gain nothing.
fn is_kept(experiment: &Experiment, engine: &EngineConfig, test: Option<&Test>, registry: &Registry) -> bool {
    let run = &experiment.run;
    let sharing = if test.is_some() { 1 } else { experiment.tests.iter().filter(|test| !test.loads).count().max(1) };
    let trials_of_repeat = run.clients.len() * run.starts as usize * sharing;
    let several = trials_of_repeat > 1 || run.search.is_some() || loads_freely(engine);
    let wanted = several || run.repeats_from == RepeatsFrom::Kept;
    wanted && registry.engine(&engine.engine).is_some_and(|known| known.reopens(engine))
}

fn trial(
    experiment: &Experiment,
    engine: &EngineConfig,
    registry: &Registry,
    before: usize,
    clients: u32,
    repeat: u32,
    part: TrialPart,
) -> TrialPlan {
    let run = &experiment.run;
    TrialPlan {
        number: before as u32 + 1,
        engine: engine.clone(),
        facts: registry.facts(engine),
        workload: experiment.workload.clone(),
        workload_settings: experiment.workload_settings.clone(),
        test: None,
        aged_by: experiment.aged_by.clone(),
        clients,
        repeat,
        start: 1,
        part,
        loaded_by: None,
        probe: run.search.filter(|_| part != TrialPart::Load).map(|_| 1),
        run: run.trial.clone(),
    }
}

/// The name of a trial's directory: `003-rocksdb.zstd-c4-r1`, or `003-rocksdb.zstd-c4-r1-s2` if a load has several
/// starts. A load has `001-rocksdb.zstd-load`. It uses the engine's short name, which has no shell wildcards.
pub fn directory(trial: &TrialPlan) -> String {
    let short = engine_name::short(&trial.engine.name);
    let engine = short.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "_");
    match (trial.part, trial.repeat) {
        (TrialPart::Load, 1) => format!("{:03}-{engine}-load", trial.number),
        (TrialPart::Load, again) => format!("{:03}-{engine}-load{again}", trial.number),
        _ => {
            let start = if trial.run.starts > 1 { format!("-s{}", trial.start) } else { String::new() };
            format!("{:03}-{engine}-c{}-r{}{start}", trial.number, trial.clients, trial.repeat)
        }
    }
}

/// The name of the directory that holds a trial's limited storage.
pub fn volume_name(trial: &TrialPlan) -> String {
    format!("{}.storage", directory(trial))
}

/// How the data compares with each engine's cache, and what serves cache misses.
pub fn data_over_cache(
    experiment: &Experiment,
    memory_bytes: Option<u64>,
    registry: &Registry,
) -> Vec<(String, String)> {
    let data = experiment.bound.expected_logical_bytes();
    let label = |engine: &EngineConfig, cache: u64| match memory_of(engine, memory_bytes) {
        _ if data <= cache => "cached",
        _ if reads_directly(engine, registry) => "IO-bound: larger than the cache, and read past the page cache",
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
            let facts = registry.facts(engine);
            if !facts.as_ref().is_some_and(|facts| facts.has_cache) {
                return (name, "it has no cache of its own".to_owned());
            }
            let given = engine.given_cache(facts.as_ref());
            let reported = match given.value {
                Some(cache) => format!("{:.1}, {}", data as f64 / cache as f64, label(engine, cache)),
                None if given.is_known() => format!("not known: it has {given}"),
                None => "not known: its server has the cache that others gave it".to_owned(),
            };
            (name, reported)
        })
        .collect()
}

/// The memory that an engine may use: the host's, unless it is limited to less.
fn memory_of(engine: &EngineConfig, host_bytes: Option<u64>) -> Option<u64> {
    let limit = engine.limits.memory_bytes;
    limit.map(|limit| host_bytes.map_or(limit, |host| host.min(limit))).or(host_bytes)
}

/// Whether an engine bypasses the page cache, so that free memory does not matter. An engine without this information
/// counts as buffered.
fn reads_directly(engine: &EngineConfig, registry: &Registry) -> bool {
    registry.engine(&engine.engine).is_some_and(|known| known.nature(engine).reads == Some(Reads::Direct))
}

/// Warnings about conditions that differ between engines, or that weaken all results.
pub fn warnings(experiment: &Experiment, memory_bytes: Option<u64>, registry: &Registry) -> Vec<Warning> {
    let engines = &experiment.engines;
    let mut warnings = parity::warnings(engines, experiment.bound.expected_logical_bytes(), registry);
    warnings.extend(page_cache(experiment, memory_bytes, registry));
    warnings.extend(loads_differ(experiment, registry));
    if let Some(warning) = few_repeats(experiment) {
        warnings.push(warning);
    } else if experiment.run.repeats == 1 {
        warnings.push(Warning::new(
            "one-repeat",
            "one repeat cannot separate a difference from noise",
            "set repeats = 4 or more: with fewer no difference can be decided",
        ));
    }
    warnings.extend(few_intervals(experiment));
    warnings.extend(experiment.same_engines.iter().cloned());
    warnings
}

/// Warns of engines that load for every trial next to engines whose trials share a load. After a load in the same
/// trial, caches are warm and pages are as the load left them.
fn loads_differ(experiment: &Experiment, registry: &Registry) -> Option<Warning> {
    let tests = || experiment.tests.iter().map(|test| Some(test).filter(|test| test.loads)).chain([None]);
    let shares = |engine: &&EngineConfig| tests().any(|test| is_kept(experiment, engine, test, registry));
    let keeps_data =
        |engine: &&EngineConfig| registry.engine(&engine.engine).is_some_and(|known| known.info().keeps_data);
    let (sharing, loading): (Vec<&EngineConfig>, Vec<&EngineConfig>) =
        experiment.engines.iter().filter(keeps_data).partition(shares);
    if sharing.is_empty() || loading.is_empty() {
        return None;
    }
    let names: Vec<&str> = loading.iter().map(|engine| engine.name.as_str()).collect();
    let others = match experiment.run.repeats_from {
        RepeatsFrom::Kept => "the others load once",
        RepeatsFrom::Load => "the others load once for each repeat",
    };
    Some(Warning::new(
        "loads-differ",
        format!("{} loads for every trial, because its data cannot be kept; {others}", names.join(", ")),
        "give one number of clients and repeats_from = \"load\" to have all of them load for every trial",
    ))
}

/// Warns of engines with enough memory but a cache that is smaller than the data, or unknown. The page cache then acts
/// as a second cache, except for engines that bypass it.
fn page_cache(experiment: &Experiment, memory_bytes: Option<u64>, registry: &Registry) -> Option<Warning> {
    let data = experiment.bound.expected_logical_bytes();
    let misses = |engine: &EngineConfig| {
        let facts = registry.facts(engine);
        let has_cache = facts.as_ref().is_some_and(|facts| facts.has_cache);
        let misses = !has_cache || engine.given_cache(facts.as_ref()).value.is_none_or(|cache| cache < data);
        misses && !reads_directly(engine, registry)
    };
    let served: Vec<(&str, u64)> = (experiment.engines.iter().filter(|engine| misses(engine)))
        .filter_map(|engine| Some((engine.name.as_str(), memory_of(engine, memory_bytes)?)))
        .filter(|(_, memory)| *memory > data)
        .collect();
    let most = served.iter().map(|(_, memory)| *memory).max()?;
    let whose = match served.len() == experiment.engines.len() {
        true => "an engine has".to_owned(),
        false => format!("{} may use", served.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")),
    };
    Some(Warning::new(
        "page-cache",
        format!(
            "the data (about {}) fits into the memory that {whose} ({}): reads that miss its cache are \
             mostly served by the page cache, not by the device",
            show_bytes(data as f64),
            show_bytes(most as f64)
        ),
        "limit the memory (limits.memory = \"data/4\"), use more data, or direct I/O where the engine has it",
    ))
}

/// Warns when the loops have too few intervals to test for a steady state, however many repeats there are.
fn few_intervals(experiment: &Experiment) -> Option<Warning> {
    let run = &experiment.run;
    let of = |interval_s: f64| (f64::from(run.loops) * run.loop_s / interval_s).round();
    let (intervals, shorter) = (of(run.interval_s), of(SHORTEST_INTERVAL_S) >= FEWEST_INTERVALS);
    let shorter = shorter.then(|| format!("set interval = \"{:.0}ms\", or ", SHORTEST_INTERVAL_S * 1e3));
    (intervals < FEWEST_INTERVALS).then(|| {
        Warning::new(
            "few-intervals",
            format!(
                "the loops are {} long; rumba needs {FEWEST_INTERVALS} or more to judge whether they were steady",
                counted(intervals as usize, "interval")
            ),
            shorter.unwrap_or_default() + "run longer loops",
        )
    })
}

/// Warns when engines are compared with fewer repeats than any verdict needs.
pub fn few_repeats(experiment: &Experiment) -> Option<Warning> {
    let repeats = experiment.run.repeats;
    (repeats < LEAST_REPEATS && !experiment.pairs.is_empty()).then(|| {
        Warning::new(
            "few-repeats",
            format!("with repeats = {repeats} no test can separate the two sides"),
            format!("set repeats = {LEAST_REPEATS} or more, or leave it out"),
        )
    })
}
