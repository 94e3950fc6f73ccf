//! The permitted dependencies between lab's own folders, in one direction only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::code::lines_of_code;
use super::{Finding, Text};

const LAB: &str = "crates/lab/src";

/// Each folder or file of lab, and those it may use. Used folders come before the folders that use them.
pub(super) const MAY_USE: &[(&str, &[&str])] = &[
    // Facts about the host, engines and workloads.
    ("host", &[]),
    ("registry", &[]),
    ("probe", &["registry"]),
    // Resources made on the host, and their removal.
    ("provision", &["host"]),
    ("limits", &["host", "provision", "registry"]),
    ("leftovers", &["limits", "provision", "registry"]),
    ("kept", &["host", "provision"]),
    ("keeper", &["kept", "limits", "provision", "registry"]),
    ("engine_files", &[]),
    // Measurement, and the execution of the work.
    ("meter", &["host"]),
    ("run", &["host", "limits", "meter"]),
    ("harness", &["meter", "registry", "run"]),
    // From the experiment's file to the validated experiment. The drivers know the maximum number of clients.
    ("spec", &["host", "probe", "registry", "run"]),
    ("parity", &["registry"]),
    ("plan", &["parity", "registry", "spec"]),
    // The builds of a run's engines.
    ("builds", &["registry", "spec"]),
    ("prepare", &["builds", "host", "limits", "plan", "provision", "registry", "spec"]),
    // The clients on other hosts.
    ("fleet", &["meter", "registry", "run"]),
    // A trial, and the code that observes and stores it.
    ("trial", &["fleet", "host", "limits", "meter", "registry", "run"]),
    ("stall", &["host", "limits"]),
    ("store", &["harness", "host", "plan", "prepare", "spec"]),
    (
        "conduct",
        &[
            "engine_files",
            "fleet",
            "harness",
            "host",
            "kept",
            "leftovers",
            "limits",
            "meter",
            "plan",
            "prepare",
            "provision",
            "registry",
            "stall",
            "store",
            "trial",
        ],
    ),
    (
        "runner",
        &[
            "conduct",
            "fleet",
            "harness",
            "kept",
            "leftovers",
            "plan",
            "prepare",
            "provision",
            "registry",
            "spec",
            "store",
        ],
    ),
];

/// Every `crate::…` in every file of lab, except for its tests, which may set up later steps.
pub fn check(files: &[Text]) -> Vec<Finding> {
    let tests = test_modules(files);
    let of_lab = files.iter().filter(|file| file.extension() == "rs" && file.path.starts_with(LAB));
    of_lab
        .filter(|file| !tests.iter().any(|test| file.path.starts_with(test) || file.path == test.with_extension("rs")))
        .filter_map(|file| Some((file, folder(&file.path)?)))
        .flat_map(|(file, own)| wrong_uses(file, &own))
        .collect()
}

/// The folder, or the file with the same name: `spec` for `spec/mod.rs`. Files that connect the others have none.
fn folder(path: &Path) -> Option<String> {
    let first = path.strip_prefix(LAB).ok()?.iter().next()?.to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then(|| name.to_owned())
}

fn wrong_uses(file: &Text, own: &str) -> Vec<Finding> {
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == own) else {
        let what =
            format!("`{own}` has no place among lab's folders: xtask/src/tidy/folders.rs says what each may use");
        return vec![file.finding(1, what)];
    };
    let mut findings = Vec::new();
    for (number, line) in lines_of_code(&file.content) {
        for used in used(line) {
            let is_known = MAY_USE.iter().any(|(name, _)| *name == used);
            if is_known && used != own && !allowed.contains(&used) {
                let may = if allowed.is_empty() { "no other".to_owned() } else { allowed.join(", ") };
                findings.push(file.finding(number, format!("`{own}` uses `{used}`; it may use {may}")));
            }
        }
    }
    findings
}

/// The modules at the crate's root that a line names: of `crate::a::b` and of `crate::{a, b::c}`.
pub(super) fn used(line: &str) -> Vec<&str> {
    let name = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    line.match_indices("crate::")
        .flat_map(|(at, found)| {
            let rest = &line[at + found.len()..];
            match rest.strip_prefix('{') {
                Some(list) => list.split('}').next().unwrap_or_default().split(',').map(str::trim).collect(),
                None => vec![rest],
            }
        })
        .map(|path| &path[..name(path)])
        .collect()
}

/// The test modules, without their ending: `crates/lab/src/spec/tests`.
fn test_modules(files: &[Text]) -> BTreeSet<PathBuf> {
    let mut modules = BTreeSet::new();
    for file in files.iter().filter(|file| file.path.starts_with(LAB)) {
        let stem = file.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let within =
            if matches!(stem, "mod" | "lib") { file.path.with_file_name("") } else { file.path.with_extension("") };
        for declared in file.content.split("#[cfg(test)]\n").skip(1) {
            let name = declared.lines().next().and_then(|line| line.split("mod ").nth(1)?.strip_suffix(';'));
            modules.extend(name.map(|name| within.join(name)));
        }
    }
    modules
}
