//! The conditions that differ between two runs: the first suspects for any other difference.

use std::collections::{BTreeMap, BTreeSet};

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::limits::Limits;
use rumba_engine_api::units::show_bytes;
use rumba_results::comparison::ConditionChange;
use rumba_results::condition;
use rumba_results::record::Record;
use rumba_results::results::Results;

use crate::alike::engines;

/// A condition's name and its engine; the engine is `None` for conditions of the host, the run or the workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    engine: Option<String>,
    condition: String,
}

/// The conditions of a run. If its trials differ in one, it has all values, in an order independent of the trials.
type Named = BTreeMap<Name, BTreeSet<String>>;
/// The values of a condition in the base and in the other.
type Values = (Option<String>, Option<String>);

/// The differing conditions of the host and of each engine: requested values, values under which the trials ran, and
/// the engines' effective settings.
///
/// An engine that only one run has is named as such, not condition by condition.
pub fn condition_changes(base: &Results, other: &Results) -> Vec<ConditionChange> {
    let both: BTreeSet<String> = engines(base).intersection(&engines(other)).cloned().collect();
    let (mut in_base, mut in_other) = (named(base, &both), named(other, &both));
    add_in_force((base, &mut in_base), (other, &mut in_other), &both);
    reported_once(&differing(&in_base, &in_other), both.len())
}

/// The conditions of the host, and those of each of these engines that affect its figures.
fn named(results: &Results, both: &BTreeSet<String>) -> Named {
    let mut named = Named::new();
    for (name, value) in &results.conditions {
        note(&mut named, None, name, value.clone());
    }
    note(&mut named, None, "rumba", results.rumba.clone());
    for record in records(results, both) {
        let engine = Some(record.plan.engine.name.as_str());
        for (name, value) in requested_for(record) {
            note(&mut named, engine, name, value);
        }
        for (name, value) in record.conditions.iter().filter(|(name, _)| condition::is_given(name)) {
            note(&mut named, engine, name, value.clone());
        }
        for (name, value) in &record.plan.workload_settings.0 {
            note(&mut named, None, &format!("{}: {name}", record.plan.workload), value.to_string());
        }
    }
    named
}

/// The requested values for an engine and its clients, and the installed version.
fn requested_for(record: &Record) -> Vec<(&str, String)> {
    let (engine, run) = (&record.plan.engine, &record.plan.run);
    let seconds = |seconds: f64| format!("{seconds} s");
    let mut requested = vec![
        ("engine", engine.engine.clone()),
        ("limits", limits_of(engine)),
        // An engine's own setting that overrides it is a separate condition.
        ("cache", record.plan.given_cache().reported),
        ("durability", record.plan.given_durability().reported),
        ("compression", engine.compression.clone().unwrap_or_else(|| "the engine's default".to_owned())),
        ("warmup", seconds(run.warmup_s)),
        ("loops", format!("{} of {}", run.loops, seconds(run.loop_s))),
        ("backlog", seconds(run.backlog_s)),
        ("loaders", run.load_clients.to_string()),
        ("rate", run.pace()),
        ("seed", run.seed.to_string()),
    ];
    requested.extend(run.age_s.map(|most| ("age", seconds(most))));
    requested.extend(run.prices.as_ref().map(|prices| ("prices", prices.to_string())));
    requested.extend(run.warmup_most_s.map(|most| ("warmup_most", seconds(most))));
    requested.extend(record.version.clone().map(|version| ("version", version)));
    requested.extend(engine.settings.0.iter().map(|(name, value)| (name.as_str(), value.to_string())));
    requested
}

/// The engine's limits on the host, in words.
fn limits_of(engine: &EngineConfig) -> String {
    let Limits { memory_bytes, storage, cpus, client_cpus } = &engine.limits;
    let memory = memory_bytes.map(|bytes| format!("{} of memory", show_bytes(bytes as f64)));
    let storage = storage.as_ref().map(ToString::to_string);
    let cpus = cpus.as_ref().map(|cpus| format!("CPUs {cpus}"));
    let client_cpus = client_cpus.as_ref().map(|cpus| format!("clients on CPUs {cpus}"));
    let all: Vec<String> = [memory, storage, cpus, client_cpus].into_iter().flatten().collect();
    if all.is_empty() { "none".to_owned() } else { all.join("; ") }
}

/// Adds effective settings that both runs report and neither requested, for example a default that another release
/// changed or a setting of an existing server.
fn add_in_force(base: (&Results, &mut Named), other: (&Results, &mut Named), both: &BTreeSet<String>) {
    let in_force = |results: &Results| {
        let mut named = Named::new();
        for record in records(results, both) {
            for (setting, value) in &record.effective_settings {
                note(&mut named, Some(record.plan.engine.name.as_str()), setting, value.clone());
            }
        }
        named
    };
    let ((base, base_named), (other, other_named)) = (base, other);
    let in_other = in_force(other);
    for (name, values) in in_force(base) {
        let is_requested = base_named.contains_key(&name) || other_named.contains_key(&name);
        if let Some(others) = in_other.get(&name).filter(|_| !is_requested) {
            other_named.insert(name.clone(), others.clone());
            base_named.insert(name, values);
        }
    }
}

fn records<'a>(results: &'a Results, engines: &'a BTreeSet<String>) -> impl Iterator<Item = &'a Record> {
    let all = results.trials.iter().map(|trial| &trial.record);
    all.filter(move |record| engines.contains(&record.plan.engine.name))
}

fn note(named: &mut Named, engine: Option<&str>, condition: &str, value: String) {
    let name = Name { engine: engine.map(str::to_owned), condition: condition.to_owned() };
    named.entry(name).or_default().insert(value);
}

fn differing<'a>(base: &'a Named, other: &'a Named) -> Vec<(&'a Name, Values)> {
    let names: BTreeSet<&Name> = base.keys().chain(other.keys()).collect();
    let reported = |named: &Named, name: &Name| {
        let values: Vec<&str> = named.get(name)?.iter().map(String::as_str).collect();
        Some(values.join("; "))
    };
    let nameless = |value: &Option<String>| value.as_deref().map(without_nodes);
    let of_both = names.into_iter().map(|name| (name, (reported(base, name), reported(other, name))));
    of_both.filter(|(_, (base, other))| nameless(base) != nameless(other)).collect()
}

/// A condition without the numbers of loop devices, because the node that a volume gets is random.
fn without_nodes(value: &str) -> String {
    let mut parts = value.split("/dev/loop");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("/dev/loop");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// The changes by name; a change that is the same for all of several engines is reported once.
fn reported_once(differing: &[(&Name, Values)], engines: usize) -> Vec<ConditionChange> {
    let mut alike: BTreeMap<(&str, &Values), usize> = BTreeMap::new();
    for (name, values) in differing.iter().filter(|(name, _)| name.engine.is_some()) {
        *alike.entry((name.condition.as_str(), values)).or_default() += 1;
    }
    let mut reported: BTreeMap<String, &Values> = BTreeMap::new();
    for (name, values) in differing {
        let condition = &name.condition;
        let is_of_all = engines > 1 && alike.get(&(condition.as_str(), values)) == Some(&engines);
        let name = match &name.engine {
            None => condition.clone(),
            Some(_) if is_of_all => format!("all engines: {condition}"),
            Some(engine) => format!("{engine}: {condition}"),
        };
        reported.insert(name, values);
    }
    let change = |(name, values): (String, &Values)| {
        let (base, other) = values.clone();
        ConditionChange { name, base, other }
    };
    reported.into_iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::common::{Durability, OverriddenSettings, Own};
    use rumba_engine_api::engine::{EngineFacts, Family, Form};
    use rumba_engine_api::setting::Value;
    use rumba_results::prices::Prices;

    use crate::testing::{record, results};

    use super::*;

    fn run(engines: &[&str], change: impl Fn(&mut Record)) -> Results {
        let mut records: Vec<Record> = engines.iter().map(|engine| record(engine, 8, 1)).collect();
        records.iter_mut().for_each(change);
        results(records)
    }

    fn given(record: &mut Record, name: &str, value: &str) {
        record.conditions.insert(name.to_owned(), value.to_owned());
    }

    fn reported(base: &Results, other: &Results) -> Vec<String> {
        let changes = condition_changes(base, other).into_iter();
        let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        changes.map(|change| format!("{}: {} | {}", change.name, shown(change.base), shown(change.other))).collect()
    }

    /// A queue for each client or one for all, and an aged load, were not reported.
    #[test]
    fn trial_conditions_are_reported_without_its_results() {
        let queued = |queue: &'static str, peak: &'static str| {
            run(&["a"], move |record| {
                given(record, "queue", queue);
                given(record, condition::PEAK_OF_GROUP, peak);
            })
        };
        let (client, shared) = (queued("client", "90 MiB"), queued("shared", "91 MiB"));
        assert_eq!(reported(&client, &shared), ["a: queue: client | shared"]);
        let aged = run(&["a"], |record| record.plan.run.age_s = Some(360.0));
        assert_eq!(reported(&run(&["a"], |_| ()), &aged), ["a: age: - | 360 s"]);
        let priced = |vcpu_hour: f64| {
            run(&["a"], move |record| {
                record.plan.run.prices = Some(Prices { vcpu_hour, rate: Some(9.0), ..Prices::default() })
            })
        };
        let prices = ["a: prices: vcpu_hour 0.5, rate 9 | vcpu_hour 1, rate 9"];
        assert_eq!(
            reported(&priced(0.5), &priced(1.0)),
            prices,
            "costs at different prices are not compared unnoticed"
        );
    }

    #[test]
    fn changed_cpus_of_engine_and_clients_are_reported() {
        let of = |cpus: &'static str, clients: Option<&'static str>| {
            run(&["a"], move |record| {
                record.plan.engine.limits.cpus = cpus.parse().ok();
                record.plan.engine.limits.client_cpus = clients.and_then(|cpus| cpus.parse().ok());
            })
        };
        let changes = reported(&of("0", Some("1")), &of("0-1", None));
        assert_eq!(changes, ["a: limits: CPUs 0; clients on CPUs 1 | CPUs 0-1"]);
    }

    /// PostgreSQL 18 computes checksums of its pages and 15 does not, and `compare` did not report that.
    #[test]
    fn unrequested_setting_is_reported_if_two_runs_differ_in_it() {
        let of = |checksums: &'static str, more: &'static str| {
            run(&["a"], move |record| {
                let read = [("data_checksums", checksums), (more, "1")];
                record.effective_settings = read.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            })
        };
        let (old, new) = (of("off", "removed"), of("on", "added"));
        assert_eq!(reported(&old, &new), ["a: data_checksums: off | on"], "what one of them lacks is its release's");
    }

    /// An experiment's cache does not reach an existing server, nor does its durability unless its clients request it.
    #[test]
    fn existing_server_durability_is_reported_if_clients_request_it() {
        let changed = |server: &str, clients_request_durability: bool| {
            let of = |durability: Durability, cache: u64| {
                run(&["a"], |record| {
                    let facts = EngineFacts::new(Family::KeyValue, Form::Server);
                    record.plan.facts = Some(EngineFacts { clients_request_durability, ..facts });
                    let engine = &mut record.plan.engine;
                    (engine.server, engine.durability, engine.cache) = (Some(server.to_owned()), durability, cache);
                })
            };
            reported(&of(Durability::NoSync, 1 << 20), &of(Durability::Sync, 1 << 21))
        };
        let durability = "a: durability: no-sync | sync";
        assert_eq!(changed("mariadb@10.11", false), ["a: cache: 1.00 MiB | 2.00 MiB", durability]);
        assert_eq!(changed("mongodb://host/lab", true), [durability]);
        assert_eq!(changed("mysql://me@host/lab", false), [""; 0]);
    }

    /// Two runs were reported to have the same cache, although a setting of the engine's own had changed it.
    #[test]
    fn cache_of_engine_setting_is_reported_not_the_common_one() {
        let of = |common: u64, own: Option<u64>| {
            run(&["a"], |record| {
                let cache = own.map(|bytes| Own::new("pool", Some(bytes)));
                let overruled = OverriddenSettings { cache, durability: None };
                let facts = EngineFacts::new(Family::KeyValue, Form::BuiltIn);
                record.plan.facts = Some(EngineFacts { overruled, ..facts });
                record.plan.engine.cache = common;
                let set = own.map(|bytes| ("pool".to_owned(), Value::Int(bytes as i64)));
                record.plan.engine.settings = set.into_iter().collect();
            })
        };
        let overruled = reported(&of(1 << 20, None), &of(1 << 20, Some(1 << 21)));
        assert_eq!(overruled, ["a: cache: 1.00 MiB | 2.00 MiB", "a: pool: - | 2097152"]);
        let alike = reported(&of(1 << 20, None), &of(1 << 21, Some(1 << 20)));
        assert_eq!(alike, ["a: pool: - | 1048576"], "the same is in force");
    }

    #[test]
    fn change_common_to_all_engines_is_reported_once() {
        let of = |read_ahead: &'static str, queue: &'static str| {
            run(&["a", "b"], move |record| {
                given(record, "limit 1", read_ahead);
                if record.plan.engine.name == "b" {
                    given(record, "queue", queue);
                }
            })
        };
        let (base, other) = (of("read-ahead 2.50 MiB", "client"), of("read-ahead 128.0 KiB", "shared"));
        let limit = "all engines: limit 1: read-ahead 2.50 MiB | read-ahead 128.0 KiB";
        assert_eq!(reported(&base, &other), [limit, "b: queue: client | shared"]);
    }

    #[test]
    fn all_setting_values_of_trials_are_reported_in_any_run_order() {
        let of = |drivers: &[&str]| {
            let trial = |driver: &&str| {
                let mut record = record("a", 8, 1);
                given(&mut record, "driver", driver);
                record
            };
            results(drivers.iter().map(trial).collect())
        };
        let both = of(&["threads", "loops"]);
        assert_eq!(reported(&both, &of(&["loops", "threads"])), [""; 0]);
        assert_eq!(reported(&both, &of(&["threads"])), ["a: driver: loops; threads | threads"]);
    }
}
