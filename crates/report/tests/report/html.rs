//! The page: one small file, without network access, and safe with hostile names.

use crate::support::compare::{history, summarise};
use crate::support::history::commits;
use crate::support::synthetic::{BTREE, COPY_ON_WRITE, LSM, LSM_ZSTD, Plan, Shape, results, sample};
use rumba_report::{HistoryNotes, history_html, html};
use rumba_results::results::Results;

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
        assert!((400..=700).contains(&points), "{points}");
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
fn history_page_has_every_figure_and_names_stay_text() {
    let mut runs = commits();
    let hostile = "</script><script>alert(1)</script>";
    runs[0].directory = hostile.to_owned();
    let left_out = ["results/x is damaged".to_owned()];
    let notes = HistoryNotes { left_out: &left_out, library: Some("./"), ..HistoryNotes::default() };
    let page = history_html(&history(&runs, None), &notes);
    assert!(page.contains("<title>synthetic-sample: history of 9 runs – rumba</title>"));
    assert!(!page.contains("<script>alert"));
    assert!(page.contains(r#"id="data">{"history":"#), "the page recognises its kind by the first field");
    let data = &island(&page)["history"];
    assert_eq!(data["points"][0]["directory"], hostile);
    assert_eq!((&data["left_out"][0], &data["library"]), (&"results/x is damaged".into(), &"./".into()));
    let lines = data["lines"].as_array().unwrap();
    let rate = lines.iter().find(|line| line["metric"] == "ops_per_s" && line["part"] == "run").unwrap();
    assert_eq!((&rate["engine"], &rate["by"]), (&"rocksdb.none".into(), &"commit".into()));
    assert!(rate["steps"].as_array().unwrap().iter().all(|step| step["values"].as_array().unwrap().len() == 4));
    assert_eq!(
        (&rate["changes"][0]["after"], &rate["changes"][0]["at"]),
        (&"4".repeat(12).into(), &"5".repeat(12).into())
    );
    assert!(data["moved"][0].as_str().unwrap().contains("ops_per_s between 444444444444 and 555555555555"));
    let metric = data["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "ops_per_s").unwrap();
    assert_eq!(metric["better"], "more");
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

#[test]
fn load_is_shown_with_each_client_count_that_started_from_it() {
    use rumba_results::record::{PhaseKind, TrialPart};
    let mut results = results(&[LSM], Plan { clients: &[1, 16], repeats: 1, loops: 2, loop_s: 10 });
    let mut load = results.trials[0].clone();
    load.record.plan.part = TrialPart::Load;
    load.record.phases.retain(|phase| matches!(phase.phase, PhaseKind::Load | PhaseKind::Settle));
    load.intervals.retain(|interval| matches!(interval.phase, PhaseKind::Load | PhaseKind::Settle));
    for trial in &mut results.trials {
        (trial.record.plan.part, trial.record.plan.loaded_by) = (TrialPart::Run, Some(1));
        trial.record.plan.number += 1;
        trial.record.phases.retain(|phase| phase.phase != PhaseKind::Load);
        trial.intervals.retain(|interval| interval.phase != PhaseKind::Load);
    }
    results.trials.insert(0, load);
    let data = island(&page(&results));
    let trials = data["trials"].as_array().unwrap();
    let shown: Vec<_> =
        trials.iter().map(|trial| (trial["number"].as_u64().unwrap(), trial["clients"].clone())).collect();
    assert_eq!(shown, [(2, 1.into()), (3, 16.into()), (1, 1.into()), (1, 16.into())]);
    let phases = |trial: &serde_json::Value| {
        let phases = trial["timeline"]["phases"].as_array().unwrap().clone();
        phases.iter().map(|phase| phase[0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(phases(&trials[2]), ["load", "settle"]);
    assert!(!phases(&trials[0]).contains(&"settle".to_owned()), "what a copy settles is no load");
    let rows = data["summary"]["rows"].as_array().unwrap();
    assert!(
        rows.len() == 2
            && rows.iter().all(|row| row["loads"] == 1 && row["load"]["trials"].as_array().unwrap().len() == 1)
    );
}

#[test]
fn engines_are_named_by_what_differs_and_by_versions() {
    let page_of = |engines: &[(&'static str, &str, Option<&str>)]| {
        let shapes: Vec<Shape> = engines.iter().map(|(name, ..)| Shape { name, ..BTREE }).collect();
        let mut results = results(&shapes, Plan { clients: &[4], repeats: 1, loops: 1, loop_s: 10 });
        for (trial, (_, version, server)) in results.trials.iter_mut().zip(engines) {
            trial.record.version = Some((*version).to_owned());
            trial.record.plan.engine.server = server.map(str::to_owned);
            trial.record.plan.engine.cache =
                if trial.record.plan.engine.name.contains("other") { 2 << 20 } else { 1 << 20 };
        }
        page(&results)
    };
    let (old, new) = (Some("mysql@5.6.24"), Some("mysql@9.7.4"));
    for (engines, labels, title) in [
        (
            &[("base/innodb", "5.6.24", old), ("other/innodb", "9.7.4-2", new)][..],
            &["mysql 5.6.24", "mysql 9.7.4"][..],
            "synthetic-sample: mysql 5.6.24 against mysql 9.7.4",
        ),
        (
            &[("old-5.6", "5.6.24", None), ("old-9.7", "9.7.4-2", None)],
            &["old 5.6.24", "old 9.7.4"],
            "synthetic-sample: old 5.6.24 against old 9.7.4",
        ),
        (
            &[("base/a", "1", None), ("other/a", "1", None)],
            &["a, cache 1.00 MiB", "a, cache 2.00 MiB"],
            "synthetic-sample: a, cache 1.00 MiB against a, cache 2.00 MiB",
        ),
        (
            &[("a[page_size=4k,fill=90]", "1", None), ("a[page_size=8k,fill=90]", "1", None)],
            &["page_size=4k", "page_size=8k"],
            "synthetic-sample",
        ),
        (&[("a[page_size=4k]", "1", None), ("b", "1", None)], &["a, page_size=4k", "b"], "synthetic-sample"),
        (&[("a", "1", None), ("b", "1", None)], &["a", "b"], "synthetic-sample"),
    ] {
        let page = page_of(engines);
        let data = island(&page);
        let label = |name: &str| data["labels"][name].as_str().unwrap_or(name).to_owned();
        let found: Vec<String> = engines.iter().map(|(name, ..)| label(name)).collect();
        assert_eq!(
            (&found[..], data["title"].as_str()),
            (&labels.iter().map(|&label| label.to_owned()).collect::<Vec<_>>()[..], Some(title))
        );
        assert!(page.contains(&format!("<title>{title} – rumba</title>")));
        assert!(!data["opening"]["found"].as_str().unwrap().contains("base/"), "{}", data["opening"]["found"]);
    }
}
