//! Servers that rumba can have and run: what is here, and how the rest is installed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Availability;
use crate::error::EngineError;

/// A release in a catalogue, and whether it can be run here.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// Its name in experiments: `mariadb@10.11`.
    pub name: String,
    /// The engines of rumba's that it has.
    pub engines: Vec<String>,
    /// The version that was found, or what is missing and the command that installs it.
    pub availability: Availability,
}

/// The servers of a family that rumba can have: it lists and installs them.
pub trait Catalogue: Send + Sync {
    /// Every release that it knows, the usual one first.
    fn list(&self) -> Vec<ServerInfo>;

    /// Installs a release into rumba's own cache; `say` is told what is being done.
    ///
    /// # Errors
    /// A name that is not in the catalogue; whatever kept it from being had or verified.
    fn install(&self, name: &str, say: &mut dyn FnMut(&str)) -> Result<Availability, EngineError>;
}
