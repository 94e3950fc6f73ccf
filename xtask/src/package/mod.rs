//! The packages: a tree of installed files, made into a Debian package, a tarball that runs from any directory, and a
//! wheel. They are built here and published nowhere.

mod licences;
mod tree;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tree::Tree;

/// The version of all crates of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The output directory, below the root; the binary's manifest names the tree in it for the Debian package.
const PLACE: &str = "target/package";

/// Makes all packages of a binary; returns their files.
///
/// # Errors
/// A missing file or a failed step, with the remedy.
pub fn make(root: &Path, binary: &Path) -> Result<Vec<PathBuf>, String> {
    let place = root.join(PLACE);
    let tree = Tree::make(root, binary, &place.join("tree"))?;
    let before = time_of_last_commit(root);
    Ok(vec![debian(root, &place)?, tarball(&tree, &place, &before)?, wheel::make(&tree, &place)?])
}

/// cargo-deb packs the tree, and gets the libraries that the binary needs from dpkg.
fn debian(root: &Path, place: &Path) -> Result<PathBuf, String> {
    let file = place.join(format!("rumba_{VERSION}_{}.deb", debian_architecture()));
    let mut command = Command::new("cargo");
    command.args(["deb", "--quiet", "--package", "rumba", "--no-build", "--no-strip", "--output"]).arg(&file);
    run(command.current_dir(root), "`make package` installs cargo-deb; it needs dpkg-shlibdeps of dpkg-dev")?;
    Ok(file)
}

/// The tree below one directory, without the identity of the user who packed it.
fn tarball(tree: &Tree, place: &Path, time: &str) -> Result<PathBuf, String> {
    let name = format!("rumba-{VERSION}-{}-linux", std::env::consts::ARCH);
    let file = place.join(format!("{name}.tar.gz"));
    let mut command = Command::new("tar");
    command.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &format!("--mtime=@{time}")]);
    command.arg(format!("--transform=s,^\\.,{name},")).arg("--directory").arg(tree.path());
    run(command.arg("--gzip").arg("--create").arg("--file").arg(&file).arg("."), "it needs GNU tar and gzip")?;
    Ok(file)
}

/// Seconds since 1970, so that two tarballs of the same commit are identical.
fn time_of_last_commit(root: &Path) -> String {
    let output = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root).output();
    let reported = output.ok().filter(|output| output.status.success());
    reported.map_or("0".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn debian_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn run(command: &mut Command, remedy: &str) -> Result<Vec<u8>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}; {remedy}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} ended with {}: {}; {remedy}", output.status, words.trim()))
}

/// Writes a file, and the directories above it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let above = path.parent().map_or(Ok(()), fs::create_dir_all);
    above.and_then(|()| fs::write(path, bytes)).map_err(|error| format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
