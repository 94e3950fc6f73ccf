//! Decides whether the figures of two engines may be compared. Warnings, verdicts, tables, pages and JSON all use this
//! module.

use rumba_engine_api::common::{Durability, Given};
use rumba_engine_api::cpus::CpuSet;
use rumba_engine_api::engine::{EngineConfig, EngineFacts, Form};
use rumba_engine_api::limits::{Limits, StorageLimit};
use rumba_engine_api::parity::Reads;
use rumba_engine_api::units::show_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::SIZES;
use crate::record::Record;
use crate::warning;

/// A share of the memory limit. If less than this share is left next to the cache, the page cache is negligible. If
/// more than this share stays unused, rumba warns.
pub const PAGE_CACHE_SHARE: f64 = 0.3;
/// A cache of this multiple of the logical data holds all of it, because trees have free space in their pages, and
/// indexes.
pub const HOLDS_DATA: f64 = 2.0;

/// An engine's resources, and how the engine uses them.
#[derive(Clone, Debug)]
pub struct Setup {
    memory_bytes: Option<u64>,
    storage: Option<StorageLimit>,
    cpus: Option<CpuSet>,
    client_cpus: Option<CpuSet>,
    cache: Given<u64>,
    is_derived: bool,
    has_cache: bool,
    durability: Given<Durability>,
    reads: Option<Reads>,
    compression: Option<String>,
    data_bytes: Option<u64>,
}

impl Setup {
    /// The setup of an engine with this many logical bytes of data, if that is known.
    pub fn new(config: &EngineConfig, facts: Option<&EngineFacts>, data_bytes: Option<u64>) -> Self {
        let cache = config.given_cache(facts);
        let Limits { memory_bytes, storage, cpus, client_cpus } = config.limits.clone();
        let has_clients = facts.is_some_and(|facts| facts.form != Form::Server);
        Self {
            memory_bytes,
            storage,
            // The clients of an engine in their process have its CPUs.
            client_cpus: if has_clients { cpus.clone() } else { client_cpus },
            cpus,
            is_derived: config.cache_is_derived && cache.by.is_none(),
            cache,
            has_cache: facts.is_none_or(|facts| facts.has_cache),
            durability: config.given_durability(facts),
            reads: facts.and_then(|facts| facts.reads),
            compression: facts.and_then(|facts| facts.compression.clone()),
            data_bytes,
        }
    }

    /// The setup of a trial's engine.
    pub fn of_record(record: &Record) -> Self {
        let data_bytes = record.phases.iter().find_map(|phase| phase.metrics.logical_bytes.value());
        let data_bytes = data_bytes.map(|bytes| bytes as u64);
        Self::new(&record.plan.engine, record.plan.facts.as_ref(), data_bytes)
    }

    /// Whether its caches follow from the memory limit alone.
    pub fn has_budget(&self) -> bool {
        self.memory_bytes.is_some() && (self.is_derived || !self.has_cache)
    }

    fn cache_bytes(&self) -> Option<u64> {
        if self.has_cache { self.cache.value } else { Some(0) }
    }

    /// Whether its data exceeds its own cache.
    fn misses_cache(&self) -> bool {
        match (self.cache_bytes(), self.data_bytes) {
            (Some(cache), Some(data)) => (cache as f64) < HOLDS_DATA * data as f64,
            _ => true,
        }
    }

    /// Whether the memory limit leaves room for the page cache next to the engine's own cache.
    fn leaves_page_cache(&self) -> bool {
        match (self.cache_bytes(), self.memory_bytes) {
            (Some(cache), Some(memory)) => (cache as f64) < (1.0 - PAGE_CACHE_SHARE) * memory as f64,
            _ => true,
        }
    }

    fn is_direct(&self) -> Option<bool> {
        self.reads.map(|reads| reads == Reads::Direct)
    }
}

/// A condition that changes results and that may differ between two engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// The memory limit.
    Memory,
    /// The storage limits.
    Storage,
    /// The CPUs of the engine's processes.
    Cpus,
    /// The CPUs of loaders and clients.
    ClientCpus,
    /// The size of the engine's own cache.
    Cache,
    /// One reads through the page cache, and so has more memory than the other, which bypasses it.
    PageCache,
    /// Durability of a commit.
    Durability,
    /// Compression of the data.
    Compression,
}

impl Condition {
    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Memory => "memory",
            Condition::Storage => "storage",
            Condition::Cpus => "CPUs",
            Condition::ClientCpus => "clients' CPUs",
            Condition::Cache => "cache",
            Condition::PageCache => "files read",
            Condition::Durability => "durability",
            Condition::Compression => "compression",
        }
    }
}

/// A condition that differs between two engines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unequal {
    /// The condition.
    pub condition: Condition,
    /// The first engine's value.
    pub one: String,
    /// The second engine's value.
    pub other: String,
}

impl Unequal {
    /// `compression: zstd against none`.
    pub fn words(&self) -> String {
        format!("{}: {}", self.condition.name(), self.against())
    }

    /// `zstd against none`.
    pub fn against(&self) -> String {
        format!("{} against {}", self.one, self.other)
    }

    /// Whether it forbids ranking the two in a metric, because one had more of the memory without an explicit request.
    pub fn forbids(&self, metric: &str) -> bool {
        self.condition == Condition::PageCache && !SIZES.contains(&metric)
    }

    /// Whether a verdict in this metric must mention it.
    pub fn is_said_of(&self, metric: &str) -> bool {
        let kind = (self.condition == Condition::Compression).then(|| warning::kind("compression-differs")).flatten();
        kind.is_some_and(|kind| kind.undermines_metric(metric))
    }
}

fn or_no_limit(limit: &Option<impl ToString>) -> String {
    limit.as_ref().map_or("no limit".to_owned(), ToString::to_string)
}

/// The conditions that differ between two engines. A condition that one of them does not report is left out.
///
/// Engines under the same limit of memory whose caches were derived from it have an equal budget: neither their caches
/// nor how they read their files count as unequal.
pub fn unequal(one: &Setup, other: &Setup) -> Vec<Unequal> {
    let mut all = Vec::new();
    let mut add = |condition, one: String, other: String| all.push(Unequal { condition, one, other });
    let equal_budget = one.memory_bytes == other.memory_bytes && one.has_budget() && other.has_budget();
    if one.memory_bytes != other.memory_bytes {
        let show = |setup: &Setup| or_no_limit(&setup.memory_bytes.map(|bytes| show_bytes(bytes as f64)));
        add(Condition::Memory, show(one), show(other));
    }
    if one.storage != other.storage {
        add(Condition::Storage, or_no_limit(&one.storage), or_no_limit(&other.storage));
    }
    let cpus =
        [(Condition::Cpus, &one.cpus, &other.cpus), (Condition::ClientCpus, &one.client_cpus, &other.client_cpus)];
    for (condition, own, others) in cpus.into_iter().filter(|(_, own, others)| own != others) {
        add(condition, or_no_limit(own), or_no_limit(others));
    }
    if one.has_cache && other.has_cache && one.cache != other.cache && !equal_budget {
        add(Condition::Cache, one.cache.to_string(), other.cache.to_string());
    }
    if !equal_budget && has_page_cache_alone(one, other) {
        let show = |reads: Option<Reads>| reads.map(|reads| reads.to_string()).unwrap_or_default();
        add(Condition::PageCache, show(one.reads), show(other.reads));
    }
    if one.durability != other.durability {
        add(Condition::Durability, one.durability.to_string(), other.durability.to_string());
    }
    if let (Some(own), Some(others)) = (&one.compression, &other.compression)
        && own != others
    {
        add(Condition::Compression, own.clone(), others.clone());
    }
    all
}

/// Whether one of both reads data that does not fit into its cache through the page cache, while the other reads it
/// from the device.
fn has_page_cache_alone(one: &Setup, other: &Setup) -> bool {
    let (direct, through) = match (one.is_direct(), other.is_direct()) {
        (Some(true), Some(false)) => (one, other),
        (Some(false), Some(true)) => (other, one),
        _ => return false,
    };
    direct.misses_cache() && through.leaves_page_cache()
}

/// The condition that forbids ranking two engines in a metric, in words: `files read: past the page cache against
/// through the page cache`.
pub fn why_not_ranked(unequal: &[Unequal], metric: &str) -> Option<String> {
    unequal.iter().find(|unequal| unequal.forbids(metric)).map(Unequal::words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rumba_engine_api::common::{OverriddenSettings, Own};
    use rumba_engine_api::engine::Family;

    const MIB: u64 = 1 << 20;

    fn facts(reads: Reads, compression: &str) -> EngineFacts {
        EngineFacts {
            has_cache: reads != Reads::Mapped,
            reads: Some(reads),
            compression: Some(compression.to_owned()),
            ..EngineFacts::new(Family::KeyValue, Form::BuiltIn)
        }
    }

    fn config(memory_mib: u64, cache_mib: u64, cache_is_derived: bool) -> EngineConfig {
        let mut config = EngineConfig { cache: cache_mib * MIB, cache_is_derived, ..EngineConfig::new("engine") };
        config.limits.memory_bytes = (memory_mib > 0).then_some(memory_mib * MIB);
        config
    }

    fn setup(config: &EngineConfig, reads: Reads) -> Setup {
        Setup::new(config, Some(&facts(reads, "none")), Some(1000 * MIB))
    }

    fn conditions(one: &Setup, other: &Setup) -> Vec<Condition> {
        let there: Vec<Condition> = unequal(one, other).iter().map(|unequal| unequal.condition).collect();
        let back: Vec<Condition> = unequal(other, one).iter().map(|unequal| unequal.condition).collect();
        assert_eq!(there, back, "it does not depend on which comes first");
        there
    }

    /// Equal caches were taken for equal memory, although one engine had six times as much.
    #[test]
    fn equal_caches_are_unequal_budgets_if_one_uses_page_cache() {
        let fixed = config(480, 80, false);
        let (direct, buffered) = (setup(&fixed, Reads::Direct), setup(&fixed, Reads::Buffered));
        assert_eq!(conditions(&direct, &buffered), [Condition::PageCache]);
        assert_eq!(conditions(&direct, &setup(&fixed, Reads::Mapped)), [Condition::PageCache]);
        assert_eq!(conditions(&buffered, &setup(&fixed, Reads::Mapped)), []);
        assert_eq!(conditions(&direct, &direct), []);
        let unlimited = config(0, 80, false);
        let pair = [Reads::Direct, Reads::Buffered].map(|reads| setup(&unlimited, reads));
        assert_eq!(conditions(&pair[0], &pair[1]), [Condition::PageCache], "the host's memory is a page cache, too");
    }

    #[test]
    fn derived_caches_under_one_limit_are_equal_budgets() {
        let direct = setup(&config(480, 280, true), Reads::Direct);
        let buffered = setup(&config(480, 160, true), Reads::Buffered);
        let mapped = setup(&config(480, 64, false), Reads::Mapped);
        assert_eq!(conditions(&direct, &buffered), []);
        assert_eq!(conditions(&direct, &mapped), [], "it has no cache that could be derived");
        let fixed = setup(&config(480, 160, false), Reads::Buffered);
        assert_eq!(conditions(&direct, &fixed), [Condition::Cache, Condition::PageCache]);
        let larger = setup(&config(960, 280, true), Reads::Buffered);
        assert_eq!(conditions(&direct, &larger), [Condition::Memory, Condition::PageCache]);
        let own =
            OverriddenSettings { cache: Some(Own::new("pool", Some(160 * MIB))), ..OverriddenSettings::default() };
        let own = EngineFacts { overruled: own, ..facts(Reads::Buffered, "none") };
        let own = Setup::new(&config(480, 160, true), Some(&own), Some(1000 * MIB));
        assert_eq!(conditions(&direct, &own), [Condition::Cache, Condition::PageCache], "a setting overrules it");
    }

    /// An embedded engine's clients have its CPUs, and a server's clients have others.
    #[test]
    fn unequal_cpus_of_engines_or_clients_are_reported() {
        let limited = |cpus: &str, client_cpus: Option<&str>, form| {
            let mut config = config(0, 80, false);
            config.limits.cpus = Some(cpus.parse().unwrap());
            config.limits.client_cpus = client_cpus.map(|cpus| cpus.parse().unwrap());
            Setup::new(&config, Some(&EngineFacts::new(Family::KeyValue, form)), None)
        };
        let embedded = limited("0-1", None, Form::BuiltIn);
        assert_eq!(conditions(&embedded, &limited("0-1", Some("0-1"), Form::Server)), []);
        let server = limited("0", Some("1"), Form::Server);
        let words: Vec<String> = unequal(&embedded, &server).iter().map(Unequal::words).collect();
        assert_eq!(words, ["CPUs: 0-1 against 0", "clients' CPUs: 0-1 against 1"]);
        let all = limited("0", None, Form::Server);
        assert_eq!(unequal(&server, &all)[0].words(), "clients' CPUs: 1 against no limit");
    }

    #[test]
    fn read_mode_is_ignored_if_cache_holds_data_or_fills_memory() {
        let all = config(0, 2000, false);
        assert_eq!(conditions(&setup(&all, Reads::Direct), &setup(&all, Reads::Buffered)), []);
        let filled = config(480, 400, false);
        assert_eq!(conditions(&setup(&filled, Reads::Direct), &setup(&filled, Reads::Buffered)), []);
    }

    #[test]
    fn compression_is_named_for_sizes_and_blocks_no_verdict() {
        let config = config(480, 80, false);
        let of = |compression| Setup::new(&config, Some(&facts(Reads::Direct, compression)), None);
        let all = unequal(&of("zstd"), &of("none"));
        assert_eq!(all[0].words(), "compression: zstd against none");
        assert!(all[0].is_said_of("data_bytes") && all[0].is_said_of("wkb_per_op_with_drain"));
        assert!(!all[0].is_said_of("ops_per_s") && !all[0].forbids("data_bytes"));
        let unknown = EngineFacts { compression: None, ..facts(Reads::Direct, "none") };
        assert_eq!(unequal(&of("zstd"), &Setup::new(&config, Some(&unknown), None)), [], "one is unknown");
    }

    #[test]
    fn records_that_do_not_say_how_files_are_read_claim_nothing() {
        let fixed = config(480, 80, false);
        let silent = Setup::new(&fixed, None, None);
        assert_eq!(conditions(&silent, &setup(&fixed, Reads::Direct)), []);
        let synced = EngineConfig { durability: Durability::Sync, ..fixed.clone() };
        assert_eq!(conditions(&silent, &Setup::new(&synced, None, None)), [Condition::Durability]);
    }
}
