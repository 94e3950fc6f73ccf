//! Whether an engine fits into its `limits.memory`, and the cache that goes
//! with it where the experiment names none.

use rumba_core::common::Given;
use rumba_core::engine::{Engine, EngineConfig};
use rumba_core::memory::{MemoryNeed, MemoryUse};
use rumba_core::units::{counted, show_bytes};

use super::error::{Origin, SpecError};
use super::node::{Node, Table, Tree};

const MIB: u64 = 1 << 20;
/// The least cache that is derived: less is a mistake in the limit, and is told as that.
const LEAST_CACHE: u64 = 8 * MIB;
/// Memory over need, from which on it is no longer called tight.
const ROOM: f64 = 1.25;
/// Memory over need, below which it is refused. Not all that the need counts is full at the same moment, and it
/// was measured in steps: MyRocks was seen to run in 0.96 of it, and to be killed in 0.75.
const LEAST: f64 = 0.9;

/// An engine, and how it fits into its memory.
pub struct Fitted {
    /// The engine.
    pub config: EngineConfig,
    /// How it fits.
    pub fit: Fit,
}

/// What comes of comparing an engine's need with its limit.
#[derive(Default)]
pub struct Fit {
    need: Option<String>,
    /// The settings that follow from the sizes of data and memory, and why.
    pub by_data: Option<String>,
    shortage: Option<Shortage>,
}

/// A `limits.memory` that is less than an engine needs, or hardly more.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    /// What is short, where it was written, and what would work.
    pub mistake: SpecError,
    /// Whether the engine was measured not to run with so little.
    pub is_impossible: bool,
}

/// The shortages of all engines; their needs, and the settings that follow from the size of the data, as conditions.
pub fn of_all(fitted: &[Fitted]) -> (Vec<Shortage>, Vec<(String, String)>) {
    let needs = fitted
        .iter()
        .filter_map(|Fitted { config, fit }| Some((format!("memory needed, {}", config.name), fit.need.clone()?)));
    let by_data = fitted.iter().filter_map(|Fitted { config, fit }| {
        Some((format!("set by data size, {}", config.name), fit.by_data.clone()?))
    });
    (fitted.iter().filter_map(|fitted| fitted.fit.shortage.clone()).collect(), needs.chain(by_data).collect())
}

/// Derives the cache of an engine with limited memory whose experiment names
/// none, and compares what it needs with what it has, where the size of its cache is known: a setting of its own may say it
/// in other terms. An existing server is under no limit, and given no cache.
pub fn fit(engine: &dyn Engine, config: &mut EngineConfig, table: &Table, work: MemoryUse) -> Fit {
    let Some(memory) = config.limits.memory_bytes.filter(|_| !config.is_existing()) else { return Fit::default() };
    let need = engine.memory_need(config);
    let derived = table.get("cache").is_none() && engine.has_cache(config);
    if derived {
        config.cache = derive(need.as_ref(), memory, work);
    }
    let cache = config.given_cache(Some(&engine.facts(config)));
    let (Some(need), Some(bytes)) = (need, cache.value) else { return Fit::default() };
    let whose = match derived && cache.by.is_none() {
        true => format!("a cache of {cache}, derived from limits.memory"),
        false => format!("its cache of {cache}"),
    };
    let words = words(&need, bytes, &whose, memory, work);
    Fit { shortage: shortage(&need, config, table, &cache, work), need: Some(words), by_data: None }
}

/// The largest cache with which the need leaves a fifth of the memory; half of
/// it where the need is not known.
fn derive(need: Option<&MemoryNeed>, memory: u64, work: MemoryUse) -> u64 {
    let cache = need.map_or(memory / 2 / MIB * MIB, |need| need.largest_cache((memory as f64 / ROOM) as u64, work));
    cache.max(LEAST_CACHE)
}

fn words(need: &MemoryNeed, cache: u64, whose: &str, memory: u64, work: MemoryUse) -> String {
    let show = |bytes: u64| show_bytes(bytes as f64);
    let needed = need.bytes(cache, work);
    let cache = match need.cache_bytes(cache) {
        0 => String::new(),
        taken => format!("{} for {whose}; ", show(taken)),
    };
    format!(
        "{} of {}: {cache}{} for {}, {} and the data; {} for itself, as measured on {}",
        show(needed),
        show(memory),
        show(need.work_bytes(work)),
        counted(work.loaders as usize, "loader"),
        counted(work.clients as usize, "client"),
        show(need.base_bytes),
        need.measured_on
    )
}

fn shortage(
    need: &MemoryNeed,
    config: &EngineConfig,
    table: &Table,
    cache: &Given<u64>,
    work: MemoryUse,
) -> Option<Shortage> {
    let (memory, bytes) = (config.limits.memory_bytes?, cache.value?);
    let needed = need.bytes(bytes, work);
    let enough = ((needed as f64 * ROOM) as u64).div_ceil(MIB);
    if memory >= enough * MIB {
        return None;
    }
    // A cache fills up sooner or later, whatever else is never full at once.
    let held = need.base_bytes + if need.per_cache > 0.0 { bytes } else { 0 };
    let is_impossible = (memory as f64) < LEAST * needed as f64 || memory < held;
    let how = if is_impossible { "too small for" } else { "tight for" };
    let problem = format!(
        "limits.memory = {} is {how} {}, which needs {}",
        show_bytes(memory as f64),
        config.name,
        words(need, bytes, &format!("its cache of {cache}"), memory, work)
    );
    let mut remedy = format!("set memory to \"{enough}MiB\" or more");
    let fitting = need.largest_cache((memory as f64 / ROOM) as u64, work);
    if need.per_cache > 0.0 && fitting >= LEAST_CACHE && fitting < bytes {
        remedy += &match &cache.by {
            None => format!(", or cache to \"{}MiB\" or less", fitting / MIB),
            // In its own units, and with what else is counted to the cache beside it.
            Some(setting) => format!(", or its cache (by {setting}) to {} MiB or less", fitting / MIB),
        };
    }
    let remedy = remedy + "; fewer clients need less";
    Some(Shortage { mistake: SpecError::new(place(cache, memory, table), problem, remedy), is_impossible })
}

/// The line to look at: the limit's, unless it is the cache alone that is larger.
fn place<'a>(cache: &Given<u64>, memory: u64, table: &'a Table) -> &'a Origin {
    let within = |outer: &str, key: &str| match &table.get(outer)?.tree {
        Tree::Table(inner) => inner.get(key),
        _ => None,
    };
    let written = match &cache.by {
        None => table.get("cache"),
        Some(setting) => within("settings", setting),
    };
    let larger = written.filter(|_| cache.value.is_some_and(|bytes| bytes >= memory));
    larger.or_else(|| within("limits", "memory")).map_or(&Origin::Default, |node: &Node| &node.origin)
}
