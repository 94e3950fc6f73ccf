//! Passes the commit that the binary is built from to the binary.
//! Cargo runs this script again when a source or the commit changes; only the binary of the workspace is recompiled
//! then.
//! The script also links the binary so that C modules of Lua find Lua's functions in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable for packagers who build without a repository: the full hash of the commit.
const GIVEN: &str = "RUMBA_COMMIT";
/// Lua's functions. C modules that a script requires have no Lua of their own, so they call the program's.
const LUA: [&str; 2] = ["lua_*", "luaL_*"];
/// Folders with crates in them, and the binary's own.
const CRATES: [&str; 4] = ["crates", "engines", "protocols", "workloads"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a workspace").to_owned();
    let sources = sources(&root);
    for source in &sources {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    println!("cargo:rerun-if-env-changed={GIVEN}");
    let (commit, committed, dirty, unknown) = match std::env::var(GIVEN) {
        Ok(given) if !given.is_empty() => (given, String::new(), false, String::new()),
        _ => match of_repository(&root, &sources) {
            Ok((commit, committed, dirty)) => (commit, committed, dirty, String::new()),
            Err(reason) => (String::new(), String::new(), false, reason),
        },
    };
    println!("cargo:rustc-env=RUMBA_BUILD_COMMIT={commit}");
    println!("cargo:rustc-env=RUMBA_BUILD_COMMITTED={committed}");
    println!("cargo:rustc-env=RUMBA_BUILD_DIRTY={}", if dirty { "yes" } else { "" });
    println!("cargo:rustc-env=RUMBA_BUILD_UNKNOWN={unknown}");
    for functions in LUA {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={functions}");
    }
}

/// The files the binary is compiled from, relative to the root. Tests are excluded because they do not change it.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("rumba")];
    for of in CRATES {
        let entries = std::fs::read_dir(root.join(of)).into_iter().flatten().flatten();
        folders.extend(entries.map(|entry| Path::new(of).join(entry.file_name())));
    }
    folders.sort();
    let parts = ["Cargo.toml", "build.rs", "src", "assets"];
    let mut sources: Vec<PathBuf> = ["Cargo.toml", "Cargo.lock", "experiments"].map(PathBuf::from).to_vec();
    sources.extend(folders.iter().flat_map(|folder| parts.map(|part| folder.join(part))));
    // Cargo would run the script in every build for a path that does not exist.
    sources.retain(|source| root.join(source).exists());
    sources
}

/// The commit, its time, and whether the sources differ from it; or the reason why they are unknown.
fn of_repository(root: &Path, sources: &[PathBuf]) -> Result<(String, String, bool), String> {
    let git = |arguments: &[&str]| -> Result<String, String> {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).env("TZ", "UTC").output();
        let output = output.map_err(|error| format!("git cannot be run: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(text(&output.stderr).lines().next().unwrap_or("git failed").to_owned())
    };
    // Sources unpacked inside another project's repository do not belong to that repository.
    let above = git(&["rev-parse", "--show-prefix"]).map_err(|_| "built from sources without a repository".to_owned());
    if !above?.is_empty() {
        return Err("built from sources without a repository of their own".to_owned());
    }
    // The log of HEAD grows with each commit and each change of branch. Without a log, the branch and HEAD change.
    let mut reports = vec!["logs/HEAD".to_owned(), "HEAD".to_owned(), "packed-refs".to_owned()];
    reports.extend(git(&["symbolic-ref", "--quiet", "HEAD"]));
    for name in reports {
        let path = root.join(git(&["rev-parse", "--git-path", &name])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let committed = git(&["show", "--no-patch", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "HEAD"])?;
    let mut status = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(sources.iter().filter_map(|source| source.to_str()));
    let status = git(&status)?;
    Ok((commit, committed, !status.is_empty()))
}
