//! Checks that an engine fits into its `limits.memory`, and derives its cache if the experiment names none.

use rumba_engine_api::common::Given;
use rumba_engine_api::engine::{Engine, EngineConfig};
use rumba_engine_api::memory::{MemoryNeed, MemoryUse};
use rumba_engine_api::parity::Reads;
use rumba_engine_api::setting::Value;
use rumba_engine_api::units::{counted, show_bytes};
use rumba_results::comparability::{HOLDS_DATA, PAGE_CACHE_SHARE};
use rumba_results::warning::Warning;

use super::error::{Origin, SpecError};
use super::node::{Node, Table, Tree};

const MIB: u64 = 1 << 20;
/// The smallest derived cache, bytes: less means a mistake in the limit, which is reported as such.
const LEAST_CACHE: u64 = 8 * MIB;
/// Ratio of memory to need from which memory is no longer called tight.
const ROOM: f64 = 1.25;
/// Ratio of memory to need below which it is refused. The parts of the need are not all full at the same moment, and
/// the need was measured in steps. MyRocks ran in 0.96 of its need, and was killed in 0.75.
const LEAST: f64 = 0.9;

/// An engine with its fit into memory.
pub struct Fitted {
    pub config: EngineConfig,
    pub fit: Fit,
}

/// The comparison of an engine's need with its limit.
#[derive(Default)]
pub struct Fit {
    need: Option<String>,
    /// The settings that follow from the sizes of data and memory, and why.
    pub by_data: Option<String>,
    shortage: Option<Shortage>,
    unused: Option<Warning>,
}

/// The memory limits of all engines, compared with their needs.
pub struct Budgets {
    /// Limits that are too small or tight.
    pub shortages: Vec<Shortage>,
    /// Limits that engines leave unused.
    pub unused: Vec<Warning>,
    /// The engines' needs, and the settings that follow from the size of the data, as conditions.
    pub needs: Vec<(String, String)>,
}

/// A `limits.memory` that is too small or tight for an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    /// The problem, its place, and a remedy.
    pub mistake: SpecError,
    /// Whether measurements show that the engine does not run with so little.
    pub is_impossible: bool,
}

impl Budgets {
    /// Collects the results of these engines.
    pub fn of(fitted: &[Fitted]) -> Self {
        let need =
            |Fitted { config, fit }: &Fitted| Some((format!("memory needed, {}", config.name), fit.need.clone()?));
        let by_data = |Fitted { config, fit }: &Fitted| {
            Some((format!("set by data size, {}", config.name), fit.by_data.clone()?))
        };
        Self {
            shortages: fitted.iter().filter_map(|fitted| fitted.fit.shortage.clone()).collect(),
            unused: fitted.iter().filter_map(|fitted| fitted.fit.unused.clone()).collect(),
            needs: fitted.iter().filter_map(need).chain(fitted.iter().filter_map(by_data)).collect(),
        }
    }
}

/// The value of `cache` that derives it from `limits.memory`.
pub const AUTO: &str = "auto";

/// Whether a `cache` is to be derived.
pub fn is_auto(node: &Node) -> bool {
    matches!(&node.tree, Tree::Scalar(Value::Text(text)) if text.trim() == AUTO)
}

/// Derives the cache of an engine with limited memory whose experiment names none or `"auto"`, and compares need with
/// limit. The size of its cache must be known: an engine setting may give it in other terms. An existing server has no
/// limit and is given no cache.
pub fn fit(engine: &dyn Engine, config: &mut EngineConfig, table: &Table, work: MemoryUse) -> Fit {
    let Some(memory) = config.limits.memory_bytes.filter(|_| !config.is_existing()) else { return Fit::default() };
    let need = engine.memory_need(config);
    let mut rule = "as much as fits";
    config.cache_is_derived = table.get("cache").is_none_or(is_auto) && engine.has_cache(config);
    if config.cache_is_derived {
        (config.cache, rule) = derive(engine, config, need.as_ref(), memory, work);
    }
    let facts = engine.facts(config);
    let cache = config.given_cache(Some(&facts));
    let Some(bytes) = cache.value else { return Fit::default() };
    let is_direct = facts.has_cache && facts.reads == Some(Reads::Direct);
    let unused = is_direct.then(|| unused(need.as_ref(), config, &cache, bytes, memory, work)).flatten();
    let Some(need) = need else { return Fit { unused, ..Fit::default() } };
    let whose = match config.cache_is_derived && cache.by.is_none() {
        true => format!("a cache of {cache}, derived from limits.memory ({rule})"),
        false => format!("its cache of {cache}"),
    };
    let words = words(&need, bytes, &whose, memory, work);
    Fit { shortage: shortage(&need, config, table, &cache, work), need: Some(words), unused, by_data: None }
}

/// The derived cache, with the rule that decided. For an engine that shares the memory with the page cache, its makers'
/// advice is used, up to an upper bound. The upper bound, and the cache of all other engines, is the largest with which
/// the need leaves a fifth of the memory. If the need is not known, it is half of the memory.
fn derive(
    engine: &dyn Engine,
    config: &EngineConfig,
    need: Option<&MemoryNeed>,
    memory: u64,
    work: MemoryUse,
) -> (u64, &'static str) {
    let (fitting, rule) = match need {
        Some(need) => (need.largest_cache((memory as f64 / ROOM) as u64, work), "as much as fits"),
        None => (memory / 2 / MIB * MIB, "half of it, because its need was not measured"),
    };
    match engine.advised_cache(config, memory) {
        Some(advised) if advised.bytes < fitting => ((advised.bytes / MIB * MIB).max(LEAST_CACHE), advised.rule),
        _ => (fitting.max(LEAST_CACHE), rule),
    }
}

/// Warns of memory that an engine cannot use because it bypasses the page cache.
fn unused(
    need: Option<&MemoryNeed>,
    config: &EngineConfig,
    cache: &Given<u64>,
    bytes: u64,
    memory: u64,
    work: MemoryUse,
) -> Option<Warning> {
    let used = need.map_or(bytes, |need| need.bytes(bytes, work));
    let left = memory.saturating_sub(used);
    // With a cache that holds all data, more memory would be of no use.
    let holds_data = bytes as f64 >= HOLDS_DATA * work.data_bytes as f64;
    if holds_data || (left as f64) <= PAGE_CACHE_SHARE * memory as f64 {
        return None;
    }
    let show = |bytes: u64| show_bytes(bytes as f64);
    let remedy = match (&cache.by, config.cache_is_derived) {
        (Some(setting), _) => format!("leave out {setting} and set cache = \"{AUTO}\""),
        (None, false) => format!("set cache = \"{AUTO}\" (--set cache={AUTO}), which fills the limit"),
        (None, true) => "set cache to a size, because the engine's need was not measured".to_owned(),
    };
    let message = format!(
        "{} leaves {} of limits.memory = {} unused: it reads past the page cache, and its cache is {cache}",
        config.name,
        show(left),
        show(memory)
    );
    Some(Warning::new("memory-unused", message, remedy))
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
    // The cache fills up eventually, even if other parts are never full at the same time.
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
            // The setting has its own units, and may include other parts of the cache.
            Some(setting) => format!(", or its cache (by {setting}) to {} MiB or less", fitting / MIB),
        };
    }
    let remedy = remedy + "; fewer clients need less";
    Some(Shortage { mistake: SpecError::new(place(cache, memory, table), problem, remedy), is_impossible })
}

/// The place to show: the limit's, unless the cache alone is larger than it.
fn place<'a>(cache: &Given<u64>, memory: u64, table: &'a Table) -> &'a Origin {
    let within = |outer: &str, key: &str| table.get(outer)?.get(key);
    let written = match &cache.by {
        None => table.get("cache"),
        Some(setting) => within("settings", setting),
    };
    let larger = written.filter(|_| cache.value.is_some_and(|bytes| bytes >= memory));
    larger.or_else(|| within("limits", "memory")).map_or(&Origin::Default, |node: &Node| &node.origin)
}
