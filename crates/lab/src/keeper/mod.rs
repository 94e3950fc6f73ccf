//! keeper: a managed server that outlives the command which started it, to be looked into.
//!
//! Two processes keep it, as two run a trial. The *keeper* owns what is made on the host (limits, a data directory that
//! the ledger lists) and undoes it; the *holder*, within the limits, opens the instance and closes it. Both wait for a
//! signal and do nothing else. Whatever is killed, the ledger knows what is left.

mod hold;
mod keep;
mod list;

use std::path::{Path, PathBuf};

use rumba_core::access::Access;
use rumba_core::engine::EngineConfig;
use serde::{Deserialize, Serialize};

use crate::provision::NO_TRIAL;

pub use hold::hold;
pub use keep::keep;
pub use list::{KeptServer, find, stop};

/// What a keeper is told, on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// What the server is to be called.
    pub name: String,
    /// The engine.
    pub engine: EngineConfig,
    /// The directory below which its own is made, absolute.
    pub place: PathBuf,
    /// What an instance has left, of which it is to start from a copy; from nothing without it.
    pub from: Option<PathBuf>,
}

/// What it answers, a line on its standard output; then it tells nothing more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The server takes clients.
    Up(Box<Server>),
    /// It does not, and why; nothing is left of it.
    Failed(String),
}

/// A server that takes clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// What it is called.
    pub name: String,
    /// The engine's name.
    pub engine: String,
    /// The version that it says it is.
    pub version: Option<String>,
    /// How a person comes to it.
    pub access: Option<Access>,
    /// The server's process.
    pub pid: Option<u32>,
    /// The directory of its files.
    pub directory: PathBuf,
    /// Of what its data is a copy.
    pub from: Option<PathBuf>,
    /// The limits in force, in words.
    pub limits: Vec<String>,
}

/// The volume of a server's own, below its place.
fn volume(place: &Path, name: &str) -> PathBuf {
    place.join(format!("{name}.storage"))
}
