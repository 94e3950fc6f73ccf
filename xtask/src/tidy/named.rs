//! Every file must be named by another one. For a source this is the `mod` that includes it. Documents, experiments,
//! scripts and parts of the page must be read, run or linked by another file. Unnamed files are never compiled, run or
//! found.

use std::path::{Path, PathBuf};

use super::{Finding, Text, has_word};

/// Directories whose files must be named, in addition to sources.
const NAMED_THERE: [&str; 5] = ["docs", "experiments", "scripts", "web", "engines/mysql/profiles"];
/// Files that tools find by their name.
const FOUND_BY_TOOLS: [&str; 6] =
    ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "index.html", ".npmrc"];

/// Files that no other file names; `all` are the paths of all files, text or not.
pub fn check(files: &[Text], all: &[PathBuf]) -> Vec<Finding> {
    let sources = all.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let of_crates = sources.filter(|path| is_in_crate(path, files));
    let undeclared = of_crates.filter(|path| !is_root(path, files) && !is_declared(path, files)).map(|path| {
        let what = "it is never compiled, because it has no `mod`: declare it or remove it";
        Finding { file: path.clone(), line: 1, what: what.to_owned() }
    });
    let others = all.iter().filter(|path| NAMED_THERE.iter().any(|there| path.starts_with(there)));
    let unnamed = others.filter(|path| !is_named(path, files)).map(|path| Finding {
        file: path.clone(),
        line: 1,
        what: "no other file names it: link it, use it or remove it".to_owned(),
    });
    undeclared.chain(unnamed).collect()
}

fn is_in_crate(path: &Path, files: &[Text]) -> bool {
    files.iter().any(|file| {
        file.path.ends_with("Cargo.toml") && file.path.parent().is_some_and(|folder| path.starts_with(folder))
    })
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Whether Cargo finds a source automatically, or a manifest names it.
fn is_root(path: &Path, files: &[Text]) -> bool {
    let above = path.parent().unwrap_or(Path::new(""));
    let is_target = matches!(name(path), "lib.rs" | "main.rs" | "build.rs")
        || ["tests", "examples", "benches", "bin"]
            .iter()
            .any(|folder| above.ends_with(folder) && name(path) != "mod.rs");
    let reported =
        |file: &&Text| file.path.ends_with("Cargo.toml") && file.content.contains(&format!("{}\"", name(path)));
    is_target && !is_within_source(above)
        || files.iter().filter(reported).any(|file| path.starts_with(file.path.with_file_name("")))
}

/// Whether a folder is one of a crate's modules, such as `spec/tests`, and not one of Cargo's.
fn is_within_source(folder: &Path) -> bool {
    let parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
    parts.iter().position(|part| *part == "src").is_some_and(|at| parts[at + 1..].iter().any(|part| *part != "bin"))
}

/// Whether a permitted file declares a source as its module, or names its file.
fn is_declared(path: &Path, files: &[Text]) -> bool {
    let (module, folder) = match name(path) {
        "mod.rs" => (path.parent().map(stem).unwrap_or_default(), path.parent().and_then(Path::parent)),
        _ => (stem(path), path.parent()),
    };
    let folder = folder.unwrap_or(Path::new(""));
    let may_declare = |file: &&Text| {
        // `a/mod.rs` and `a.rs` declare the modules in `a`; in Cargo's folders every target does.
        let is_next_to = file.path.parent() == Some(folder) && is_root(&file.path, files);
        is_next_to || file.path == folder.join("mod.rs") || file.path == folder.with_extension("rs")
    };
    let declaration = format!("mod {module};");
    let declares = |file: &Text| {
        let mut found = file.content.match_indices(&declaration);
        found.any(|(at, _)| file.content[..at].ends_with([' ', '\n']) || at == 0)
    };
    let quoted = format!("{}\"", name(path));
    let names = |file: &&Text| file.extension() == "rs" && file.path != path && file.content.contains(&quoted);
    files.iter().filter(may_declare).any(declares) || files.iter().any(|file| names(&file))
}

/// Whether another file contains the name of this one: the whole name, or the form used by imports or experiments.
fn is_named(path: &Path, files: &[Text]) -> bool {
    if FOUND_BY_TOOLS.contains(&name(path)) || name(path).ends_with(".test.mjs") {
        return true;
    }
    let is_called = path.starts_with("experiments") || path.starts_with("docs/experiments");
    let imported = format!("/{}\"", stem(path));
    files.iter().filter(|file| file.path != path).any(|file| {
        has_word(&file.content, name(path), "_-")
            || (path.starts_with("web") && file.content.contains(&imported))
            || (is_called && has_word(&file.content, stem(path), "_-"))
    })
}
