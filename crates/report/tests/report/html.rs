//! The page: one file, small, closed to the network and to hostile names.

use crate::support::compare::summarise;
use crate::support::synthetic::{BTREE, COPY_ON_WRITE, LSM, LSM_ZSTD, Plan, results, sample};
use rumba_core::results::Results;
use rumba_report::html;

fn page(results: &Results) -> String {
    html(results, &summarise(results))
}

fn island(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

#[test]
fn an_hour_of_eight_trials_stays_under_two_megabytes() {
    let plan = Plan { clients: &[16], repeats: 2, loops: 12, loop_s: 300 };
    let results = results(&[LSM, LSM_ZSTD, BTREE, COPY_ON_WRITE], plan);
    assert!(results.trials.iter().all(|trial| trial.intervals.len() >= 3600));
    let page = page(&results);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    for trial in island(&page)["trials"].as_array().unwrap() {
        let points = trial["timeline"]["at_s"].as_array().unwrap().len();
        assert!((400..=600).contains(&points), "{points}");
    }
}

#[test]
fn the_page_fetches_nothing() {
    let page = page(&sample());
    for reference in ["http://", "https://", "src=\"", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn a_hostile_name_stays_text() {
    let mut results = sample();
    let hostile = "</script><script>alert(1)</script><!-- & <b>";
    results.name = hostile.to_owned();
    for trial in &mut results.trials {
        trial.record.plan.engine.name = hostile.to_owned();
    }
    let page = page(&results);
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("<title>&lt;/script&gt;&lt;script&gt;alert(1)"));
    assert_eq!(page.matches("</script>").count(), self::page(&sample()).matches("</script>").count());
    let data = island(&page);
    assert_eq!((&data["name"], &data["trials"][0]["engine"]), (&hostile.into(), &hostile.into()));
}

#[test]
fn a_partial_run_and_an_empty_one_still_make_a_page() {
    let mut empty = sample();
    empty.trials.clear();
    assert_eq!(island(&page(&empty))["trials"], serde_json::json!([]));
    let data = island(&page(&sample()));
    let ended = data["trials"][15]["ended"].as_str().unwrap();
    assert!(ended.starts_with("failed in loop 2: the engine was killed"), "{ended}");
}
