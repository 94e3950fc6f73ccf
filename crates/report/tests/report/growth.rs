//! The growth of the database must be in every form of the results.

use crate::support::compare::summarise;
use crate::support::synthetic::{COPY_ON_WRITE, LSM, Plan, results, sample};
use rumba_engine_api::rate::Rate;
use rumba_report::{TableOptions, html, json, markdown, tables};
use rumba_results::metric::Metric;
use rumba_results::record::PhaseKind;
use rumba_results::results::Results;
use rumba_results::warning::Warning;

const SHORT: Plan = Plan { clients: &[16], repeats: 1, loops: 2, loop_s: 10 };

fn printed(results: &Results) -> String {
    tables(results, &summarise(results), &TableOptions::default())
}

/// Two engines with a reported rate of node updates: 200 in the warmup and 400 in each of two loops of ten seconds. The
/// data of the first grows by 2 MB; the files of the second do not grow.
fn rated() -> Results {
    let mut results = results(&[LSM, COPY_ON_WRITE], SHORT);
    for trial in &mut results.trials {
        let grown = if trial.record.plan.engine.name == LSM.name { 2e6 } else { 0.0 };
        for phase in &mut trial.record.phases {
            if let Some(op) = phase.op_types.get_mut("update_node") {
                op.rate = Some(Rate { name: "tpmU".into(), most: None });
                op.count = match phase.phase {
                    PhaseKind::Warmup => 200,
                    PhaseKind::Loop(_) => 400,
                    _ => 800,
                };
            }
            if phase.phase == PhaseKind::Drain {
                phase.metrics.size_bytes = phase.metrics.size_bytes.map(|size| size + grown);
            }
        }
    }
    results
}

/// The first lines of the table, one space between words.
fn growth(results: &Results) -> Vec<String> {
    let text = printed(results);
    let (_, growth) = text.split_once("\nDatabase growth, logs not counted\n").unwrap();
    growth.lines().take(4).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// 2 MB are 2,000 bytes for each of a thousand operations; 800 in 20 s are 2,400 a minute, and 480 minutes add
/// 2,304,000,000 bytes.
#[test]
fn database_growth_is_reported_in_every_results_view() {
    let results = rated();
    let summary = summarise(&results);
    assert_eq!(growth(&results)[..3], ["B/un MB/8h engine", "2000 2197 rocksdb.none", "0 0.0 lmdb"]);
    let text = markdown(&results, &summary, &TableOptions::default());
    let shown = "\nDatabase growth, logs not counted\n\n| engine | B/un | MB/8h |\n| --- | ---: | ---: |\n\
                 | rocksdb.none | 2000 | 2197 |\n| lmdb | 0 | 0.0 |\n";
    assert!(text.contains(shown), "{text}");
    let names = ["tpmU", "tpmU_growth_bytes_per_op", "tpmU_growth_bytes_per_8h"];
    let document = json(&results, &summary, None);
    let of = |trial: usize| names.map(|name| document["trials"][trial]["charged"][name].clone());
    let (first, second) = (of(0), of(1));
    assert_eq!(first, [2400.0, 2000.0, 2_304_000_000.0]);
    assert_eq!(second, [2400.0, 0.0, 0.0]);
    let page = html(&results, &summary);
    assert!(names.iter().all(|name| page.contains(&format!(r#""name":"{name}""#))), "the page knows their units");
    assert!(!printed(&sample()).contains("Database growth"), "where no rate is reported nothing is said");
}

/// The total size at the end of a trial's drain.
fn drained_bytes(results: &mut Results, trial: usize) -> &mut Metric {
    let phases = &mut results.trials[trial].record.phases;
    &mut phases.iter_mut().find(|phase| phase.phase == PhaseKind::Drain).unwrap().metrics.size_bytes
}

#[test]
fn what_was_freed_is_below_zero_in_the_unit_of_its_size() {
    let mut results = rated();
    let size = drained_bytes(&mut results, 0);
    *size = size.map(|size| size - 22e6);
    assert_eq!(growth(&results)[..3], ["B/un GB/8h engine", "-20000 -21.5 rocksdb.none", "0 0.0 lmdb"]);
}

#[test]
fn unknown_growth_is_a_dash_with_reason_and_not_zero() {
    let mut results = rated();
    *drained_bytes(&mut results, 1) = Metric::absent("the data is elsewhere");
    assert_eq!(growth(&results)[2..], ["- - lmdb", "- B/un, MB/8h of lmdb: the data is elsewhere"]);
    let summary = summarise(&results);
    assert!(markdown(&results, &summary, &TableOptions::default()).contains("\n| lmdb | - | - |\n"));
    let charged = json(&results, &summary, None)["trials"][1]["charged"].clone();
    for name in ["tpmU_growth_bytes_per_op", "tpmU_growth_bytes_per_8h"] {
        assert_eq!(charged[name]["absent"], "the data is elsewhere", "{charged}");
    }
}

/// The deferred work is not on disk when the drain has ended.
#[test]
fn growth_has_the_mark_of_undrained_writes_and_rate_has_not() {
    let mut results = rated();
    results.trials[0].record.warnings = vec![Warning::new("debt-unpaid", "64 MiB are held back", "write more")];
    let text = printed(&results);
    let reported = text.lines().find(|line| line.contains(" debt-unpaid: ")).unwrap();
    let letter = reported.split_whitespace().next().unwrap();
    assert_eq!(letter.len(), 1, "{reported}");
    let marked = format!("{letter} 2000 {letter} 2197 rocksdb.none");
    assert_eq!(growth(&results)[1..3], [marked.as_str(), "0 0.0 lmdb"]);
    let (_, transactions) = text.split_once("\nTransactions\n").unwrap();
    let rate = transactions.lines().nth(1).unwrap();
    assert!(!rate.contains(&format!("{letter} 2400")) && rate.contains(" 2400 "), "{rate}");
}
