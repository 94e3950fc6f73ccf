//! The servers that rumba can have: which there are, what of them is here, and
//! how the rest is installed.

mod debian;
mod npm;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rumba_core::engine::{Availability, EngineError, Missing};
use rumba_core::server::{Catalogue, ServerInfo};
use serde::Deserialize;

use crate::cache::{self, Draft};
use crate::failure::{full_or_failed, last_lines};
use crate::software::{Software, SoftwareError};

/// A release that rumba can have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// `mariadb@10.11`.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// The engines of rumba's that it has.
    pub engines: Vec<String>,
    /// What its version begins with.
    version: String,
    /// A base directory where a package of the system may have put it.
    system: Option<PathBuf>,
    /// The packages of Debian's that hold it.
    debian: Option<debian::Packages>,
    /// The package of npm's that holds it.
    npm: Option<npm::Package>,
}

#[derive(Deserialize)]
struct Releases {
    release: Vec<Release>,
}

/// Every release, the usual one first.
pub fn releases() -> &'static [Release] {
    static RELEASES: OnceLock<Vec<Release>> = OnceLock::new();
    RELEASES.get_or_init(|| {
        // A broken table is found by this module's tests; a user of such a build has no releases.
        toml_edit::de::from_str::<Releases>(include_str!("releases.toml")).map(|all| all.release).unwrap_or_default()
    })
}

/// A release by its name.
pub fn release(name: &str) -> Option<&'static Release> {
    releases().iter().find(|release| release.name == name)
}

/// The error for a name that is not in the catalogue.
pub fn unknown(name: &str) -> String {
    let names = || releases().iter().map(|release| release.name.as_str());
    match rumba_core::nearest(name, names()) {
        Some(nearest) => format!("there is no server `{name}` in the catalogue; did you mean `{nearest}`?"),
        None => {
            format!("there is no server `{name}` in the catalogue; it has {}", names().collect::<Vec<_>>().join(", "))
        }
    }
}

impl Release {
    /// Its software, if it is here: one with all its engines rather than one without.
    pub fn software(&self) -> Option<Software> {
        let system = self.of_the_system();
        match system.as_ref().is_some_and(|software| self.is_whole(software)) {
            true => system,
            false => self.in_cache().or(system),
        }
    }

    fn is_whole(&self, software: &Software) -> bool {
        self.engines.iter().all(|engine| software.holds(engine))
    }

    /// Whether it has an engine of rumba's.
    pub fn has(&self, engine: &str) -> bool {
        self.engines.iter().any(|name| name == engine)
    }

    /// The command that installs it.
    pub fn install_command(&self) -> String {
        format!("rumba engines install {}", self.name)
    }

    /// What of it is here.
    pub fn availability(&self) -> Availability {
        match self.software() {
            Some(software) => Availability {
                version: Some(software.version_text.clone()),
                source: software.program.display().to_string(),
                missing: None,
            },
            None => Availability {
                version: None,
                source: self.origin(),
                missing: Some(Missing {
                    what: format!("{} is not installed", self.about),
                    install: self.install_command(),
                }),
            },
        }
    }

    fn origin(&self) -> String {
        match (&self.debian, &self.npm) {
            (Some(debian), _) => debian.origin(),
            (None, Some(npm)) => npm.origin(),
            (None, None) => "this system".to_owned(),
        }
    }

    fn of_the_system(&self) -> Option<Software> {
        let software = Software::at(self.system.as_deref()?).ok()?;
        self.is_this(&software).then_some(software)
    }

    fn is_this(&self, software: &Software) -> bool {
        let text = software.version.to_string();
        text.strip_prefix(&self.version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    fn place(&self) -> Result<PathBuf, EngineError> {
        Ok(cache::root()?.join("servers").join(&self.name))
    }

    fn in_cache(&self) -> Option<Software> {
        self.look_in(&self.place().ok()?).ok()
    }

    fn look_in(&self, place: &Path) -> Result<Software, SoftwareError> {
        match &self.npm {
            Some(npm) => Software::at(&place.join(npm.base())),
            None => Software::in_tree(&place.join(debian::TREE)),
        }
    }

    fn install(&self, say: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        let place = self.place()?;
        if let Some(here) = self.software().filter(|software| self.is_whole(software)) {
            say(&format!("it is here already: {} in {}", here.version_text, here.base.display()));
            if here.base.starts_with(&place) {
                say(&format!("(to have it anew, remove {} first)", place.display()));
            }
            return Ok(());
        }
        let draft = Draft::new(&place).map_err(|error| failed(&place, &error))?;
        match (&self.debian, &self.npm) {
            (Some(debian), _) => debian.fetch(draft.path(), say)?,
            (None, Some(npm)) => npm.fetch(draft.path(), say)?,
            (None, None) => return Err(EngineError::failed("install", format!("{} cannot be installed", self.name))),
        }
        let software = self.look_in(draft.path()).map_err(|error| EngineError::failed("install", error.to_string()))?;
        if !self.is_this(&software) {
            let message = format!(
                "{} now holds {} {}, not {}; nothing was installed. A server of this version has to be brought: \
                 server = \"/its/base/directory\"",
                self.origin(),
                software.brand.name(),
                software.version,
                self.version
            );
            return Err(EngineError::failed("install", message));
        }
        say(&format!("it runs: {} {}", software.brand.name(), software.version_text));
        draft.replace().map_err(|error| failed(&place, &error))?;
        say(&format!("installed in {}", place.display()));
        Ok(())
    }
}

/// The servers of the MySQL family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Servers;

impl Catalogue for Servers {
    fn list(&self) -> Vec<ServerInfo> {
        releases()
            .iter()
            .map(|release| ServerInfo {
                name: release.name.clone(),
                engines: release.engines.clone(),
                availability: release.availability(),
            })
            .collect()
    }

    fn install(&self, name: &str, say: &mut dyn FnMut(&str)) -> Result<Availability, EngineError> {
        let release = release(name).ok_or_else(|| EngineError::failed("install", unknown(name)))?;
        release.install(say)?;
        Ok(release.availability())
    }
}

fn failed(place: &Path, error: &std::io::Error) -> EngineError {
    full_or_failed("install", format!("{}: {error}", place.display()))
}

/// Runs a command to its end and takes what it printed.
fn output_of(command: &mut Command, what: &'static str) -> Result<String, EngineError> {
    let mut text = String::new();
    progress_of(command, what, &mut |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    Ok(text)
}

/// Runs a command to its end and gives each line that it prints as it comes.
fn progress_of(
    command: &mut Command,
    what: &'static str,
    line_printed: &mut dyn FnMut(&str),
) -> Result<(), EngineError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let cannot = |error: std::io::Error| full_or_failed(what, format!("{name} cannot be run: {error}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let mut stderr = child.stderr.take();
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is not shown; the status says that it failed.
        let _ = stderr.as_mut().map(|stderr| stderr.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            line_printed(&String::from_utf8_lossy(&line));
        }
    }
    let status = child.wait().map_err(cannot)?;
    let errors = errors.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    Err(full_or_failed(what, format!("{name} ended with {status}:\n{}", last_lines(&errors, 8))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_releases_is_sound() {
        let all: Releases = toml_edit::de::from_str(include_str!("releases.toml")).unwrap();
        assert_eq!(all.release[0].name, "mariadb@10.11");
        for release in &all.release {
            assert!(release.debian.is_some() || release.npm.is_some(), "{} can be had nowhere", release.name);
            assert!(release.name.ends_with(&release.version), "{}", release.name);
        }
    }

    #[test]
    fn a_name_that_is_not_in_the_catalogue_gets_the_nearest() {
        let error = Servers.install("mysql@9.6", &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("did you mean `mysql@"), "{error}");
    }
}
