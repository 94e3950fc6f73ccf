//! Memory limits: too little for an engine, and the cache that is derived from a limit.

use super::*;
use crate::prepare::{Allowed, Validated};

const LIMITED: &str = r#"name = "memory"
[workload.linkbench]
[limits]
memory = "MEMORY"
[run]
clients = [4, 20]
load_clients = 2
[[engine]]
name = "rocksdb"
"#;

fn limited(memory: &str, set: &[&str]) -> Experiment {
    with(&LIMITED.replace("MEMORY", memory), set).unwrap()
}

#[test]
fn too_small_memory_limit_is_reported_at_line_with_minimum() {
    let short = |memory, set: &[&str]| limited(memory, set).shortages.pop();
    // 100 MiB, 60 for the cache of 40, 20 for the largest number of clients: 180; nine tenths of it are 162.
    let shortage = short("161MiB", &["cache=40MiB"]).unwrap();
    assert!(shortage.is_impossible, "{shortage:?}");
    assert_eq!(shortage.mistake.place().unwrap(), "e.toml:4:10");
    assert!(
        shortage.mistake.problem.starts_with("limits.memory = 161.0 MiB is too small for rocksdb, which needs 180")
    );
    assert_eq!(shortage.mistake.remedy, "set memory to \"225MiB\" or more; fewer clients need less");
    assert!(short("224MiB", &["cache=40MiB"]).is_some() && short("225MiB", &["cache=40MiB"]).is_none());
    let tight = short("179MiB", &["cache=40MiB"]).unwrap();
    assert!(!tight.is_impossible, "{tight:?}");
    assert!(tight.mistake.remedy.contains("or cache to \"15MiB\" or less"), "{tight:?}");
    assert!(short("179MiB", &["cache=15MiB"]).is_none(), "the advice is good");
    assert!(!short("161MiB", &["cache=40MiB", "clients=4"]).unwrap().is_impossible, "fewer clients need less");
    let larger = short("512MiB", &["cache=512MiB"]).unwrap();
    assert!(larger.is_impossible);
    assert_eq!(larger.mistake.place().unwrap(), "--set cache=512MiB", "the cache alone is as large");
}

/// Guards against counting the common cache although an engine setting overrides it: far too little memory was
/// accepted.
#[test]
fn memory_need_counts_a_cache_set_by_an_engine_setting() {
    let own = |size: &str| format!("{LIMITED}settings.own_cache = \"{size}\"\n").replace("MEMORY", "225MiB");
    let shortage = with(&own("300MiB"), &["cache=40MiB"]).unwrap().shortages.pop().unwrap();
    assert!(shortage.is_impossible, "{shortage:?}");
    assert_eq!(shortage.mistake.place().unwrap(), "e.toml:10:22", "it alone is larger than the limit");
    let problem = &shortage.mistake.problem;
    assert!(problem.contains("450.0 MiB for its cache of 300.0 MiB (own_cache); "), "{problem}");
    let remedy = &shortage.mistake.remedy;
    assert!(remedy.contains(", or its cache (by own_cache) to 40 MiB or less"), "{remedy}");
    let fits = with(&own("40MiB"), &["cache=1GiB"]).unwrap();
    assert!(fits.shortages.is_empty(), "{:?}", fits.shortages);
    assert!(
        fits.memory_needs[0].1.contains("60.0 MiB for its cache of 40.0 MiB (own_cache); "),
        "{:?}",
        fits.memory_needs
    );
    let reported =
        |experiment: &Experiment| crate::plan::data_over_cache(experiment, None, &registry()).pop().unwrap().1;
    assert_eq!(reported(&fits), "25.6, IO-bound: larger than the cache and than memory");
    let unreported = with(&own("per session"), &["cache=40MiB"]).unwrap();
    assert_eq!((unreported.shortages.len(), unreported.memory_needs.len()), (0, 0), "its final size is unknown");
    assert_eq!(reported(&unreported), "not known: it has own_cache = per session");
}

#[test]
fn omitted_cache_follows_from_the_limit() {
    let cache = |memory, set: &[&str]| limited(memory, set).engines[0].cache >> 20;
    // A fifth is left: 320 = 100 + 20 + 1.5 × 133.
    assert_eq!(cache("400MiB", &[]), 133);
    assert!(limited("400MiB", &[]).shortages.is_empty());
    assert_eq!(cache("400MiB", &["cache=64MiB"]), 64, "what is given stays");
    assert_eq!(cache("100MiB", &[]), 8);
    assert!(limited("100MiB", &[]).shortages[0].is_impossible, "no cache is small enough");
    let needs = limited("400MiB", &[]).memory_needs;
    assert_eq!(needs[0].0, "memory needed, rocksdb");
    assert!(needs[0].1.contains("for a cache of 133.0 MiB, derived from limits.memory"), "{}", needs[0].1);
    let unknown = with(&LIMITED.replace("MEMORY", "400MiB").replace("rocksdb", "myrocks"), &[]).unwrap();
    assert_eq!(unknown.engines[0].cache >> 20, 200, "half where the need is not known");
    let text = LIMITED.replace("memory = \"MEMORY\"", "");
    assert_eq!(with(&text, &[]).unwrap().engines[0].cache >> 20, 64, "without a limit there is nothing to follow");
}

/// Guards against a fixed cache that a larger limit leaves unchanged, with no value to reset it.
#[test]
fn auto_derives_a_cache_that_the_file_or_common_fixes() {
    let text = |cache: &str| LIMITED.replace("MEMORY", "400MiB") + cache;
    let cache = |text: &str, set: &[&str]| {
        let engine = with(text, set).unwrap().engines.remove(0);
        (engine.cache >> 20, engine.cache_is_derived)
    };
    assert_eq!(cache(&text("cache = \"auto\"\n"), &[]), (133, true));
    let common = text("[common]\ncache = \"64MiB\"\n");
    assert_eq!(cache(&common, &[]), (64, false));
    assert_eq!(cache(&common, &["cache=auto"]), (133, true));
    assert_eq!(cache(&common, &["memory=800MiB"]), (64, false), "what is given stays");
    assert_eq!(cache(&common, &["memory=800MiB", "cache=auto"]), (346, true));
    let own = text("cache = \"64MiB\"\n");
    assert_eq!(cache(&own, &["cache=auto"]), (64, false), "an engine's own cache comes before the common one");
    assert_eq!(cache(&own, &["rocksdb.cache=auto"]), (133, true));
    let both = text("cache = \"auto\"\n[common]\ncache = \"64MiB\"\n");
    assert_eq!(cache(&both, &[]), (133, true));
    let unlimited = text("cache = \"auto\"\n").replace("memory = \"400MiB\"", "");
    assert_eq!(cache(&unlimited, &[]), (64, false), "there is nothing to derive it from");
    let error = with(&text("cache = \"automatic\"\n"), &[]).unwrap_err();
    assert_eq!(error.place().as_deref(), Some("e.toml:10:9"));
    assert!(error.remedy.contains("\"auto\""), "{error:?}");
}

#[test]
fn page_cache_engine_gets_the_cache_its_makers_recommend() {
    let sqlite = LIMITED.replace("MEMORY", "400MiB").replace("rocksdb", "sqlite");
    let engine = |set: &[&str]| with(&sqlite, set).unwrap().engines.remove(0);
    assert_eq!(engine(&[]).cache >> 20, 100, "a quarter; the rest is page cache");
    assert_eq!(engine(&["sqlite.use_direct_reads=true"]).cache >> 20, 200, "half where the need is not known");
    let direct = with(&sqlite.replace("sqlite", "rocksdb"), &["rocksdb.use_direct_reads=true"]).unwrap();
    assert!(direct.memory_needs[0].1.contains("derived from limits.memory (as much as fits)"), "{direct:?}");
}

/// Guards against unused memory without a warning: InnoDB had 80 MiB of cache in a group of 480 MiB.
#[test]
fn memory_unusable_with_direct_reads_is_warned_of() {
    let warned = |set: &[&str]| {
        let unused = limited("400MiB", set).unused_memory;
        unused.into_iter().map(|warning| (warning.code, warning.message, warning.remedy)).next()
    };
    let direct = "rocksdb.use_direct_reads=true";
    let (code, message, remedy) = warned(&[direct, "cache=40MiB"]).unwrap();
    assert_eq!(code, "memory-unused");
    let reported = "rocksdb leaves 220.0 MiB of limits.memory = 400.0 MiB unused: it reads past the page cache, and its cache is \
                40.0 MiB";
    assert_eq!(message, reported);
    assert!(remedy.contains("cache = \"auto\""), "{remedy}");
    assert_eq!(warned(&[direct]), None, "a derived cache fills it");
    let roomy = limited("5GiB", &[direct, "cache=2GiB"]);
    assert!(roomy.unused_memory.is_empty(), "a cache that holds the data needs no more");
    assert_eq!(warned(&["cache=40MiB"]), None, "the page cache uses the rest");
    let own = warned(&[direct, "rocksdb.own_cache=40MiB"]).unwrap().2;
    assert!(own.starts_with("leave out own_cache"), "{own}");
    let text = LIMITED.replace("MEMORY", "400MiB").replace("rocksdb", "myrocks");
    let unmeasured = with(&text, &["myrocks.use_direct_reads=true"]).unwrap().unused_memory;
    assert!(unmeasured[0].remedy.starts_with("set cache to a size"), "{unmeasured:?}");
    let admitted = Validated::new(
        limited("400MiB", &[direct, "cache=40MiB"]),
        std::path::Path::new("/tmp"),
        Allowed { unlimited: true, ..Allowed::default() },
    );
    assert!(admitted.unwrap().notices().iter().any(|notice| notice.code == "memory-unused"));
}

/// Guards records of a storage engine without a cache, in a server that has others. The record had shown a cache that
/// it was never given, and the source of its misses.
#[test]
fn engine_without_cache_is_not_reported_to_have_one() {
    let mapped = "[[engine]]\nname = \"mapped\"\nuse = \"rocksdb\"\nsettings.mapped = true\n";
    let experiment = with(&(LIMITED.replace("MEMORY", "400MiB") + mapped), &[]).unwrap();
    let caches = experiment.engines.iter().map(|engine| engine.cache >> 20);
    assert_eq!(caches.collect::<Vec<_>>(), [133, 64], "none follows from the limit");
    let trials = crate::plan::plan(&experiment, &registry());
    let facts = |name: &str| trials.iter().find(|trial| trial.engine.name == name).unwrap().facts.clone().unwrap();
    assert!(facts("rocksdb").has_cache && !facts("mapped").has_cache);
    let conditions = crate::plan::data_over_cache(&experiment, None, &registry());
    assert_eq!(conditions[1], ("data over cache, mapped".to_owned(), "it has no cache of its own".to_owned()));
    let warnings = crate::plan::warnings(&experiment, None, &registry());
    assert!(warnings.iter().all(|warning| warning.code != "no-cache"), "the other's cache follows from the same limit");
    let fixed = with(&(LIMITED.replace("MEMORY", "400MiB") + mapped), &["cache=64MiB"]).unwrap();
    let warnings = crate::plan::warnings(&fixed, None, &registry());
    let reported = warnings.iter().find(|warning| warning.code == "no-cache").unwrap();
    assert!(reported.message.starts_with("mapped has no internal cache"), "{}", reported.message);
    assert!(warnings.iter().all(|warning| warning.code != "cache-differs"), "{warnings:?}");
}

/// Guards records of an existing server. The record had shown a share of a limit that it was never under, or the
/// experiment's cache as its own. It also had shown a source of that cache's misses.
#[test]
fn the_cache_of_an_existing_server_is_known_nowhere() {
    let existing = "[[engine]]\nname = \"theirs\"\nuse = \"myrocks\"\nserver = \"mysql://me@host/db\"\n";
    let of = |more: &str| with(&(LIMITED.replace("MEMORY", "400MiB") + existing + more), &[]).unwrap();
    let caches: Vec<u64> = of("").engines.iter().map(|engine| engine.cache >> 20).collect();
    assert_eq!(caches, [133, 64], "none follows from the limit");
    let place = tempfile::tempdir().unwrap();
    let allowed = Allowed { unlimited: true, ..Allowed::default() };
    for experiment in [of(""), of("cache = \"2GiB\"\n")] {
        let admitted = Validated::new(experiment, place.path(), allowed).unwrap();
        let experiment = admitted.experiment().clone();
        let conditions = crate::plan::data_over_cache(&experiment, Some(16 << 30), &registry());
        let not_known = "not known: its server has the cache that others gave it";
        assert_eq!(conditions[1], ("data over cache, theirs".to_owned(), not_known.to_owned()));
        let warnings = crate::plan::warnings(&experiment, Some(16 << 30), &registry());
        let reported =
            |code: &str| warnings.iter().find(|warning| warning.code == code).map(|warning| &*warning.message);
        assert_eq!(reported("cache-differs"), None);
        let unknown = "it is unknown for some engines, and for others it is what a commit promises: theirs; how large \
                       the cache is: theirs";
        assert_eq!(reported("parity-unknown"), Some(unknown));
        let page_cache = reported("page-cache").unwrap();
        assert!(page_cache.contains("the memory that theirs may use (16.0 GiB)"), "{page_cache}");
    }
}

#[test]
fn memory_limit_above_host_memory_is_refused_at_its_line() {
    for memory in ["4000TiB", "data*1000000000"] {
        let error = read(&LIMITED.replace("MEMORY", memory)).unwrap_err();
        assert_eq!(error.place().as_deref(), Some("e.toml:4:10"));
        assert!(error.problem.contains("is more than this host's memory"), "{error:?}");
        assert!(error.remedy.contains("or less"), "{error:?}");
    }
}

#[test]
fn page_cache_is_warned_of_if_data_fits_memory_but_not_cache() {
    let warned = |set: &[&str], text: &str| {
        let experiment = with(text, set).unwrap();
        let warnings = crate::plan::warnings(&experiment, Some(16 << 30), &registry());
        warnings.into_iter().find(|warning| warning.code == "page-cache").map(|warning| warning.message)
    };
    let text = LIMITED.replace("memory = \"MEMORY\"", "").replace("linkbench]", "linkbench]\nmaxid1 = 100_000");
    let reported = warned(&["cache=16MiB"], &text).unwrap();
    assert!(reported.contains("fits into the memory that an engine has (16.0 GiB)"), "{reported}");
    assert_eq!(warned(&["cache=1GiB"], &text), None, "no read misses a cache that holds the data");
    let both = format!("{text}cache = \"1GiB\"\n[[engine]]\nname = \"small\"\nuse = \"rocksdb\"\ncache = \"16MiB\"\n");
    let reported = warned(&[], &both).unwrap();
    assert!(reported.contains("fits into the memory that small may use"), "{reported}");
    assert_eq!(warned(&["memory=48MiB"], &text), None, "memory is smaller than the data");
}

/// Guards engines that bypass the page cache, as InnoDB does by default. The first warning had claimed that its reads
/// were "mostly served by the page cache", next to thousands of device reads per second.
#[test]
fn direct_read_engine_is_not_reported_as_page_cache_served() {
    let text = LIMITED.replace("memory = \"MEMORY\"", "").replace("linkbench]", "linkbench]\nmaxid1 = 100_000");
    let direct = "use = \"rocksdb\"\ncache = \"16MiB\"\nsettings.use_direct_reads = true\n";
    let both = format!("{text}cache = \"16MiB\"\n[[engine]]\nname = \"direct\"\n{direct}");
    let experiment = with(&both, &[]).unwrap();
    let warnings = crate::plan::warnings(&experiment, Some(16 << 30), &registry());
    let warning = warnings.into_iter().find(|warning| warning.code == "page-cache").unwrap();
    assert!(warning.message.contains("fits into the memory that rocksdb may use"), "{}", warning.message);
    let conditions = crate::plan::data_over_cache(&experiment, Some(16 << 30), &registry());
    let reported = |name: &str| {
        let name = format!("data over cache, {name}");
        conditions.iter().find(|(of, _)| *of == name).map(|(_, reported)| reported.as_str())
    };
    assert_eq!(reported("direct"), Some("64.0, IO-bound: larger than the cache, and read past the page cache"));
    let buffered = "64.0, larger than the cache, smaller than memory: the page cache serves buffered reads";
    assert_eq!(reported("rocksdb"), Some(buffered));
    let alone = with(&text, &["cache=16MiB", "rocksdb.use_direct_reads=true"]).unwrap();
    let warnings = crate::plan::warnings(&alone, Some(16 << 30), &registry());
    assert!(warnings.iter().all(|warning| warning.code != "page-cache"), "{warnings:?}");
}
