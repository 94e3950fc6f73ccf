use super::expression::value;
use super::figures::Committed;
use super::page::{packaged, written};

fn committed() -> (tempfile::TempDir, Committed) {
    let dir = tempfile::tempdir().unwrap();
    let figure = |median: f64| serde_json::json!({ "median": median, "values": [median] });
    let row = |engine: &str, clients: u64, ops: f64| {
        serde_json::json!({ "engine": engine, "clients": clients, "run": {
            "metrics": { "ops_per_s": figure(ops), "size_bytes": figure(3e6), "log_bytes": figure(1e6),
                "wkb_per_op": { "median": { "absent": "no device" } } },
            "op_types": { "get_node": { "response": { "p99_ms": figure(1.25) } } } } })
    };
    let looped = |kb: f64| {
        serde_json::json!({ "engine": "a",
        "phases": [{ "phase": "loop 1", "ops_per_s": 5.0 },
            { "phase": "recovery", "recovery": { "lost": 2.0 * kb, "examples": ["one"] } }],
        "written": [{ "phase": "loop 1", "kb_per_op": { "redo_kb_per_op": kb } }] })
    };
    let claim = serde_json::json!({ "text": "a is faster", "published": 2.0, "measured": 2.5, "interval": [2.25, 3.0],
        "verdict": "holds" });
    let document = serde_json::json!({
        "summary": { "rows": [row("a", 1, 250.4), row("a", 40, 750.0), row("b.c-d", 1, 100.0)], "claims": [claim] },
        "trials": [looped(1.0), looped(2.0)],
    });
    std::fs::write(dir.path().join("tiny.json"), document.to_string()).unwrap();
    let committed = Committed::of(dir.path());
    (dir, committed)
}

#[test]
fn tables_claims_and_figures_are_written_from_the_committed_file() {
    let (_dir, mut figures) = committed();
    let page = "<!-- measured: tiny\ncolumn: a | A\ncolumn: b.c-d | B\nrow: per second | ops_per_s | 0 | 7\n\
        row: MB | (size_bytes - log_bytes) / 1e6 | 1\nrow: p99 | p99_ms[get_node] | 2\nrow: KB | wkb_per_op | 2\n-->\nold\n<!-- end -->\n\
        <!-- claims: tiny -->\n<!-- end -->\n\
        <!-- = tiny: ops_per_s@a / ops_per_s@b.c-d ; 2 -->9<!-- / --> times, \
        <!-- = tiny: loop1.redo_kb_per_op@a ; 1 --><!-- / --> KB, \
        <!-- = tiny: recovery.lost@a ; 0 --><!-- / --> lost, <!-- = tiny: recovery.damage@a ; 0 --><!-- / --> broken, \
        <!-- = tiny: recovery.examples@a ; 0 --><!-- / --> told, \
        <!-- = tiny: ops_per_s@a:40 ; 0 --><!-- / --> with forty clients\n";
    let new = written(page, &mut figures).unwrap();
    let expected = [
        "| | A | B | published |\n|---|---|---|---|\n| per second | 250 | 100 | 7 |\n| MB | 2.0 | 2.0 |  |\n",
        "| p99 | 1.25 | 1.25 |  |\n| KB | - | - |  |\n<!-- end -->",
        "| a is faster | 2.00 | 2.50 (2.25 to 3.00) | holds |\n<!-- end -->",
        "-->2.50<!-- / --> times",
        "-->1.5<!-- / --> KB",
        "-->3<!-- / --> lost",
        "-->0<!-- / --> broken",
        "-->1<!-- / --> told",
        "-->750<!-- / --> with forty clients",
    ];
    for part in expected {
        assert!(new.contains(part), "{part} is not in\n{new}");
    }
    assert_eq!(written(&new, &mut figures).unwrap(), new, "a second time changes nothing");
}

#[test]
fn a_suite_has_a_row_for_each_of_its_tests_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let row = |engine: &str, ops: f64| serde_json::json!({ "engine": engine, "clients": 1, "run": { "metrics": { "ops_per_s": { "median": ops } } } });
    let rows =
        [row("old/scan", 10.0), row("new[x=1]/scan", 9.0), row("old/point", 100.0), row("new[x=1]/point", 150.0)];
    let document = serde_json::json!({ "summary": { "rows": rows } });
    std::fs::write(dir.path().join("suite.json"), document.to_string()).unwrap();
    let mut figures = Committed::of(dir.path());
    let page = "<!-- measured: suite\ncolumn: old | Old\ncolumn: new.1 | New\n\
        tests: ops_per_s / ops_per_s@old | 2\n-->\n<!-- end -->";
    let expected = "\n| | Old | New |\n|---|---|---|\n| scan | 1.00 | 0.90 |\n| point | 1.00 | 1.50 |\n<!-- end -->";
    let new = written(page, &mut figures).unwrap();
    assert!(new.ends_with(expected), "{new}");
    let (_dir, mut figures) = committed();
    let without = "<!-- measured: tiny\ncolumn: a | A\ntests: ops_per_s | 0\n-->\n<!-- end -->";
    assert!(written(without, &mut figures).unwrap_err().contains("no suite of tests"));
}

#[test]
fn an_experiment_without_a_file_stays_as_it_is_and_is_named() {
    let (_dir, mut figures) = committed();
    let page = "<!-- = never: ops_per_s@a ; 0 -->12<!-- / -->";
    assert_eq!(written(page, &mut figures).unwrap(), page);
    assert_eq!(figures.missing(), ["never"]);
}

#[test]
fn what_a_comment_asks_for_and_nothing_has_is_said() {
    let (_dir, mut figures) = committed();
    let mut said =
        |expression: &str| written(&format!("<!-- = tiny: {expression} ; 0 --><!-- / -->"), &mut figures).unwrap_err();
    assert!(said("tps@a").contains("there is no figure `tps`"));
    assert!(said("ops_per_s@z").contains("there is no engine `z`"));
    assert!(said("ops_per_s@a:41").contains("there is no engine `a:41`"));
    assert!(said("ops_per_s").contains("names its engine"));
    assert!(written("<!-- = tiny: x ; 0 -->", &mut figures).unwrap_err().contains("is not followed by"));
}

#[test]
fn sums_and_ratios_bind_as_they_do_elsewhere() {
    let number = |text: &str| value(text, &mut |_, _| Ok(Some(2.0)));
    assert_eq!(number("1 + 2 * 3 - 8 / 4 / 2"), Ok(Some(6.0)));
    assert_eq!(number("(1 + x) * 3"), Ok(Some(9.0)));
    assert_eq!(number("1 / 0"), Ok(None));
    assert!(number("1 +").is_err() && number("(1").is_err() && number("1 2").is_err() && number("").is_err());
}

#[test]
fn what_is_yet_to_be_run_is_named_and_no_failure_and_what_differs_is_one() {
    let root = tempfile::tempdir().unwrap();
    for page in super::PAGES {
        let path = root.path().join(page);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "nothing measured\n").unwrap();
    }
    std::fs::create_dir_all(root.path().join("docs/experiments")).unwrap();
    let figure = |experiment: &str| format!("<!-- = {experiment}: ops_per_s@a ; 0 -->7<!-- / -->\n");
    std::fs::write(root.path().join("README.md"), figure("yet-to-be-run")).unwrap();
    let report = super::check(root.path(), false).unwrap();
    assert_eq!(report.missing, ["yet-to-be-run"]);
    assert!(report.is_in_order(false));
    let (dir, _) = committed();
    std::fs::copy(dir.path().join("tiny.json"), root.path().join("docs/experiments/tiny.json")).unwrap();
    std::fs::write(root.path().join("docs/experiments.md"), figure("tiny")).unwrap();
    let report = super::check(root.path(), false).unwrap();
    assert_eq!((&report.differing[..], report.is_in_order(false)), (&["docs/experiments.md"][..], false));
    assert!(super::check(root.path(), true).unwrap().is_in_order(true));
    assert!(super::check(root.path(), false).unwrap().is_in_order(false), "it was written");
}

#[test]
fn a_figure_of_the_packages_test_is_what_was_kept_of_it() {
    let page = "in <!-- package: minutes in all -->9<!-- / --> minutes";
    let told = "step seconds\nminutes in all: 12\n";
    assert_eq!(packaged(page, told).unwrap(), "in <!-- package: minutes in all -->12<!-- / --> minutes");
    assert_eq!(packaged(page, "").unwrap(), page, "nothing was kept yet");
    assert!(packaged("<!-- package: hours --><!-- / -->", told).is_err());
}
