//! Servers that rumba can install and run: the available ones, and how to install the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Availability;
use crate::error::Result;

/// A release in a catalogue, and whether it can be run here.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// Its name in experiments: `mariadb@10.11`.
    pub name: String,
    /// The engines of rumba that it contains.
    pub engines: Vec<String>,
    /// The version found, or the missing part and the command that installs it.
    pub availability: Availability,
    /// The shell command that installs it.
    pub install: String,
}

/// The servers of a family that rumba can list and install.
pub trait Catalogue: Send + Sync {
    /// Every release in the catalogue, the usual one first.
    fn list(&self) -> Vec<ServerInfo>;

    /// Installs a release into rumba's own cache; `say` receives progress messages.
    ///
    /// # Errors
    /// A name that is not in the catalogue, or a failure to download or verify the release.
    fn install(&self, name: &str, say: &mut dyn FnMut(&str)) -> Result<Availability>;
}
