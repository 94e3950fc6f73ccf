//! Versions of servers.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// A server's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u16, pub u16, pub u16);

impl Version {
    /// Parses the first dotted number of a text: `10.11.14-MariaDB` is 10.11.14.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|word| word.contains('.')).find_map(|word| {
            let mut parts = word.split('.').map(str::parse);
            let mut next = || parts.next()?.ok();
            Some(Version(next()?, next()?, next().unwrap_or(0)))
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Identifies a program's file and its last modification.
type Program = (PathBuf, [i128; 4]);

fn program_at(path: &Path) -> io::Result<Program> {
    let file = fs::metadata(path)?;
    let changed = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
    Ok((path.to_owned(), [file.dev().into(), file.ino().into(), file.len().into(), changed]))
}

/// The output of a program's version option. A process runs each program only once, because starting a server's program
/// takes a sixth of a second. A program that was replaced since runs again.
///
/// # Errors
/// Why the program does not start.
pub fn reported(program: &Path, fetch: &mut Command) -> io::Result<Output> {
    static REPORTED: Mutex<Option<HashMap<Program, Output>>> = Mutex::new(None);
    let requested = program_at(program)?;
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    let reported = reported.get_or_insert_default();
    if let Some(output) = reported.get(&requested) {
        return Ok(output.clone());
    }
    let output = fetch.output()?;
    if output.status.success() {
        reported.insert(requested, output.clone());
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn program_is_queried_once_and_again_after_replacement() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = dir.path().join("server");
        let says = |words: &str| {
            let output = reported(&program, Command::new("echo").arg(words)).expect("an answer");
            String::from_utf8(output.stdout).expect("text")
        };
        symlink("/bin/sh", &program).expect("a link");
        assert_eq!([says("10.11"), says("never run")], ["10.11\n"; 2]);
        fs::remove_file(&program).and_then(|()| symlink("/bin/cat", &program)).expect("another");
        assert_eq!([says("11.8"), says("never run")], ["11.8\n"; 2]);
        fs::remove_file(&program).expect("removed");
        assert!(reported(&program, &mut Command::new("echo")).is_err());
    }

    #[test]
    fn versions_are_found_in_what_servers_say_of_themselves() {
        assert_eq!(Version::find("10.11.14-MariaDB-0+deb12u2"), Some(Version(10, 11, 14)));
        assert_eq!(Version::find("9.7.4"), Some(Version(9, 7, 4)));
        assert_eq!(Version::find("5.6"), Some(Version(5, 6, 0)));
        assert_eq!(Version::find("Percona 8"), None);
        assert!(Version(10, 11, 2) > Version(10, 6, 20));
    }
}
