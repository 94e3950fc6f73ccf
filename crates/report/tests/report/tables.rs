//! The terminal tables as a reader sees them.

use crate::support::compare::{compare, summarise};
use crate::support::ladder::suite;
use crate::support::proof::proof;
use crate::support::synthetic::{BTREE, COPY_ON_WRITE, LSM, LSM_ZSTD, Plan, in_turns, results, sample, servers};
use rumba_report::{TableOptions, comparison_table, html, json, opening, report_csv, tables};
use rumba_results::metric::Metric;
use rumba_results::record::{PhaseKind, Status, Suspension, TrialPart};
use rumba_results::results::Results;
use rumba_results::warning::Warning;

const SHORT: Plan = Plan { clients: &[16], repeats: 1, loops: 2, loop_s: 10 };

fn printed(results: &Results) -> String {
    tables(results, &summarise(results), &TableOptions::default())
}

#[test]
fn complete_run() {
    insta::assert_snapshot!(printed(&sample()));
}

#[test]
fn suite_begins_with_its_range_and_the_costs_of_slower_tests() {
    let text = printed(&suite());
    let (_, relative) = text.split_once("Relative to innodb").unwrap();
    let lines: Vec<&str> = relative.lines().skip(1).take(2).collect();
    let range =
        "  innodb[doublewrite=off], 16 clients, tps of 3 tests: 0.80 (read-only-100), median 1.00, 1.30 (point-query)";
    assert_eq!(lines[0], range);
    assert!(lines[1].starts_with("    slower in read-only-100: tps 0.80; CPU/op "), "{}", lines[1]);
    assert!(lines[1].contains("KB written/op "), "{}", lines[1]);
    assert!(!printed(&sample()).contains("slower in"), "no suite");
}

#[test]
fn losses_after_a_kill_have_a_row_per_durability() {
    let text = printed(&proof());
    let (_, of_promises) = text.split_once("and acknowledged transactions after a kill\n").unwrap();
    let rows: Vec<Vec<&str>> = of_promises.lines().take(4).map(|line| line.split_whitespace().collect()).collect();
    let cells =
        |durability, lost, wrong, engine| vec!["non-repeatable", durability, "2400", lost, wrong, "0.25", engine];
    assert_eq!(rows[0], ["i7", "durability", "acked", "lost", "wrong", "open", "s", "engine"]);
    assert_eq!(rows[1], cells("sync", "0", "0", "rocksdb.sync"));
    assert_eq!(rows[2], cells("no-sync", "0", "0", "rocksdb.no-sync"));
    assert_eq!(rows[3], cells("none", "800", "4", "rocksdb.none"));
}

/// Results whose repeats of each engine started from one load.
fn many_starts() -> Results {
    let mut results = results(&[LSM, BTREE], Plan { repeats: 4, ..SHORT });
    for trial in &mut results.trials {
        let plan = &mut trial.record.plan;
        // Loads come before the repeats, one of each engine.
        plan.loaded_by = Some(100 + u32::from(plan.engine.name == BTREE.name));
        plan.part = TrialPart::Run;
    }
    results
}

#[test]
fn scope_of_verdicts_is_reported_in_every_view() {
    let mut kept = many_starts();
    let text = printed(&kept);
    assert!(text.contains("\nmedians of 4 repeats from one load of each engine\n"), "{text}");
    assert!(html(&kept, &summarise(&kept)).contains(r#""repeats_from":" from one load of each engine""#));
    let own = results(&[LSM, BTREE], Plan { repeats: 4, ..SHORT });
    assert!(html(&own, &summarise(&own)).contains(r#""repeats_from":", each from its own load""#));
    let outline = |base: &Results, other: &Results| comparison_table(&compare(base, other), false);
    let text = outline(&kept, &kept);
    assert!(text.contains("rocksdb.none, 16 clients, loops, 4 and 4 repeats from one load of each\n"), "{text}");
    let text = outline(&kept, &own);
    assert!(text.contains("rocksdb.none, 16 clients, loops, 4 and 4 repeats from 1 and 4 loads\n"), "{text}");
    for text in [printed(&kept), outline(&kept, &kept), outline(&kept, &own)] {
        assert!(text.contains("for this load"), "{text}");
    }
    let (found, page) = (opening(&kept, &summarise(&kept)), html(&kept, &summarise(&kept)));
    for sentence in found.sentences() {
        assert!(!sentence.contains(": sure"), "{sentence}");
    }
    assert!(found.found.contains("for this load only, because the repeats are starts of one load"), "{}", found.found);
    assert!(page.contains(r#""scope":"this-load""#) && !printed(&own).contains("for this load"));
    // The copy of one repeat did not open, and it loaded again.
    kept.trials[0].record.plan.loaded_by = None;
    let text = printed(&kept);
    assert!(text.contains("\nmedians of 4 repeats from 1 to 2 loads of each engine\n"), "{text}");
}

/// It appeared under the first repeat's name, in tables and among that trial's warnings.
#[test]
fn shared_trend_is_reported_for_no_single_repeat() {
    let mut reported = results(&[COPY_ON_WRITE], Plan { repeats: 3, loop_s: 30, ..SHORT });
    for trial in &mut reported.trials {
        let loops = trial.intervals.iter_mut().filter(|interval| matches!(interval.phase, PhaseKind::Loop(_)));
        for (interval, second) in loops.zip(0..) {
            // The rate oscillates, so that no single trial is significant, and is slower by a fifth from the middle on.
            let sway = (1000.0 + 300.0 * (f64::from(second) * 0.42).sin()).floor();
            interval.ops = if second < 30 { sway } else { (0.8 * sway).floor() } as u64;
        }
    }
    let summary = summarise(&reported);
    let text = tables(&reported, &summary, &TableOptions::default().with_all_warnings(true));
    assert!(text.contains(" unsteady\n      lmdb, 16 clients: operations/s changed by -"), "{text}");
    assert!(!text.contains("repeat 1: operations/s"), "{text}");
    let json = json(&reported, &summary, None);
    let is_it = |warning: &&serde_json::Value| warning["code"] == "unsteady";
    let of_trials = json["trials"].as_array().unwrap().iter().flat_map(|trial| trial["warnings"].as_array().unwrap());
    assert_eq!(of_trials.filter(is_it).count(), 0, "{}", json["trials"]);
    let remark = json["summary"]["remarks"].as_array().unwrap().iter().find(is_it).unwrap();
    assert!(remark["trial"].is_null() && remark["repeat"].is_null() && remark["engine"] == "lmdb", "{remark}");
}

#[test]
fn baseline_lists_only_operations_whose_percentile_is_judged() {
    let with_rare_updates_from = |clients: u32| {
        let mut results = results(&[LSM, BTREE], Plan { clients: &[1, 16], ..SHORT });
        let records = results.trials.iter_mut().map(|trial| &mut trial.record);
        for record in records.filter(|record| record.plan.clients >= clients) {
            let ops = record.phases.iter_mut().filter_map(|phase| phase.op_types.get_mut("update_node"));
            ops.for_each(|op| op.count /= 3);
        }
        let text = printed(&results);
        text.split_once("\nRelative to ").unwrap().1.split("\n\n").next().unwrap().to_owned()
    };
    let heads =
        |table: &str| -> Vec<String> { table.lines().nth(1).unwrap().split_whitespace().map(str::to_owned).collect() };
    let nowhere = with_rare_updates_from(1);
    assert_eq!(heads(&nowhere)[..6], ["tps", "gn", "ul", "gl", "add_link", "get_link"], "{nowhere}");
    let with_one_client = with_rare_updates_from(16);
    assert_eq!(heads(&with_one_client)[..3], ["tps", "un", "gn"], "{with_one_client}");
    let why = "  - un of wiredtiger.snappy (16): fewer than 5% of the baseline's operations are of this type: it carries \
               no verdict\n";
    assert!(with_one_client.contains(why), "{with_one_client}");
}

#[test]
fn servers_show_their_cpu_and_their_clients_apart() {
    insta::assert_snapshot!(printed(&servers()));
}

#[test]
fn absent_values_are_dashes_with_each_reason_once() {
    let mut results = results(&[LSM, BTREE], SHORT);
    for trial in &mut results.trials {
        for phase in &mut trial.record.phases {
            let absent = Metric::absent("the data directory is on tmpfs, which has no device");
            let metrics = &mut phase.metrics;
            for metric in [
                &mut metrics.reads_per_op,
                &mut metrics.writes_per_op,
                &mut metrics.writes_per_s,
                &mut metrics.rkb_per_op,
                &mut metrics.wkb_per_op,
                &mut metrics.reads_per_s,
                &mut metrics.read_mb_s,
                &mut metrics.write_mb_s,
                &mut phase.spent.device_write_bytes,
            ] {
                *metric = absent.clone();
            }
        }
    }
    let text = printed(&results);
    insta::assert_snapshot!(text);
    assert!(!text.contains("0.00"), "an absent value was printed as zero");
}

#[test]
fn partial_run_names_its_missing_parts() {
    let mut results = results(&[LSM, COPY_ON_WRITE], SHORT);
    let [first, second] = &mut results.trials[..] else { panic!("two trials") };
    first.record.status = Status::Interrupted;
    first.record.phases.truncate(4);
    second.record.status =
        Status::Failed { phase: PhaseKind::Load, cause: "the device is full: mdb_put: No space left".to_owned() };
    second.record.phases.clear();
    results.missing.push("trial 3 (lmdb, repeat 2): not run".to_owned());
    insta::assert_snapshot!(printed(&results));
}

#[test]
fn empty_results_still_make_a_report() {
    let mut results = results(&[], SHORT);
    results.warnings = vec![Warning::new("host", "swap is in use", "swapoff -a")];
    let text = printed(&results);
    assert!(text.contains("swap is in use") && text.contains("remedy: swapoff -a"), "{text}");
}

/// A rate alone does not show how many operations were rolled back or given up.
#[test]
fn rollbacks_and_give_ups_are_counted_apart_from_operations() {
    const HEADING: &str = "\nApart from the operations of the loops, all repeats\n";
    let mut results = results(&[LSM, BTREE], Plan { repeats: 2, ..SHORT });
    assert!(!printed(&results).contains(HEADING), "there is neither");
    let mut ops = 0;
    for trial in results.trials.iter_mut().filter(|trial| trial.record.plan.engine.name == LSM.name) {
        let loops = trial.record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
        let done: u64 = loops.op_types.values().map(|stats| stats.count).sum();
        loops.ops = done - 7;
        ops += loops.ops;
        loops.op_types.values_mut().next().unwrap().errors = 2;
    }
    let text = printed(&results);
    let (_, reported) = text.split_once(HEADING).unwrap();
    let undone = "14 undone on purpose, 4 given up";
    let expected = format!("  {}, 16 clients: {undone}; in addition to {ops} operations\n\n", LSM.name);
    assert!(reported.starts_with(&expected), "{reported}");
}

/// Warnings of many kinds, as in a first run on an untuned host.
fn warned() -> Results {
    let mut results = results(&[LSM, BTREE], SHORT);
    let warning = |code: &str| Warning::new(code, format!("{code} was seen"), format!("mend {code}"));
    results.warnings = ["swap", "busy-host", "page-cache", "not-kept", "governor"].map(warning).into();
    results.trials[0].record.warnings = ["few-samples", "cpu-uncharged"].map(warning).into();
    results.trials[1].record.warnings = ["stolen-cpu", "writes-unsteady", "cpu-uncharged"].map(warning).into();
    results
}

#[test]
fn the_worst_warnings_come_first_and_the_rest_are_counted() {
    let text = printed(&warned());
    let (_, end) = text.split_once("\nWarnings").unwrap();
    let codes: Vec<&str> =
        end.lines().skip(1).filter_map(|line| line.get(4..)?.split_once(": ")).map(|(code, _)| code).collect();
    let codes: Vec<&str> = codes.into_iter().filter(|code| !["remedy", "more"].contains(code)).collect();
    assert_eq!(codes, ["page-cache", "writes-unsteady", "debt-at-end", "cpu-uncharged", "stolen-cpu"], "{end}");
    assert!(end.contains("cpu-uncharged was seen (and in 1 other)"), "{end}");
    // The five less severe ones, and the note that steadiness is undecided.
    assert!(end.contains("\n  6 more: rumba report DIR --warnings\n"), "{end}");
    assert!(end.lines().count() <= 14, "{end}");
}

#[test]
fn warning_mark_is_next_to_the_figure_it_undermines_only() {
    let text = printed(&warned());
    let section = |title: &str| text.split_once(title).unwrap().1.split("\n\n").next().unwrap().to_owned();
    let cost = section("\nCost per operation\n");
    let row = |table: &str, engine: &str| table.lines().find(|line| line.ends_with(engine)).unwrap().to_owned();
    // b is `writes-unsteady` of the B-tree alone; c is `debt-at-end` and d is `cpu-uncharged` of both.
    assert!(row(&cost, "wiredtiger.snappy").trim_start().starts_with("bc "), "{cost}");
    assert!(!row(&cost, "rocksdb.none").replace("rocksdb.none", "").contains('b'), "{cost}");
    assert!(row(&cost, "rocksdb.none").contains(" cd ") && row(&cost, "wiredtiger.snappy").contains(" cd "), "{cost}");
    // A warning about all engines is marked next to the name of the figure.
    let hardware = section("\nHardware per transaction\n");
    assert!(hardware.lines().next().unwrap().contains("a r/t  a rkb/t"), "{hardware}");
    assert!(!hardware.lines().next().unwrap().contains("a w/t"), "{hardware}");
    // The warnings of those trials are not about the load.
    assert!(row(&section("\nLoad\n"), "wiredtiger.snappy").find("bc ").is_none());
}

#[test]
fn all_warnings_are_shown_on_request() {
    let results = warned();
    let options = TableOptions::default().with_all_warnings(true);
    let text = tables(&results, &summarise(&results), &options);
    for code in ["swap", "not-kept", "governor", "few-samples", "cpu-uncharged"] {
        assert!(text.contains(&format!("remedy: mend {code}\n")), "{code}: {text}");
    }
    assert!(text.contains("affects: cpu_us_per_op, cpu_us_per_op_with_drain"), "{text}");
    assert!(!text.contains(" more: "), "{text}");
}

#[test]
fn several_numbers_of_clients_have_a_column_of_their_own() {
    let results = results(&[LSM, LSM_ZSTD], Plan { clients: &[1, 16], ..SHORT });
    insta::assert_snapshot!(printed(&results));
}

/// It is a note, which appears in no other place unless all warnings are requested.
#[test]
fn scaling_remark_is_below_the_tables_of_a_ladder() {
    let mut ladder = results(&[LSM], Plan { clients: &[1, 4, 16], ..SHORT });
    assert!(!printed(&ladder).contains("What stopped scaling"), "it grows");
    ladder.trials[2].record.phases = ladder.trials[1].record.phases.clone();
    let text = printed(&ladder);
    assert!(text.contains("\nWhat stopped scaling\n  rocksdb.none: beyond 4 clients "), "{text}");
}

/// One kept load that the loops with 1 and 4 clients started from.
fn from_one_load() -> Results {
    let mut results = results(&[LSM], Plan { clients: &[1, 1, 4], ..SHORT });
    for trial in &mut results.trials {
        let (plan, is_load) = (&mut trial.record.plan, trial.record.phases[0].phase == PhaseKind::Load);
        assert!(is_load);
        if plan.number == 1 {
            plan.part = TrialPart::Load;
            trial.record.phases.truncate(2);
        } else {
            (plan.part, plan.loaded_by) = (TrialPart::Run, Some(1));
            trial.record.phases.drain(..2);
        }
    }
    results
}

#[test]
fn load_shared_by_several_client_counts_is_shown_once() {
    let results = from_one_load();
    let text = printed(&results);
    let rows = |title: &str| {
        let section = text.split_once(title).unwrap().1.split("\n\n").next().unwrap();
        section.lines().filter(|line| line.ends_with("  rocksdb.none")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(rows("\nLoad\n").len() == 1 && rows("\nLoad\n")[0].ends_with("  1, 4  rocksdb.none"), "{text}");
    assert_eq!(rows("\nTransactions\n").len(), 2, "{text}");
    let compared = comparison_table(&compare(&results, &results), true);
    let loads = compared.lines().filter(|line| line.starts_with("rocksdb.none, ") && line.contains(", load"));
    let loads: Vec<&str> = loads.collect();
    assert!(
        loads.len() == 1 && loads.iter().all(|load| load.starts_with("rocksdb.none, 1, 4 clients, load")),
        "{loads:?}"
    );
}

#[test]
fn the_null_engine_and_broken_data_win_nothing() {
    let mut null = LSM;
    (null.name, null.engine, null.ops_per_s) = ("null", "null", 9e5);
    let mut broken = LSM;
    (broken.name, broken.ops_per_s) = ("rocksdb.broken", 5e5);
    let mut results = results(&[null, broken, LSM, BTREE], SHORT);
    results.trials[1].record.phases.last_mut().unwrap().checks[0].wrong = 7;
    let text = printed(&results);
    let verdict = text.split("\nLoad").next().unwrap();
    assert!(verdict.contains("most operations per second      rocksdb.none"), "{verdict}");
    assert!(verdict.contains("left out: null keeps no data"), "{verdict}");
    assert!(verdict.contains("left out: rocksdb.broken failed its verification"), "{verdict}");
    assert!(text.contains("Relative to rocksdb.none"), "neither null nor broken data is anybody's measure");
    assert!(text.contains("do not use this trial's figures"), "{text}");
}

#[test]
fn a_percent_is_no_victory_and_noise_is_no_measure() {
    let mut results = results(&[LSM, BTREE], SHORT);
    for (trial, rate) in results.trials.iter_mut().zip([100.0, 99.5]) {
        for phase in &mut trial.record.phases {
            phase.metrics.ops_per_s = Metric::Value(rate);
            phase.metrics.reads_per_op = Metric::Value(rate * 1e-5);
        }
    }
    let text = printed(&results);
    assert!(text.contains("rocksdb.none (100/s; single run; no significant difference: wiredtiger.snappy)"), "{text}");
    let why = "r/t of rocksdb.none, wiredtiger.snappy: the baseline's figure is below 0.01, too small to divide by";
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_misspelt_baseline_names_the_nearest() {
    let results = results(&[LSM, LSM_ZSTD], SHORT);
    let summary = summarise(&results);
    let error = TableOptions::default().with_baseline("rocksdb.zstandard", &summary).unwrap_err();
    assert!(error.to_string().contains("did you mean `rocksdb.zstd`?"), "{error}");
    let options = TableOptions::default().with_baseline("rocksdb.zstd", &summary).unwrap();
    assert!(tables(&results, &summary, &options).contains("Relative to rocksdb.zstd"));
}

#[test]
fn two_runs_side_by_side() {
    let plan = Plan { repeats: 3, ..SHORT };
    let base = results(&[LSM, BTREE], plan);
    let mut faster = LSM;
    faster.ops_per_s *= 1.2;
    let mut other = results(&[faster, COPY_ON_WRITE], plan);
    other.trials[0].record.status =
        Status::Failed { phase: PhaseKind::Drain, cause: "the process was killed by signal 9".to_owned() };
    other.conditions.insert("governor".to_owned(), "powersave".to_owned());
    insta::assert_snapshot!(comparison_table(&compare(&base, &other), true));
}

#[test]
fn comparison_shows_headlines_and_details_on_request() {
    let plan = Plan { repeats: 4, ..SHORT };
    let mut faster = LSM;
    faster.ops_per_s *= 1.2;
    let (base, other) = (results(&[LSM, BTREE], plan), results(&[faster, BTREE], plan));
    let text = comparison_table(&compare(&base, &other), false);
    assert!(!text.contains("rss_bytes") && text.contains("--details shows every metric"), "{text}");
    assert!(text.contains("Not interleaved") && text.contains("headline metric of runs that take turns"), "{text}");
    let turns = in_turns(&base, &other);
    let reported = comparison_table(&turns, false);
    assert!(!reported.contains("not take turns") && reported.contains("for each headline metric; same"), "{reported}");
    let detailed = comparison_table(&compare(&base, &other), true);
    let rate = "have a false discovery rate of 5% together";
    assert!(detailed.contains(&format!("{rate}, of runs that take turns.\n")), "{detailed}");
    assert!(comparison_table(&turns, true).contains(&format!("{rate}.\n")));
}

#[test]
fn a_repeat_that_was_suspended_is_named_and_the_others_decide() {
    let mut results = results(&[LSM, BTREE], Plan { repeats: 4, ..SHORT });
    let record = &mut results.trials[2].record;
    let looped = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loop(2)).unwrap();
    looped.suspended = Some(Suspension { seconds: 9.6, cause: "it was stopped".to_owned() });
    record.status = Status::Suspended { phase: PhaseKind::Loop(2), cause: "it was stopped".to_owned() };
    let text = printed(&results);
    let named = "Suspended while they were measured, and in no figure, verdict or claim\n  \
                 rocksdb.none, 16 clients: repeat 2: loop 2, for 9.6 s: it was stopped\n";
    assert!(text.contains(named), "{text}");
    assert!(
        text.contains("medians of 3 to 4 repeats, each from its own load") && !text.contains("undecided because"),
        "{text}"
    );
    assert!(!text.contains("Did not end as planned"), "{text}");
}

#[test]
fn trials_that_ended_alike_share_a_line() {
    let mut results = results(&[LSM, BTREE], Plan { repeats: 4, ..SHORT });
    let cause = "it was not run: trial 1, which was to load its data, failed".to_owned();
    for at in [0, 2, 4] {
        results.trials[at].record.status = Status::Failed { phase: PhaseKind::Provision, cause: cause.clone() };
    }
    let text = printed(&results);
    let engine = &results.trials[0].record.plan.engine.name;
    let line = format!("Did not end as planned\n  trials 1, 3, 5 ({engine}): failed in provision: {cause}\n");
    assert!(text.contains(&line), "{text}");
    assert_eq!(text.matches(&cause).count(), 1, "{text}");
}

#[test]
fn a_repeat_with_broken_data_is_named_and_decides_nothing() {
    let mut results = results(&[LSM, BTREE], Plan { repeats: 4, ..SHORT });
    results.trials[2].record.phases.last_mut().unwrap().checks[0].wrong = 7;
    let text = printed(&results);
    let named = "Failed their verification and are in no figure, verdict or claim\n  \
                 rocksdb.none, 16 clients: repeat 2: every count equals its visible links: not so for 7 of 1400000\n";
    assert!(text.contains(named), "{text}");
    assert!(text.contains("undecided because repeat 2 of rocksdb.none failed its verification"), "{text}");
}

#[test]
fn repeat_killed_in_verification_is_not_reported_as_broken_data() {
    let mut results = results(&[LSM, BTREE, COPY_ON_WRITE], Plan { repeats: 4, ..SHORT });
    let killed = &mut results.trials[3].record;
    killed.phases.retain(|phase| phase.phase != PhaseKind::Verify);
    killed.status = Status::Failed { phase: PhaseKind::Verify, cause: "killed by signal 9".to_owned() };
    let text = printed(&results);
    let named = "Did not end their verification and are in no figure, verdict or claim\n  \
                 rocksdb.none, 16 clients: repeat 2: killed by signal 9\n";
    assert!(text.contains(named) && !text.contains("ailed their verification"), "{text}");
    assert!(text.contains("left out: rocksdb.none did not end its verification"), "{text}");
    assert!(text.contains("undecided because repeat 2 of rocksdb.none did not end its verification"), "{text}");
    let summary = summarise(&results);
    let left_out = "did not end its verification: killed by signal 9";
    assert!(report_csv(&results, &summary).contains(left_out));
    let json = json(&results, &summary, None).to_string();
    assert!(json.contains("the verification of its data did not end"), "{json}");
    assert!(json.contains(r#""proof":"cut-off""#) && !json.contains("its data failed its verification"), "{json}");
}
