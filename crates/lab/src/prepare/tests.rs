//! Guards against running without checks: hours until a full disk, or another user's files.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::spec::testing::{PaperLoad, registry, with_load};
use crate::spec::{self, Overrides};

/// 1 GiB of rows, and two trials that load them.
const EXPERIMENT: &str = r#"
name = "tiers"
[workload.linkbench]
[run]
clients = 1
repeats = 2
[[engine]]
use = "rocksdb"
"#;

fn read(more: &str, registry: &Registry) -> Experiment {
    spec::read_text("e.toml", &format!("{EXPERIMENT}{more}"), &Overrides::default(), registry).unwrap()
}

/// Permits running on a host that cannot enforce the limits.
const ANY: Allowed = Allowed { unlimited: true, tight_memory: false };

fn refusal<T>(admitted: Result<T, Refusal>) -> String {
    admitted.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn workload_is_configured_once_for_any_number_of_users() {
    let (base, load) = (tempfile::tempdir().unwrap(), PaperLoad::default());
    let bound = Arc::clone(&load.bound);
    let registry = with_load(load);
    let admitted = Validated::new(read("", &registry), base.path(), ANY).unwrap();
    let trials = admitted.plan(&registry);
    let prepared = admitted.prepare(trials, &registry).unwrap();
    assert_eq!(prepared.trials().len(), 2);
    assert_eq!(prepared.conditions()["data, logical"], "1.00 GiB");
    assert_eq!(bound.load(Relaxed), 1);
}

/// Guards against an overloaded server of others.
#[test]
fn run_over_an_existing_server_warns_unless_its_rate_is_bounded() {
    let (base, registry) = (tempfile::tempdir().unwrap(), registry());
    let notices = |rate: Option<f64>| {
        let mut experiment = read("", &registry);
        experiment.engines[0].server = Some("mysql://root@127.0.0.1/lab".to_owned());
        experiment.run.trial.rate = rate;
        let admitted = Validated::new(experiment, base.path(), ANY).unwrap();
        admitted.notices().iter().filter(|warning| warning.code == "closed-loop").count()
    };
    assert_eq!((notices(None), notices(Some(100.0))), (1, 0));
}

#[test]
fn foreign_directory_is_refused_before_anything_is_created() {
    let (base, registry) = (tempfile::tempdir().unwrap(), registry());
    let admitted = Validated::new(read("", &registry), base.path(), ANY).unwrap();
    let trials = admitted.plan(&registry);
    admitted.check(&trials, &registry).unwrap();
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0, "a look touches nothing");
    for name in [plan::directory(&trials[1]), plan::volume_name(&trials[0])] {
        let foreign = base.path().join(name);
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("ibdata1"), "somebody's").unwrap();
        assert!(refusal(admitted.check(&trials, &registry)).contains("was not made by rumba"));
        fs::remove_dir_all(foreign).unwrap();
    }
}

#[test]
fn storage_that_data_would_fill_is_refused_with_required_size() {
    let (base, registry) = (tempfile::tempdir().unwrap(), registry());
    let sized = |size: &str| read(&format!("[limits]\nstorage = {{ size = \"{size}\" }}\n"), &registry);
    let check =
        |experiment: &Experiment| room::check(experiment, &plan::plan(experiment, &registry), base.path(), &registry);
    let words = refusal(check(&sized("data*2")));
    assert!(words.contains("limits.storage.size is 2.00 GiB; this data set may need 3.00 GiB"), "{words}");
    let enough = sized("data*3");
    let trials = plan::plan(&enough, &registry);
    room::check(&enough, &trials, base.path(), &registry).unwrap();
    let none = sized("data*2");
    room::check(&none, &[], base.path(), &registry).unwrap();
}

#[test]
fn tight_memory_is_refused_at_its_line_or_reported_if_allowed() {
    let (base, registry) = (tempfile::tempdir().unwrap(), registry());
    // The need is 100 MiB, 1.5 times the cache, and 6 MiB for clients.
    let experiment = || read("cache = \"64MiB\"\nlimits.memory = \"128MiB\"\n", &registry);
    let Err(Refusal::Spec(mistake)) = Validated::new(experiment(), base.path(), ANY) else { panic!("it was let in") };
    assert_eq!(mistake.place().as_deref(), Some("e.toml:10:17"));
    assert!(mistake.remedy.contains("--allow-tight-memory"), "{}", mistake.remedy);
    let admitted = Validated::new(experiment(), base.path(), Allowed { tight_memory: true, ..ANY }).unwrap();
    let [tight] = admitted.notices() else { panic!("{:?}", admitted.notices()) };
    assert!(tight.code == "memory-tight" && tight.message.starts_with("e.toml:10:17: "), "{tight:?}");
    let trials = admitted.plan(&registry);
    let prepared = admitted.prepare(trials, &registry).unwrap();
    let reported = prepared.warnings().iter().find(|warning| warning.code == "memory-tight").unwrap();
    assert!(reported.message.starts_with("limits.memory"), "a reader of the results has no file: {reported:?}");
}

/// Guards against reports of a limit that the server was never under. The dry run, the first lines of a report and
/// `compare` had shown it.
#[test]
fn limits_on_an_existing_server_are_refused_or_reported() {
    let (base, registry) = (tempfile::tempdir().unwrap(), registry());
    let theirs = "[[engine]]\nname = \"theirs\"\nuse = \"myrocks\"\nserver = \"mysql://me@host/db\"\n\
                  limits = { memory = \"64MiB\", storage = \"slow-ssd\" }\n";
    let words = refusal(Validated::new(read(theirs, &registry), base.path(), Allowed::default()));
    let why = "theirs: limits.memory is not in force: the server of theirs runs already, where others put it";
    assert!(words.starts_with(why), "{words}");
    let admitted = Validated::new(read(theirs, &registry), base.path(), ANY).unwrap();
    assert!(admitted.experiment().engines[1].limits.is_none(), "{:?}", admitted.experiment().engines[1]);
    let forecast = admitted.forecast(&[], &registry);
    assert!(forecast.memory[1].limit_bytes.is_none() && forecast.storage.is_empty(), "{forecast:?}");
    let prepared = admitted.prepare(Vec::new(), &registry).unwrap();
    let reported = prepared.warnings().iter().filter(|warning| warning.code == "limit-not-enforced");
    let limits: Vec<&str> = reported.filter_map(|warning| warning.message.split(' ').next()).collect();
    assert_eq!(limits, ["limits.memory", "limits.storage"]);
}

/// rumba cannot move a server that others started, but its own clients.
#[test]
fn existing_server_has_no_cpu_limit_and_its_clients_may_have_one() {
    let (base, registry) = (tempfile::tempdir().unwrap(), registry());
    let cpu = crate::host::allowed_cpus().unwrap().iter().next().unwrap();
    let theirs = format!(
        "[[engine]]\nname = \"theirs\"\nuse = \"myrocks\"\nserver = \"mysql://me@host/db\"\n\
         limits = {{ cpus = {cpu}, client_cpus = {cpu} }}\n"
    );
    let words = refusal(Validated::new(read(&theirs, &registry), base.path(), Allowed::default()));
    let why = "theirs: limits.cpus is not in force: the server of theirs runs already, where others put it";
    assert!(words.starts_with(why), "{words}");
    let admitted = Validated::new(read(&theirs, &registry), base.path(), ANY).unwrap();
    let [Cpus { engine, cpus: None, client_cpus: Some(clients) }] = &admitted.forecast(&[], &registry).cpus[..] else {
        panic!("{:?}", admitted.forecast(&[], &registry));
    };
    assert_eq!((engine.as_str(), clients.to_string()), ("theirs", cpu.to_string()));
}
