use std::path::Path;

use super::figures::Committed;
use super::page::{packaged, written};
use super::since;

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
    let claim = serde_json::json!({ "text": "a is faster", "holds": "a > b", "published": 2.0, "measured": 2.5,
        "interval": [2.25, 3.0], "verdict": "holds" });
    let document = serde_json::json!({
        "experiment": "tiny", "experiment_toml": "name = \"tiny\"",
        "summary": { "rows": [row("a", 1, 250.4), row("a", 40, 750.0), row("b.c-d", 1, 100.0)], "claims": [claim] },
        "trials": [looped(1.0), looped(2.0)],
    });
    std::fs::write(dir.path().join("tiny.json"), document.to_string()).unwrap();
    std::fs::write(dir.path().join("tiny.txt"), "tiny\nwith 1 client:\n  most  a\n  least  b\n").unwrap();
    let committed = Committed::of(dir.path());
    (dir, committed)
}

#[test]
fn page_content_is_written_from_committed_results() {
    let (_dir, mut figures) = committed();
    let page = "<!-- measured: tiny\ncolumn: a | A\ncolumn: b.c-d | B\nrow: per second | ops_per_s | 0 | 7\n\
        row: MB | (size_bytes - log_bytes) / 1e6 | 1\nrow: p99 | get_node.p99_ms | 2\nrow: KB | wkb_per_op | 2\n-->\nold\n<!-- end -->\n\
        <!-- = tiny: ops_per_s(\"a\") / ops_per_s(\"b.c-d\") ; 2 -->9<!-- / --> times, \
        <!-- = tiny: loop1.redo_kb_per_op(\"a\") ; 1 --><!-- / --> KB, \
        <!-- = tiny: recovery.lost(\"a\") ; 0 --><!-- / --> lost, <!-- = tiny: recovery.damage(\"a\") ; 0 --><!-- / --> broken, \
        <!-- = tiny: recovery.examples(\"a\") ; 0 --><!-- / --> shown, \
        <!-- = tiny: ops_per_s(\"a\", 40) ; 0 --><!-- / --> with forty clients\n\
        <!-- output: tiny | 2 | with 1 -->\n<!-- end -->\n";
    let new = written(page, &mut figures).unwrap();
    let expected = [
        "| | A | B | published |\n|---|---|---|---|\n| per second | 250 | 100 | 7 |\n| MB | 2.0 | 2.0 |  |\n",
        "| p99 | 1.25 | 1.25 |  |\n| KB | - | - |  |\n<!-- end -->",
        "-->2.50<!-- / --> times",
        "-->1.5<!-- / --> KB",
        "-->3<!-- / --> lost",
        "-->0<!-- / --> broken",
        "-->1<!-- / --> shown",
        "-->750<!-- / --> with forty clients",
        "-->\n```text\nwith 1 client:\n  most  a\n```\n<!-- end -->",
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
        tests: ops_per_s / ops_per_s(\"old\") | 2\n-->\n<!-- end -->";
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
    let page = "<!-- = never: ops_per_s(\"a\") ; 0 -->12<!-- / -->";
    assert_eq!(written(page, &mut figures).unwrap(), page);
    assert_eq!(figures.missing(), ["never"]);
}

#[test]
fn claim_has_todays_wording_while_its_expression_is_unchanged() {
    let (dir, mut figures) = committed();
    let mut row = |today: &str| {
        std::fs::write(dir.path().join("tiny.toml"), today).unwrap();
        super::claims::written("<!-- claims: tiny -->\n<!-- end -->", &mut figures, dir.path()).unwrap()
    };
    let reworded = "[[claim]]\ntext = \"A serves more.\"\nholds = \"a > b\"";
    assert!(row(reworded).ends_with("| A serves more. | 2.00 | 2.50 (2.25 to 3.00) | holds |\n<!-- end -->"));
    assert!(row(&reworded.replace("a > b", "a > 2 * b")).contains("| a is faster |"));
}

#[test]
fn unmet_request_in_a_comment_is_reported() {
    let (_dir, mut figures) = committed();
    let mut said =
        |expression: &str| written(&format!("<!-- = tiny: {expression} ; 0 --><!-- / -->"), &mut figures).unwrap_err();
    assert!(said("speed(\"a\")").contains("there is no figure `speed`"));
    assert!(said("ops_per_s(\"z\")").contains("there is no engine `z`"));
    assert!(said("ops_per_s(\"a\", 41)").contains("there is no engine `a:41`"));
    assert!(said("ops_per_s").contains("put an engine's name behind it"));
    assert!(written("<!-- = tiny: x ; 0 -->", &mut figures).unwrap_err().contains("is not followed by"));
}

/// A root whose pages quote no figures, and without committed runs.
fn nothing_measured(root: &Path) {
    for page in super::QUOTING {
        let path = root.join(page);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "nothing measured\n").unwrap();
    }
    std::fs::create_dir_all(root.join("docs/experiments")).unwrap();
    std::fs::create_dir_all(root.join("experiments")).unwrap();
}

#[test]
fn missing_result_is_named_and_differing_page_fails() {
    let root = tempfile::tempdir().unwrap();
    nothing_measured(root.path());
    let figure = |experiment: &str| format!("<!-- = {experiment}: ops_per_s(\"a\") ; 0 -->7<!-- / -->\n");
    std::fs::write(root.path().join("README.md"), figure("yet-to-be-run")).unwrap();
    let report = super::check(root.path(), false).unwrap();
    assert_eq!(report.missing, ["yet-to-be-run"]);
    assert!(report.is_in_order(false));
    let (dir, _) = committed();
    std::fs::copy(dir.path().join("tiny.json"), root.path().join("docs/experiments/tiny.json")).unwrap();
    std::fs::write(root.path().join("experiments/tiny.toml"), "name = 'tiny'\n").unwrap();
    let page = format!("{}<!-- since: tiny -->\n<!-- end -->\n", figure("tiny"));
    std::fs::write(root.path().join("docs/experiments/tiny.md"), page).unwrap();
    let report = super::check(root.path(), false).unwrap();
    assert_eq!(
        (&report.differing[..], report.is_in_order(false)),
        (&["docs/experiments/tiny.md".to_owned()][..], false)
    );
    assert!(super::check(root.path(), true).unwrap().is_in_order(true));
    assert!(super::check(root.path(), false).unwrap().is_in_order(false), "it was written");
}

#[test]
fn a_figure_of_the_packages_test_is_what_was_kept_of_it() {
    let page = "in <!-- package: minutes in all -->9<!-- / --> minutes";
    let reported = "step seconds\nminutes in all: 12\n";
    assert_eq!(packaged(page, reported).unwrap(), "in <!-- package: minutes in all -->12<!-- / --> minutes");
    assert_eq!(packaged(page, "").unwrap(), page, "nothing was kept yet");
    assert!(packaged("<!-- package: hours --><!-- / -->", reported).is_err());
}

const RUN: &str = r#"
name = "tiny"
source = "an article, 2016"
[run]
clients = [1, 16]
loop = "2m"
[limits.storage]
size = "data*6"
[[engine]]
name = "innodb"
[[engine]]
name = "myrocks"
settings.write_buffer_size = "2MiB"
[[claim]]
text = "InnoDB writes at least twice as much."
source = "published: 2.4"
holds = 'wkb_per_op("innodb") >= 2 * wkb_per_op("myrocks")'
measure = 'wkb_per_op("innodb") / wkb_per_op("myrocks")'
[[claim]]
text = "MyRocks is as fast."
holds = 'ops_per_s("myrocks") >= ops_per_s("innodb")'
"#;

/// The text on a page about a run kept as `label` of the experiment `tiny`, whose present file is `today`.
fn reported_of(run: &str, today: &str) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let document = serde_json::json!({ "experiment": "tiny", "experiment_toml": run });
    std::fs::write(dir.path().join("label.json"), document.to_string()).unwrap();
    std::fs::write(dir.path().join("tiny.toml"), today).unwrap();
    let page = "before\n<!-- since: label -->\nold\n<!-- end -->\nafter\n";
    let new = since::written(page, &mut Committed::of(dir.path()), dir.path())?;
    let block = new.strip_prefix("before\n<!-- since: label -->\n").unwrap();
    Ok(block.strip_suffix("<!-- end -->\nafter\n").unwrap().to_owned())
}

/// The text with each first part changed to its second.
fn changed(text: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(text.to_owned(), |text, &(old, new)| {
        assert!(text.contains(old), "{old} is not in\n{text}");
        text.replace(old, new)
    })
}

#[test]
fn reformatted_file_is_not_reported_as_changed() {
    let today = r#"
        # The question.
        name = 'tiny'
        source = "the same article"
        limits = { storage = { size = "data*6" } } # for the log
        [[engine]]
        name = "myrocks"
        [engine.settings]
        write_buffer_size = "2MiB"
        [[engine]]
        name = "innodb"
        [run]
        loop = "2m"
        clients = [ 1,
            16 ]
        [[claim]]
        holds = 'ops_per_s("myrocks") >= ops_per_s("innodb")'
        text = "It serves as many transactions."
        [[claim]]
        measure = 'wkb_per_op("innodb") / wkb_per_op("myrocks")'
        holds = "wkb_per_op(\"innodb\") >= 2 * wkb_per_op(\"myrocks\")"
        text = "InnoDB writes at least twice as much."
        source = "2.4"
    "#;
    assert_eq!(reported_of(RUN, today).unwrap(), "");
}

#[test]
fn changed_setting_is_reported_by_path_with_both_values() {
    let parts = [
        ("name = \"innodb\"\n", "name = \"innodb\"\nsettings.binlog = true\n"),
        ("loop = \"2m\"\n", ""),
        ("size = \"data*6\"", "size = \"data*10\""),
        (">= 2 *", ">= 3 *"),
    ];
    let (without_last_claim, _) = RUN.rsplit_once("[[claim]]").unwrap();
    let today = changed(without_last_claim, &parts);
    let reported = "The run kept as `label` differs from today's `experiments/tiny.toml`: \
        `limits.storage.size` was `\"data*6\"` and is `\"data*10\"`; \
        `run.loop` was `\"2m\"` and is not set; \
        `engine[\"innodb\"].settings.binlog` was not set and is `true`; \
        2 changed claims.\n";
    assert_eq!(reported_of(RUN, &today).unwrap(), reported);
    let back = reported_of(&today, RUN).unwrap();
    assert!(back.contains("`run.loop` was not set and is `\"2m\"`; "), "{back}");
    assert!(back.ends_with("; 2 changed claims.\n"), "{back}");
}

#[test]
fn changed_claim_threshold_and_renamed_engine_are_reported() {
    let parts = [
        ("twice as much", "three times as much"),
        (">= 2 *", ">= 3 *"),
        ("name = \"myrocks\"\nsettings.write_buffer_size = \"2MiB\"", "use = \"rocksdb\""),
    ];
    let reported = reported_of(RUN, &changed(RUN, &parts)).unwrap();
    let expected = "the run had no `engine[\"rocksdb\"]`; the file has no `engine[\"myrocks\"]`; \
        1 changed claim.\n";
    assert!(reported.ends_with(&format!("`experiments/tiny.toml`: {expected}")), "{reported}");
}

#[test]
fn six_differences_are_listed_and_the_rest_is_counted() {
    let run = |keys: u32| (1..=keys).fold("[run]\n".to_owned(), |text, key| format!("{text}k{key} = {key}\n"));
    let six = reported_of(&run(0), &run(6)).unwrap();
    assert!(six.ends_with("; `run.k6` was not set and is `6`.\n"), "{six}");
    let eight = reported_of(&run(0), &run(8)).unwrap();
    assert!(eight.ends_with("; `run.k6` was not set and is `6`; and 2 more.\n"), "{eight}");
    let engine = |name: &str| format!("[[engine]]\nname = \"{name}\"\n");
    let before = run(0) + &engine("a");
    let mixed = reported_of(&before, &(run(4) + &engine("b") + &engine("c") + &engine("d"))).unwrap();
    assert!(mixed.ends_with("; the run had no `engine[\"b\"]`, `engine[\"c\"]`; and 2 more.\n"), "{mixed}");
    let both = reported_of(&before, &(run(4) + &engine("b"))).unwrap();
    assert!(both.ends_with("; the run had no `engine[\"b\"]`; the file has no `engine[\"a\"]`.\n"), "{both}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let of_today = reported_of(RUN, "name = tiny").unwrap_err();
    assert!(of_today.contains("<!-- since: label -->") && of_today.contains("tiny.toml: "), "{of_today}");
    let of_run = reported_of("name = tiny", RUN).unwrap_err();
    assert!(of_run.contains("label.json, `experiment_toml`: "), "{of_run}");
    let (dir, mut figures) = committed();
    let gone = since::written("<!-- since: tiny -->\n<!-- end -->", &mut figures, dir.path()).unwrap_err();
    assert!(gone.contains("tiny.toml: ") && gone.contains("its file stays"), "{gone}");
}

#[test]
fn quoted_run_without_a_since_block_is_named_and_fails() {
    let root = tempfile::tempdir().unwrap();
    nothing_measured(root.path());
    let (dir, _) = committed();
    for kept in ["tiny", "linked", "elsewhere"] {
        let file = root.path().join(format!("docs/experiments/{kept}.json"));
        std::fs::copy(dir.path().join("tiny.json"), file).unwrap();
    }
    std::fs::write(root.path().join("experiments/tiny.toml"), "name = \"tiny\"\n").unwrap();
    std::fs::write(root.path().join("README.md"), "<!-- = elsewhere: ops_per_s(\"a\") ; 0 -->250<!-- / -->\n").unwrap();
    let quotes = "<!-- = tiny: ops_per_s(\"a\") ; 0 -->250<!-- / --> ([tables](linked.txt))\n";
    let page = root.path().join("docs/experiments/page.md");
    std::fs::write(&page, quotes).unwrap();
    let report = super::check(root.path(), true).unwrap();
    assert_eq!(report.unreported, ["linked", "tiny"]);
    assert!(!report.is_in_order(true), "where the block belongs is not for a program to say");
    let reported = "<!-- since: tiny -->\n<!-- end -->\n<!-- since: linked -->\n<!-- end -->\n";
    std::fs::write(&page, format!("{quotes}{reported}")).unwrap();
    assert!(super::check(root.path(), false).unwrap().is_in_order(false));
    // A run that only another page quotes has no block that could list the differences.
    std::fs::write(root.path().join("experiments/tiny.toml"), "name = \"tiny\"\nrun.repeats = 4\n").unwrap();
    let report = super::check(root.path(), true).unwrap();
    let [outdated] = &report.outdated[..] else { panic!("{:?}", report.outdated) };
    assert!(outdated.starts_with("The run kept as `elsewhere` differs"), "{outdated}");
    assert!(outdated.ends_with("`run.repeats` was not set and is `4`."), "{outdated}");
    assert!(!report.is_in_order(true));
}
