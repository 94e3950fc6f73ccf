//! The catalogue of releases of a family of servers or of a library: available releases, installed ones, and their
//! installation.

mod compiled;
mod debian;
mod maven;
mod npm;
mod wheel;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rumba_engine_api::engine::Availability;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::server::{Catalogue, ServerInfo};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::cache::{self, Draft};
use crate::command::output_of;
use crate::failure::full_or_failed;
use crate::version::Version;

/// The programs and files of a server.
pub trait Software: Sized {
    /// Whether another user than the installing one runs it, because the server refuses root.
    const RUN_BY_OTHERS: bool = false;

    /// The server in a base directory, with the system's libraries.
    ///
    /// # Errors
    /// Describes the missing part.
    fn at(base: &Path) -> Result<Self, String>;

    /// The server in an unpacked tree with its own dynamic loader and libraries.
    ///
    /// # Errors
    /// Describes the missing part.
    fn in_tree(tree: &Path) -> Result<Self, String>;

    /// Changes an unpacked tree so that [`Software::in_tree`] works at its final place. Most servers need no change.
    fn fit_tree(_tree: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Its name, version and program.
    fn summary(&self) -> Summary;

    /// The plugins that it may load.
    fn adjacent(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether it supports one of rumba's engines.
    fn holds(&self, engine: &str) -> bool;
}

/// The name, version and program of a server.
pub struct Summary {
    /// Its name with the printed version: `MariaDB 10.11.14-MariaDB`.
    pub name: String,
    /// The version that its program prints.
    pub version: Version,
    /// The version as the server prints it.
    pub version_text: String,
    /// The server's program.
    pub program: PathBuf,
}

/// A release that rumba can install.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The name in experiments and in `rumba engines install`: `mariadb@10.11`.
    pub name: String,
    /// One line for `rumba engines`: the builder and the origin.
    pub about: String,
    /// rumba's engines that it supports.
    pub engines: Vec<String>,
    version: String,
    /// The base directory of the system's package.
    system: Option<PathBuf>,
    system_package: Option<String>,
    debian: Option<debian::Packages>,
    npm: Option<npm::Package>,
    /// The PyPI wheel that contains it. The Debian packages then hold its libraries.
    wheel: Option<wheel::Wheel>,
    /// The Java package that contains it.
    maven: Option<maven::Artifact>,
    /// How rumba compiles a part of it.
    compiled: Option<compiled::Compiled>,
}

#[derive(Deserialize)]
struct Table {
    release: Vec<Release>,
}

/// The releases of a family of servers.
pub struct Releases<S> {
    table: &'static str,
    all: OnceLock<Vec<Release>>,
    software: PhantomData<fn() -> S>,
}

impl<S: Software> Releases<S> {
    /// Creates the catalogue from a TOML table, whose first release is the default.
    pub const fn new(table: &'static str) -> Self {
        Self { table, all: OnceLock::new(), software: PhantomData }
    }

    /// All releases, the default one first.
    pub fn all(&self) -> &[Release] {
        // An invalid table is detected by its crate's tests; in such a build the list is empty.
        self.all.get_or_init(|| parse(self.table).unwrap_or_default())
    }

    /// Finds a release by its name.
    pub fn find(&self, name: &str) -> Option<&Release> {
        self.all().iter().find(|release| release.name == name)
    }

    /// The error for a name that is not in the catalogue.
    pub fn unknown(&self, name: &str) -> String {
        let names = || self.all().iter().map(|release| release.name.as_str());
        match rumba_engine_api::nearest(name, names()) {
            Some(nearest) => format!("there is no `{name}` in the catalogue; did you mean `{nearest}`?"),
            None => {
                let names = names().collect::<Vec<_>>().join(", ");
                format!("there is no `{name}` in the catalogue; it has {names}")
            }
        }
    }

    /// Checks the table, for the test of its crate.
    ///
    /// # Errors
    /// The mistake in the table.
    pub fn check(&self) -> Result<(), String> {
        for release in parse(self.table)? {
            if !release.can_be_installed() && release.system_package.is_none() {
                return Err(format!("{} can be had nowhere", release.name));
            }
            if !release.name.ends_with(&release.version) {
                return Err(format!("{} is not of version {}", release.name, release.version));
            }
        }
        Ok(())
    }
}

impl<S: Software> Catalogue for &'static Releases<S> {
    fn list(&self) -> Vec<ServerInfo> {
        let info = |release: &Release| ServerInfo {
            name: release.name.clone(),
            engines: release.engines.clone(),
            availability: release.availability::<S>(),
            install: release.install_command(),
        };
        self.all().iter().map(info).collect()
    }

    fn install(&self, name: &str, say: &mut dyn FnMut(&str)) -> Result<Availability> {
        let release = self.find(name).ok_or_else(|| EngineError::failed("install", self.unknown(name)))?;
        release.install::<S>(say)?;
        Ok(release.availability::<S>())
    }
}

fn parse(table: &str) -> Result<Vec<Release>, String> {
    toml_edit::de::from_str::<Table>(table).map(|table| table.release).map_err(|error| error.to_string())
}

impl Release {
    /// The installed software, if any. Software with all of the release's engines is preferred.
    pub fn software<S: Software>(&self) -> Option<S> {
        let system = self.of_the_system();
        match system.as_ref().is_some_and(|software| self.is_whole(software)) {
            true => system,
            false => self.in_cache().or(system),
        }
    }

    fn is_whole(&self, software: &impl Software) -> bool {
        self.engines.iter().all(|engine| software.holds(engine))
    }

    /// Whether it supports one of rumba's engines.
    pub fn has(&self, engine: &str) -> bool {
        self.engines.iter().any(|name| name == engine)
    }

    fn can_be_installed(&self) -> bool {
        let is_package = self.debian.is_some() || self.npm.is_some() || self.wheel.is_some() || self.maven.is_some();
        is_package || self.compiled.is_some()
    }

    /// The shell command that installs it.
    pub fn install_command(&self) -> String {
        match (&self.system_package, &self.compiled) {
            (Some(package), _) if !self.can_be_installed() => format!("apt-get install {package}"),
            (_, Some(compiled)) => format!("rumba engines build {}", compiled.engine),
            _ => format!("rumba engines install {}", self.name),
        }
    }

    /// The installed version, or what is missing and the command that installs it.
    pub fn availability<S: Software>(&self) -> Availability {
        match self.software::<S>() {
            Some(software) => available(&software),
            None => {
                let what = format!("{} is not installed", self.about);
                Availability::lacking(self.origin(), what, self.install_command())
            }
        }
    }

    fn origin(&self) -> String {
        let npm = self.npm.as_ref().map(npm::Package::origin);
        let wheel = || self.wheel.as_ref().map(wheel::Wheel::origin);
        let maven = || self.maven.as_ref().map(maven::Artifact::origin);
        let debian = || self.debian.as_ref().map(debian::Packages::origin);
        let compiled = || self.compiled.as_ref().map(compiled::Compiled::origin);
        npm.or_else(wheel).or_else(maven).or_else(debian).or_else(compiled).unwrap_or_else(|| "this system".to_owned())
    }

    fn of_the_system<S: Software>(&self) -> Option<S> {
        let software = S::at(self.system.as_deref()?).ok()?;
        self.is_this(&software).then_some(software)
    }

    fn is_this(&self, software: &impl Software) -> bool {
        let text = software.summary().version.to_string();
        text.strip_prefix(&self.version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    fn place<S: Software>(&self) -> Result<PathBuf> {
        let root = if S::RUN_BY_OTHERS { cache::root_for_others() } else { cache::root() };
        Ok(root?.join("servers").join(&self.name))
    }

    /// The directory of a build's downloads and compiled files.
    fn sources(&self) -> Result<PathBuf> {
        Ok(cache::root()?.join("sources").join(&self.name))
    }

    fn in_cache<S: Software>(&self) -> Option<S> {
        self.look_in(&self.place::<S>().ok()?).ok()
    }

    fn look_in<S: Software>(&self, place: &Path) -> Result<S, String> {
        match (&self.debian, &self.npm, &self.wheel) {
            _ if self.compiled.is_some() => S::in_tree(&place.join(debian::TREE)),
            (Some(_), ..) => S::in_tree(&place.join(debian::TREE)),
            (_, Some(npm), _) => S::at(&place.join(npm.base())),
            (.., Some(wheel)) => S::at(&place.join(wheel.base())),
            (None, None, None) => S::at(place),
        }
    }

    fn install<S: Software>(&self, say: &mut dyn FnMut(&str)) -> Result<()> {
        let place = self.place::<S>()?;
        if let Some(here) = self.software::<S>().filter(|software| self.is_whole(software)) {
            let Summary { name, program, .. } = here.summary();
            say(&format!("it is here already: {name} ({})", program.display()));
            if program.starts_with(&place) {
                // Earlier versions of rumba did not remove these bits.
                cache::take_privileges(&place).map_err(|error| failed(&place, &error))?;
                say(&format!("(to install it again, remove {} first)", place.display()));
            }
            return Ok(());
        }
        if S::RUN_BY_OTHERS {
            cache::make_public(place.parent().unwrap_or(&place)).map_err(|error| failed(&place, &error))?;
        }
        let draft = Draft::new(&place).map_err(|error| failed(&place, &error))?;
        if !self.can_be_installed() {
            let message = format!("rumba does not install {}: {}", self.name, self.install_command());
            return Err(EngineError::failed("install", message));
        }
        if let Some(debian) = &self.debian {
            debian.fetch(draft.path(), say)?;
            S::fit_tree(&draft.path().join(debian::TREE)).map_err(|error| failed(&place, &error))?;
        }
        if let Some(npm) = &self.npm {
            npm.fetch(draft.path(), say)?;
        }
        if let Some(wheel) = &self.wheel {
            wheel.fetch(draft.path(), say)?;
        }
        if let Some(maven) = &self.maven {
            maven.fetch(draft.path(), say)?;
        }
        if let Some(compiled) = &self.compiled {
            compiled.build(&self.sources()?, draft.path(), say)?;
        }
        let software: S = self.look_in(draft.path()).map_err(|words| EngineError::failed("install", words))?;
        if !self.is_this(&software) {
            let message = format!(
                "{} now holds {}, not {}; nothing was installed. Name your own copy of this version in the \
                 experiment: server = \"/its/base/directory\", or library = \"/its/file\"",
                self.origin(),
                software.summary().name,
                self.version
            );
            return Err(EngineError::failed("install", message));
        }
        say(&format!("it is {}", software.summary().name));
        cache::take_privileges(draft.path()).map_err(|error| failed(&place, &error))?;
        if S::RUN_BY_OTHERS {
            cache::open_to_all(draft.path()).map_err(|error| failed(&place, &error))?;
        }
        draft.replace().map_err(|error| failed(&place, &error))?;
        if self.compiled.is_some() {
            // If this fails, the next build removes the files.
            let _ = compiled::finish(&self.sources()?);
        }
        say(&format!("installed in {}", place.display()));
        Ok(())
    }
}

pub(crate) fn available(software: &impl Software) -> Availability {
    let Summary { version_text, program, .. } = software.summary();
    Availability {
        adjacent: software.adjacent(),
        ..Availability::here(Some(version_text), program.display().to_string())
    }
}

/// Refuses an archive with a wrong checksum.
fn require_checksum(found: &str, expected: &str, name: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let message = format!(
        "{name} does not match the catalogue: its checksum is {found}, expected {expected}; nothing was installed"
    );
    Err(EngineError::failed("install", message))
}

/// Refuses a file whose SHA-256, in hexadecimal digits, is not the expected one.
fn require_sha256(file: &Path, expected: &str, name: &str) -> Result<()> {
    let found = digest(file).map_err(|error| failed(file, &error))?;
    require_checksum(&found, expected, name)
}

fn digest(file: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(file)?);
    let mut hasher = Sha256::new();
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        hasher.update(bytes);
        let count = bytes.len();
        file.consume(count);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Unpacks a gzipped tar archive into a directory.
fn untar(archive: &Path, to: &Path, options: &[&str]) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--no-same-owner"]).args(options).arg("--file").arg(archive);
    output_of(tar.arg("--directory").arg(to), "install").map(drop)
}

fn failed(place: &Path, error: &io::Error) -> EngineError {
    full_or_failed("install", format!("{}: {error}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_that_was_changed_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(require_sha256(file.path(), empty, "x==1"), Ok(()));
        std::fs::write(file.path(), "changed").unwrap();
        let error = require_sha256(file.path(), empty, "x==1").unwrap_err().to_string();
        assert!(error.contains("nothing was installed"), "{error}");
    }
}
