//! The licences of all crates in a binary, with their texts, because a distributor of the binary must include them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::run;

/// The beginnings of the names of files with a licence, or with a notice that it requires.
const NAMES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// The maximum depth, below a crate's root, of third-party sources that it compiles (LMDB, LuaJIT).
const DEPTH: usize = 5;

/// All licences as one text: first the licence of each crate, then each text once with its crates.
///
/// # Errors
/// An error of cargo; a text that cannot be read.
pub fn of(root: &Path) -> Result<String, String> {
    let mut command = Command::new("cargo");
    command.args(["metadata", "--format-version=1", "--locked", "--filter-platform"]);
    command.arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).current_dir(root);
    let reported: Value = serde_json::from_slice(&run(&mut command, "see what cargo lacks")?)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let mut crates = Vec::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages(&reported) {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        crates.push(format!("{name}: {}", text("license")));
        let manifest = Path::new(text("manifest_path"));
        for file in files(manifest.parent().unwrap_or(Path::new("")), DEPTH) {
            let bytes = super::read(&file)?;
            let words = String::from_utf8_lossy(&bytes).replace('\r', "").trim_end().to_owned();
            texts.entry(words).or_default().insert(name.clone());
        }
    }
    crates.sort();
    let mut all = "rumba is made of these crates, each under its own licence.\n\n".to_owned();
    crates.iter().for_each(|line| all += &format!("{line}\n"));
    for (text, names) in texts {
        let names: Vec<String> = names.into_iter().collect();
        let _ = write!(all, "\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", "));
    }
    Ok(all)
}

/// The third-party packages that the binary needs. Packages used only by build scripts are included, because their
/// content may be compiled in: LuaJIT is.
fn packages(reported: &Value) -> Vec<&Value> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let nodes: BTreeMap<String, Value> = list(&reported["resolve"]["nodes"])
        .into_iter()
        .map(|node| (node["id"].as_str().unwrap_or_default().to_owned(), node))
        .collect();
    let all = reported["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = all.iter().find(|package| package["name"] == "rumba" && package["source"].is_null());
    let mut open: Vec<String> = own.and_then(|package| Some(package["id"].as_str()?.to_owned())).into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        for dependency in nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default() {
            let is_built = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            open.extend(dependency["pkg"].as_str().filter(|_| is_built).map(str::to_owned));
        }
    }
    let is_needed = |package: &&Value| {
        let id = package["id"].as_str().unwrap_or_default();
        seen.contains(id) && !package["source"].is_null()
    };
    all.iter().filter(is_needed).collect()
}

fn files(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if path.is_dir() && depth > 0 {
            found.extend(files(&path, depth - 1));
        } else if path.is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(".rs") {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_list_has_build_but_no_test_dependencies() {
        let reported = serde_json::json!({
            "packages": [
                { "name": "rumba", "id": "rumba", "source": null },
                { "name": "in", "id": "in", "source": "registry" },
                { "name": "built", "id": "built", "source": "registry" },
                { "name": "tests", "id": "tests", "source": "registry" },
            ],
            "resolve": { "nodes": [
                { "id": "rumba", "deps": [
                    { "pkg": "in", "dep_kinds": [{ "kind": null }] },
                    { "pkg": "tests", "dep_kinds": [{ "kind": "dev" }] },
                ] },
                { "id": "in", "deps": [{ "pkg": "built", "dep_kinds": [{ "kind": "build" }] }] },
            ] },
        });
        let names: Vec<_> = packages(&reported).into_iter().map(|package| package["name"].clone()).collect();
        assert_eq!(names, ["in", "built"]);
    }
}
