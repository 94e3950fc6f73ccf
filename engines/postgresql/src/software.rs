//! Finds a server's programs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rumba_engine_api::error::{EngineError, Result};
use rumba_server_kit::cache::stamp;
use rumba_server_kit::install::Summary;
use rumba_server_kit::loader::wrap_programs;
use rumba_server_kit::version::{self, Version};

/// A server's software.
#[derive(Clone, Debug)]
pub struct Software {
    /// Its version; the third number is always 0.
    pub version: Version,
    /// The version as the server prints it: `15.18 (Debian 15.18-0+deb12u1)`.
    pub version_text: String,
    /// The server's program.
    pub program: PathBuf,
    /// The program that creates a data directory.
    pub initdb: PathBuf,
}

impl Software {
    /// The client program next to the server if it exists, else the first one on the path.
    pub fn client(&self) -> String {
        let adjacent = self.program.with_file_name("psql");
        if adjacent.exists() { adjacent.display().to_string() } else { "psql".to_owned() }
    }
}

/// Places for the programs below a base directory.
const PROGRAMS: [&str; 3] = ["bin", "pgsql/bin", "."];

impl rumba_server_kit::install::Software for Software {
    const RUN_BY_OTHERS: bool = true;

    fn at(base: &Path) -> Result<Self, String> {
        let mut places = PROGRAMS.map(|place| base.join(place)).into_iter();
        let bin = places.find(|place| place.join("postgres").is_file());
        let bin =
            bin.ok_or_else(|| format!("{} holds no server: postgres is neither in it nor in its bin", base.display()))?;
        let (program, initdb) = (bin.join("postgres"), bin.join("initdb"));
        if !initdb.is_file() {
            return Err(format!("{} holds no initdb, which makes data directories", bin.display()));
        }
        let version_text = request_version(&program)?;
        let version = version_of(&version_text)
            .ok_or_else(|| format!("{} reports `{version_text}`, which is not a version", program.display()))?;
        Ok(Self { version, version_text, program, initdb })
    }

    /// The single release in a tree of Debian packages.
    fn in_tree(tree: &Path) -> Result<Self, String> {
        Self::at(&release_in(tree))
    }

    /// `initdb` starts `postgres`, which otherwise would load the system's libraries.
    fn fit_tree(tree: &Path) -> io::Result<()> {
        wrap_programs(tree, &release_in(tree).join("bin"))
    }

    fn summary(&self) -> Summary {
        Summary {
            name: format!("PostgreSQL {}", self.version_text),
            version: self.version,
            version_text: self.version_text.clone(),
            program: self.program.clone(),
        }
    }

    fn holds(&self, _engine: &str) -> bool {
        true
    }
}

/// The directory of the release in a tree of Debian packages.
fn release_in(tree: &Path) -> PathBuf {
    let releases = tree.join("usr/lib/postgresql");
    let found = fs::read_dir(&releases).ok().and_then(|mut entries| entries.next()?.ok());
    found.map_or(releases, |entry| entry.path())
}

/// Parses `--version`, which prints `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn request_version(program: &Path) -> Result<String, String> {
    let wrong = |cause: &str| format!("{} does not report its version: {}", program.display(), cause.trim());
    let output =
        version::reported(program, command(program).arg("--version")).map_err(|error| wrong(&error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().split_once("(PostgreSQL) ").map(|(_, version)| version.to_owned());
    version.ok_or_else(|| wrong(&format!("{text} {}", String::from_utf8_lossy(&output.stderr))))
}

/// `15.18 (Debian …)` is 15.18, `19rc1` is 19.0.
fn version_of(text: &str) -> Option<Version> {
    let word = text.split_whitespace().next()?;
    let mut numbers = word.split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).map_or(part, |end| &part[..end]);
        digits.parse().ok()
    });
    Some(Version(numbers.next()??, numbers.next().flatten().unwrap_or(0), 0))
}

/// A command that runs one of the programs, in a directory that every user may enter and with the log's language.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
    for variable in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS"] {
        command.env_remove(variable);
    }
    command
}

impl Software {
    /// The names of the server's settings, from its list for the sample configuration. Developer settings are not in
    /// it.
    ///
    /// # Errors
    /// The program's error message.
    pub fn settings(&self) -> Result<BTreeSet<String>> {
        let failed = |words: String| EngineError::failed("postgres --describe-config", words);
        let output = command(&self.program).arg("--describe-config").output();
        let output = output.map_err(|error| failed(format!("{}: {error}", self.program.display())))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().filter_map(|line| line.split('\t').next());
        let settings: BTreeSet<String> = names.map(str::to_owned).collect();
        if settings.is_empty() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(settings)
    }

    /// A text that differs between any two builds: the program's path, size and modification time.
    pub fn build(&self) -> String {
        stamp(&self.program)
    }

    /// A short name for messages and file names: `postgresql-15.18`.
    pub fn short_name(&self) -> String {
        format!("postgresql-{}.{}", self.version.0, self.version.1)
    }
}

#[cfg(test)]
mod tests {
    use rumba_server_kit::install::Software as _;

    use super::*;

    #[test]
    fn versions_are_parsed_from_every_packager() {
        assert_eq!(version_of("15.18 (Debian 15.18-0+deb12u1)"), Some(Version(15, 18, 0)));
        assert_eq!(version_of("19rc1"), Some(Version(19, 0, 0)));
        assert_eq!(version_of("devel"), None);
    }

    #[test]
    fn directory_without_a_server_names_the_missing_program() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Software::at(dir.path()).unwrap_err().contains("postgres is neither in it"));
    }
}
