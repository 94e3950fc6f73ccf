//! Finds engines of one run that differ only in name, so that comparing them compares one engine with itself.
//!
//! Before a run, the settings that each engine will start with decide; afterwards, the settings that it reported. A
//! setting that one engine's configuration requests makes no difference if the other has it anyway, by a profile or by
//! the engine's default.

use std::collections::{BTreeMap, BTreeSet};

use rumba_engine_api::engine::{AT_DEFAULT, EngineConfig};
use rumba_engine_api::setting::Value;
use rumba_results::comparison::{Row, SameEngine};
use rumba_results::distinct;
use rumba_results::record::Record;

/// Effective settings by name. Trials of one engine may have reported several values.
pub type InForce = BTreeMap<String, BTreeSet<String>>;

/// One engine of a run.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The engine's configuration in the experiment.
    pub config: &'a EngineConfig,
    /// The build: version and file.
    pub build: String,
    /// Its effective settings.
    pub in_force: InForce,
}

/// Settings that are unique to each instance, such as its address and files, and that affect no figure.
const OF_THE_INSTANCE: &[&str] = &[
    AT_DEFAULT,
    "data_directory",
    "datadir",
    "log_error",
    "pid_file",
    "port",
    "server_id",
    "socket",
    "tmpdir",
    "unix_socket_directories",
];

impl<'a> Setup<'a> {
    /// An engine with these effective settings.
    pub fn new(config: &'a EngineConfig, build: String, in_force: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut all = InForce::new();
        for (name, value) in in_force {
            all.entry(name).or_default().insert(value);
        }
        Self { config, build, in_force: all }
    }

    /// The identity of an engine from its trials; `None` if no trial got as far as reporting its settings.
    fn of(records: &[&'a Record], name: &str) -> Option<Self> {
        let own = || records.iter().copied().filter(|record| record.plan.engine.name == name);
        let first = own().find(|record| record.version.is_some())?;
        let build = format!("{:?} {:?}", first.version, first.source);
        let settings = own().flat_map(|record| record.effective_settings.iter().cloned());
        Some(Self::new(&first.plan.engine, build, settings))
    }

    /// Whether it reports that a setting has the engine's own default.
    fn is_default(&self, name: &str) -> bool {
        let listed = self.in_force.get(AT_DEFAULT).into_iter().flatten();
        listed.flat_map(|names| names.split(", ")).any(|known| known == name)
    }

    /// The effective name of a setting that an experiment may write without the engine's prefix.
    fn name_of(&self, setting: &str) -> Option<&str> {
        let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
        let (wanted, end) = (plain(setting), format!("_{}", plain(setting)));
        let mut names = self.in_force.keys().map(String::as_str);
        names.clone().find(|name| plain(name) == wanted).or_else(|| names.find(|name| plain(name).ends_with(&end)))
    }
}

/// The reason why two engines are the same; `None` if a setting that affects figures differs.
pub fn same(one: &Setup<'_>, other: &Setup<'_>) -> Option<String> {
    let (a, b) = (one.config, other.config);
    let is_alike = a.engine == b.engine
        && one.build == other.build
        && a.cache == b.cache
        && a.durability == b.durability
        && a.compression == b.compression
        && a.library == b.library
        && a.limits == b.limits
        && servers_alike(a, b)
        && settings_alike(one, other);
    let requested = requested_apart(a, b);
    let is_reported = |(name, _): &(&String, String)| one.name_of(name).or_else(|| other.name_of(name)).is_some();
    if !is_alike || !requested.iter().all(is_reported) {
        return None;
    }
    let (a, b) = (&a.name, &b.name);
    let head = format!("{a} and {b} are the same engine with the same settings");
    Some(match requested.is_empty() {
        true => head,
        false => {
            let reported: Vec<String> = requested.into_iter().map(|(_, words)| words).collect();
            format!("{head}: {}", reported.join("; "))
        }
    })
}

/// Existing servers are the same if they have the same address; others are compared by their build.
fn servers_alike(one: &EngineConfig, other: &EngineConfig) -> bool {
    !(one.is_existing() || other.is_existing()) || one.server == other.server
}

fn settings_alike(one: &Setup<'_>, other: &Setup<'_>) -> bool {
    let names: BTreeSet<&String> = one.in_force.keys().chain(other.in_force.keys()).collect();
    let is_alike = |name: &&String| match (one.in_force.get(*name), other.in_force.get(*name)) {
        (Some(a), Some(b)) => a == b,
        (Some(_), None) => one.is_default(name),
        (None, _) => other.is_default(name),
    };
    names.iter().filter(|name| !OF_THE_INSTANCE.contains(&name.as_str())).all(is_alike)
}

/// The settings that the experiment varies, each with its description.
fn requested_apart<'a>(one: &'a EngineConfig, other: &'a EngineConfig) -> Vec<(&'a String, String)> {
    let names: BTreeSet<&String> = one.settings.0.keys().chain(other.settings.0.keys()).collect();
    let words = |name: &'a String| {
        let of = |config: &'a EngineConfig| config.settings.0.get(name);
        let without = |name: &str, value: &Value, engine: &EngineConfig| {
            format!("{name} = {value} is what {} has without it", engine.name)
        };
        let words = match (of(one), of(other)) {
            (Some(a), Some(b)) if a == b => return None,
            (Some(a), Some(b)) => format!("{name} = {a} and {name} = {b} come to the same"),
            (Some(value), None) => without(name, value, other),
            (None, Some(value)) => without(name, value, one),
            (None, None) => return None,
        };
        Some((name, words))
    };
    names.into_iter().filter_map(words).collect()
}

/// The pairs among these engines that are the same, by their positions, with the reason.
pub fn pairs(setups: &[Setup<'_>]) -> Vec<(usize, usize, String)> {
    let of = |at: usize| {
        let later = setups.iter().enumerate().skip(at + 1);
        later.filter_map(move |(other, setup)| Some((at, other, same(&setups[at], setup)?)))
    };
    (0..setups.len()).flat_map(of).collect()
}

/// Marks the rows of a run whose engines are the same. An A/A run compares an engine with itself on purpose.
pub fn mark(rows: &mut [Row], records: &[&Record]) {
    if records.iter().any(|record| record.plan.run.aa) {
        return;
    }
    let engines = distinct(records.iter().map(|record| record.plan.engine.name.as_str()));
    let setups: Vec<Setup<'_>> = engines.into_iter().filter_map(|name| Setup::of(records, name)).collect();
    let tests = |name: &str| records.iter().find(|record| record.plan.engine.name == name).map(|r| r.plan.test.clone());
    for (one, other, reason) in pairs(&setups) {
        let (one, other) = (setups[one].config.name.as_str(), setups[other].config.name.as_str());
        if tests(one) != tests(other) {
            continue;
        }
        for row in rows.iter_mut() {
            let counterpart = match row.engine.as_str() {
                name if name == one => other,
                name if name == other => one,
                _ => continue,
            };
            row.same_as.push(SameEngine { engine: counterpart.to_owned(), reason: reason.clone() });
        }
    }
}

/// The reason why two engines of a run are the same, by their names there; `None` if they are not, or if the run is an
/// A/A run.
pub fn same_in(records: &[&Record], one: &str, other: &str) -> Option<String> {
    if records.iter().any(|record| record.plan.run.aa) {
        return None;
    }
    same(&Setup::of(records, one)?, &Setup::of(records, other)?)
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;
    use rumba_results::claim::{Claim, Verdict};
    use rumba_results::comparison::Summary;
    use rumba_results::metric::Metric;
    use rumba_results::pair::Pair;
    use rumba_results::ratio::Change;
    use serde_json::Value as Json;

    use super::*;
    use crate::testing::{record, results};
    use crate::{Found, Gate, compare_sides, summarise};

    /// Settings that engines reported in committed runs: docs/experiments/tpcc-settings.json and lsm-shape.json.
    const COMMITTED: &str = include_str!("same_engine/committed.json");

    /// Four repeats of an engine of a committed run, a little faster than these.
    fn trials(run: &str, engine: &str, rate: f64) -> Vec<Record> {
        let all: Json = serde_json::from_str(COMMITTED).unwrap();
        let of = &all[run][engine];
        let settings = of["effective_settings"].as_object().unwrap();
        let repeat = |repeat: u32| {
            let mut record = record(engine, 8, repeat);
            record.plan.engine = serde_json::from_value(of["config"].clone()).unwrap();
            record.version = of["version"].as_str().map(str::to_owned);
            record.source = of["source"].as_str().map(str::to_owned);
            let text = |value: &Json| value.as_str().unwrap().to_owned();
            record.effective_settings = settings.iter().map(|(name, value)| (name.clone(), text(value))).collect();
            let rate = rate + f64::from(repeat);
            record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = rate.into());
            record
        };
        (1..=4).map(repeat).collect()
    }

    fn pair_of(run: &str, one: &str, other: &str) -> Vec<Record> {
        [trials(run, one, 100.0), trials(run, other, 120.0)].concat()
    }

    fn ops(summary: &Summary, base: &str, other: &str) -> (Change, Option<String>) {
        let ratio = summary.relative(base, other, 8).unwrap().metric("ops_per_s").unwrap();
        (ratio.change, ratio.lacking.clone())
    }

    #[test]
    fn the_committed_comparisons_of_an_engine_with_itself_are_void() {
        let (point, hash) = ("merged/point-query", "innodb_adaptive_hash_index = true is what base has without it");
        let memtable = "rocksdb_allow_concurrent_memtable_write = true is what merged/point-query has without it";
        for (run, one, other, same) in [
            ("tpcc-settings", "base", "hash-index", Some(hash)),
            ("lsm-shape", point, "concurrent/point-query", Some(memtable)),
            ("tpcc-settings", "base", "no-doublewrite", None),
            ("lsm-shape", point, "level0/point-query", None),
        ] {
            let (change, why) = ops(&summarise(&results(pair_of(run, one, other))), one, other);
            let Some(setting) = same else {
                assert_eq!((change, why), (Change::Better, None), "{run}");
                continue;
            };
            assert_eq!(change, Change::Void, "{run}: {why:?}");
            let why = why.unwrap();
            assert!(why.starts_with(&format!("{one} and {other} are the same engine")), "{why}");
            assert!(why.contains(setting), "{why}");
        }
    }

    #[test]
    fn missing_figures_of_the_same_engine_are_void_too() {
        let mut records = pair_of("tpcc-settings", "base", "hash-index");
        for phase in records[..4].iter_mut().flat_map(|record| &mut record.phases) {
            phase.metrics.ops_per_s = Metric::absent("too few samples");
        }
        let (change, why) = ops(&summarise(&results(records)), "base", "hash-index");
        assert_eq!(change, Change::Void, "{why:?}");
    }

    #[test]
    fn a_claim_over_an_engine_and_itself_is_void() {
        let claim = |holds: &str| Claim { holds: holds.to_owned(), ..Claim::default() };
        let mut results = results(pair_of("tpcc-settings", "base", "hash-index"));
        results.claims = vec![
            claim(r#"ops_per_s("base") >= 0.98 * ops_per_s("hash-index")"#),
            claim(r#"ops_per_s("base") >= 50 && ops_per_s("base") <= ops_per_s("hash-index")"#),
        ];
        let judged = summarise(&results).claims;
        assert!(judged.iter().all(|judged| judged.verdict == Verdict::Void), "{judged:?}");
        assert!(judged[0].reason.contains("are the same engine"), "{}", judged[0].reason);
    }

    #[test]
    fn sides_that_are_one_engine_are_void_and_close_a_gate() {
        let pairs = [Pair { base: "base".to_owned(), other: "hash-index".to_owned() }];
        let comparison = compare_sides(&results(pair_of("tpcc-settings", "base", "hash-index")), &pairs).unwrap();
        let changes = comparison.rows.iter().flat_map(|row| &row.metrics).map(|compared| compared.ratio.change);
        assert!(changes.clone().count() > 0 && changes.clone().all(|change| change == Change::Void));
        for gate in ["worse", "ops_per_s < 0.9"] {
            let gated = Gate::parse(gate).unwrap().judge(&comparison).unwrap();
            assert!(gated.iter().all(|gated| gated.verdict == Found::Void && gated.verdict.closes()), "{gated:?}");
        }
    }

    #[test]
    fn an_a_a_run_compares_an_engine_with_itself() {
        let mut records = pair_of("tpcc-settings", "base", "hash-index");
        records.iter_mut().for_each(|record| record.plan.run.aa = true);
        assert_eq!(ops(&summarise(&results(records)), "base", "hash-index"), (Change::Better, None));
    }

    fn config(name: &str) -> EngineConfig {
        EngineConfig { name: name.to_owned(), ..EngineConfig::new("a") }
    }

    fn set(mut config: EngineConfig, name: &str, value: Value) -> EngineConfig {
        config.settings.0.insert(name.to_owned(), value);
        config
    }

    fn setup<'a>(config: &'a EngineConfig, in_force: &[(&str, &str)]) -> Setup<'a> {
        let in_force = in_force.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Setup::new(config, "1.0".to_owned(), in_force)
    }

    #[test]
    fn setting_at_engine_default_equals_leaving_it_out() {
        let (plain, requests) = (config("plain"), set(config("asks"), "hash_index", Value::Bool(false)));
        let without = setup(&plain, &[("size", "1")]);
        let other = setup(&requests, &[("size", "1"), ("innodb_hash_index", "OFF")]);
        assert_eq!(same(&without, &other), None, "the default is not known");
        let at_default =
            setup(&requests, &[("size", "1"), ("innodb_hash_index", "OFF"), (AT_DEFAULT, "innodb_hash_index")]);
        let why = same(&without, &at_default).unwrap();
        assert!(why.ends_with("hash_index = false is what plain has without it"), "{why}");
    }

    #[test]
    fn a_setting_that_no_engine_reports_is_a_difference() {
        let (plain, requests) = (config("plain"), set(config("asks"), "statements", Value::Text("batched".to_owned())));
        assert_eq!(same(&setup(&plain, &[("size", "1")]), &setup(&requests, &[("size", "1")])), None);
    }

    #[test]
    fn per_instance_values_are_no_difference_but_common_ones_are() {
        let (one, other) = (config("one"), config("other"));
        let in_force = |port: &'static str| [("size", "1"), ("port", port)];
        assert!(same(&setup(&one, &in_force("33061")), &setup(&other, &in_force("33062"))).is_some());
        let larger = EngineConfig { cache: 1, ..other.clone() };
        assert_eq!(same(&setup(&one, &in_force("1")), &setup(&larger, &in_force("1"))), None);
        let built = Setup { build: "2.0".to_owned(), ..setup(&other, &in_force("1")) };
        assert_eq!(same(&setup(&one, &in_force("1")), &built), None);
    }
}
