//! The opening sentences must say the same as the verdicts, and no more.

use crate::support::compare::summarise;
use crate::support::ladder::suite;
use crate::support::synthetic::{BTREE, COPY_ON_WRITE, LSM, Plan, Shape, results, sample};
use rumba_engine_api::common::{OverriddenSettings, Own};
use rumba_engine_api::engine::{EngineConfig, EngineFacts};
use rumba_engine_api::parity::Reads;
use rumba_engine_api::setting::Value;
use rumba_report::{Opening, html, opening};
use rumba_results::metric::Metric;
use rumba_results::record::{PhaseKind, Status};
use rumba_results::results::Results;
use rumba_results::search::{Percentile, Search, Searched};
use rumba_results::warning::Warning;

const FOUR: Plan = Plan { clients: &[16], repeats: 4, loops: 2, loop_s: 10 };

fn reported(results: &Results) -> Opening {
    opening(results, &summarise(results))
}

#[test]
fn decided_result_is_called_sure_with_factor_and_repeats() {
    let Opening { found, undecided, .. } = reported(&results(&[BTREE, LSM], FOUR));
    let wanted = "rocksdb.none does 48% more operations per second than wiredtiger.snappy and writes 1/8.1 as much per \
                  operation as it, with 16 clients (4 repeats, each from its own load): sure.";
    assert_eq!(found, wanted);
    assert!(undecided.starts_with("Every headline is decided against wiredtiger.snappy"), "{undecided}");
}

/// The largest finding hid the findings about the other engines.
#[test]
fn each_engine_has_a_sentence_with_throughput_first() {
    let found = reported(&results(&[BTREE, LSM, COPY_ON_WRITE], FOUR)).found;
    let sentences: Vec<&str> = found.split_inclusive(": sure.").collect();
    assert_eq!(sentences.len(), 2, "{found}");
    for (sentence, [engine, largest]) in
        sentences.iter().zip([["rocksdb.none", " writes "], ["lmdb", " space on disk "]])
    {
        let (throughput, other) = (sentence.find(" operations per second "), sentence.find(largest));
        assert!(sentence.trim().starts_with(&format!("{engine} does ")), "{sentence}");
        assert!(throughput < other, "{sentence}");
    }
    let mut many: Vec<Shape> = vec![BTREE];
    many.extend(["a", "b", "c", "d", "e", "f"].map(|name| Shape { name, ..LSM }));
    let found = reported(&results(&many, FOUR)).found;
    assert!(found.ends_with("The tables have 2 more engines."), "{found}");
}

/// An interrupted run has fewer repeats, or none, of its largest number of clients.
#[test]
fn opening_uses_a_client_count_that_every_engine_finished() {
    let mut results = results(&[BTREE, LSM], Plan { clients: &[1, 16], ..FOUR });
    let Opening { found, undecided, .. } = reported(&results);
    assert!(found.contains(", with 16 clients ("), "{found}");
    let decided = "Every headline is decided against wiredtiger.snappy with 16 clients; ";
    assert!(undecided.starts_with(decided), "{undecided}");
    results.trials.retain(|trial| trial.record.plan.engine.name != LSM.name || trial.record.plan.clients == 1);
    let found = reported(&results).found;
    assert!(found.contains(", with 1 client ("), "{found}");
}

/// The sentence contained the noise of another engine.
#[test]
fn noise_is_that_of_the_pair_and_excess_noise_is_named() {
    let with_noise = |of_lsm: [f64; 4], of_far: [f64; 4]| {
        const FAR: Shape = Shape { name: "far", ..COPY_ON_WRITE };
        let mut results = results(&[BTREE, LSM, FAR], FOUR);
        for record in results.trials.iter_mut().map(|trial| &mut trial.record) {
            let place = record.plan.repeat as usize - 1;
            let rate = match record.plan.engine.name.as_str() {
                "far" => of_far[place],
                name if name == LSM.name => of_lsm[place],
                _ => 1.0 + 0.01 * place as f64,
            };
            record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::Value(100.0 * rate));
        }
        reported(&results).undecided
    };
    let undecided = with_noise([1.0, 1.1, 1.06, 1.04], [9.0, 27.0, 13.0, 18.0]);
    let wanted = "Operations per second: not decided between rocksdb.none and wiredtiger.snappy (repeats of rocksdb.none differ \
                  by 10%); ";
    assert!(undecided.starts_with(wanted), "{undecided}");
    assert!(undecided.contains(" of each would probably decide."), "{undecided}");
    let undecided = with_noise([0.5, 1.42, 1.0, 0.9], [9.0, 27.0, 13.0, 18.0]);
    let wanted = "Operations per second: too noisy to decide here between rocksdb.none and wiredtiger.snappy (repeats of \
                  rocksdb.none differ by 184%).";
    assert!(undecided.starts_with(wanted), "{undecided}");
}

/// The result of a search appeared only below the tables.
#[test]
fn the_highest_rates_that_were_found_come_first() {
    let results = results(&[BTREE, LSM], FOUR);
    let mut summary = summarise(&results);
    let found = |engine: &str, repeat: u32, rate: Option<f64>| Searched {
        engine: engine.to_owned(),
        clients: 16,
        repeat,
        search: Search { percentile: Percentile::P99, limit_ms: 10.0 },
        probes: Vec::new(),
        highest: rate.map_or_else(|| Metric::absent("no rate kept it"), Metric::Value),
        confirmed: true,
        lowest_missed: Metric::absent("none"),
        trial: None,
        ended: true,
    };
    summary.searches = vec![
        found("a", 1, Some(5200.0)),
        found("b", 1, Some(8120.0)),
        found("a", 2, Some(5260.0)),
        found("b", 2, Some(8120.0)),
        found("c", 1, None),
    ];
    let opening = opening(&results, &summary).found;
    let wanted = "With 16 clients, the highest rate that keeps p99 below 10 ms is 5230/s for a (2 searches, 5200 to 5260/s), \
                  8120/s for b (2 searches, 8120 to 8120/s) and unknown for c (no search found one). rocksdb.none ";
    assert!(opening.starts_with(wanted), "{opening}");
}

#[test]
fn a_single_run_is_not_called_sure() {
    let Opening { found, undecided, .. } = reported(&results(&[BTREE, LSM], Plan { repeats: 1, ..FOUR }));
    assert!(found.starts_with("A single repeat decides nothing. rocksdb.none writes "), "{found}");
    assert!(!found.contains("sure"), "{found}");
    assert_eq!(undecided, "A second repeat would show how much the figures vary; set repeats = 4 for a verdict.");
}

#[test]
fn identical_engines_are_reported_as_the_same() {
    const TWIN: Shape = Shape { name: "rocksdb.twin", ..LSM };
    let results = results(&[LSM, TWIN], FOUR);
    let Opening { found, undecided, .. } = reported(&results);
    assert!(found.contains("are the same within 1% in ") && !found.contains(" less "), "{found}");
    assert!(undecided.contains(" (repeats of rocksdb."), "{undecided}");
    assert!(undecided.contains(" between rocksdb.twin and rocksdb.none"), "{undecided}");
}

/// The noise of the repeats of two engines with a significant difference.
const NOISE: [f64; 4] = [1.0, 3.0, 1.5, 2.0];

#[test]
fn undecided_main_percentile_or_small_metric_is_reported() {
    let mut results = results(&[BTREE, LSM], FOUR);
    let noise = |record: &rumba_results::record::Record| NOISE[record.plan.repeat as usize - 1];
    for record in results.trials.iter_mut().map(|trial| &mut trial.record) {
        let ms = Metric::Value(noise(record));
        for op in record.phases.iter_mut().filter_map(|phase| phase.op_types.get_mut("get_node")) {
            op.response.p99_ms = ms.clone();
        }
    }
    let undecided = reported(&results).undecided;
    let wanted = "The p99 of get_node: too noisy to decide here between rocksdb.none and wiredtiger.snappy (repeats of \
                  rocksdb.none differ by 200%).";
    assert_eq!(undecided, wanted, "all others are decided");
    for record in results.trials.iter_mut().map(|trial| &mut trial.record) {
        let reads = Metric::Value(noise(record) / 1000.0);
        record.phases.iter_mut().for_each(|phase| phase.metrics.reads_per_op = reads.clone());
    }
    let undecided = reported(&results).undecided;
    assert!(
        undecided.starts_with("The p99 of get_node: ") && undecided.ends_with(" 1 other headline is undecided."),
        "{undecided}"
    );
}

#[test]
fn percentile_change_alone_is_detected() {
    const SLOWER: Shape = Shape { name: "rocksdb.slower", p99_ms: 10.0 * LSM.p99_ms, ..LSM };
    let Opening { found, .. } = reported(&results(&[LSM, SLOWER], FOUR));
    assert!(found.starts_with("rocksdb.slower has "), "{found}");
    assert!(found.ends_with(": sure alone, but not among 11 verdicts together."), "{found}");
    assert!(found.contains(" times as long a p99 of "), "{found}");
}

/// A figure that may not be judged must not count among the verdicts of a family.
#[test]
fn verdicts_on_corrupt_data_are_counted_separately() {
    let among = |found: &str| Some(found.rsplit_once("not among ")?.1.split_once('.')?.0.to_owned());
    let slower = Shape { name: "rocksdb.slower", p99_ms: 10.0 * LSM.p99_ms, ..LSM };
    let alone = reported(&results(&[LSM, slower], FOUR)).found;
    let mut with_another = results(&[LSM, slower, COPY_ON_WRITE], FOUR);
    let mut of_another = with_another.trials.iter_mut().map(|trial| &mut trial.record);
    let broken = of_another.find(|record| record.plan.engine.name == COPY_ON_WRITE.name).unwrap();
    broken.phases.last_mut().unwrap().checks[0].wrong = 7;
    let summary = summarise(&with_another);
    let another = summary.relative(LSM.name, COPY_ON_WRITE.name, 16).unwrap();
    assert!(another.unsound.is_some() && another.metrics.iter().any(|ratio| ratio.headline && ratio.p.is_some()));
    let found = opening(&with_another, &summary).found;
    assert!(found.starts_with("rocksdb.slower has "), "{found}");
    assert!(among(&alone).is_some() && among(&found) == among(&alone), "{found}");
}

/// Slow storage causes a difference that does not come from the engine.
#[test]
fn engines_that_had_the_same_go_before_one_that_had_not() {
    const FAR: Shape = Shape { name: "lmdb.slow", wkb_per_op: 900.0, ..COPY_ON_WRITE };
    let with_memory_of_far = |mib: u64| {
        let mut results = results(&[BTREE, LSM, FAR], FOUR);
        for trial in &mut results.trials {
            let engine = &mut trial.record.plan.engine;
            engine.durability = rumba_engine_api::engine::Durability::NoSync;
            engine.limits.memory_bytes = Some(if engine.name == FAR.name { mib << 20 } else { 512 << 20 });
        }
        reported(&results)
    };
    let found = with_memory_of_far(512).found;
    assert!(found.starts_with("lmdb.slow does ") && found.contains(" rocksdb.none does "), "{found}");
    let Opening { found, conditions, .. } = with_memory_of_far(64);
    assert!(found.starts_with("rocksdb.none does ") && found.contains(" lmdb.slow does "), "{found}");
    assert!(conditions.starts_with("memory 512.0 MiB / 64.0 MiB · "), "{conditions}");
    let mut restricted = results(&[BTREE, LSM], FOUR);
    for engine in restricted.trials.iter_mut().map(|trial| &mut trial.record.plan.engine) {
        engine.limits.cpus = "0".parse().ok();
        engine.limits.client_cpus = "1".parse().ok().filter(|_| engine.name == LSM.name);
    }
    let conditions = reported(&restricted).conditions;
    assert!(conditions.starts_with("memory the host's · CPUs 0 / 0 (clients 1) · storage "), "{conditions}");
    let mut existing = results(&[BTREE, LSM, FAR], FOUR);
    for engine in existing.trials.iter_mut().map(|trial| &mut trial.record.plan.engine) {
        engine.server = Some("mysql://me@host/lab".to_owned());
    }
    let found = reported(&existing).found;
    assert!(found.starts_with("lmdb.slow does "), "no server has the experiment's durability: {found}");
}

#[test]
fn suite_summary_counts_tests_and_names_none() {
    let Opening { found, .. } = reported(&suite());
    assert_eq!(
        found,
        "With 16 clients, innodb[doublewrite=off] does more operations per second than innodb in 1 of 3 tests, fewer in 1; \
         1 is not decided."
    );
}

#[test]
fn failed_trials_are_reported_before_the_worst_warning() {
    let careful = reported(&sample()).careful;
    assert!(careful.starts_with("Be careful: 1 of 16 trials failed; their figures are missing"), "{careful}");
    let mut few = results(&[BTREE, LSM], FOUR);
    few.warnings = vec![
        Warning::new("turbo-on", "clocks differ", "switch it off"),
        Warning::new("verification-failed", "the data was inconsistent", "look at it"),
    ];
    let careful = reported(&few).careful;
    assert!(careful.starts_with("Be careful: the data was inconsistent"), "{careful}");
}

#[test]
fn a_long_warning_is_cut_at_a_word_and_not_behind_a_comma() {
    let mut long = results(&[BTREE, LSM], FOUR);
    let text = "so many words, ".repeat(40);
    long.warnings = vec![Warning::new("verification-failed", text.as_str(), "look at it")];
    let careful = reported(&long).careful;
    assert!(
        careful.contains("so many words … (") || careful.contains("words, so … (") || careful.contains("so many … ("),
        "{careful}"
    );
    assert!(careful.chars().count() < 400, "{careful}");
}

#[test]
fn single_engine_and_no_engine_are_reported_as_such() {
    let Opening { found, undecided, conditions, .. } = reported(&results(&[LSM], FOUR));
    assert!(found.starts_with("rocksdb.none did ") && found.contains("the median of 4 repeats"), "{found}");
    assert!(undecided.contains("no other engine to compare with"), "{undecided}");
    assert_eq!(conditions, "memory the host's · storage the host's (ext4) · cache 160.0 MiB · durability no-sync");
    let mut none = results(&[LSM], FOUR);
    for trial in &mut none.trials {
        trial.record.status = Status::Interrupted;
        trial.record.phases.clear();
        trial.intervals.clear();
    }
    assert_eq!(reported(&none).found, "No engine finished a loop, so there is no result.");
}

/// The report named the experiment's cache and durability, which the server never received.
#[test]
fn cache_and_durability_of_an_existing_server_are_not_known() {
    let mut results = results(&[BTREE, LSM], FOUR);
    for engine in results.trials.iter_mut().map(|trial| &mut trial.record.plan.engine) {
        engine.server = (engine.name == LSM.name).then(|| "mysql://me@host/lab".to_owned());
    }
    let conditions = reported(&results).conditions;
    let wanted = " · cache 160.0 MiB / not known · durability no-sync / not known";
    assert!(conditions.ends_with(wanted), "{conditions}");
}

/// The report named the common setting for both engines, so that they appeared to have the same value.
#[test]
fn engine_setting_is_named_in_place_of_the_common_one() {
    let mut results = results(&[BTREE, LSM], FOUR);
    let plain = reported(&results).conditions;
    assert!(plain.contains(" · cache 160.0 MiB · durability no-sync"), "{plain}");
    for plan in results.trials.iter_mut().map(|trial| &mut trial.record.plan) {
        if plan.engine.name == LSM.name {
            let (pool, flush) = (Own::new("pool", Some(1 << 30)), Own::new("flush", None));
            plan.engine.settings.0.insert("flush".to_owned(), Value::Text("each second".to_owned()));
            let overruled = OverriddenSettings { cache: Some(pool), durability: Some(flush) };
            plan.facts = plan.facts.take().map(|facts| EngineFacts { overruled, ..facts });
        }
    }
    let conditions = reported(&results).conditions;
    let wanted = " · cache 160.0 MiB / 1.00 GiB (pool) · durability no-sync / flush = each second";
    assert!(conditions.ends_with(wanted), "{conditions}");
    let page = html(&results, &summarise(&results));
    assert!(page.contains(r#""set_by":{"cache":"pool","durability":"flush"}"#), "where each comes from");
    assert!(page.contains(r#""cache_bytes":1073741824,"cache":"1.00 GiB""#), "what is in force");
}

/// Sets the trials' facts and limits by the engine's name.
fn set_up(results: &mut Results, of: impl Fn(&str, &mut EngineConfig, &mut EngineFacts)) {
    for plan in results.trials.iter_mut().map(|trial| &mut trial.record.plan) {
        let name = plan.engine.name.clone();
        of(&name, &mut plan.engine, plan.facts.as_mut().unwrap());
    }
}

/// One engine had 80 MiB of cache, and the other the same and 400 MiB of page cache; the page reported it as the
/// winner.
#[test]
fn same_cache_with_different_memory_is_ranked_by_size_alone() {
    let mut results = results(&[BTREE, LSM, COPY_ON_WRITE], FOUR);
    let fixed = |name: &str, engine: &mut EngineConfig, facts: &mut EngineFacts| {
        facts.reads = Some(if name == BTREE.name { Reads::Direct } else { Reads::Buffered });
        (engine.limits.memory_bytes, engine.cache) = (Some(480 << 20), 80 << 20);
    };
    set_up(&mut results, fixed);
    let Opening { found, .. } = reported(&results);
    assert!(found.contains(" space on disk as wiredtiger.snappy, with 16 clients ("), "{found}");
    let lines = rumba_report::verdict_line(&summarise(&results));
    let why = "left out: wiredtiger.snappy is not ranked with rocksdb.none: files read: past the page cache against \
               through the page cache";
    assert!(lines.contains(why), "{lines}");
    assert!(lines.contains("most operations per second  "), "the other two are ranked: {lines}");
    set_up(&mut results, |name, engine, facts| {
        fixed(name, engine, facts);
        (engine.cache_is_derived, engine.cache) = (true, if name == BTREE.name { 300 << 20 } else { 160 << 20 });
    });
    let Opening { found, .. } = reported(&results);
    assert!(found.starts_with("rocksdb.none does "), "an equal budget is fair: {found}");
    assert!(!rumba_report::verdict_line(&summarise(&results)).contains("not ranked"));
}

#[test]
fn unrankable_engines_are_reported_as_such() {
    let mut results = results(&[BTREE, LSM], FOUR);
    set_up(&mut results, |name, _, facts| {
        facts.reads = Some(if name == BTREE.name { Reads::Direct } else { Reads::Buffered });
    });
    let without_sizes = results.trials.iter_mut().flat_map(|trial| &mut trial.record.phases);
    without_sizes.for_each(|phase| phase.metrics.data_bytes = Metric::absent("elsewhere"));
    let Opening { found, undecided, .. } = reported(&results);
    assert!(found.starts_with("rocksdb.none and wiredtiger.snappy are not ranked: files read: "), "{found}");
    assert_eq!(undecided, "Engines that did not have the same memory cannot be compared.");
}

/// "286 MB instead of 879, sure" compared zstd with none.
#[test]
fn sentence_on_sizes_or_bytes_names_different_compression() {
    let mut results = results(&[BTREE, LSM], FOUR);
    set_up(&mut results, |name, _, facts| {
        facts.compression = Some(if name == BTREE.name { "snappy" } else { "none" }.to_owned());
    });
    let Opening { found, .. } = reported(&results);
    let wanted = " operations per second than wiredtiger.snappy and writes 1/8.1 as much per operation as it (with none \
                  against snappy), with";
    assert!(found.contains(wanted), "compression is named for bytes, not for throughput: {found}");
    let lines = rumba_report::verdict_line(&summarise(&results));
    let size = lines.lines().find(|line| line.contains("smallest on disk, without logs")).unwrap();
    assert!(size.contains("none against snappy") || size.contains("snappy against none"), "{size}");
    let rate = lines.lines().find(|line| line.contains("most operations per second")).unwrap();
    assert!(!rate.contains("against"), "{rate}");
}

/// Its last complete loop is in the tables, and does not affect the findings about the others.
#[test]
fn unfinished_engine_is_named_and_neither_base_nor_best() {
    let mut results = results(&[COPY_ON_WRITE, BTREE, LSM], FOUR);
    for record in results.trials.iter_mut().map(|trial| &mut trial.record) {
        if record.plan.engine.name == COPY_ON_WRITE.name {
            record.status = Status::Interrupted;
            record
                .phases
                .retain(|phase| !matches!(phase.phase, PhaseKind::Loop(2) | PhaseKind::Drain | PhaseKind::Verify));
            record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::Value(1e9));
        }
    }
    let summary = summarise(&results);
    assert!(summary.rows[0].run.as_ref().is_some_and(|run| run.partial));
    let Opening { found, careful, .. } = reported(&results);
    assert!(found.starts_with("rocksdb.none does ") && found.contains("than wiredtiger.snappy"), "{found}");
    assert!(careful.contains("no repeat of lmdb finished, so its figures decide nothing"), "{careful}");
    let lines = rumba_report::verdict_line(&summary);
    assert!(!lines.contains("lmdb (") && lines.contains("left out: lmdb did not come to its end"), "{lines}");
    assert!(lines.contains("KB with the drain"), "the others' debt is charged: {lines}");
}
