//! Guards the error messages for mistakes in an experiment: the place and the remedy.

use rumba_results::record::{TrialPart, TrialPlan};

use super::testing::registry;
use super::*;
use crate::host::allowed_cpus;

mod ab;
mod asserts;
mod client_steps;
mod cpus;
mod likely;
mod memory;
mod names;
mod rate;
mod repeats;

const GOOD: &str = r#"
name = "tiers"
[workload.linkbench]
maxid1 = 1_000
[common]
cache = "16MiB"
[run]
clients = [1, 8]
loop = "2m"
repeats = 2
[[engine]]
name = "rocks"
use = "rocksdb"
compression = "zstd"
settings.page_size = ["4k", "16k"]
settings.log.file_max = "10MB"
"#;

fn read(text: &str) -> Result<Experiment, SpecError> {
    with(text, &[])
}

fn with(text: &str, set: &[&str]) -> Result<Experiment, SpecError> {
    let overrides = Overrides {
        engines: Vec::new(),
        set: set.iter().map(|text| (*text).to_owned()).collect(),
        ..Overrides::default()
    };
    read_text("e.toml", text, &overrides, &registry())
}

/// Replaces a part of the valid experiment and returns place, problem and remedy of the error.
fn mistake(good: &str, bad: &str) -> (String, String, String) {
    assert!(GOOD.contains(good), "{good}");
    let error = read(&GOOD.replacen(good, bad, 1)).unwrap_err();
    (error.place().unwrap_or_default(), error.problem.clone(), error.remedy.clone())
}

#[test]
fn a_list_makes_an_engine_of_each_value_and_clients_make_trials() {
    let experiment = read(GOOD).unwrap();
    let names: Vec<_> = experiment.engines.iter().map(|engine| engine.name.as_str()).collect();
    assert_eq!(names, ["rocks[page_size=4k]", "rocks[page_size=16k]"]);
    assert_eq!(experiment.engines[0].cache, 16 << 20);
    assert_eq!(experiment.engines[0].settings.bytes("log.file_max"), Some(10 << 20));
    let trials = crate::plan::plan(&experiment, &registry());
    let trials = || trials.iter().filter(|trial| trial.part != TrialPart::Load);
    assert_eq!(trials().count(), 8);
    let order: Vec<_> = trials().map(|t| (t.repeat, t.clients, t.engine.name.clone())).take(5).collect();
    assert_eq!(order[0], (1, 1, "rocks[page_size=4k]".into()));
    assert_eq!(order[1], (1, 1, "rocks[page_size=16k]".into()), "A B A B, not A A B B");
    assert_eq!(order[2], (1, 8, "rocks[page_size=4k]".into()));
    assert_eq!(order[4], (2, 1, "rocks[page_size=16k]".into()), "what a trial leaves behind meets each of them");
}

#[test]
fn wrong_options_are_refused_with_what_to_write() {
    for (set, part) in [
        (&["loops"][..], "write --set key=value"),
        (&["loop=fast"], ""),
        (&["clients=4,4"], "clients has 4 twice"),
        (&["verify=acid"], "has no test of transaction guarantees"),
        (&["verify=most"], "\"acid\""),
        (&["crash=1s"], "it needs verify = \"acid\""),
        (&["age=0s"], "leave it out"),
        (&["warmup=20s", "warmup_most=10s"], "warmup_most is 10 s, shorter than the warmup of 20 s"),
        (&["interval=5ms"], "give one from 100 ms to 60 s, or leave it out for 1 s"),
        (&["stall=1ms"], "a trial would fail after"),
        (&["stall=4999ms"], "\"0s\""),
        (&["starts=2", "repeats_from=kept"], "the repeats are themselves starts of one load"),
        (&["starts=2", "rate=max(p99 < 10ms)"], "with its own probes"),
        (&["starts=0"], "starts"),
        (&["until_decided=true", "repeats=5"], "needs more than 5 repeats, and repeats is 5"),
        (&["until_decided=true", "repeats=8", "rate=max(p99 < 10ms)"], "exclude each other"),
        (&["until_decided=maybe", "repeats=8"], "until_decided"),
        (&["repeats_from=kpet"], "`kept`"),
    ] {
        let error = with(GOOD, set).unwrap_err();
        assert!(error.place().unwrap().starts_with("--set "), "{error}");
        assert!(format!("{}; {}", error.problem, error.remedy).contains(part), "{error}");
    }
    assert!(!with(GOOD, &["verify=false"]).unwrap().run.verify);
    let run = with(GOOD, &["verify=true", "stall=5s"]).unwrap().run;
    assert_eq!((run.verify, run.crash_s, run.stall_s), (true, None, 5.0));
    let run = with(GOOD, &["warmup=20s", "warmup_most=3m", "interval=150ms", "stall=0s"]).unwrap().run;
    assert_eq!((run.warmup_most_s, run.interval_s, run.stall_s), (Some(180.0), 0.15, 0.0));
    let run = with(GOOD, &["clients=3,8..32 x2"]).unwrap().run;
    assert_eq!((&run.clients[..], run.warmup_most_s, run.interval_s), (&[3, 8, 16, 32][..], None, 1.0));
}

fn planned(set: &[&str]) -> Vec<TrialPlan> {
    crate::plan::plan(&with(GOOD, set).unwrap(), &registry())
}

/// The directories of the trials, and the load that each starts from.
fn reported(trials: &[TrialPlan]) -> Vec<(String, Option<u32>)> {
    trials.iter().map(|trial| (crate::plan::directory(trial), trial.loaded_by)).collect()
}

#[test]
fn every_repeat_loads_before_its_trials_and_loads_take_turns() {
    let repeat_1 = [
        ("001-rocks.4k-load", None),
        ("002-rocks.16k-load", None),
        ("003-rocks.4k-c1-r1", Some(1)),
        ("004-rocks.16k-c1-r1", Some(2)),
        ("005-rocks.4k-c8-r1", Some(1)),
        ("006-rocks.16k-c8-r1", Some(2)),
    ];
    let repeat_2 = [
        ("007-rocks.16k-load2", None),
        ("008-rocks.4k-load2", None),
        ("009-rocks.16k-c1-r2", Some(7)),
        ("010-rocks.4k-c1-r2", Some(8)),
        ("011-rocks.16k-c8-r2", Some(7)),
        ("012-rocks.4k-c8-r2", Some(8)),
    ];
    let expected = [repeat_1, repeat_2].concat().into_iter().map(|(name, load)| (name.to_owned(), load));
    assert_eq!(reported(&planned(&[])), expected.collect::<Vec<_>>());
    let single = planned(&["clients=1"]);
    assert!(single.len() == 4 && single.iter().all(|trial| trial.part == TrialPart::Whole), "each loads in its trial");
}

#[test]
fn engines_that_differ_in_throttling_start_from_one_load() {
    let plan = |set: &[&str]| crate::plan::plan(&with(GOOD, set).unwrap(), &registry());
    let loads = |trials: &[TrialPlan]| {
        let loads = trials.iter().filter(|trial| trial.part == TrialPart::Load);
        loads.map(|load| (load.engine.name.clone(), load.engine.limits.storage.clone().unwrap())).collect::<Vec<_>>()
    };
    let tiers = ["storage.tier=fast-ssd,disk-array", "storage.backing=tmpfs", "repeats=1"];
    let throttled = loads(&plan(&tiers));
    assert_eq!(throttled.len(), 4, "two engines with two kinds of storage each");
    assert!(throttled.iter().all(|(_, storage)| storage.is_throttled()));

    let trials = plan(&[&tiers[..], &["storage.throttle_load=false"]].concat());
    let free = loads(&trials);
    let names: Vec<_> = free.iter().map(|(name, _)| name.as_str()).collect();
    let of_tier = |page: &str| format!("rocks[storage.tier=fast-ssd,page_size={page}]");
    assert_eq!(names, [of_tier("4k"), of_tier("16k")], "one for each size of pages");
    assert!(free.iter().all(|(_, storage)| !storage.is_throttled()), "{free:?}");
    for run in trials.iter().filter(|trial| trial.part == TrialPart::Run) {
        let of_pages = if run.engine.name.ends_with("page_size=4k]") { 1 } else { 2 };
        assert_eq!(run.loaded_by, Some(of_pages), "{}", run.engine.name);
        assert!(run.engine.limits.storage.as_ref().unwrap().is_throttled());
    }
    let single = plan(&[&tiers[..], &["storage.throttle_load=false", "clients=1"]].concat());
    assert_eq!(loads(&single).len(), 2, "a single trial would throttle its load");
}

#[test]
fn aging_uses_the_most_clients() {
    let trials = crate::plan::plan(&with(GOOD, &["age=3m"]).unwrap(), &registry());
    let (load, run) = (&trials[0], &trials[2]);
    assert_eq!((load.part, load.clients, load.run.age_s), (TrialPart::Load, 8, Some(180.0)));
    assert_eq!((run.part, run.clients), (TrialPart::Run, 1));
    assert_eq!(read(GOOD).unwrap().run.age_s, None);
}

#[test]
fn resumed_run_loads_again_only_where_data_is_gone() {
    let plans = planned(&["repeats_from=kept"]);
    // The loads and one trial of each engine have ended; the data of the first still exists.
    let left = crate::plan::rest(&plans, |trial| trial.number <= 4, |load| load == 1, |_| false);
    let directories: Vec<_> = left.iter().map(crate::plan::directory).collect();
    assert_eq!(directories[..3], ["011-rocks.16k-load2", "005-rocks.4k-c8-r1", "006-rocks.16k-c8-r1"]);
    let loads: Vec<_> = left[1..].iter().map(|trial| trial.loaded_by).collect();
    assert_eq!(loads, [1, 11, 11, 1, 11, 1].map(Some));
    // No trial had ended: all keep their numbers.
    assert_eq!(crate::plan::rest(&plans, |_| false, |_| false, |_| false), plans);
    assert!(crate::plan::rest(&plans, |_| true, |_| false, |_| false).is_empty(), "no trial waits for a load");
    // The first load's record is lost, and a finished trial started from it.
    let left = crate::plan::rest(&plans, |trial| [2, 3].contains(&trial.number), |_| false, |load| load == 1);
    let directories: Vec<_> = left.iter().map(crate::plan::directory).collect();
    assert_eq!(directories[..3], ["011-rocks.4k-load2", "012-rocks.16k-load2", "004-rocks.16k-c1-r1"]);
    assert!(left.iter().all(|trial| trial.loaded_by.is_none_or(|load| load > 10)), "none is of the lost load");
}

#[test]
fn repeated_load_stays_before_the_trials_of_its_repeat() {
    let plans = planned(&[]);
    // The first repeat, and of the second the loads and one trial, have ended; the data of all loads is gone.
    let left = crate::plan::rest(&plans, |trial| trial.number <= 9, |_| false, |load| load == 7);
    let expected = [
        ("013-rocks.16k-load3", None),
        ("014-rocks.4k-load3", None),
        ("010-rocks.4k-c1-r2", Some(14)),
        ("011-rocks.16k-c8-r2", Some(13)),
        ("012-rocks.4k-c8-r2", Some(14)),
    ];
    assert_eq!(reported(&left), expected.map(|(name, load)| (name.to_owned(), load)));
    // The second repeat had not begun: its loads keep their places and numbers.
    let left = crate::plan::rest(&plans, |trial| trial.number <= 6, |_| false, |_| false);
    assert_eq!(left, plans[6..]);
}

/// Guards also against finding an unsupported dialect only after the server has started.
#[test]
fn mistakes_are_refused_at_their_place_with_a_remedy() {
    let run_with = |limit: &str| format!("[limits]\n{limit}\n[run]");
    let cpus =
        format!("has CPUs that rumba may not use here: 1023; name CPUs of {}, or start", allowed_cpus().unwrap());
    for (good, bad, at, parts) in [
        ("repeats = 2", "repeat = 2", "e.toml:10:1", &["`repeat`; did you mean `repeats`?"][..]),
        ("settings.page_size", "settings.pagesize", "e.toml:15:10", &["did you mean `page_size`?"]),
        ("maxid1 = 1_000", "maxid = 1_000", "e.toml:4:1", &["did you mean `maxid1`?"]),
        ("\"2m\"", "\"2 parsecs\"", "e.toml:9:8", &["`parsecs` is not a unit of time", "\"30s\""]),
        ("\"2m\"", "120", "e.toml:9:8", &["\"120s\""]),
        ("\"16MiB\"", "\"16MIPS\"", "e.toml:6:9", &["MIPS"]),
        ("clients = [1, 8]", "clients = [1, 8", "e.toml:", &[]),
        ("use = \"rocksdb\"", "use = \"absent\"", "", &["libpaper.so", "apt-get install libpaper"]),
        ("use = \"rocksdb\"", "use = \"rocksbd\"", "", &["rocksdb"]),
        ("\"zstd\"", "\"brotli\"", "", &["brotli", "none, zstd"]),
        ("compression = \"zstd\"", "server = \"mysql@9.7\"", "e.toml:14:10", &["rocksdb is no server"]),
        (
            "use = \"rocksdb\"",
            "use = \"innodb\"",
            "e.toml:13:7",
            &[
                "linkbench does not support innodb, whose sessions use SQL of MySQL",
                "linkbench serves: keys and values, SQL of SQLite",
            ],
        ),
        (
            "use = \"rocksdb\"",
            "use = \"plain\"",
            "e.toml:13:7",
            &["linkbench needs transactions of several keys, which plain does not have; take the engine out"],
        ),
        ("[run]", &run_with("memroy = \"1GiB\""), "e.toml:8:1", &["did you mean `memory`?"]),
        ("[run]", &run_with("storage = \"fastssd\""), "", &["did you mean \"fast-ssd\"?"]),
        ("[run]", &run_with("storage = { iops = 1, size = \"data/0\" }"), "e.toml:8:", &["data/0"]),
        ("[run]", &run_with("memory = \"1k\""), "", &["too little"]),
        ("[run]", &run_with("cpus = \"1023\""), "e.toml:8:8", &["limits.cpus = 1023", &cpus]),
        (
            "[run]",
            &run_with("cpus = \"two\""),
            "e.toml:8:8",
            &["limits.cpus: `two` is not the number of a CPU", "\"0,2-3\""],
        ),
        (
            "clients = [1, 8]",
            "clients = [1, 8, 1]",
            "e.toml:8:18",
            &["clients has 1 twice; give each number once; repeats = 2 or more runs it again"],
        ),
        ("clients = [1, 8]", "clients = [8, \"1..64 x2\"]", "", &["clients has 8 twice"]),
        (
            "clients = [1, 8]",
            "clients = \"1..64\"",
            "e.toml:8:11",
            &["invalid clients `1..64`; expected a number, a list such as [1, 8], or a range", "\"1..1024 x2\""],
        ),
        ("clients = [1, 8]", "clients = [[\"0s\", 1], [\"5h\", 2]]", "e.toml:8:23", &["a step at 18000 s"]),
    ] {
        let (place, problem, remedy) = mistake(good, bad);
        let reported = format!("{problem}; {remedy}");
        assert!(place.starts_with(at), "{bad}: {place}");
        assert!(parts.iter().all(|part| reported.contains(part)), "{bad}: {reported}");
    }
    read(&GOOD.replacen("use = \"rocksdb\"", "use = \"sqlite\"", 1)).unwrap();
    let text = GOOD.to_owned() + "[[engine]]\nuse = \"myrocks\"\nlibrary = \"libmine.so\"\n";
    assert_eq!(read(&text).unwrap_err().problem, "myrocks loads no library");
}

#[test]
fn limits_hold_for_every_engine_unless_it_has_its_own() {
    let limits = "[limits]\nmemory = \"1GiB\"\nstorage = [\"fast-ssd\", \"disk-array\"]\n[run]";
    let experiment = read(&GOOD.replacen("[run]", limits, 1)).unwrap();
    let names: Vec<_> = experiment.engines.iter().map(|engine| engine.name.as_str()).collect();
    let made =
        ["fast-ssd,page_size=4k", "fast-ssd,page_size=16k", "disk-array,page_size=4k", "disk-array,page_size=16k"];
    let made = made.map(|differs| format!("rocks[storage={differs}]"));
    assert_eq!(names, made, "a list of storages makes an engine of each");
    let last = &experiment.engines[3].limits;
    assert_eq!(last.memory_bytes, Some(1 << 30));
    assert_eq!(last.storage.as_ref().and_then(|storage| storage.iops), Some(1000));
    let own = GOOD.replacen("[run]", limits, 1).replacen(
        "use = \"rocksdb\"",
        "use = \"rocksdb\"\nlimits.storage = \"slow-ssd\"",
        1,
    );
    let experiment = read(&own).unwrap();
    assert_eq!(experiment.engines.len(), 2);
    assert_eq!(experiment.engines[0].limits.memory_bytes, Some(1 << 30), "the experiment's memory stays");
    let set = ["limits.memory=2GiB", "storage=slow-ssd", "limits.storage.size=1GiB"];
    let storage = with(&GOOD.replacen("[run]", limits, 1), &set).unwrap().engines[0].limits.storage.clone().unwrap();
    assert_eq!((storage.iops, storage.size_bytes), (Some(10_000), 1 << 30));
}

#[test]
fn sizes_may_grow_with_the_data() {
    let limits = "[limits]\nmemory = \"data/3\"\nstorage.size = \"data*4\"\n[run]";
    let engine = with(&GOOD.replacen("[run]", limits, 1), &["cache=data / 16"]).unwrap().engines.remove(0);
    // The test workload has 1 GiB of data; a third of it is rounded up to whole MiB.
    assert_eq!(engine.cache, 64 << 20);
    assert_eq!(engine.limits.memory_bytes, Some(342 << 20));
    assert_eq!(engine.limits.storage.map(|storage| storage.size_bytes), Some(4 << 30));
}

#[test]
fn set_reaches_every_key_by_its_shortest_name() {
    let experiment = with(
        GOOD,
        &["maxid1=77", "clients=2", "loop=20s", "cache=1GiB", "rocks.page_size=8k", "rocks.compression=none"],
    )
    .unwrap();
    assert_eq!(experiment.workload_settings.int("maxid1"), Some(77));
    assert_eq!((experiment.run.clients.as_slice(), experiment.run.loop_s), (&[2][..], 20.0));
    assert_eq!(experiment.engines.len(), 1, "a single value undoes the list");
    assert_eq!(experiment.engines[0].cache, 1 << 30);
    assert_eq!(experiment.engines[0].compression.as_deref(), Some("none"));
    let lists = with(GOOD, &["clients=1,2,4"]).unwrap();
    assert_eq!(lists.run.clients, [1, 2, 4]);
}

/// Guards `--resume`, which would otherwise plan engines that the run does not have.
#[test]
fn the_experiment_as_run_has_no_engine_that_was_not_chosen() {
    let overrides = Overrides { engines: vec!["rocks.16k".into()], ..Overrides::default() };
    let experiment = read_text("e.toml", GOOD, &overrides, &registry()).unwrap();
    assert_eq!(read(&experiment.as_run).unwrap(), experiment);
}

#[test]
fn an_engine_that_a_list_makes_is_chosen_by_its_own_name() {
    let read = |engines: &[&str]| {
        let engines = engines.iter().map(|name| (*name).to_owned()).collect();
        read_text("e.toml", GOOD, &Overrides { engines, ..Overrides::default() }, &registry())
    };
    let names = |experiment: Experiment| experiment.engines.into_iter().map(|e| e.name).collect::<Vec<_>>();
    for written in ["rocks[page_size=16k]", "rocks.16k"] {
        assert_eq!(names(read(&[written]).unwrap()), ["rocks[page_size=16k]"], "{written}");
    }
    assert_eq!(names(read(&["rocks"]).unwrap()), ["rocks[page_size=4k]", "rocks[page_size=16k]"]);
    // The settings of its entry are kept: it is no new engine of that name.
    assert_eq!(read(&["rocks.16k"]).unwrap().engines[0].settings.bytes("log.file_max"), Some(10 << 20));
    for other in ["rocks.64k", "rocks[page_size=64k]"] {
        let error = read(&[other]).unwrap_err();
        assert!(error.problem.contains(other) && error.remedy.contains("rocks[page_size=16k]"), "{error:?}");
    }
}

#[test]
fn servers_in_common_make_variants_of_server_engines_alone() {
    let servers = "[common]\nserver = [\"mariadb@10.11\", \"mysql@9.7\"]";
    let text = GOOD.replace("[common]", servers) + "[[engine]]\nuse = \"myrocks\"\n";
    let engines = read(&text).unwrap().engines;
    let named: Vec<_> = engines.iter().map(|engine| (engine.name.as_str(), engine.server.as_deref())).collect();
    let expected = [
        ("rocks[page_size=4k]", None),
        ("rocks[page_size=16k]", None),
        ("myrocks[server=mariadb@10.11]", Some("mariadb@10.11")),
        ("myrocks[server=mysql@9.7]", Some("mysql@9.7")),
    ];
    assert_eq!(named, expected);
}

const CLAIM: &str = "[[claim]]\ntext = \"smaller pages write less\"\npublished = 1.9\n\
    holds = 'wkb_per_op(\"rocks.16k\", 8) >= 1.5 * wkb_per_op(\"rocks.4k\", 8)'\n";

#[test]
fn claims_are_parsed_checked_and_kept_in_experiment_as_run() {
    let experiment = read(&(GOOD.to_owned() + CLAIM)).unwrap();
    assert_eq!(experiment.claims.len(), 1);
    assert_eq!(experiment.claims[0].published, Some(1.9));
    assert_eq!(claims_of(&experiment.as_run), experiment.claims);
    let whole = CLAIM.replace("rocks.16k", "rocks[page_size=16k]").replace("rocks.4k", "rocks[page_size=4k]");
    assert_eq!(read(&(GOOD.to_owned() + &whole)).unwrap().claims.len(), 1, "and by the whole names");
}

#[test]
fn a_mistake_in_a_claim_is_shown_at_its_place_in_the_expression() {
    let claim = |good: &str, bad: &str| read(&[GOOD, &CLAIM.replacen(good, bad, 1)].concat()).unwrap_err();
    let error = claim("\"rocks.4k\", 8", "\"rocks.8k\", 8");
    assert_eq!(error.place().as_deref(), Some("e.toml:20:57"));
    assert!(error.problem.contains("rocks.8k"), "{}", error.problem);
    assert!(claim("holds =", "hold =").remedy.contains("holds"));
    assert!(claim("text =", "source =").problem.contains("no `text`"));
    assert!(claim(">= 1.5 *", "+").problem.contains("not an inequality"));
}

#[test]
fn a_claim_about_an_engine_that_was_not_chosen_is_left_out() {
    let overrides = Overrides { engines: vec!["rocks.4k".into()], ..Overrides::default() };
    let experiment = read_text("e.toml", &(GOOD.to_owned() + CLAIM), &overrides, &registry()).unwrap();
    assert!(experiment.claims.is_empty());
}

/// Guards against a published experiment that cannot be run with other numbers of clients, because its claims name its own.
#[test]
fn claims_whose_clients_or_engines_were_changed_are_left_out_with_a_warning() {
    let text = GOOD.to_owned() + CLAIM;
    for set in ["clients=4,16", "clients=4", "rocks.compression=none,zstd"] {
        let experiment = with(&text, &[set]).unwrap();
        assert!(experiment.claims.is_empty(), "{set}");
        let [warning] = experiment.left_out.as_slice() else { panic!("{set}: {:?}", experiment.left_out) };
        assert_eq!(warning.code, "claims-left-out");
        assert!(warning.message.contains("smaller pages write less"), "{set}: {}", warning.message);
    }
    assert!(with(&text, &["loop=1m"]).unwrap().left_out.is_empty());
    // A mistake in the file stays one if another key is set.
    for (wrong, problem) in [("4k\", 9", "no trial has 9 clients"), ("8k\", 8", "no engine `rocks.8k`")] {
        let wrong = text.replace("4k\", 8", wrong);
        assert!(with(&wrong, &["loop=1m"]).unwrap_err().problem.contains(problem), "{problem}");
    }
}

const OPTIONAL: &str = "[[engine]]\nname = \"newer\"\nuse = \"absent\"\noptional = true\n";

#[test]
fn missing_optional_engine_is_reported_and_dropped_with_claims() {
    let about = CLAIM.replace("rocks.16k", "newer");
    let experiment = read(&[GOOD, OPTIONAL, CLAIM, &about].concat()).unwrap();
    assert_eq!(experiment.engines.len(), 2);
    let [warning] = experiment.left_out.as_slice() else { panic!("{:?}", experiment.left_out) };
    assert!(warning.message.starts_with("newer is left out") && warning.message.contains("libpaper.so"));
    assert!(warning.remedy.contains("apt-get install libpaper"), "{}", warning.remedy);
    assert_eq!(experiment.claims.len(), 1);
    assert_eq!(claims_of(&experiment.as_run), experiment.claims, "a report judges what was judged");
}

#[test]
fn suite_claim_drops_with_missing_engine_but_not_unknown_test() {
    let suite = GOOD.replace("maxid1 = 1_000", "suite = true");
    let claim = |engine: &str| CLAIM.replace("rocks.16k", engine);
    let [here, absent] = ["rocks.16k/reads", "newer/writes"].map(claim);
    let experiment = read(&[&suite, OPTIONAL, &here, &absent].concat()).unwrap();
    assert_eq!(experiment.claims.len(), 1);
    assert!(read(&[&suite, OPTIONAL, &claim("newer/others")].concat()).unwrap_err().problem.contains("newer/others"));
}

/// Guards against one median for two scripts of one name, as if they were repeats.
#[test]
fn two_tests_of_one_name_are_refused() {
    let (place, problem, remedy) = mistake("maxid1 = 1_000", "suite_again = true");
    assert_eq!(
        (place.as_str(), problem.as_str()),
        ("e.toml:3:11", "two of its tests are called `reads`, so rumba would report them as repeats of one")
    );
    assert!(remedy.contains("repeats = 2"), "{remedy}");
    assert!(read(&GOOD.replace("maxid1 = 1_000", "suite = true")).is_ok());
}

#[test]
fn missing_engine_is_refused_if_required_or_alone() {
    let needed = OPTIONAL.replace("optional = true", "optional = false");
    assert!(read(&[GOOD, &needed].concat()).unwrap_err().problem.contains("cannot run here"));
    let alone = Overrides { engines: vec!["newer".into()], ..Overrides::default() };
    let error = read_text("e.toml", &[GOOD, OPTIONAL].concat(), &alone, &registry()).unwrap_err();
    assert!(error.problem.contains("newer is left out") && error.remedy.contains("libpaper"), "{error:?}");
}

#[test]
fn a_password_in_an_option_is_not_repeated() {
    let origin = Origin::Option("--set server=mysql://root:secret@host:3306/db".to_owned());
    let place = SpecError::new(&origin, "wrong", "right").place().unwrap();
    assert_eq!(place, "--set server=mysql://root:***@host:3306/db");
    let without = Origin::Option("--set server=mysql://root@host:3306/db".to_owned());
    assert_eq!(SpecError::new(&without, "wrong", "right").place().unwrap(), "--set server=mysql://root@host:3306/db");
    // Guards against repeating a password in a parameter, or in a DSN without its scheme.
    for (option, shown) in [
        ("--set server=mysql://me@/db?socket=/s&password=secret", "--set server=mysql://me@/db?socket=/s&password=***"),
        ("--set server=me:secret@host/db", "--set server=me:***@host/db"),
        ("--set server=mysql://me:se?cr@et@host/db", "--set server=mysql://me:***@host/db"),
        ("--set server=mysql://me:secret@host/db?password=secret", "--set server=mysql://me:***@host/db?password=***"),
        ("--set clients=300", "--set clients=300"),
    ] {
        let place = SpecError::new(&Origin::Option(option.to_owned()), "wrong", "right").place();
        assert_eq!(place.as_deref(), Some(shown));
    }
}

#[test]
fn a_password_in_a_file_is_blotted_out_where_its_line_is_shown() {
    let text = "name = \"a\"\n[common]\nserver = \"mysql://me:sécret@host/db\"\n# a note: none@all\n";
    let shown = without_passwords(text);
    assert_eq!(shown, "name = \"a\"\n[common]\nserver = \"mysql://me:*******@host/db\"\n# a note: none@all\n");
    assert_eq!(shown.len(), text.len(), "what points at a place in it still does");
}

#[test]
fn an_engine_that_a_list_of_limits_makes_can_be_chosen() {
    let tiers = GOOD.replace("[common]", "[limits]\nstorage = [\"fast-ssd\", \"disk-array\"]\n[common]");
    let overrides = Overrides { engines: vec!["rocks.disk-array.4k".into()], ..Overrides::default() };
    let experiment = read_text("e.toml", &tiers, &overrides, &registry()).unwrap();
    let names: Vec<_> = experiment.engines.iter().map(|engine| engine.name.as_str()).collect();
    assert_eq!(names, ["rocks[storage=disk-array,page_size=4k]"]);
}

#[test]
fn too_few_intervals_for_a_trend_are_warned_once_with_remedy() {
    let warned = |set: &[&str]| {
        let warnings = crate::plan::warnings(&with(GOOD, set).unwrap(), None, &registry());
        let found: Vec<_> = warnings.into_iter().filter(|warning| warning.code == "few-intervals").collect();
        assert!(found.len() < 2, "{found:?}");
        found.into_iter().next().map(|warning| (warning.message, warning.remedy))
    };
    let message = "the loops are 6 intervals long; rumba needs 12 or more to judge whether they were steady";
    let reported = |message: &str, remedy: &str| Some((message.to_owned(), remedy.to_owned()));
    let shorter = "set interval = \"100ms\", or run longer loops";
    assert_eq!(warned(&["loops=2", "loop=3s"]), reported(message, shorter));
    assert_eq!(warned(&["loops=2", "loop=30s", "interval=10s"]), reported(message, shorter));
    let too_short = "the loops are 1 interval long; rumba needs 12 or more to judge whether they were steady";
    assert_eq!(warned(&["loops=1", "loop=500ms"]), reported(too_short, "run longer loops"), "100 ms would be five");
    assert_eq!(warned(&["loops=2", "loop=6s"]), None);
    assert_eq!(warned(&["loops=1", "loop=1200ms", "interval=100ms"]), None, "as the remedy says");
}
