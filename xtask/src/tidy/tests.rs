//! Each rule finds its violations, reports their position, and finds no others.

use std::fs;

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

/// The findings for a project in which a crate has this dependency, as a line of TOML.
fn arrows(path: &str, kind: &str, dependency: &str) -> Vec<String> {
    let crates = [
        ("crates/engine-api", "rumba-engine-api"),
        ("crates/testkit", "rumba-testkit"),
        ("tests/faults", "rumba-faults"),
        ("crates/lab", "rumba-lab"),
        ("crates/report", "rumba-report"),
        ("rumba", "rumba"),
        ("engines/lmdb", "rumba-engine-lmdb"),
        ("engines/null", "rumba-engine-null"),
        ("workloads/linkbench", "rumba-workload-linkbench"),
        ("protocols/a", "rumba-protocol-a"),
        ("protocols/b", "rumba-protocol-b"),
        ("protocols/transport", "rumba-transport"),
    ];
    let root = "[workspace.dependencies]\nrumba-engine-api.path = \"crates/engine-api\"\n\
                alias = { path = \"crates/lab\", package = \"rumba-lab\" }\n";
    let own = format!("[{kind}]\n{dependency}\n");
    let manifests = crates.map(|(other, name)| {
        (format!("{other}/Cargo.toml"), manifest(name, if other == path { own.as_str() } else { "" }))
    });
    let mut files: Vec<(&str, &str)> = manifests.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("Cargo.toml", root));
    findings(&files)
}

#[test]
fn dependencies_follow_the_design() {
    const ON: &str = "dependencies";
    const DEV: &str = "dev-dependencies";
    let in_order = [
        ("rumba", ON, "rumba-engine-api.workspace = true"),
        ("rumba", ON, "rumba-lab.path = \"x\""),
        ("rumba", ON, "rumba-engine-lmdb.path = \"x\""),
        ("rumba", DEV, "rumba-faults.path = \"x\""),
        ("crates/lab", ON, "rumba-engine-api.workspace = true"),
        ("engines/lmdb", ON, "rumba-engine-api.workspace = true\nserde = \"1\""),
        ("workloads/linkbench", ON, "rumba-engine-api.workspace = true"),
        ("protocols/a", ON, "rumba-transport.path = \"x\""),
        ("protocols/a", DEV, "rumba-protocol-b.path = \"x\""),
        ("crates/engine-api", DEV, "rumba-testkit.workspace = true"),
        // Its suites know engines as traits.
        ("crates/testkit", ON, "rumba-engine-api = {}"),
    ];
    for (path, kind, dependency) in in_order {
        assert_eq!(arrows(path, kind, dependency), [""; 0], "{path}: {dependency}");
    }
    let (engine, workload) = ("an engine depends on the engine API", "a workload depends on the engine API");
    let refused = [
        ("crates/engine-api", ON, "rumba-report", "the engine API depends on no crate of this workspace"),
        ("tests/faults", ON, "rumba-lab", ""),
        ("rumba", ON, "rumba-faults", ""),
        ("engines/lmdb", ON, "rumba-testkit", engine),
        ("engines/lmdb", ON, "rumba-engine-null", engine),
        ("engines/lmdb", DEV, "rumba-engine-null", engine),
        ("engines/lmdb", "build-dependencies", "rumba-engine-null", engine),
        ("engines/lmdb", "target.'cfg(unix)'.dependencies", "rumba-engine-null", engine),
        ("crates/testkit", ON, "rumba-engine-lmdb", ""),
        ("crates/lab", ON, "rumba-engine-lmdb", ""),
        ("crates/report", ON, "rumba-engine-lmdb", ""),
        ("protocols/a", ON, "rumba-protocol-b", ""),
        ("protocols/a", DEV, "rumba-lab", ""),
    ];
    let is_found = |path: &str, line: u32, package: &str, rule: &str, found: &[String]| {
        let expected = format!("{path}/Cargo.toml:{line}: depends on `{package}`; {rule}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{expected}: {found:?}");
    };
    for (path, kind, package, rule) in refused {
        is_found(path, 4, package, rule, &arrows(path, kind, &format!("{package}.path = \"x\"")));
    }
    let table = arrows("crates/lab", "dependencies.rumba-engine-lmdb", "path = \"x\"");
    is_found("crates/lab", 3, "rumba-engine-lmdb", "", &table);
    // Another name for a crate hides nothing.
    for dependency in ["alias.workspace = true", "any = { path = \"x\", package = \"rumba-lab\" }"] {
        let found = arrows("workloads/linkbench", ON, dependency);
        is_found("workloads/linkbench", 4, "rumba-lab", workload, &found);
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
fn file_in_place_of_a_directory_is_refused_or_skipped() {
    let no_room = manifest("x", "");
    let known = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
    let mirror = format!("{known}source = \"registry+https://mirror.example/index\"\n");
    let unfinished = concat!("// TO", "DO");
    let cases: [(&str, &str, &[&str]); 15] = [
        (
            "tools/x/Cargo.toml",
            &no_room,
            &["tools/x/Cargo.toml:1: `x` is in no room: crates are in crates/, engines/, "],
        ),
        (
            "engines/lmdb/tests/full.rs",
            "fn a() {\n    println!(\"skipped: no root\");\n}\n",
            &["engines/lmdb/tests/full.rs:2: a test that returns is counted as passed"],
        ),
        ("a.rs", "#[test]\n#[ignore]\nfn a() {}\n", &["a.rs:"]),
        ("a.rs", "#[ignore = \"slow\"]\n", &["a.rs:"]),
        ("a.rs", "#[ignore = \"run by the test above\"]\n", &[]),
        ("crates/engine-api/src/lib.rs", "//! Words.\n#![deny(missing_docs)]\n", &[]),
        (
            "crates/engine-api/src/lib.rs",
            "//! Words.\n// #![deny(missing_docs)]\n",
            &["crates/engine-api/src/lib.rs:1: lacks #![deny(missing_docs)]"],
        ),
        // Traces of a machine.
        (
            "web/package-lock.json",
            concat!("\"resolved\": \"https://registry.", "npmjs.org/uplot.tgz\""),
            &["web/package-lock.json:"],
        ),
        ("a.md", concat!("run `", "/wo", "rk/main/x`"), &["a.md:"]),
        ("a.md", concat!("see docs", "/wo", "rk/x and $DIR", "/wo", "rk/x"), &[]),
        ("Cargo.lock", known, &[]),
        ("Cargo.lock", &mirror, &["Cargo.lock:2: locks a crate to another registry than crates.io"]),
        // Made files.
        ("target/a.rs", unfinished, &[]),
        ("web/node_modules/b.js", unfinished, &[]),
        ("results/c.sh", unfinished, &[]),
    ];
    for (path, text, expected) in cases {
        let found = findings(&[(path, text)]);
        let is_expected = found.iter().zip(expected).all(|(found, start)| found.starts_with(start));
        assert!(found.len() == expected.len() && is_expected, "{path}: {text}: {found:?}");
    }
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("picture.rs"), [0xff, 0xfe, 0]).unwrap();
    assert_eq!(check(root.path()).unwrap().files, 0, "it is no text");
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
fn dead_links_are_found_in_documents() {
    let text = "See [a](docs/a.md#part), [b](docs/b.md), ![c](c.png),\n[out](../x), [root](/etc/x)\n\n\
                ```\n[code](nowhere)\n```\n[web](https://example.org/x) [part](#part)\n[ref]: docs/none.md\n[ref]\n";
    let by_reference = "See [that][ref].\n\n[ref]: docs/none.md\n";
    let files = [("CHANGES.md", by_reference), ("README.md", text), ("docs/a.md", "[up](../README.md) [b](b.md)")];
    let found = findings(&files);
    assert_eq!(
        found,
        [
            "CHANGES.md:1: the link docs/none.md leads nowhere",
            "README.md:1: the link c.png leads nowhere",
            "README.md:1: the link docs/b.md leads nowhere",
            "README.md:2: the link ../x leads out of the project",
            "README.md:2: the link /etc/x leads out of the project",
            "docs/a.md:1: the link b.md leads nowhere",
        ]
    );
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
fn lab_folder_that_uses_a_later_one_is_reported() {
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
