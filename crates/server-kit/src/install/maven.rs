//! Installs a library or a server from a Maven package, verified by rumba's own checksum.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use rumba_engine_api::error::{EngineError, Result};
use serde::Deserialize;

use super::{failed, require_sha256, untar};
use crate::failure::{full_or_failed, last_lines};

/// A Java package with a native library, or with an archive of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Maven's coordinates: `group:artifact:version:jar`, followed by a classifier if there is one.
    artifact: String,
    /// The jar's checksum in hexadecimal digits.
    sha256: String,
    /// The path within the jar, by Rust's name of the processor architecture.
    members: BTreeMap<String, String>,
    /// The installed library's file name. Without it, the member is a gzipped tar archive with the base directory of a
    /// server.
    file: Option<String>,
}

/// Maven's download directory within the draft.
const REPOSITORY: &str = "repository";

impl Artifact {
    /// The origin, for people.
    pub fn origin(&self) -> String {
        format!("Maven {}", self.artifact)
    }

    /// Downloads, verifies and unpacks the library.
    pub fn fetch(&self, draft: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
        let refused = |message: String| EngineError::failed("install", message);
        let member = self.members.get(ARCH).ok_or_else(|| {
            let known = self.members.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            refused(format!("{} has nothing for {ARCH}, only for {known}", self.artifact))
        })?;
        say(&format!("downloading {} with mvn", self.artifact));
        require_mvn()?;
        run(&mut self.mvn(draft, &["dependency:get", "-Dtransitive=false"]))?;
        let jar = self.jar(draft).ok_or_else(|| refused(format!("{} is not the name of a jar", self.artifact)))?;
        require_sha256(&jar, &self.sha256, &self.artifact)?;
        say("its checksum is the one in the catalogue; unpacking");
        let mut unpack = self.mvn(draft, &["dependency:unpack"]);
        unpack.arg(format!("-Dmdep.unpack.includes={member}")).arg(format!("-DoutputDirectory={}", draft.display()));
        // The repository includes Maven's notes on unpacked files, so they are removed too.
        let repository = draft.join(REPOSITORY);
        run(unpack.arg(format!("-DmarkersDirectory={}", repository.display())))?;
        let from = draft.join(member);
        match &self.file {
            Some(file) => fs::rename(&from, draft.join(file)).map_err(|error| failed(&from, &error))?,
            None => {
                untar(&from, draft, &[])?;
                fs::remove_file(&from).map_err(|error| failed(&from, &error))?;
            }
        }
        fs::remove_dir_all(&repository).map_err(|error| failed(&repository, &error))
    }

    /// Runs Maven with a separate repository in the draft, so that the verified jar is the one that is unpacked.
    fn mvn(&self, draft: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("mvn");
        command.args(["--batch-mode", "--quiet"]).args(arguments).arg(format!("-Dartifact={}", self.artifact));
        command.arg(format!("-Dmaven.repo.local={}", draft.join(REPOSITORY).display())).current_dir(draft);
        command
    }

    /// The jar in Maven's repository.
    fn jar(&self, draft: &Path) -> Option<PathBuf> {
        let mut parts = self.artifact.split(':');
        let (group, artifact, version, _) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let classifier = parts.next().map(|classifier| format!("-{classifier}")).unwrap_or_default();
        let directory = draft.join(REPOSITORY).join(group.replace('.', "/")).join(artifact).join(version);
        Some(directory.join(format!("{artifact}-{version}{classifier}.jar")))
    }
}

/// Reports how to install Maven if it is missing, as on most machines without Java.
fn require_mvn() -> Result<()> {
    match Command::new("mvn").arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(EngineError::failed(
            "install",
            "mvn is not on the path: install Maven (apt-get install maven), then run this again",
        )),
        _ => Ok(()),
    }
}

/// Maven prints its errors on standard output.
fn run(mvn: &mut Command) -> Result<()> {
    let cannot = |error: io::Error| full_or_failed("install", format!("mvn cannot be run: {error}"));
    let output = mvn.stdin(Stdio::null()).output().map_err(cannot)?;
    if output.status.success() {
        return Ok(());
    }
    let words = [&output.stdout[..], &output.stderr[..]].concat();
    let words = last_lines(&String::from_utf8_lossy(&words), 8).to_string();
    Err(full_or_failed("install", format!("mvn ended with {}:\n{words}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jar_lies_in_the_repository_by_its_coordinates() {
        let jar = |artifact: &str| {
            let artifact =
                Artifact { artifact: artifact.to_owned(), sha256: String::new(), members: BTreeMap::new(), file: None };
            artifact.jar(Path::new("/draft"))
        };
        let of = |path: &str| Some(PathBuf::from(path));
        assert_eq!(jar("org.x:y:1.2:jar:linux64"), of("/draft/repository/org/x/y/1.2/y-1.2-linux64.jar"));
        assert_eq!(jar("org.x:y:1.2:jar"), of("/draft/repository/org/x/y/1.2/y-1.2.jar"));
        assert_eq!(jar("org.x:y"), None);
    }
}
