//! Checks that a new crate is the compiled example, and that every line it needs elsewhere is added.

use std::path::Path;

use super::{Kind, code, files, make, type_name};
use crate::root;
use crate::tidy;

fn text(kind: Kind, name: &str, path: &str) -> String {
    let files = files(root(), kind, name).unwrap();
    files.into_iter().find(|(made, _)| made == Path::new(path)).unwrap().1
}

#[test]
fn the_code_is_the_compiled_example_under_another_name() {
    for (kind, path) in [(Kind::Engine, "engines/quill/src/lib.rs"), (Kind::Workload, "workloads/quill/src/lib.rs")] {
        let (guide, name) = kind.example();
        let guide = std::fs::read_to_string(root().join(guide)).unwrap();
        let made = text(kind, "quill", path);
        assert!(!made.contains(name) && !made.contains(&type_name(name)), "{kind:?}");
        let library = made.split("#[cfg(test)]").next().unwrap().split_once("missing_docs)]\n\n").unwrap().1;
        let again = library.replace("quill", name).replace("Quill", &type_name(name));
        assert!(guide.contains(again.trim_end()), "{kind:?}: it is not what the tests compile");
        assert_eq!(code(kind, "a page without an example", "quill"), None);
    }
}

#[test]
fn new_engine_adds_each_required_line_once_in_place() {
    for (kind, package, entry) in [
        (Kind::Engine, "rumba-engine-quill", "Box::new(rumba_engine_quill::Quill)"),
        (Kind::Workload, "rumba-workload-quill", "Box::new(rumba_workload_quill::Quill)"),
    ] {
        for (path, wanted) in [("Cargo.toml", package), ("rumba/Cargo.toml", package), ("rumba/src/registry.rs", entry)]
        {
            let (before, after) = (std::fs::read_to_string(root().join(path)).unwrap(), text(kind, "quill", path));
            assert_eq!(after.matches(wanted).count(), 1, "{path}");
            assert_eq!(after.lines().filter(|line| !before.contains(line)).count(), 1, "{path} changes elsewhere");
            if path.ends_with(".toml") {
                after.parse::<toml_edit::DocumentMut>().unwrap();
            }
        }
        let binary = text(kind, "quill", "rumba/Cargo.toml");
        let own: Vec<&str> = binary.lines().filter(|line| line.starts_with("rumba-") && !line.contains("{")).collect();
        let of_binary = &own[..own.iter().position(|line| line.starts_with("rumba-workload")).unwrap()];
        assert!(of_binary.is_sorted(), "{of_binary:?}");
    }
}

#[test]
fn taken_or_invalid_name_is_refused_and_writes_nothing() {
    for name in ["", "My", "my--engine", "my-", "-my", "1st", "../x"] {
        let Err(why) = files(root(), Kind::Engine, name) else { panic!("{name} is taken for a name") };
        assert!(why.contains("is no name"), "{why}");
    }
    assert!(files(root(), Kind::Workload, "my-workload").is_err(), "its table would have a hyphen");
    let made = text(Kind::Engine, "quill-pen", "rumba/src/registry.rs");
    assert!(made.contains("Box::new(rumba_engine_quill_pen::QuillPen)"), "{made}");
    for kind in [Kind::Engine, Kind::Workload] {
        assert!(files(root(), kind, "linkbench").unwrap_err().contains("is there already"));
    }
}

/// In a tree with only the files that it reads and writes.
#[test]
fn generated_crate_passes_tidy() {
    let house = tempfile::tempdir().unwrap();
    for path in [
        "Cargo.toml",
        "rumba/Cargo.toml",
        "rumba/src/registry.rs",
        Kind::Engine.example().0,
        Kind::Workload.example().0,
    ] {
        let copy = house.path().join(path);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(root().join(path), copy).unwrap();
    }
    make(house.path(), Kind::Engine, "quill").unwrap();
    make(house.path(), Kind::Workload, "pencil").unwrap();
    assert!(make(house.path(), Kind::Workload, "quill").unwrap_err().contains("engines/quill"));
    let report = tidy::check(house.path()).unwrap();
    let of_made = |found: &&tidy::Finding| {
        found.file.to_string_lossy().contains("quill") || found.file.to_string_lossy().contains("pencil")
    };
    let found: Vec<String> = report.findings.iter().filter(of_made).map(ToString::to_string).collect();
    assert_eq!(found, [""; 0]);
}
