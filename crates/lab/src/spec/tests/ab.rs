//! Guards a user who compares a base with another engine: the same work on both, a counterpart for every engine, and an
//! experiment that can be run again.

use rumba_results::pair::Pair;
use rumba_results::record::TrialPart;

use super::*;
use crate::plan;

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Reads two files as one experiment; both are written to a separate directory.
fn ab(base: &str, other: &str, engines: &[&str], set: &[&str]) -> Result<Experiment, SpecError> {
    let place = tempfile::tempdir().unwrap();
    let files = [("a.toml", base), ("b.toml", other)].map(|(name, text)| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let overrides = Overrides { engines: owned(engines), set: owned(set), ..Overrides::default() };
    of_files(&files[0], &files[1], &overrides, &registry())
}

fn names(experiment: &Experiment) -> Vec<&str> {
    experiment.engines.iter().map(|engine| engine.name.as_str()).collect()
}

fn pairs(experiment: &Experiment) -> Vec<(&str, &str)> {
    experiment.pairs.iter().map(|pair| (pair.base.as_str(), pair.other.as_str())).collect()
}

#[test]
fn two_files_become_one_experiment_that_reads_back_to_itself() {
    let other =
        GOOD.replace("cache = \"16MiB\"", "cache = \"32MiB\"\ndurability = \"sync\"") + "[limits]\nmemory = \"1GiB\"\n";
    let base = GOOD.to_owned() + "[[engine]]\nuse = \"myrocks\"\n";
    let other = other + "[[engine]]\nuse = \"myrocks\"\ncache = \"8MiB\"\n";
    let experiment = ab(&base, &other, &[], &[]).unwrap();
    let of = |side: &str| ["4k", "16k"].map(|page| format!("{side}/rocks[page_size={page}]"));
    let (base, other) = (of("base"), of("other"));
    let (base, other) = (base.each_ref().map(String::as_str), other.each_ref().map(String::as_str));
    assert_eq!(names(&experiment), [&base[..], &other, &["base/myrocks", "other/myrocks"]].concat());
    assert_eq!(pairs(&experiment), [(base[0], other[0]), (base[1], other[1]), ("base/myrocks", "other/myrocks")]);
    assert_eq!(experiment.pairs[0].name(), "rocks[page_size=4k]");
    let caches: Vec<u64> = experiment.engines.iter().map(|engine| engine.cache >> 20).collect();
    assert_eq!(caches, [16, 16, 32, 32, 16, 8], "each has what is common in its own file");
    assert_eq!(experiment.engines[2].limits.memory_bytes, Some(1 << 30));
    assert_eq!(experiment.engines[0].limits.memory_bytes, None);
    assert_eq!(read(&experiment.as_run).unwrap(), experiment);
    assert_eq!(pairs_of(&experiment.as_run), experiment.pairs);
    let plans = plan::plan(&experiment, &registry());
    let turns = |repeat| -> Vec<&str> {
        let repeats = plans.iter().filter(|plan| plan.repeat == repeat && plan.part != TrialPart::Load);
        repeats.map(|plan| plan.engine.name.as_str()).collect()
    };
    let (there, mut back) = (turns(1), turns(2));
    assert_eq!(there[..6], names(&experiment));
    assert_eq!((&there[..6], &back[..6]), (&there[6..], &back[6..]), "of 1 and of 8 clients");
    back.reverse();
    assert_eq!(there, back, "A B B A");
    assert!(plan::directory(&plans[0]).starts_with("001-base_rocks.4k-"), "{}", plan::directory(&plans[0]));
}

#[test]
fn omitted_repeats_are_as_many_as_a_verdict_needs() {
    let plain = GOOD.replace("repeats = 2\n", "");
    assert_eq!(ab(&plain, &plain, &[], &[]).unwrap().run.repeats, 4);
    assert_eq!(ab(&plain, &plain, &[], &["repeats=6"]).unwrap().run.repeats, 6);
    let warned = |experiment: &Experiment| {
        let warnings = plan::warnings(experiment, None, &registry());
        warnings.iter().any(|warning| warning.code == "few-repeats")
    };
    assert!(warned(&ab(GOOD, GOOD, &[], &[]).unwrap()), "two repeats decide nothing");
    assert!(!warned(&ab(&plain, &plain, &[], &[]).unwrap()) && !warned(&read(GOOD).unwrap()));
}

#[test]
fn other_differences_are_named_with_both_values() {
    let wrong = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        let error = ab(GOOD, &GOOD.replacen(from, to, 1), &[], &[]).unwrap_err();
        assert!(error.place().unwrap().contains("b.toml"), "{error:?}");
        (error.problem, error.remedy)
    };
    for (from, to, key, values) in [
        ("maxid1 = 1_000", "maxid1 = 2_000", "workload.linkbench.maxid1", ("1000", "2000")),
        ("loop = \"2m\"", "loop = \"3m\"", "run.loop", ("2m", "3m")),
        ("clients = [1, 8]", "clients = [1, 4]", "run.clients", ("1, 8", "1, 4")),
        ("repeats = 2", "loops = 7\nrepeats = 2", "run.loops", ("not given", "7")),
        ("repeats = 2\n", "", "run.repeats", ("2", "not given")),
        ("[run]", "[run]\nload_clients = 777", "run.load_clients", ("not given", "777")),
    ] {
        let (problem, remedy) = wrong(from, to);
        assert!(problem.starts_with(&format!("{key} is {} in ", values.0)), "{problem}");
        assert!(problem.contains(&format!(", and {} in ", values.1)), "{problem}");
        assert!(remedy.contains("--set"), "{remedy}");
    }
    // Values that are written differently but equal are no difference.
    let same = GOOD.replace("\"2m\"", "\"120s\"").replace("maxid1 = 1_000", "");
    assert!(ab(GOOD, &same, &[], &[]).is_ok());
    assert!(ab(GOOD, &GOOD.replace("\"2m\"", "\"3m\""), &[], &["loop=1s"]).is_ok(), "--set holds for both");
}

#[test]
fn unmatched_engine_is_refused_unless_each_side_has_one() {
    let more = GOOD.to_owned() + "[[engine]]\nuse = \"myrocks\"\n";
    let error = ab(GOOD, &more, &[], &[]).unwrap_err();
    assert_eq!(error.problem, "myrocks is only in the second file, so it has no counterpart");
    assert_eq!(pairs(&ab(GOOD, &more, &["rocks"], &[]).unwrap()).len(), 2);
    let one = ab(GOOD, &more, &["base/rocks.4k", "other/myrocks"], &[]).unwrap();
    assert_eq!(pairs(&one), [("base/rocks[page_size=4k]", "other/myrocks")]);
    assert_eq!((names(&one).len(), one.pairs[0].name().as_str()), (2, "myrocks over rocks[page_size=4k]"));
    assert_eq!(read(&one.as_run).unwrap(), one);
}

#[test]
fn an_option_may_be_for_one_side() {
    let set = ["other/cache=1GiB", "base/rocks.log.file_max=20MB", "loops=1"];
    let experiment = ab(GOOD, GOOD, &["rocks.4k"], &set).unwrap();
    let [base, other] = &experiment.engines[..] else { panic!("{:?}", experiment.engines) };
    assert_eq!((base.cache, other.cache, experiment.run.loops), (16 << 20, 1 << 30, 1));
    let file_max = |engine: &EngineConfig| engine.settings.bytes("log.file_max");
    assert_eq!((file_max(base), file_max(other)), (Some(20 << 20), Some(10 << 20)));
}

#[test]
fn claims_stay_with_the_files() {
    let experiment = ab(&(GOOD.to_owned() + CLAIM), GOOD, &[], &[]).unwrap();
    assert!(experiment.claims.is_empty() && claims_of(&experiment.as_run).is_empty());
}

#[test]
fn engines_of_one_experiment_are_compared_in_turns() {
    let against = |engines: &[&str], against: &[&str], set: &[&str]| {
        let overrides = Overrides { engines: owned(engines), against: owned(against), set: owned(set) };
        of_workload("linkbench", &overrides, &registry())
    };
    let one = against(&["rocksdb.zstd"], &["rocksdb.none"], &[]).unwrap();
    assert_eq!(names(&one), ["rocksdb.none", "rocksdb.zstd"], "the base comes first");
    assert_eq!(one.engines[1].compression.as_deref(), Some("zstd"));
    assert_eq!(one.pairs, [Pair { base: "rocksdb.none".into(), other: "rocksdb.zstd".into() }]);
    assert_eq!((one.pairs[0].name().as_str(), one.run.repeats), ("rocksdb.zstd over rocksdb.none", 4));
    assert_eq!(read(&one.as_run).unwrap(), one);

    let set = ["rocksdb.page_size=4k,8k,16k"];
    let [small, middle, large] = ["rocksdb[page_size=4k]", "rocksdb[page_size=8k]", "rocksdb[page_size=16k]"];
    let variants = against(&["rocksdb.4k", large], &["rocksdb.8k"], &set).unwrap();
    assert_eq!(pairs(&variants), [(middle, small), (middle, large)]);
    assert_eq!(read(&variants.as_run).unwrap(), variants);
    let two = against(&["rocksdb.4k", "rocksdb.16k"], &["rocksdb.8k", "myrocks"], &set).unwrap();
    assert_eq!(pairs(&two), [(middle, small), ("myrocks", large)]);

    let problem = |error: Result<Experiment, SpecError>| error.unwrap_err().problem;
    assert_eq!(problem(against(&["rocksdb"], &["myrocks"], &set)), "no engine that runs here is called `rocksdb`");
    assert_eq!(problem(against(&["rocksdb"], &["rocksdb"], &[])), "rocksdb is to be compared with itself");
    let uneven = against(&["rocksdb.zstd", "rocksdb.none", "rocksdb"], &["myrocks", "myrocks.zstd"], &[]);
    assert_eq!(problem(uneven), "3 engines against 2");
    assert!(problem(against(&["rocksdb"], &["nothing"], &[])).contains("unknown engine `nothing`"));
}

#[test]
fn run_of_some_engines_compares_the_remaining_pairs() {
    let both = ab(GOOD, GOOD, &[], &[]).unwrap();
    let overrides =
        Overrides { engines: owned(&["base/rocks.4k", "other/rocks.4k", "base/rocks.16k"]), ..Overrides::default() };
    let some = read_text("e.toml", &both.as_run, &overrides, &registry()).unwrap();
    assert_eq!(pairs(&some), [("base/rocks[page_size=4k]", "other/rocks[page_size=4k]")]);
    assert_eq!(read(&some.as_run).unwrap(), some);
    let first = "other = [\"other/rocks[page_size=4k]\"";
    assert!(both.as_run.contains(first), "{}", both.as_run);
    let wrong = both.as_run.replacen(first, "other = [\"other/rocks.5k\"", 1);
    assert_eq!(read(&wrong).unwrap_err().problem, "no engine that runs here is called `other/rocks.5k`");
    let uneven = both.as_run.replacen(&format!("{first}, "), "other = [", 1);
    assert_eq!(read(&uneven).unwrap_err().problem, "[ab] has 2 engines as base and 1 as other");
}
