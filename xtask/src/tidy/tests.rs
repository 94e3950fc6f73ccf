//! Each rule finds its violations, reports their position, and finds no others.

use std::fs;
use std::path::Path;

use super::check;

/// The findings, as printed, in a tree of these files.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    check(root.path()).unwrap().findings.iter().map(ToString::to_string).collect()
}

fn manifest(name: &str, dependencies: &str) -> String {
    format!("[package]\nname = \"{name}\"\n{dependencies}")
}

/// The findings for a project with these dependencies of one of its crates.
fn arrows(crate_path: &str, name: &str, dependencies: &str) -> Vec<String> {
    let of = |path: &str, own: &str| if path == crate_path { manifest(name, dependencies) } else { manifest(own, "") };
    let names = [
        ("crates/engine-api", "rumba-engine-api"),
        ("crates/testkit", "rumba-testkit"),
        ("tests/faults", "rumba-faults"),
        ("crates/lab", "rumba-lab"),
        ("crates/report", "rumba-report"),
        ("rumba", "rumba"),
        ("engines/lmdb", "rumba-engine-lmdb"),
        ("engines/null", "rumba-engine-null"),
        ("workloads/linkbench", "rumba-workload-linkbench"),
    ];
    let root = "[workspace.dependencies]\nrumba-engine-api.path = \"crates/engine-api\"\n\
                alias = { path = \"crates/lab\", package = \"rumba-lab\" }\n";
    let manifests: Vec<(String, String)> =
        names.iter().map(|(path, own)| (format!("{path}/Cargo.toml"), of(path, own))).collect();
    let mut files: Vec<(&str, &str)> = manifests.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("Cargo.toml", root));
    findings(&files)
}

#[test]
fn the_arrows_of_the_design_are_in_order() {
    let all =
        "[dependencies]\nrumba-engine-api.workspace = true\nrumba-lab.path = \"x\"\nrumba-engine-lmdb.path = \"x\"\n";
    assert_eq!(arrows("rumba", "rumba", all), [""; 0]);
    for (path, name) in
        [("crates/lab", "rumba-lab"), ("engines/lmdb", "rumba-engine-lmdb"), ("workloads/linkbench", "w")]
    {
        let core = "[dependencies]\nrumba-engine-api.workspace = true\nserde = \"1\"\n";
        assert_eq!(arrows(path, name, core), [""; 0]);
    }
}

#[test]
fn engine_api_depends_on_no_crate() {
    let found = arrows(
        "crates/engine-api",
        "rumba-engine-api",
        "[dependencies]\nserde = \"1\"\nrumba-report.path = \"../report\"\n",
    );
    assert_eq!(
        found,
        [
            "crates/engine-api/Cargo.toml:5: depends on `rumba-report`; the engine API depends on no crate of this workspace"
        ]
    );
}

#[test]
fn fault_suite_depends_on_no_rumba_crate_and_is_dev_only() {
    let found = arrows("tests/faults", "rumba-faults", "[dependencies]\nrumba-lab.path = \"x\"\n");
    assert!(found.len() == 1 && found[0].contains("drives the program"), "{found:?}");
    let uses = |kind: &str| arrows("rumba", "rumba", &format!("[{kind}]\nrumba-faults.path = \"x\"\n"));
    assert_eq!(uses("dev-dependencies"), [""; 0]);
    assert_eq!(uses("dependencies").len(), 1);
}

#[test]
fn an_engine_may_use_no_other_engine_not_even_in_its_tests() {
    for kind in ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        let found = arrows("engines/lmdb", "rumba-engine-lmdb", &format!("[{kind}]\nrumba-engine-null.path = \"x\"\n"));
        assert_eq!(
            found,
            [
                "engines/lmdb/Cargo.toml:4: depends on `rumba-engine-null`; an engine depends on the engine API, its protocol and, if it is a server, the server kit alone"
            ],
            "{kind}"
        );
    }
}

#[test]
fn generic_crate_code_names_no_engine_or_workload() {
    let of = |path: &str, line: &str| {
        let engine = "static INFO: EngineInfo = EngineInfo {\n    name: \"alpha\",\n};\n";
        findings(&[
            ("engines/tree/Cargo.toml", &manifest("rumba-engine-tree", "")),
            ("engines/tree/src/lib.rs", engine),
            ("engines/null/Cargo.toml", &manifest("rumba-engine-null", "")),
            ("engines/two-words/Cargo.toml", &manifest("rumba-engine-two-words", "")),
            ("workloads/points/Cargo.toml", &manifest("rumba-workload-points", "")),
            (path, line),
        ])
    };
    for line in [
        "if name == \"alpha\" {",
        "const TREE_PAGE: u64 = 1;",
        "use Tree;",
        "x(\"use = \\\"points\\\"\")",
        "\"two-words\"",
    ] {
        let found = of("crates/statistics/src/a.rs", line);
        assert!(found.len() == 1 && found[0].starts_with("crates/statistics/src/a.rs:1: names `"), "{line}: {found:?}");
    }
    assert_eq!(of("crates/report/src/a.rs", "let baseline = \"null\";").len(), 1);
    for line in ["// alpha's way", "let alphabet = 1;", "ptr::null()", "trees()", "#[cfg(test)]\nmod tests { alpha }"] {
        assert_eq!(of("crates/engine-api/src/a.rs", line), [""; 0], "{line}");
    }
    // Code after a test item is code again.
    for tests in ["#[cfg(test)]\nmod tests;\n", "#[cfg(test)]\nmod tests {\n    fn a() {}\n}\n"] {
        let found = of("crates/report/src/a.rs", &format!("{tests}const A: &str = \"alpha\";\n"));
        assert!(found.len() == 1 && found[0].contains("names `alpha`"), "{tests}: {found:?}");
    }
    for path in ["crates/lab/src/spec/tests.rs", "crates/lab/tests/a.rs", "rumba/src/registry.rs", "engines/b/src/a.rs"]
    {
        assert_eq!(of(path, "let name = \"alpha\";"), [""; 0], "{path}");
    }
}

#[test]
fn another_name_for_a_crate_hides_nothing() {
    for dependency in ["alias.workspace = true", "any = { path = \"x\", package = \"rumba-lab\" }"] {
        let found = arrows("workloads/linkbench", "w", &format!("[dependencies]\n{dependency}\n"));
        assert_eq!(
            found,
            [
                "workloads/linkbench/Cargo.toml:4: depends on `rumba-lab`; a workload depends on the engine API and the workload kit alone; its tests may use a protocol or an engine"
            ]
        );
    }
}

#[test]
fn protocols_depend_on_each_other_only_in_tests() {
    let of = |kind: &str, dependency: &str| {
        let own = manifest("rumba-protocol-a", &format!("[{kind}]\n{dependency}.path = \"x\"\n"));
        findings(&[
            ("protocols/a/Cargo.toml", &own),
            ("protocols/b/Cargo.toml", &manifest("rumba-protocol-b", "")),
            ("protocols/transport/Cargo.toml", &manifest("rumba-transport", "")),
            ("crates/lab/Cargo.toml", &manifest("rumba-lab", "")),
        ])
        .len()
    };
    assert_eq!(of("dependencies", "rumba-transport"), 0);
    assert_eq!((of("dependencies", "rumba-protocol-b"), of("dev-dependencies", "rumba-protocol-b")), (1, 0));
    assert_eq!(of("dev-dependencies", "rumba-lab"), 1);
}

#[test]
fn what_tests_share_is_for_tests_alone() {
    let dev = "[dev-dependencies]\nrumba-testkit.workspace = true\n";
    assert_eq!(arrows("crates/engine-api", "rumba-engine-api", dev), [""; 0]);
    assert_eq!(arrows("engines/lmdb", "rumba-engine-lmdb", &dev.replace("dev-", "")).len(), 1);
    // Its suites know engines as traits.
    assert_eq!(arrows("crates/testkit", "rumba-testkit", "[dependencies]\nrumba-engine-api = {}\n"), [""; 0]);
    assert_eq!(arrows("crates/testkit", "rumba-testkit", "[dependencies]\nrumba-engine-lmdb = {}\n").len(), 1);
}

#[test]
fn lab_and_report_know_no_engine() {
    let dependency = "[dependencies.rumba-engine-lmdb]\npath = \"x\"\n";
    assert!(arrows("crates/lab", "rumba-lab", dependency)[0].starts_with("crates/lab/Cargo.toml:3: "));
    assert!(arrows("crates/report", "rumba-report", dependency)[0].starts_with("crates/report/Cargo.toml:3: "));
}

#[test]
fn a_crate_outside_the_rooms_is_found() {
    let found = findings(&[("tools/x/Cargo.toml", &manifest("x", ""))]);
    assert_eq!(
        found,
        [
            "tools/x/Cargo.toml:1: `x` is in no room: crates are in crates/, engines/, protocols/, tests/, workloads/, rumba or xtask"
        ]
    );
}

#[test]
fn source_over_600_lines_is_reported_and_a_document_is_not() {
    let (most, more) = ("x\n".repeat(600), "x\n".repeat(601));
    let readme = format!("{more}b.ts setup");
    let found = findings(&[("a.rs", &most), ("web/b.ts", &more), ("scripts/setup", &more), ("README.md", &readme)]);
    assert_eq!(
        found,
        [
            "scripts/setup:601: 601 lines; at most 600: move a part to its own file",
            "web/b.ts:601: 601 lines; at most 600: move a part to its own file",
        ]
    );
}

#[test]
fn unfinished_words_are_found_in_sources() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!()"), concat!("unimplemented", "!()")];
    for word in words {
        let text = format!("fn a() {{}}\n// {word} later\n");
        assert_eq!(findings(&[("a.rs", &text)]).len(), 1, "{word}");
        assert!(findings(&[("a.rs", &text)])[0].starts_with("a.rs:2: "));
        assert_eq!(findings(&[("notes.md", &text)]), [""; 0]);
    }
    assert_eq!(findings(&[("a.rs", concat!("let mas", "TO", "DON = 1; // ", "TO", "DOS"))]), [""; 0]);
}

#[test]
fn a_test_that_skips_itself_is_found() {
    let reported = findings(&[("engines/lmdb/tests/full.rs", "fn a() {\n    println!(\"skipped: no root\");\n}\n")]);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].starts_with("engines/lmdb/tests/full.rs:2: a test that returns is counted as passed"),
        "{reported:?}"
    );
    let reported = findings(&[("a.rs", "#[test]\n#[ignore]\nfn a() {}\n"), ("b.rs", "#[ignore = \"slow\"]\n")]);
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert_eq!(findings(&[("a.rs", "#[ignore = \"run by the test above\"]\n")]), [""; 0]);
}

#[test]
fn core_without_its_attribute_is_found() {
    assert_eq!(findings(&[("crates/engine-api/src/lib.rs", "//! Words.\n#![deny(missing_docs)]\n")]), [""; 0]);
    assert_eq!(
        findings(&[("crates/engine-api/src/lib.rs", "//! Words.\n// #![deny(missing_docs)]\n")]),
        ["crates/engine-api/src/lib.rs:1: lacks #![deny(missing_docs)]"]
    );
}

#[test]
fn dead_links_are_found_in_documents() {
    let text = "See [a](docs/a.md#part), [b](docs/b.md), ![c](c.png),\n[out](../x), [root](/etc/x)\n\n\
                ```\n[code](nowhere)\n```\n[web](https://example.org/x) [part](#part)\n[ref]: docs/none.md\n[ref]\n";
    let found = findings(&[("README.md", text), ("docs/a.md", "[up](../README.md) [b](b.md)")]);
    assert_eq!(
        found,
        [
            "README.md:1: the link c.png leads nowhere",
            "README.md:1: the link docs/b.md leads nowhere",
            "README.md:2: the link ../x leads out of the project",
            "README.md:2: the link /etc/x leads out of the project",
            "docs/a.md:1: the link b.md leads nowhere",
        ]
    );
}

#[test]
fn a_link_by_reference_is_found_where_it_stands() {
    let found = findings(&[("README.md", "See [that][ref].\n\n[ref]: docs/none.md\n")]);
    assert_eq!(found, ["README.md:1: the link docs/none.md leads nowhere"]);
}

#[test]
fn traces_of_a_machine_are_found_in_any_text() {
    let host = concat!("\"resolved\": \"https://registry.", "npmjs.org/uplot.tgz\"");
    let path = concat!("run `", "/wo", "rk/main/x`");
    assert_eq!(findings(&[("web/package-lock.json", host)]).len(), 1);
    assert_eq!(findings(&[("a.md", path)]).len(), 1);
    assert_eq!(findings(&[("a.md", concat!("see docs", "/wo", "rk/x and $DIR", "/wo", "rk/x"))]).len(), 0);
}

#[test]
fn a_lock_file_names_crates_io_and_no_mirror() {
    let line = |source: &str| format!("source = \"{source}\"\n");
    let known = line("registry+https://github.com/rust-lang/crates.io-index");
    assert_eq!(findings(&[("Cargo.lock", &known)]), [""; 0]);
    let mirror = known + &line("registry+https://mirror.example/index");
    assert_eq!(
        findings(&[("Cargo.lock", &mirror)]),
        ["Cargo.lock:2: locks a crate to another registry than crates.io"]
    );
}

#[test]
fn what_is_made_and_what_is_no_text_is_passed_over() {
    let unfinished = concat!("// TO", "DO");
    let made = [("target/a.rs", unfinished), ("web/node_modules/b.js", unfinished), ("results/c.sh", unfinished)];
    assert_eq!(findings(&made), [""; 0]);
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("picture.rs"), [0xff, 0xfe, 0]).unwrap();
    assert_eq!(check(root.path()).unwrap().files, 0);
}

#[test]
fn this_project_is_found_by_its_root() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    assert!(check(root).unwrap().files > 30);
}

#[test]
fn a_warning_without_a_rank_is_found() {
    let ranking = ("crates/results/src/warning.rs", "    row(\"known\", Rank::Note, &[]),\n");
    let make = concat!("Warning::", "new(");
    let source = format!("fn f() {{\n    {make}\n        \"known\", a, b);\n    {make}\"new-one\", a, b);\n}}\n");
    let found = findings(&[ranking, ("crates/report/src/a.rs", &source)]);
    assert_eq!(
        found,
        ["crates/report/src/a.rs:4: the warning `new-one` has no rank in crates/results/src/warning.rs"],
        "a known one, and one in a test, are not"
    );
}

/// The findings in one file of lab.
fn of_lab(path: &str, content: &str) -> Vec<String> {
    let files = [("crates/lab/src/lib.rs", "#[cfg(test)]\nmod doubles;\n"), (path, content)];
    findings(&files)
}

#[test]
fn a_folder_of_lab_that_uses_what_comes_later_is_found() {
    let later = "//! See [`crate::trial`].\nuse crate::{host::Facts, trial};\n";
    assert_eq!(
        of_lab("crates/lab/src/limits/group.rs", later),
        ["crates/lab/src/limits/group.rs:2: `limits` uses `trial`; it may use host, provision, registry"]
    );
    assert_eq!(
        of_lab("crates/lab/src/host.rs", "fn a() {\n    crate::run::b();\n}\n"),
        ["crates/lab/src/host.rs:2: `host` uses `run`; it may use no other"]
    );
    let found = of_lab("crates/lab/src/host/mod.rs", "#[cfg(test)]\nmod tests {\n}\nuse crate::conduct;\n");
    assert!(found.len() == 1 && found[0].starts_with("crates/lab/src/host/mod.rs:4: "), "{found:?}");
    let in_tests = "#[cfg(test)]\nmod tests {\n    use crate::conduct;\n}\n";
    assert_eq!(of_lab("crates/lab/src/host/mod.rs", in_tests), [""; 0]);
    assert_eq!(of_lab("crates/lab/src/doubles.rs", "use crate::conduct;\n"), [""; 0], "it is there for tests alone");
    let found = of_lab("crates/lab/src/attic.rs", "");
    assert!(found.len() == 1 && found[0].contains("`attic` has no place among lab's folders"), "{found:?}");
}

#[test]
fn the_folders_of_lab_use_one_another_in_one_direction() {
    let mut before: Vec<&str> = Vec::new();
    for (folder, used) in super::folders::MAY_USE {
        for used in *used {
            assert!(before.contains(used), "{folder} may use {used}, which comes later");
        }
        before.push(folder);
    }
}

#[test]
fn cyclic_files_of_core_and_statistics_are_reported() {
    let of = |c: &str| {
        findings(&[
            ("crates/engine-api/src/lib.rs", "#![deny(missing_docs)]\nmod a;\nmod b;\nmod c;\n"),
            ("crates/engine-api/src/a.rs", "//! See [`crate::b`].\nuse crate::c::C;\nuse crate::c::D;\n"),
            ("crates/engine-api/src/b/mod.rs", "use crate::a;\n"),
            ("crates/engine-api/src/c.rs", c),
        ])
    };
    assert_eq!(of("#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n"), [""; 0], "tests may");
    assert_eq!(
        of("use crate::b;\n"),
        [
            "crates/engine-api/src/a.rs:2: `a` uses `c`, which uses `a`, itself or by others: a circle",
            "crates/engine-api/src/b/mod.rs:1: `b` uses `a`, which uses `b`, itself or by others: a circle",
            "crates/engine-api/src/c.rs:1: `c` uses `b`, which uses `c`, itself or by others: a circle",
        ]
    );
}

#[test]
fn a_source_that_no_module_declares_is_found() {
    let crate_of = |root: &str, more: &[(&str, &str)]| {
        let manifest = manifest("rumba-engine-a", "");
        let own = [("engines/a/Cargo.toml", manifest.as_str()), ("engines/a/src/lib.rs", root)];
        findings(&[&own[..], more].concat())
    };
    let of_crate = [
        ("engines/a/src/b.rs", "pub mod c;\n"),
        ("engines/a/src/b/c.rs", ""),
        ("engines/a/src/d/mod.rs", ""),
        ("engines/a/src/e.rs", ""),
        ("engines/a/tests/f.rs", "mod common;\n"),
        ("engines/a/tests/common/mod.rs", ""),
        ("engines/a/examples/g.rs", ""),
    ];
    assert_eq!(crate_of("mod b;\n#[cfg(test)]\nmod d;\n#[path = \"e.rs\"]\nmod other;\n", &of_crate), [""; 0]);
    assert_eq!(
        crate_of("mod bc;\n", &[("engines/a/src/b.rs", ""), ("engines/a/src/bc.rs", ""), ("engines/a/src/b/d.rs", "")]),
        [
            "engines/a/src/b/d.rs:1: it is never compiled, because it has no `mod`: declare it or remove it",
            "engines/a/src/b.rs:1: it is never compiled, because it has no `mod`: declare it or remove it",
        ]
    );
}

#[test]
fn unreferenced_files_of_every_kind_are_reported() {
    let readme = "[a](docs/a.md), scripts/setup-all, `rumba reproduce tiers`\n";
    let main = "import { chart } from \"./chart\";\nimport \"./style.css\";\n";
    let found = findings(&[
        ("README.md", readme),
        ("docs/a.md", "docs/a.md"),
        ("docs/b.md", "b.md names itself"),
        ("scripts/setup", ""),
        ("experiments/tiers.toml", ""),
        ("experiments/tier.toml", ""),
        ("web/index.html", "<script src=\"/src/main.ts\">"),
        ("web/src/main.ts", main),
        ("web/src/chart.ts", ""),
        ("web/src/charts.ts", ""),
        ("web/src/style.css", ""),
    ]);
    let unnamed = ["docs/b.md", "experiments/tier.toml", "scripts/setup", "web/src/charts.ts"];
    let expected = unnamed.map(|path| format!("{path}:1: no other file names it: link it, use it or remove it"));
    assert_eq!(found, expected);
}

#[test]
fn banned_words_in_comments_are_found_outside_of_code() {
    let source =
        "//! A.\n\n// The server told it anew.\nlet told = 1;\n/// Calls [`told`] and `tell`, not Anew.\nfn a() {}\n";
    let found = findings(&[("crates/engine-api/src/a.rs", source)]);
    let words: Vec<String> = found.into_iter().filter(|finding| finding.contains("in a comment")).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words[0].contains("a.rs:3: `told` in a comment: write reported"), "{words:?}");
    assert!(words[1].contains("a.rs:5: `anew` in a comment: write again"), "{words:?}");
}
