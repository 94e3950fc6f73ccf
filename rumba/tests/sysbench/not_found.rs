//! Runs whose statements look for rows that are not there: ids with gaps, and a table that is smaller than expected.

use serde_json::Value;

use super::{TestDir, succeeds};

const SQLITE: [&str; 2] = ["--db-driver=sqlite", "--sqlite-synchronous=off"];

/// The output of a run of 300 events over a table of this size, and its JSON document.
fn run(place: &TestDir, script: &str, size: &str) -> (String, Value) {
    let words = [script, size, "--events=300", "--time=0", "--report-json=r.json", "run"];
    let said = succeeds(place, &[&SQLITE[..], &words].concat());
    (said, serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap())
}

/// The warning after the report, and how many statements it names.
fn warning(said: &str) -> Option<(&str, u64)> {
    let (_, behind) = said.split_once("execution time (avg/stddev):").unwrap();
    let words = behind.lines().find_map(|line| line.strip_prefix("WARNING: "))?;
    Some((words, words.split(' ').next().unwrap().parse().unwrap()))
}

/// Galera, InnoDB Cluster, CockroachDB and TiDB number rows with gaps. Two thirds of the statements then find nothing,
/// which looked fast.
#[test]
fn statements_that_find_no_row_are_reported_with_the_reason() {
    let place = TestDir::new();
    succeeds(&place, &[&SQLITE[..], &["oltp_common", "--table-size=300", "prepare"]].concat());
    let (said, json) = run(&place, "oltp_point_select", "--table-size=300");
    assert_eq!((warning(&said), json.get("warnings")), (None, None), "{said}");
    assert_eq!(json["total"]["queries"]["not_found"], 0, "{json}");

    let (said, _) = run(&place, "oltp_point_select", "--table-size=3000");
    let (words, _) = warning(&said).unwrap();
    assert!(words.ends_with(": no id is above 300, and --table-size is 3,000; give the size of prepare"), "{words}");

    let gaps = "local con = sysbench.sql.driver():connect()
        con:query('UPDATE sbtest1 SET id = -id') con:query('UPDATE sbtest1 SET id = -3 * id - 1')";
    std::fs::write(place.path("gaps.lua"), gaps).unwrap();
    succeeds(&place, &[&SQLITE[..], &["gaps.lua"]].concat());
    for script in ["oltp_point_select", "oltp_update_index", "oltp_update_non_index"] {
        let (said, json) = run(&place, script, "--table-size=300");
        let (words, not_found) = warning(&said).unwrap_or_else(|| panic!("{script}: {said}"));
        assert!(words.contains(" of 300 statements found no row: ids go from 2 to 899 in steps of 3, not"), "{words}");
        assert!((150..250).contains(&not_found) && words.contains("--auto_inc=off"), "{words}");
        assert_eq!(json["total"]["queries"]["not_found"], not_found, "{json}");
        assert_eq!(json["warnings"], serde_json::json!([words]));
    }
}

/// A script that deletes rows finds some of them gone, as it should.
#[test]
fn deleted_rows_cause_no_warning() {
    let place = TestDir::new();
    succeeds(&place, &[&SQLITE[..], &["oltp_common", "--table-size=300", "prepare"]].concat());
    let (said, json) = run(&place, "oltp_delete", "--table-size=300");
    assert_eq!(warning(&said), None, "{said}");
    assert!(json["total"]["queries"]["not_found"].as_u64().unwrap() > 50, "{json}");
}
