//! Tells the binary from which commit it is built. It runs anew when a source or the commit changes, and of the
//! workspace only the binary is compiled anew for it. And has it linked with what modules of Lua look for in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a packager sets who builds without a repository: the whole hash of the commit.
const GIVEN: &str = "RUMBA_COMMIT";
/// Lua's functions. Modules in C that a script requires have no Lua of their own: they call that of the program.
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

/// What the binary is compiled from, relative to the root; no tests, whose changes do not change it.
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
    // What is not there would have the script run in every build.
    sources.retain(|source| root.join(source).exists());
    sources
}

/// The commit, when it was made, and whether the sources differ from it; or why that is not known.
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
    // Sources that were unpacked below somebody else's repository are none of its.
    let above = git(&["rev-parse", "--show-prefix"]).map_err(|_| "built from sources without a repository".to_owned());
    if !above?.is_empty() {
        return Err("built from sources without a repository of their own".to_owned());
    }
    // The log of HEAD grows with each commit and each change of branch; without one, the branch and HEAD tell it.
    let mut tells = vec!["logs/HEAD".to_owned(), "HEAD".to_owned(), "packed-refs".to_owned()];
    tells.extend(git(&["symbolic-ref", "--quiet", "HEAD"]));
    for name in tells {
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
