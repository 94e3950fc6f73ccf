//! The JSON that other programs read, against its published schema.

use std::path::Path;

use crate::support::compare::summarise;
use crate::support::synthetic::{sample, servers};
use rumba_report::{json, schema};

fn schema_file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json")
}

fn generated() -> String {
    format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap())
}

#[test]
fn the_published_schema_is_the_one_of_this_code() {
    let published = std::fs::read_to_string(schema_file()).unwrap();
    let remedy = "run `cargo test -p rumba-report --test report -- --ignored regenerate_schema`";
    assert!(published == generated(), "docs/report.schema.json is out of date: {remedy}");
}

#[test]
#[ignore = "writes docs/report.schema.json"]
fn regenerate_schema() {
    std::fs::write(schema_file(), generated()).unwrap();
}

#[test]
fn real_output_follows_the_schema_and_a_changed_one_does_not() {
    let results = sample();
    let mut document = json(&results, &summarise(&results), None);
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    document["trials"][0]["phases"][0]["wkb_per_op"] = serde_json::json!("much");
    assert!(!validator.is_valid(&document));
}

#[test]
fn a_program_finds_engine_status_phases_and_metrics_by_their_stable_names() {
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
}

#[test]
fn a_server_its_source_and_its_cpu_are_found_by_their_stable_names() {
    let results = servers();
    let document = json(&results, &summarise(&results), None);
    let trial = &document["trials"][0];
    assert_eq!(trial["server"], serde_json::json!({"asked": "mariadb@10.11", "source": "an imagined server's path"}));
    assert_eq!(
        (&trial["library"], &trial["engine_settings"]["server"]),
        (&serde_json::Value::Null, &"mariadb@10.11".into())
    );
    let loops = &trial["phases"][6];
    let figure = |name: &str| loops[name].as_f64().unwrap();
    let parts = figure("server_cpu_us_per_op") + figure("client_cpu_us_per_op");
    assert!((parts / figure("cpu_us_per_op") - 1.0).abs() < 1e-6, "{parts}");
    assert!(figure("client_rss_bytes") > 0.0);
    let embedded = &document["trials"][2]["phases"][6];
    assert!(
        embedded["server_cpu_us_per_op"]["absent"].is_string() && embedded["client_rss_bytes"]["absent"].is_string()
    );
}
