//! The rules of a fair comparison that a committed run predates. A run keeps its figures when the rules become
//! stricter, and its page reports the difference.

use serde_json::Value;

/// Runs of commits from this moment on follow most rules.
const RULES_SINCE: &str = "2026-11-28T07:00:00Z";
/// Runs of commits from this moment on follow the rule for RocksDB's memtables.
const MEMTABLES_SINCE: &str = "2026-11-30T12:30:00Z";

/// Engines whose reads of data files bypass the page cache by default.
const DIRECT_READERS: [&str; 3] = ["innodb", "myrocks", "tokudb"];

/// One line that names the rules which a run predates; `None` if it follows all of them.
pub fn sentences(run: &Value) -> Option<String> {
    // Results of older versions do not say which commit made them.
    let committed = run["build"]["committed"].as_str().unwrap_or_default();
    let one_load = run["starts_of_one_load"] == true;
    let is_lsm = uses(run, "myrocks") || uses(run, "rocksdb");
    let is_rocksdb_of_ycsb = uses(run, "rocksdb") && is_ycsb(run);
    let rules = [
        (RULES_SINCE, one_load, "Each engine has one load, so the verdicts hold for this load only."),
        (
            RULES_SINCE,
            equal_cache_not_memory(run),
            "Engines have equal caches and not equal memory, because only some use the page cache too.",
        ),
        (RULES_SINCE, uses(run, "myrocks"), "MyRocks has its memtables in addition to `cache`."),
        (RULES_SINCE, compressions_differ(run), "Compression differs between engines."),
        (
            RULES_SINCE,
            has_assertions(run),
            "RocksDB is a build with assertions, so its rates and CPU support no verdict.",
        ),
        (
            RULES_SINCE,
            uses(run, "postgresql"),
            "PostgreSQL's drain vacuums every table, and its `rss_bytes` is too small.",
        ),
        (RULES_SINCE, is_lsm, "The LSM's drain compacts level 0 below its trigger."),
        (RULES_SINCE, is_embedded(run), "CPU figures leave out the kernel's write-back."),
        (MEMTABLES_SINCE, is_rocksdb_of_ycsb, "RocksDB fills at most five eighths of its `cache`."),
    ];
    let found: Vec<&str> =
        rules.into_iter().filter_map(|(since, applies, rule)| (applies && committed < since).then_some(rule)).collect();
    (!found.is_empty()).then(|| format!("These figures predate today's rules for comparisons. {}\n", found.join(" ")))
}

/// The facts that the trials of each engine share.
fn engines(run: &Value) -> impl Iterator<Item = &Value> {
    run["engines"].as_object().into_iter().flat_map(|engines| engines.values())
}

fn uses(run: &Value, engine: &str) -> bool {
    engines(run).any(|one| one["registered"] == engine)
}

/// Whether only some of the engines under a memory limit bypass the page cache.
fn equal_cache_not_memory(run: &Value) -> bool {
    let limited = || engines(run).filter(|engine| !engine["memory_bytes"].is_null());
    let is_direct = |engine: &Value| DIRECT_READERS.iter().any(|direct| engine["registered"] == *direct);
    limited().any(is_direct) && !limited().all(is_direct)
}

fn compressions_differ(run: &Value) -> bool {
    let mut compressions = engines(run).map(|engine| &engine["compression"]);
    let first = compressions.next();
    compressions.any(|other| Some(other) != first)
}

fn has_assertions(run: &Value) -> bool {
    engines(run)
        .any(|engine| engine["version"].as_str().is_some_and(|version| version.contains("built with assertions")))
}

fn is_ycsb(run: &Value) -> bool {
    run["experiment_toml"].as_str().is_some_and(|text| text.contains("[workload.ycsb]"))
}

/// Whether an engine of the run is embedded, so that the kernel's part of its work is not counted.
fn is_embedded(run: &Value) -> bool {
    engines(run).any(|engine| matches!(engine["form"].as_str(), Some("library" | "built-in")))
}
