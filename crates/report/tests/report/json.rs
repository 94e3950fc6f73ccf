//! The JSON for other programs, checked against its published schema.

use std::path::Path;

use serde_json::Value;

use crate::support::compare::{Gate, Run, compare, history, summarise};
use crate::support::synthetic::{in_turns, sample, servers};
use rumba_report::{comparison_json, comparison_schema, detection_schema, history_json, history_schema, json, schema};
use rumba_results::comparison::Comparison;
use rumba_results::record::TrialPlan;

/// The published schemas, by document.
fn schemas() -> [(&'static str, Value); 4] {
    let detect = ("detect", detection_schema());
    [("report", schema()), ("compare", comparison_schema()), ("history", history_schema()), detect]
}

fn schema_file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/{name}.schema.json"))
}

fn text(schema: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(schema).unwrap())
}

#[test]
fn the_published_schemas_are_those_of_this_code() {
    for (name, schema) in schemas() {
        let published = std::fs::read_to_string(schema_file(name)).unwrap();
        let remedy = "run `cargo test -p rumba-report --test report -- --ignored regenerate_schema`";
        assert!(published == text(&schema), "docs/{name}.schema.json is out of date: {remedy}");
    }
}

#[test]
#[ignore = "writes the schemas in docs"]
fn regenerate_schema() {
    for (name, schema) in schemas() {
        std::fs::write(schema_file(name), text(&schema)).unwrap();
    }
}

/// The durability of an existing server in an old record is unknown.
#[test]
fn records_without_client_durability_flag_are_read() {
    let mut plan = serde_json::to_value(&sample().trials[0].record.plan).unwrap();
    assert_eq!(plan["facts"].as_object_mut().unwrap().remove("clients_ask_durability"), Some(false.into()));
    let mut plan: TrialPlan = serde_json::from_value(plan).unwrap();
    assert_eq!(plan.given_durability().reported, plan.engine.durability.name());
    plan.engine.server = Some("mongodb://host/lab".to_owned());
    assert_eq!(plan.given_durability().reported, "not known");
}

#[test]
fn documents_follow_their_schemas_and_changed_ones_do_not() {
    let results = sample();
    let comparison = compare(&results, &results);
    let gated = Gate::parse("ops_per_s < 0.95").unwrap().judge(&comparison).unwrap();
    let runs = ["one", "two"].map(|directory| Run { directory: directory.to_owned(), results: results.clone() });
    for (schema, mut document, place) in [
        (schema(), json(&results, &summarise(&results), None), "/trials/0/phases/0/wkb_per_op"),
        (comparison_schema(), comparison_json(&comparison, &gated), "/fail_if/0/verdict"),
        (history_schema(), history_json(&history(&runs, None), &[]), "/lines/0/steps/0/median"),
    ] {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        *document.pointer_mut(place).unwrap() = "much".into();
        assert!(!validator.is_valid(&document), "{place}");
    }
}

/// For comparisons that were stored by a version without the flag.
#[test]
fn comparison_without_turn_flag_is_read_with_drift_allowance() {
    let comparison = in_turns(&sample(), &sample());
    let mut document = comparison_json(&comparison, &[]);
    assert_eq!(serde_json::from_value::<Comparison>(document.clone()).unwrap(), comparison);
    for row in document["rows"].as_array_mut().unwrap() {
        assert_eq!(row.as_object_mut().unwrap().remove("in_turns"), Some(true.into()));
    }
    let read = serde_json::from_value::<Comparison>(document).unwrap();
    assert!(!read.rows.is_empty() && read.rows.iter().all(|row| !row.in_turns));
    let gated = Gate::parse("ops_per_s < 0.95").unwrap().judge(&read).unwrap();
    assert!(gated.iter().any(|gated| gated.allowed_drift_percent == Some(5.0)), "{gated:?}");
}

#[test]
fn engine_status_phases_and_metrics_have_stable_json_names() {
    let results = sample();
    let document = json(&results, &summarise(&results), None);
    assert_eq!(document["experiment"], "synthetic-sample");
    let verdicts = document["summary"]["claims"].as_array().unwrap().iter().map(|claim| &claim["verdict"]);
    assert!(verdicts.eq(["holds", "fails", "undecided"]));
    let trial = &document["trials"][0];
    assert_eq!((&trial["engine"], &trial["status"]), (&"rocksdb.none".into(), &"done".into()));
    assert_eq!((&trial["workload"], &trial["clients"], &trial["repeat"]), (&"linkbench".into(), &16.into(), &1.into()));
    let phases = trial["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
    assert_eq!(names, ["load", "settle", "warmup", "loop 1", "loop 2", "loop 3", "loops", "drain", "verify"]);
    let loops = &phases[6];
    assert!(loops["wkb_per_op"].as_f64().unwrap() > 0.0);
    assert!(loops["op_types"]["get_node"]["response"]["p99_ms"].is_f64());
    assert_eq!(loops["write_amp"]["absent"], "measured in the load only");
    assert!(trial["charged"]["wkb_per_op_with_drain"].as_f64() > loops["wkb_per_op"].as_f64());
    assert!(trial["charged"]["wkb_per_row_with_settle"].as_f64() > phases[0]["wkb_per_op"].as_f64());
    assert!(trial["charged"]["write_amp_with_settle"].as_f64() > phases[0]["write_amp"].as_f64());
    assert!(document["summary"]["rows"][0]["load"]["metrics"]["write_amp_with_settle"]["median"].is_f64());
    assert_eq!(trial["warnings"][0]["code"], "debt-at-end");
    assert_eq!((&trial["library"], &trial["server"]), (&"built in".into(), &serde_json::Value::Null));
    let failed = &document["trials"][15];
    assert_eq!((&failed["status"], &failed["failure"]["phase"]), (&"failed".into(), &"loop 2".into()));
    assert!(failed["charged"]["wkb_per_op_with_drain"]["absent"].is_string());
    assert!(failed["charged"]["wkb_per_row_with_settle"].is_f64(), "its load was settled and stands");
    let results = servers();
    let document = json(&results, &summarise(&results), None);
    let trial = &document["trials"][0];
    assert_eq!(trial["server"], serde_json::json!({"asked": "mariadb@10.11", "source": "an imagined server's path"}));
    assert!(trial["library"].is_null());
}
