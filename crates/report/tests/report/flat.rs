//! CSV as a data frame loads it, and Markdown as a pull request shows it.

use std::collections::BTreeMap;

use rumba_report::{
    TableOptions, comparison_csv, comparison_json, comparison_markdown, history_csv, history_markdown, history_table,
    json, markdown, report_csv,
};
use rumba_results::record::{PhaseKind, Status};

use crate::support::compare::{Gate, Run, compare, history, last_step, summarise};
use crate::support::synthetic::{BTREE, LSM, Plan, in_turns, results, sample};

const FOUR: Plan = Plan { clients: &[16], repeats: 4, loops: 2, loop_s: 10 };

/// Rows by the names of their columns.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.unwrap()).collect()
}

#[test]
fn every_metric_is_a_csv_row_with_unit_or_absence_reason() {
    let results = sample();
    let summary = summarise(&results);
    let rows = rows(&report_csv(&results, &summary));
    let document = json(&results, &summary, None);
    let of = |trial: &str, phase: &str, operation: &str, time: &str, metric: &str| {
        let is_it = |row: &&BTreeMap<String, String>| {
            [("trial", trial), ("phase", phase), ("operation", operation), ("time", time), ("metric", metric)]
                .iter()
                .all(|(column, value)| row[*column] == *value)
        };
        let found: Vec<_> = rows.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{trial} {phase} {operation} {time} {metric}");
        found[0].clone()
    };
    let loops = &document["trials"][0]["phases"][6];
    let written = of("1", "loops", "", "", "wkb_per_op");
    assert_eq!(written["value"].parse::<f64>().unwrap(), loops["wkb_per_op"].as_f64().unwrap(), "all digits");
    assert_eq!((written["unit"].as_str(), written["absent"].as_str()), ("KB/op", ""));
    let lacking = of("1", "loops", "", "", "write_amp");
    assert_eq!((lacking["value"].as_str(), lacking["absent"].as_str()), ("", "measured in the load only"));
    let p99 = of("1", "loops", "get_node", "response", "p99_ms");
    let expected = loops["op_types"]["get_node"]["response"]["p99_ms"].as_f64().unwrap();
    assert_eq!((p99["value"].parse::<f64>().unwrap(), p99["unit"].as_str()), (expected, "ms"));
    let charged = of("1", "loops", "", "", "wkb_per_op_with_drain");
    let expected = document["trials"][0]["charged"]["wkb_per_op_with_drain"].as_f64().unwrap();
    assert_eq!(charged["value"].parse::<f64>().unwrap(), expected);
    assert!(rows.iter().all(|row| row["value"].is_empty() != row["absent"].is_empty()), "one of them, never both");
    assert!(rows.iter().all(|row| row["value"].is_empty() || row["value"].parse::<f64>().is_ok()));
    assert!(rows.iter().any(|row| row["trial"] == "16" && row["status"] == "failed"));
}

#[test]
fn repeat_without_a_median_gives_the_reason_in_each_row() {
    let mut results = results(&[LSM], FOUR);
    results.trials[2].record.phases.last_mut().unwrap().checks[0].wrong = 7;
    let looped = results.trials[3].record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loop(2));
    looped.unwrap().complete = false;
    let rows = rows(&report_csv(&results, &summarise(&results)));
    let of_last = |row: &&BTreeMap<String, String>| row["trial"] == "4" && row["phase"] == "loop 2";
    assert!(rows.iter().filter(of_last).all(|row| row["left_out"] == "it was cut off"));
    let rows: Vec<_> = rows.into_iter().filter(|row| row["trial"] != "4").collect();
    let left_out = |row: &&BTreeMap<String, String>| !row["left_out"].is_empty();
    assert!(rows.iter().filter(left_out).all(|row| row["trial"] == "3" && row["left_out"].contains("not so for 7")));
    assert_eq!(rows.iter().filter(left_out).count(), rows.iter().filter(|row| row["trial"] == "3").count());
}

/// All of its phases ended, and its row's median excludes it.
#[test]
fn unverified_repeat_is_marked_left_out_for_csv_filters() {
    let mut results = results(&[LSM], FOUR);
    let record = &mut results.trials[1].record;
    (record.status, record.plan.run.verify) = (Status::Interrupted, true);
    record.phases.retain(|phase| !matches!(phase.phase, PhaseKind::Drain | PhaseKind::Verify));
    let rows = rows(&report_csv(&results, &summarise(&results)));
    let loops: Vec<_> = rows.iter().filter(|row| row["trial"] == "2" && row["phase"] == "loops").collect();
    let why = "it ended before its data was verified";
    assert!(!loops.is_empty() && loops.iter().all(|row| row["left_out"] == why));
    let load = rows.iter().find(|row| row["trial"] == "2" && row["phase"] == "load").unwrap();
    assert_eq!(load["left_out"], "", "its load is in the median");
}

#[test]
fn a_comparison_has_a_row_for_each_metric_with_its_verdict() {
    let mut faster = LSM;
    faster.ops_per_s *= 1.2;
    let (base, other) = (results(&[LSM, BTREE], FOUR), results(&[faster], FOUR));
    let text = comparison_csv(&compare(&base, &other));
    assert!(
        text.lines().next().unwrap().ends_with(",undecided_because,in_turns"),
        "who counts columns finds the others"
    );
    let turns = in_turns(&base, &other);
    let of_turns = rows(&comparison_csv(&turns));
    assert!(of_turns.iter().filter(|row| row["engine"] == LSM.name).all(|row| row["in_turns"] == "true"));
    let json = comparison_json(&turns, &[]);
    assert_eq!((json["rows"][0]["in_turns"].as_bool(), json["interleaved"].as_bool()), (Some(true), Some(true)));
    let rows = rows(&text);
    let loops: Vec<_> = rows.iter().filter(|row| row["part"] == "run" && row["metric"] == "ops_per_s").collect();
    assert_eq!(loops.len(), 1);
    assert_eq!((loops[0]["change"].as_str(), loops[0]["headline"].as_str()), ("better", "true"));
    assert_eq!(loops[0]["in_turns"], "false");
    let [base, other, ratio, low] =
        ["base", "other", "ratio", "low"].map(|name| loops[0][name].parse::<f64>().unwrap());
    assert!((other / base - ratio).abs() < 1e-9 && low > 1.0, "{:?}", loops[0]);
    let lost = rows.iter().find(|row| row["engine"] == BTREE.name).unwrap();
    assert!(lost["undecided_because"].contains("did not run in the other"), "{lost:?}");
    assert_eq!(lost["in_turns"], "", "with nothing");
}

#[test]
fn pull_request_text_begins_with_changes_and_failures() {
    let mut slower = LSM;
    slower.ops_per_s *= 0.7;
    let comparison = compare(&results(&[LSM, BTREE], FOUR), &results(&[slower, BTREE], FOUR));
    let gated = Gate::parse("ops_per_s < 0.95").unwrap().judge(&comparison).unwrap();
    let text = comparison_markdown(&comparison, &gated);
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("### synthetic-sample against synthetic-sample: ")
            && first.contains(" worse")
            && first.ends_with(" (the runs did not take turns)"),
        "{first}"
    );
    let fails = text.find("fail-if ops_per_s &lt; 0.95: rocksdb.none, 16 clients: IS SO").unwrap();
    let table =
        text.find("| engine | clients | part | metric | base | other | ratio | 95% interval | verdict |").unwrap();
    let details = text.find("<details>").unwrap();
    let json = comparison_json(&comparison, &gated);
    assert_eq!((json["rows"][0]["in_turns"].as_bool(), json["interleaved"].as_bool()), (Some(false), Some(false)));
    assert!(text[fails..].lines().next().unwrap().contains("the runs did not take turns"), "{text}");
    assert!(fails < table && table < details, "{text}");
    let row = text.lines().find(|line| line.starts_with("| rocksdb.none | 16 | loops | ops_per_s (1/s) |")).unwrap();
    assert!(row.ends_with("| **worse** |"), "{row}");
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let of_table = text[table..details].lines().filter(|line| line.starts_with('|'));
    assert!(of_table.map(cells).all(|bars| bars == 10), "{text}");
}

#[test]
fn a_run_as_markdown_has_its_verdicts_its_claims_and_its_tables() {
    let mut results = sample();
    results.trials[0].record.plan.engine.name = "a|b".to_owned();
    let text = markdown(&results, &summarise(&results), &TableOptions::default());
    assert!(text.starts_with("### synthetic-sample\n"), "{text}");
    for part in ["most operations per second", "**Claims**", "\nTransactions\n\n| ", "a\\|b", "<details>"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("```").count(), 2, "the fence is closed");
}

/// Four versions of one engine, the third slower by a fifth.
fn versions() -> Vec<Run> {
    let run = |(version, factor): (&str, f64)| {
        let mut shape = LSM;
        shape.ops_per_s *= factor;
        let mut results = results(&[shape], FOUR);
        results.started = format!("2024-01-0{}T00:00:00Z", version.len());
        for trial in &mut results.trials {
            trial.record.version = Some(version.to_owned());
        }
        Run { directory: format!("results/{version}"), results }
    };
    [("10.1.12", 0.8), ("9.2", 1.0), ("9.10", 1.0), ("10.1", 0.8)].map(run).into()
}

#[test]
fn a_history_names_the_version_that_changed_a_figure() {
    let text = history_table(&history(&versions(), None));
    assert!(text.contains("rocksdb.none, 16 clients, loops: ops_per_s between 9.10 and 10.1: "), "{text}");
    let start = text.find("rocksdb.none, 16 clients, loops: ops_per_s\nversion").unwrap();
    let step = text[start..].lines().nth(4).unwrap();
    assert!(step.starts_with("10.1 ") && step.ends_with("worse, the level changes here"), "{text}");
}

#[test]
fn a_history_as_csv_has_a_row_for_each_step_with_its_verdict() {
    let rows = rows(&history_csv(&history(&versions(), None)));
    let rates: Vec<_> = rows.iter().filter(|row| row["part"] == "run" && row["metric"] == "ops_per_s").collect();
    let cells = |name: &str| rates.iter().map(|row| row[name].as_str()).collect::<Vec<&str>>();
    assert_eq!(cells("label"), ["9.2", "9.10", "10.1", "10.1.12"]);
    assert_eq!(cells("level_changes_here"), ["false", "false", "true", "false"]);
    assert_eq!((cells("change")[0], cells("change")[2]), ("", "worse"));
    assert_eq!(cells("directory")[2], "results/10.1");
}

#[test]
fn markdown_history_begins_with_its_failures() {
    let mut runs = versions();
    runs.retain(|run| run.directory != "results/10.1.12");
    let gated = Gate::parse("ops_per_s < 0.95").unwrap().judge(&last_step(&runs, None).unwrap()).unwrap();
    let text = history_markdown(&history(&runs, None), &gated);
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place("**Fails**") < place("**Changes of level**"));
    assert!(place("**Changes of level**") < place("| version | "));
    assert!(text.lines().any(|line| line.starts_with("| 10.1 | ") && line.contains("**worse**")), "{text}");
}
