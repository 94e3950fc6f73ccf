//! Installs a server from a PyPI wheel, verified by rumba's own checksum.

use std::fs;
use std::path::Path;
use std::process::Command;

use rumba_engine_api::error::Result;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{failed, require_checksum};
use crate::command::output_of;

/// A PyPI wheel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    package: String,
    version: String,
    /// In hexadecimal digits.
    sha256: String,
    /// The base directory within the wheel.
    base: String,
}

/// The unpacked tree within its install directory.
const TREE: &str = "tree";

impl Wheel {
    /// The origin, for people.
    pub fn origin(&self) -> String {
        format!("PyPI {}=={}", self.package, self.version)
    }

    /// The base directory within its install directory.
    pub fn base(&self) -> String {
        format!("{TREE}/{}", self.base)
    }

    /// Downloads, verifies and unpacks the wheel.
    pub fn fetch(&self, draft: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
        let name = format!("{}=={}", self.package, self.version);
        let wheels = draft.join("wheels");
        say(&format!("downloading {name} with pip"));
        output_of(
            pip(&["download", "--no-cache-dir", "--no-deps", "--only-binary=:all:", &name, "--dest"]).arg(&wheels),
            "install",
        )?;
        let file = the_only_file(&wheels).map_err(|error| failed(&wheels, &error))?;
        let archive = fs::read(&file).map_err(|error| failed(&file, &error))?;
        verify(&archive, &self.sha256, &name)?;
        say("its checksum is the one in the catalogue; unpacking");
        // A wheel runs no code when it is unpacked.
        let mut unpack = pip(&["install", "--no-cache-dir", "--no-deps", "--no-index", "--no-compile", "--target"]);
        output_of(unpack.arg(draft.join(TREE)).arg(&file), "install")?;
        fs::remove_dir_all(&wheels).map_err(|error| failed(&wheels, &error))
    }
}

fn pip(arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]).args(arguments);
    command.env("PIP_ROOT_USER_ACTION", "ignore");
    command
}

fn the_only_file(directory: &Path) -> std::io::Result<std::path::PathBuf> {
    let first = fs::read_dir(directory)?.next().transpose()?;
    first.map(|entry| entry.path()).ok_or_else(|| std::io::Error::other("pip wrote no file there"))
}

fn verify(archive: &[u8], expected: &str, name: &str) -> Result<()> {
    let found: String = Sha256::digest(archive).iter().map(|byte| format!("{byte:02x}")).collect();
    require_checksum(&found, expected, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_that_was_changed_is_refused() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(verify(b"", empty, "x==1"), Ok(()));
        assert!(verify(b"changed", empty, "x==1").unwrap_err().to_string().contains("nothing was installed"));
    }
}
