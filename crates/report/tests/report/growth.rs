//! The growth of the database must be in every form of the results.

use crate::support::compare::summarise;
use crate::support::synthetic::{COPY_ON_WRITE, LSM, Plan, results};
use rumba_engine_api::rate::Rate;
use rumba_report::{TableOptions, html, json, markdown, tables};
use rumba_results::record::PhaseKind;
use rumba_results::results::Results;

const SHORT: Plan = Plan { clients: &[16], repeats: 1, loops: 2, loop_s: 10 };

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
    let text = tables(results, &summarise(results), &TableOptions::default());
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
}
