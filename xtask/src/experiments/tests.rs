use std::path::Path;

use super::figures::Committed;
use super::page::written;
use super::since;

fn committed() -> (tempfile::TempDir, Committed) {
    let dir = tempfile::tempdir().unwrap();
    let row =
        serde_json::json!({ "engine": "a", "clients": 1, "run": { "metrics": { "ops_per_s": { "median": 250.4 } } } });
    let document = serde_json::json!({
        "experiment": "tiny", "experiment_toml": "name = \"tiny\"", "summary": { "rows": [row] },
    });
    std::fs::write(dir.path().join("tiny.json"), document.to_string()).unwrap();
    let committed = Committed::of(dir.path());
    (dir, committed)
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
fn changed_claim_threshold_and_renamed_engine_are_reported() {
    let parts = [
        ("twice as much", "three times as much"),
        (">= 2 *", ">= 3 *"),
        ("name = \"myrocks\"\nsettings.write_buffer_size = \"2MiB\"", "use = \"rocksdb\""),
    ];
    let reported = reported_of(RUN, &changed(RUN, &parts)).unwrap();
    let expected = "The run had no `engine[\"rocksdb\"]`. The file has no `engine[\"myrocks\"]`. \
        The file has 1 changed claim.\n";
    assert!(reported.ends_with(&format!("`experiments/tiny.toml`. {expected}")), "{reported}");
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
