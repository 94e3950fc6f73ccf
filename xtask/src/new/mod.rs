//! `new engine NAME`, `new workload NAME`: a crate that builds, runs and conforms, as the start of a new one.
//!
//! Its code is the example of the guide, which the tests compile, under another name.

mod page;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

/// The kind of crate to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Engine,
    Workload,
}

impl Kind {
    /// The word in names of crates.
    fn word(self) -> &'static str {
        match self {
            Kind::Engine => "engine",
            Kind::Workload => "workload",
        }
    }

    /// The directory of such crates, and of their pages below `docs/`.
    fn room(self) -> &'static str {
        match self {
            Kind::Engine => "engines",
            Kind::Workload => "workloads",
        }
    }

    /// The document with the example, and the example's name.
    fn example(self) -> (&'static str, &'static str) {
        match self {
            Kind::Engine => ("docs/adding-an-engine.md", "journal"),
            Kind::Workload => ("docs/adding-a-workload.md", "points"),
        }
    }

    /// The line of the registry's list.
    fn list(self) -> &'static str {
        match self {
            Kind::Engine => "pub fn engines() ",
            Kind::Workload => "pub fn workloads() ",
        }
    }
}

/// Writes the crate and its lines elsewhere; returns the files.
///
/// # Errors
/// An invalid name or one in use; a file that differs from its expected form.
pub fn make(root: &Path, kind: Kind, name: &str) -> Result<Vec<PathBuf>, String> {
    let files = files(root, kind, name)?;
    for (path, text) in &files {
        let path = root.join(path);
        let at = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(root)).map_err(at)?;
        fs::write(&path, text).map_err(at)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// The next steps to print.
pub fn next(kind: Kind, name: &str) -> String {
    let (room, (guide, _)) = (kind.room(), kind.example());
    let (run, conforms) = match kind {
        Kind::Engine => (
            format!("target/debug/rumba run linkbench --engine {name} --set maxid1=10000 --set loop=1s"),
            "cargo test --workspace --test conformance".to_owned(),
        ),
        Kind::Workload => (format!("target/debug/rumba run {name} --engine lmdb --set loop=1s"), String::new()),
    };
    let steps = ["cargo fmt".to_owned(), "cargo build --workspace".to_owned(), run, conforms];
    let steps: String = steps.iter().filter(|step| !step.is_empty()).map(|step| format!("  {step}\n")).collect();
    format!(
        "It is there and works; see for yourself:\n{steps}Then make it yours: {room}/{name}/src/lib.rs, docs/{room}/{name}.md, \
         a line in README.md. {guide} says what is expected."
    )
}

/// The files with their whole content.
fn files(root: &Path, kind: Kind, name: &str) -> Result<Vec<(PathBuf, String)>, String> {
    check_name(root, kind, name)?;
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("{}: {error}", root.join(path).display()))
    };
    let (word, room, (guide, of_example)) = (kind.word(), kind.room(), kind.example());
    let package = format!("rumba-{word}-{name}");
    let code = code(kind, &read(guide)?, name).ok_or_else(|| format!("{guide} has no example `{of_example}`"))?;
    let changed = |path: &str, change: fn(&str, Kind, &str) -> Option<String>| -> Result<(PathBuf, String), String> {
        let text = change(&read(path)?, kind, name).ok_or_else(|| format!("{path} has no place for {package}"))?;
        Ok((PathBuf::from(path), text))
    };
    let page = match kind {
        Kind::Engine => page::of_engine(name),
        Kind::Workload => page::of_workload(name),
    };
    Ok(vec![
        (PathBuf::from(format!("{room}/{name}/Cargo.toml")), manifest(kind, name)),
        (PathBuf::from(format!("{room}/{name}/src/lib.rs")), code),
        (PathBuf::from(format!("docs/{room}/{name}.md")), page),
        changed("Cargo.toml", in_workspace)?,
        changed("rumba/Cargo.toml", in_binary)?,
        changed("rumba/src/registry.rs", in_registry)?,
    ])
}

fn check_name(root: &Path, kind: Kind, name: &str) -> Result<(), String> {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    // A workload's tables have its name.
    let parts: Vec<&str> = if kind == Kind::Engine { name.split('-').collect() } else { vec![name] };
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_inside);
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !parts.into_iter().all(is_part) {
        let hyphens = if kind == Kind::Engine { ", hyphens between them if it has some" } else { "" };
        let what = "is no name: take small letters and digits, a letter first, as experiments will write it";
        return Err(format!("`{name}` {what}{hyphens}"));
    }
    let taken = ["engines", "workloads"].into_iter().find(|room| root.join(room).join(name).exists());
    match taken {
        Some(room) => Err(format!("{room}/{name} is there already: take another name for the {}", kind.word())),
        None => Ok(()),
    }
}

/// The example's code under another name; the body of `main` becomes a test.
fn code(kind: Kind, guide: &str, name: &str) -> Option<String> {
    let (_, of_example) = kind.example();
    let (_, rest) = guide.split_once("```rust\n")?;
    let (example, _) = rest.split_once("\n```")?;
    let (library, main) = example.split_once("\nfn main() ")?;
    if !library.contains(&format!("\"{of_example}\"")) {
        return None;
    }
    let body: String = main.lines().map(|line| indented(line) + "\n").collect();
    let test = format!(
        "#[cfg(test)]\nmod tests {{\n    use super::*;\n\n    #[test]\n    fn it_does_what_its_guide_says() {}}}\n",
        body.trim_start()
    );
    let head =
        format!("//! The {} `{name}`. See `docs/{}/{name}.md`.\n#![deny(missing_docs)]\n\n", kind.word(), kind.room());
    let renamed = |text: &str| text.replace(of_example, name).replace(&type_name(of_example), &type_name(name));
    Some(format!("{head}{}\n{}", renamed(library), renamed(&test)))
}

fn indented(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("    {line}") }
}

/// `bf-tree` as a type: `BfTree`.
fn type_name(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.split('-').map(part).collect()
}

fn manifest(kind: Kind, name: &str) -> String {
    let word = kind.word();
    let tests = if kind == Kind::Engine { "\n[dev-dependencies]\ntempfile.workspace = true\n" } else { "" };
    format!(
        "[package]\nname = \"rumba-{word}-{name}\"\ndescription = \"The {name} {word} for rumba\"\n\
         version.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
         license.workspace = true\npublish.workspace = true\n\n[lints]\nworkspace = true\n\n\
         [dependencies]\nrumba-engine-api.workspace = true\n{tests}"
    )
}

/// Behind the last crate of its kind.
fn in_workspace(text: &str, kind: Kind, name: &str) -> Option<String> {
    let (word, room) = (kind.word(), kind.room());
    let line = format!("rumba-{word}-{name} = {{ path = \"{room}/{name}\" }}\n");
    let last = text.rfind(&format!("\nrumba-{word}-"))? + 1;
    let end = last + text[last..].find('\n')? + 1;
    Some([&text[..end], &line, &text[end..]].concat())
}

/// In the order of the alphabet.
fn in_binary(text: &str, kind: Kind, name: &str) -> Option<String> {
    let package = format!("rumba-{}-{name}", kind.word());
    let mut start = text.find("\n[dependencies]\n")? + "\n[dependencies]\n".len();
    for line in text[start..].lines() {
        if line.is_empty() || line > package.as_str() {
            break;
        }
        start += line.len() + 1;
    }
    Some([&text[..start], &format!("{package}.workspace = true\n"), &text[start..]].concat())
}

/// At the end of its list.
fn in_registry(text: &str, kind: Kind, name: &str) -> Option<String> {
    let entry = format!("Box::new(rumba_{}_{}::{})", kind.word(), name.replace('-', "_"), type_name(name));
    let start = text.find(kind.list())?;
    let end = start + text[start..].find("]\n}")?;
    let (before, after) = (&text[..end], &text[end..]);
    Some(match before.strip_suffix(",\n    ") {
        Some(lines) => format!("{lines},\n        {entry},\n    {after}"),
        None => format!("{before}, {entry}{after}"),
    })
}
