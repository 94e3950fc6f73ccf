//! Warns of conditions that differ between the engines of an experiment, because the figures would show them as
//! advantages. An unknown condition is reported too, since it may differ.

use rumba_engine_api::common::{Durability, Given};
use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_results::comparability::{Condition, Setup, unequal};
use rumba_results::entry;
use rumba_results::warning::Warning;

use crate::registry::Registry;

/// The warnings for engines that work on this many logical bytes. Differences that the experiment compares on purpose
/// give no warning.
pub fn warnings(engines: &[EngineConfig], data_bytes: u64, registry: &Registry) -> Vec<Warning> {
    let kept = engines.iter().filter_map(|config| {
        let engine = registry.engine(&config.engine)?;
        let (facts, nature) = (engine.facts(config), engine.nature(config));
        let (cache, durability) = (config.given_cache(Some(&facts)), config.given_durability(Some(&facts)));
        let (has_cache, has_transactions) = (facts.has_cache, engine.has_transactions(config));
        let setup = Setup::new(config, Some(&facts), Some(data_bytes));
        let compression = facts.compression;
        // An engine that stores nothing guarantees nothing.
        let side = Side { config, nature, cache, durability, has_cache, has_transactions, compression, setup };
        facts.keeps_data.then_some(side)
    });
    let sides: Vec<Side> = kept.collect();
    all(&sides).collect()
}

/// All checks.
fn all(sides: &[Side<'_>]) -> impl Iterator<Item = Warning> {
    [durability, log, no_transactions, isolation, no_cache, cache, reads, compression, unknown]
        .into_iter()
        .filter_map(move |differs| differs(sides))
}

/// One engine of the comparison.
struct Side<'a> {
    config: &'a EngineConfig,
    nature: EngineTraits,
    /// The size of its cache, if it has one.
    cache: Given<u64>,
    /// The durability guaranteed at commit.
    durability: Given<Durability>,
    has_cache: bool,
    has_transactions: bool,
    compression: Option<String>,
    setup: Setup,
}

/// Whether a condition differs between any two engines.
fn is_unequal(sides: &[Side<'_>], condition: Condition) -> bool {
    let of_pair = |one: &Side<'_>, other: &Side<'_>| unequal(&one.setup, &other.setup);
    let later = |(at, one): (usize, _)| sides[at + 1..].iter().flat_map(move |other| of_pair(one, other));
    sides.iter().enumerate().flat_map(later).any(|unequal| unequal.condition == condition)
}

/// `no-sync: a, b; sync: c`, in order of appearance; `None` when all known values are equal.
fn differing(sides: &[Side<'_>], what: impl Fn(&Side<'_>) -> Option<String>) -> Option<String> {
    grouped(sides.iter().filter_map(|side| Some((what(side)?, side.config.name.clone()))))
}

/// The same for a common setting. An engine that has it from its own setting is listed with that setting,
/// `b (shared_buffers)`.
fn differing_given<'a, 'b: 'a, T: 'a>(sides: impl Iterator<Item = (&'a Side<'b>, &'a Given<T>)>) -> Option<String> {
    grouped(sides.filter(|(_, given)| given.is_known()).map(|(side, given)| {
        let name = &side.config.name;
        let by = given.by.as_ref().filter(|_| given.value.is_some());
        (given.reported.clone(), by.map_or_else(|| name.clone(), |setting| format!("{name} ({setting})")))
    }))
}

fn grouped(said: impl Iterator<Item = (String, String)>) -> Option<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (said, name) in said {
        entry(&mut groups, said).push(name);
    }
    let words: Vec<String> = groups.iter().map(|(said, names)| format!("{said}: {}", names.join(", "))).collect();
    (words.len() > 1).then(|| words.join("; "))
}

/// The remedy for a common setting: set it for all engines, without engine settings that override it.
fn remedy<'a, 'b: 'a, T: 'a>(common: &str, given: impl Iterator<Item = (&'a Side<'b>, &'a Given<T>)>) -> String {
    // An engine that cannot honor the common setting names another one in its place, which the user has not set.
    let set = |side: &Side<'_>, name: &&str| side.config.settings.get(name).is_some();
    let mut own: Vec<&str> =
        given.filter_map(|(side, given)| given.by.as_deref().filter(|name| set(side, name))).collect();
    own.sort_unstable();
    own.dedup();
    let overruling = if own.is_empty() { String::new() } else { format!(" and leave out {}", own.join(", ")) };
    format!("set {common} in [common]{overruling}")
}

fn names(sides: &[&Side<'_>]) -> String {
    sides.iter().map(|side| side.config.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn durability(sides: &[Side<'_>]) -> Option<Warning> {
    let promises = differing_given(sides.iter().map(|side| (side, &side.durability)))?;
    let remedy = remedy("durability", sides.iter().map(|side| (side, &side.durability)));
    Some(Warning::new(
        "durability-differs",
        format!("the engines promise different things at commit: {promises}"),
        format!("{remedy}, or compare only engines that promise the same"),
    ))
}

/// If commits are synced, all of them survive a crash of the host. Otherwise a log from which data is recovered decides
/// which commits survive.
fn log(sides: &[Side<'_>]) -> Option<Warning> {
    let unsynced: Vec<&Side> = sides.iter().filter(|side| side.durability.value == Some(Durability::NoSync)).collect();
    let with = |log: bool| unsynced.iter().copied().filter(|side| side.nature.has_log == Some(log)).collect::<Vec<_>>();
    let (logged, not) = (with(true), with(false));
    let (lose, pay) = if logged.len() == 1 { ("loses", "pays") } else { ("lose", "pay") };
    (!logged.is_empty() && !not.is_empty()).then(|| {
        Warning::new(
            "log-differs",
            format!(
                "under no-sync, {} cannot recover from a crash of the host, which may damage all data; {} {lose} only \
                 the last commits, and {pay} for a log that is synced in the background",
                names(&not),
                names(&logged)
            ),
            "compare under durability = \"sync\", or with the log's cost in mind",
        )
    })
}

fn no_transactions(sides: &[Side<'_>]) -> Option<Warning> {
    let without: Vec<&Side> = sides.iter().filter(|side| !side.has_transactions).collect();
    let (have, write) = if without.len() == 1 { ("has", "it writes") } else { ("have", "they write") };
    (!without.is_empty() && without.len() < sides.len()).then(|| {
        Warning::new(
            "no-transactions",
            format!(
                "{} {have} no transactions: {write} one key at a time, without the isolation and undo that the others \
                 pay for",
                names(&without)
            ),
            "take into account what it saves",
        )
    })
}

fn isolation(sides: &[Side<'_>]) -> Option<Warning> {
    let levels = differing(sides, |side| side.nature.isolation.clone())?;
    Some(Warning::new(
        "isolation-differs",
        format!("transactions see different things: {levels}"),
        "set the same isolation where engines offer it, or take into account what the weaker one saves",
    ))
}

fn no_cache(sides: &[Side<'_>]) -> Option<Warning> {
    let without: Vec<&Side> = sides.iter().filter(|side| !side.has_cache).collect();
    let (page_cache, cached) = (Condition::PageCache, sides.iter().filter(|side| side.has_cache));
    // Under a limit from which the others' caches are derived, all engines have the same memory.
    let matters = is_unequal(sides, page_cache) || !cached.clone().all(|side| side.setup.has_budget());
    let (have, uses) = if without.len() == 1 { ("has", "it uses") } else { ("have", "they use") };
    (!without.is_empty() && cached.count() > 0 && matters).then(|| {
        Warning::new(
            "no-cache",
            format!("{} {have} no internal cache: {uses} as much of the page cache as the host gives", names(&without)),
            "compare it under a limit of memory, or with the page cache in mind",
        )
    })
}

fn cache(sides: &[Side<'_>]) -> Option<Warning> {
    let given = || sides.iter().filter(|side| side.has_cache).map(|side| (side, &side.cache));
    let caches = differing_given(given()).filter(|_| is_unequal(sides, Condition::Cache))?;
    let remedy = remedy("cache", given());
    Some(Warning::new("cache-differs", format!("the engines' caches differ: {caches}"), remedy))
}

/// A memory map is reported by `no-cache`, so it alone is no difference here.
fn reads(sides: &[Side<'_>]) -> Option<Warning> {
    let ways = differing(sides, |side| {
        side.nature.reads.filter(|reads| *reads != Reads::Mapped).map(|reads| reads.to_string())
    })?;
    is_unequal(sides, Condition::PageCache).then(|| {
        Warning::new(
            "page-cache-differs",
            format!("files are read {ways}: the remaining memory is a second cache for some engines only"),
            "set limits.memory and leave cache out (--set cache=auto), which gives all the same memory",
        )
    })
}

fn compression(sides: &[Side<'_>]) -> Option<Warning> {
    let ways = differing(sides, |side| side.compression.clone())?;
    Some(Warning::new(
        "compression-differs",
        format!("data is compressed differently: {ways}"),
        "compare sizes and bytes with that in mind, or set compression alike (compression = \"none\" in [common])",
    ))
}

/// Conditions that are known for some engines and unknown for others.
fn unknown(sides: &[Side<'_>]) -> Option<Warning> {
    // `None` if the engine lacks the feature or the condition does not matter.
    type Says = fn(&Side<'_>) -> Option<bool>;
    let requested: [(&str, Says); 5] = [
        ("what a commit promises", |side| Some(side.durability.is_known())),
        ("how transactions are isolated", |side| side.has_transactions.then_some(side.nature.isolation.is_some())),
        ("whether commits go to a log", |side| {
            let matters = side.durability.value.is_none_or(|durability| durability == Durability::NoSync);
            matters.then_some(side.nature.has_log.is_some())
        }),
        ("how files are read", |side| side.has_cache.then_some(side.nature.reads.is_some())),
        ("how large the cache is", |side| side.has_cache.then_some(side.cache.is_known())),
    ];
    let open = requested.iter().filter_map(|(what, says)| {
        let that = |answer: bool| sides.iter().filter(|side| says(side) == Some(answer)).collect::<Vec<_>>();
        let (reported, unreported) = (that(true), that(false));
        (!reported.is_empty() && !unreported.is_empty()).then(|| format!("{what}: {}", names(&unreported)))
    });
    let open: Vec<String> = open.collect();
    (!open.is_empty()).then(|| {
        Warning::new(
            "parity-unknown",
            format!("it is unknown for some engines, and for others it is {}", open.join("; ")),
            "look it up, and take into account what it may save or cost",
        )
    })
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::engine::{EngineFacts, Family, Form};
    use rumba_engine_api::setting::Value;

    use super::*;
    use crate::spec::testing::registry;

    fn config(name: &str, durability: Durability) -> EngineConfig {
        EngineConfig { cache: 1 << 30, durability, ..EngineConfig::new(name) }
    }

    const LOGGED: (&str, bool, Reads) = ("REPEATABLE READ", true, Reads::Direct);
    const UNLOGGED: (&str, bool, Reads) = ("REPEATABLE READ", false, Reads::Direct);

    /// An engine whose clients do not request the durability.
    fn side(config: &EngineConfig, nature: EngineTraits) -> Side<'_> {
        let (cache, durability) = (config.given_cache(None), config.given_durability(None));
        let facts = EngineFacts { reads: nature.reads, ..EngineFacts::new(Family::KeyValue, Form::BuiltIn) };
        let setup = Setup::new(config, Some(&facts), None);
        Side { config, nature, cache, durability, has_cache: true, has_transactions: true, compression: None, setup }
    }

    fn codes(sides: &[(&EngineConfig, (&str, bool, Reads))]) -> Vec<String> {
        let of = |(config, (isolation, log, reads)): &(&EngineConfig, (&str, bool, Reads))| {
            let config: &EngineConfig = config;
            // The tests' engines live for as long as the process.
            let config: &'static EngineConfig = Box::leak(Box::new(config.clone()));
            let nature = EngineTraits::new(isolation, *log, *reads);
            let has_cache = *reads != Reads::Mapped;
            let facts = EngineFacts { has_cache, ..EngineFacts::new(Family::KeyValue, Form::BuiltIn) };
            let facts = EngineFacts { reads: nature.reads, ..facts };
            Side { has_cache, setup: Setup::new(config, Some(&facts), None), ..side(config, nature) }
        };
        let sides: Vec<Side> = sides.iter().map(of).collect();
        all(&sides).map(|warning| warning.code).collect()
    }

    /// Guards against a missing and a needless warning. With equal caches under a limit, the rest of the memory was a
    /// second cache for only one engine, without a warning. Caches derived from one limit need no warning.
    #[test]
    fn caches_derived_from_one_limit_raise_no_cache_warning() {
        let budget = |name, cache| {
            let mut config = EngineConfig { cache, cache_is_derived: true, ..config(name, Durability::NoSync) };
            config.limits.memory_bytes = Some(1 << 30);
            config
        };
        let (direct, buffered, mapped) = (budget("a", 700 << 20), budget("b", 300 << 20), budget("c", 64 << 20));
        let mapped = EngineConfig { cache_is_derived: false, ..mapped };
        let ways = [Reads::Direct, Reads::Buffered, Reads::Mapped].map(|reads| ("REPEATABLE READ", true, reads));
        assert_eq!(codes(&[(&direct, ways[0]), (&buffered, ways[1]), (&mapped, ways[2])]), [""; 0]);
        let fixed = EngineConfig { cache_is_derived: false, ..buffered };
        assert_eq!(codes(&[(&direct, ways[0]), (&fixed, ways[1])]), ["cache-differs", "page-cache-differs"]);
    }

    /// Guards against comparing 286 MB with zstd to 879 MB without compression.
    #[test]
    fn different_compression_is_warned_of_even_as_engine_default() {
        let named = |name: &str, compression: &str| EngineConfig {
            name: name.to_owned(),
            compression: Some(compression.to_owned()),
            ..config("rocksdb", Durability::NoSync)
        };
        let warned = reported(&[named("a", "zstd"), named("b", "none"), named("c", "none")]);
        assert_eq!(warned[0].0, "data is compressed differently: zstd: a; none: b, c");
        assert!(reported(&[named("a", "zstd"), named("b", "zstd")]).is_empty());
        let unnamed = EngineConfig { name: "d".to_owned(), ..config("sqlite", Durability::NoSync) };
        assert_eq!(reported(&[named("a", "zstd"), unnamed])[0].0, "data is compressed differently: zstd: a; none: d");
    }

    #[test]
    fn each_difference_is_named_separately() {
        let (a, b) = (config("innodb", Durability::NoSync), config("myrocks", Durability::NoSync));
        let against = |other| codes(&[(&a, LOGGED), (&b, other)]);
        assert_eq!(against(("READ COMMITTED", true, Reads::Direct)), ["isolation-differs"]);
        assert_eq!(against(UNLOGGED), ["log-differs"]);
        assert_eq!(against(("REPEATABLE READ", true, Reads::Buffered)), ["page-cache-differs"]);
        assert_eq!(against(("REPEATABLE READ", true, Reads::Mapped)), ["no-cache"]);
        let smaller = EngineConfig { cache: 1 << 20, ..b.clone() };
        assert_eq!(codes(&[(&a, LOGGED), (&smaller, LOGGED)]), ["cache-differs"]);
        let synced = config("b", Durability::Sync);
        assert_eq!(codes(&[(&a, LOGGED), (&synced, LOGGED)]), ["durability-differs"]);
    }

    #[test]
    fn sentences_agree_with_one_engine_and_with_several() {
        let configs = ["lmdb", "sqlite", "rocksdb"].map(|name| config(name, Durability::NoSync));
        let [lmdb, sqlite, rocksdb] = &configs;
        let of = |config, (isolation, log, reads)| side(config, EngineTraits::new(isolation, log, reads));
        let message = |sides: &[Side<'_>]| log(sides).unwrap().message;
        let one = message(&[of(lmdb, UNLOGGED), of(sqlite, LOGGED)]);
        assert!(one.contains("; sqlite loses only the last commits, and pays for a log"), "{one}");
        let two = message(&[of(lmdb, UNLOGGED), of(sqlite, LOGGED), of(rocksdb, LOGGED)]);
        assert!(two.contains("; sqlite, rocksdb lose only the last commits, and pay for a log"), "{two}");
        let without = |config| Side { has_cache: false, has_transactions: false, ..of(config, LOGGED) };
        let sides = [without(lmdb), without(sqlite), of(rocksdb, LOGGED)];
        let transactions = no_transactions(&sides).unwrap().message;
        assert!(transactions.starts_with("lmdb, sqlite have no transactions: they write one key"), "{transactions}");
        let cache = no_cache(&sides).unwrap().message;
        assert!(cache.starts_with("lmdb, sqlite have no internal cache: they use as much"), "{cache}");
    }

    /// Guards against comparing the experiment's cache, which the existing server was never given.
    #[test]
    fn existing_server_cache_is_unknown_and_not_compared() {
        let (a, b) = (config("innodb", Durability::NoSync), config("myrocks", Durability::NoSync));
        let existing = |cache| EngineConfig { cache, server: Some("mysql://me@host/db".to_owned()), ..b.clone() };
        let (same, smaller) = (existing(a.cache), existing(1 << 20));
        for other in [&same, &smaller] {
            assert_eq!(codes(&[(&a, LOGGED), (other, LOGGED)]), ["parity-unknown"]);
        }
        assert_eq!(codes(&[(&same, LOGGED), (&smaller, LOGGED)]), [""; 0], "they are alike as far as anybody knows");
        let large = EngineConfig { cache: 2 << 30, ..a.clone() };
        let codes = codes(&[(&a, LOGGED), (&large, LOGGED), (&same, LOGGED)]);
        assert_eq!(codes, ["cache-differs", "parity-unknown"], "the others are compared");
    }

    fn reported(engines: &[EngineConfig]) -> Vec<(String, String)> {
        warnings(engines, 1 << 40, &registry()).into_iter().map(|warning| (warning.message, warning.remedy)).collect()
    }

    fn own(name: &str, setting: &str, value: &str) -> EngineConfig {
        let settings = [(setting, Value::Text(value.to_owned()))].into();
        EngineConfig { name: name.to_owned(), settings, ..config("sqlite", Durability::NoSync) }
    }

    /// Guards against comparing common settings that engine settings had overridden.
    #[test]
    fn engine_setting_is_compared_in_place_of_common_setting() {
        let common = config("rocksdb", Durability::NoSync);
        let caches = reported(&[common.clone(), own("large", "own_cache", "2GiB")]);
        let (message, remedy) =
            ("the engines' caches differ: 1.00 GiB: rocksdb; 2.00 GiB: large (own_cache)", "set cache in [common]");
        assert_eq!(caches, [(message.to_owned(), format!("{remedy} and leave out own_cache"))]);
        assert!(
            reported(&[common.clone(), own("same", "own_cache", "1GiB")]).is_empty(),
            "either setting gives the same size"
        );
        let apart = reported(&[common.clone(), own("a", "own_cache", "4 pages"), own("b", "own_cache", "4 pages")]);
        assert_eq!(apart[0].0, "the engines' caches differ: 1.00 GiB: rocksdb; own_cache = 4 pages: a, b");
        let synced = reported(&[common.clone(), own("synced", "own_durability", "sync")]);
        let message = "the engines promise different things at commit: no-sync: rocksdb; sync: synced (own_durability)";
        assert_eq!(synced[0].0, message);
        let between = reported(&[common, own("between", "own_durability", "every second")]);
        assert!(between[0].0.ends_with("no-sync: rocksdb; own_durability = every second: between"), "{between:?}");
        let larger = EngineConfig { cache: 2 << 30, ..own("overruled", "own_cache", "1GiB") };
        assert!(
            reported(&[config("rocksdb", Durability::NoSync), larger]).is_empty(),
            "what is overruled is in force nowhere"
        );
    }

    /// Guards against comparing the experiment's durability. Only an existing server whose clients request the
    /// durability honors it.
    #[test]
    fn existing_server_durability_is_unknown_and_not_compared() {
        let (own, no_sync) = (config("innodb", Durability::Sync), config("rocksdb", Durability::NoSync));
        let server = Some("mysql://me@host/db".to_owned());
        let theirs = EngineConfig { server, ..config("myrocks", Durability::NoSync) };
        assert_eq!(codes(&[(&own, LOGGED), (&theirs, LOGGED)]), ["parity-unknown"]);
        assert_eq!(codes(&[(&no_sync, UNLOGGED), (&theirs, LOGGED)]), ["parity-unknown"]);
        let all_three = codes(&[(&own, LOGGED), (&no_sync, LOGGED), (&theirs, LOGGED)]);
        assert_eq!(all_three, ["durability-differs", "parity-unknown"], "the others are compared");
        let another = EngineConfig { durability: Durability::Sync, ..theirs.clone() };
        assert_eq!(codes(&[(&another, LOGGED), (&theirs, LOGGED)]), [""; 0], "they are alike as far as anybody knows");
        let says = || EngineTraits::new("SNAPSHOT", true, Reads::Buffered);
        let reported = "it is unknown for some engines, and for others it is what a commit promises: myrocks; how large \
                    the cache is: myrocks";
        assert_eq!(unknown(&[side(&own, says()), side(&theirs, says())]).unwrap().message, reported);
        let silent =
            unknown(&[side(&no_sync, says()), side(&theirs, EngineTraits { has_log: None, ..says() })]).unwrap();
        assert!(silent.message.contains("; whether commits go to a log: myrocks; "), "{}", silent.message);
        let facts =
            EngineFacts { clients_request_durability: true, ..EngineFacts::new(Family::Document, Form::Server) };
        let requested = Side { durability: theirs.given_durability(Some(&facts)), ..side(&theirs, says()) };
        let reported = "the engines promise different things at commit: sync: innodb; no-sync: myrocks";
        assert_eq!(durability(&[side(&own, says()), requested]).unwrap().message, reported);
    }

    /// Guards against treating an engine without this information as equal to all others.
    #[test]
    fn metric_missing_from_one_engine_only_is_reported() {
        let configs = ["a", "b", "c"].map(|name| config(name, Durability::NoSync));
        let [a, b, c] = &configs;
        let says = || EngineTraits::new("SNAPSHOT", true, Reads::Buffered);
        let silent = || side(b, EngineTraits::default());
        let warning = unknown(&[side(a, says()), silent(), side(c, EngineTraits { reads: None, ..says() })]).unwrap();
        let reported = "it is unknown for some engines, and for others it is how transactions are isolated: b; whether \
                    commits go to a log: b; how files are read: b, c";
        assert_eq!((warning.code.as_str(), warning.message.as_str()), ("parity-unknown", reported));
        assert_eq!(unknown(&[side(a, says()), side(c, says())]), None);
        assert_eq!(unknown(&[silent(), silent()]), None, "they are alike as far as anybody knows");
        // A feature that the engine lacks, or that does not matter, need not be reported.
        let nothing = Side { has_cache: false, has_transactions: false, ..silent() };
        assert!(
            unknown(&[side(a, says()), nothing]).unwrap().message.ends_with(" it is whether commits go to a log: b")
        );
        let synced = config("d", Durability::Sync);
        let synced = Side { has_cache: false, has_transactions: false, ..side(&synced, EngineTraits::default()) };
        assert_eq!(unknown(&[side(a, says()), synced]), None);
    }

    #[test]
    fn unlogged_store_that_syncs_each_commit_promises_the_same() {
        let (a, b) = (config("a", Durability::Sync), config("b", Durability::Sync));
        assert_eq!(codes(&[(&a, LOGGED), (&b, UNLOGGED)]), [""; 0]);
    }
}
