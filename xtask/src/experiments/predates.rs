//! Which rules of a fair comparison a committed run predates: a run keeps its figures when the rules become stricter, and its
//! page says what a reader must know.

use serde_json::Value;

/// Runs of commits from this moment on follow all rules below.
const RULES_SINCE: &str = "2026-11-28T07:00:00Z";

/// Engines that read their data files past the page cache by default.
const DIRECT_READERS: [&str; 3] = ["innodb", "myrocks", "tokudb"];

/// One line that names the rules which a run predates; `None` for a run that follows them.
pub fn sentence(run: &Value) -> Option<String> {
    // Results of older versions do not say which commit made them.
    let committed = run["build"]["committed"].as_str().unwrap_or_default();
    if committed >= RULES_SINCE {
        return None;
    }
    let rules = [
        (starts_of_one_load(run), "each engine has one load, so the verdicts hold for this load only"),
        (equal_cache_not_memory(run), "engines have equal caches, not equal memory: only some also use the page cache"),
        (uses(run, "myrocks"), "MyRocks has its memtables in addition to `cache`"),
        (compressions_differ(run), "compression differs between engines"),
        (has_assertions(run), "RocksDB is a build with assertions, so its rates and CPU decide nothing"),
        (uses(run, "postgresql"), "PostgreSQL's drain vacuums every table, and its `rss_bytes` is too small"),
        (uses(run, "myrocks") || uses(run, "rocksdb"), "the LSM's drain compacts level 0 below its trigger"),
        (is_embedded(run), "CPU figures leave out the kernel's write-back"),
    ];
    let found: Vec<&str> = rules.into_iter().filter_map(|(applies, rule)| applies.then_some(rule)).collect();
    if found.is_empty() {
        return None;
    }
    Some(format!("These figures predate today's rules for comparisons: {}.\n", found.join("; ")))
}

fn trials(run: &Value) -> impl Iterator<Item = &Value> {
    run["trials"].as_array().into_iter().flatten()
}

fn uses(run: &Value, engine: &str) -> bool {
    trials(run).any(|trial| registered(trial) == Some(engine))
}

fn registered(trial: &Value) -> Option<&str> {
    trial["engine_settings"]["engine"].as_str()
}

/// Whether repeats are starts of a load that they share.
fn starts_of_one_load(run: &Value) -> bool {
    trials(run).any(|trial| trial["repeat"].as_u64() > Some(1) && !trial["loaded_by"].is_null())
}

/// Whether only some of the engines under a memory limit read past the page cache.
fn equal_cache_not_memory(run: &Value) -> bool {
    let limited = || trials(run).filter(|trial| !trial["engine_settings"]["limits"]["memory_bytes"].is_null());
    let is_direct = |trial: &Value| registered(trial).is_some_and(|engine| DIRECT_READERS.contains(&engine));
    limited().any(is_direct) && !limited().all(is_direct)
}

fn compressions_differ(run: &Value) -> bool {
    let mut compressions = trials(run).map(|trial| &trial["engine_settings"]["compression"]);
    let first = compressions.next();
    compressions.any(|other| Some(other) != first)
}

fn has_assertions(run: &Value) -> bool {
    trials(run).any(|trial| trial["version"].as_str().is_some_and(|version| version.contains("built with assertions")))
}

/// Whether an engine of the run works in rumba's process, where the kernel's part of its work is not counted.
fn is_embedded(run: &Value) -> bool {
    trials(run).any(|trial| matches!(trial["engine_facts"]["form"].as_str(), Some("library" | "built-in")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trial(engine: &str, repeat: u64) -> Value {
        json!({
            "repeat": repeat, "loaded_by": 1, "version": "1", "engine_facts": { "form": "server" },
            "engine_settings": { "engine": engine, "compression": null, "limits": { "memory_bytes": 1 } },
        })
    }

    fn run(committed: &str, trials: &[Value]) -> Value {
        json!({ "build": { "committed": committed }, "trials": trials })
    }

    #[test]
    fn a_run_names_the_rules_that_it_predates() {
        let old = run("2026-11-24T17:59:55Z", &[trial("innodb", 1), trial("postgresql", 2)]);
        let line = sentence(&old).expect("it predates them");
        for part in ["verdicts hold for this load only", "equal caches, not equal memory", "vacuums every table"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains("MyRocks") && !line.contains("assertions"), "{line}");
    }

    #[test]
    fn a_run_under_the_rules_has_no_such_line() {
        let trials = [trial("innodb", 1), trial("postgresql", 2)];
        assert_eq!(sentence(&run("2026-11-29T00:00:00Z", &trials)), None);
        let alone = run("2026-11-24T17:59:55Z", &[trial("innodb", 1)]);
        assert_eq!(sentence(&alone), None, "one load of one engine breaks no rule");
    }
}
