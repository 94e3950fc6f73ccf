//! Installs a server from an npm package, verified by rumba's own checksum.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rumba_engine_api::error::Result;
use serde::Deserialize;
use sha2::{Digest, Sha512};

use super::{failed, require_checksum, untar};
use crate::command::output_of;

/// An npm package.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    package: String,
    version: String,
    /// In npm's format: `sha512-` and base64.
    sha512: String,
    /// The base directory within the package.
    base: String,
}

impl Package {
    /// The origin, for people.
    pub fn origin(&self) -> String {
        format!("npm {}@{}", self.package, self.version)
    }

    /// The base directory within its install directory.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Downloads, verifies and unpacks the package.
    pub fn fetch(&self, draft: &Path, say: &mut dyn FnMut(&str)) -> Result<()> {
        let name = format!("{}@{}", self.package, self.version);
        say(&format!("downloading {name} with npm"));
        let mut pack = Command::new("npm");
        // The package's scripts must not run.
        pack.args(["pack", &name, "--ignore-scripts", "--loglevel=error", "--pack-destination"]).arg(draft);
        let cache = draft.join("npm-cache");
        pack.arg("--cache").arg(&cache);
        let printed = output_of(pack.current_dir(draft), "install")?;
        let file = draft.join(printed.lines().last().unwrap_or_default().trim());
        let archive = fs::read(&file).map_err(|error| failed(&file, &error))?;
        verify(&archive, &self.sha512, &name)?;
        say("its checksum is the one in the catalogue; unpacking");
        untar(&file, draft, &["--exclude=package/server/data"])?;
        fs::remove_dir_all(&cache).map_err(|error| failed(&cache, &error))?;
        fs::remove_file(&file).map_err(|error| failed(&file, &error))
    }
}

fn verify(archive: &[u8], expected: &str, name: &str) -> Result<()> {
    require_checksum(&format!("sha512-{}", BASE64_STANDARD.encode(Sha512::digest(archive))), expected, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_was_changed_is_refused() {
        let empty = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
        assert_eq!(verify(b"", empty, "x@1"), Ok(()));
        assert!(verify(b"changed", empty, "x@1").unwrap_err().to_string().contains("nothing was installed"));
    }
}
