//! Directories that a program needs seconds to make, and that many tests begin with: made once for a build, and copied.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::process::output_of;

/// Provides at `to`, which must not exist yet, the directory that `make` creates there, or a copy of an earlier one
/// with the same key. The key has the program's ([`key`]), and all other parameters that distinguish the result.
pub fn provide(key: &str, to: &Path, make: impl FnOnce()) {
    let template = home().join(key);
    if template.is_dir() {
        return copy(&template, to);
    }
    make();
    // Complete or not there at all; if another test was faster, its template is kept.
    let draft = tempfile::Builder::new().prefix(".draft-").tempdir_in(home()).expect("a directory");
    let made = draft.path().join("made");
    copy(to, &made);
    let _ = fs::rename(&made, &template);
}

/// A key for a program's result: its size and time distinguish it from another version.
pub fn key(name: &str, program: &Path) -> String {
    let file = fs::metadata(program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    format!("{name}-{}-{}", file.size(), file.mtime())
}

/// With owners and modes.
fn copy(from: &Path, to: &Path) {
    output_of(Command::new("cp").args(["-a", "--reflink=auto"]).args([from, to]));
}

/// Below Cargo's target directory, like this program.
fn home() -> PathBuf {
    let program = env::current_exe().expect("the test's program");
    let built = program.ancestors().find(|path| path.ends_with("debug") || path.ends_with("release"));
    let home = built.and_then(Path::parent).expect("Cargo's directory").join("tmp/templates");
    fs::create_dir_all(&home).expect("a directory for templates");
    home
}
