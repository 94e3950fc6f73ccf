//! Installs a server from a PyPI wheel, verified by rumba's own checksum.

use std::fs;
use std::path::Path;
use std::process::Command;

use rumba_engine_api::error::Result;
use serde::Deserialize;

use super::{failed, require_sha256};
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
        require_sha256(&file, &self.sha256, &name)?;
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
