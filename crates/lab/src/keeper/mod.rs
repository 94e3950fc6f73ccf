//! keeper: a managed server that outlives the command which started it, for inspection.
//!
//! Two processes keep it, as two run a trial. The *keeper* owns the resources on the host (limits, a data directory
//! that the ledger lists) and undoes them. The *holder*, within the limits, opens the instance and closes it. Both only
//! wait for a signal. If either is killed, the ledger lists the rest.

mod hold;
mod keep;
mod list;

use std::path::{Path, PathBuf};

use rumba_engine_api::access::Access;
use rumba_engine_api::engine::EngineConfig;
use serde::{Deserialize, Serialize};

use crate::provision::NO_TRIAL;

pub use hold::hold;
pub use keep::keep;
pub use list::{KeptServer, find, stop};

/// The keeper's input, on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The server's name.
    pub name: String,
    pub engine: EngineConfig,
    /// The absolute parent directory for the server's data.
    pub place: PathBuf,
    /// A directory with an instance's data to copy; without it the server starts empty.
    pub from: Option<PathBuf>,
}

/// The keeper's answer, one line on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The server accepts clients.
    Up(Box<Server>),
    /// The server failed to start, with the reason; no part of it is left.
    Failed(String),
}

/// A server that accepts clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// The server's name.
    pub name: String,
    /// The engine's name.
    pub engine: String,
    pub version: Option<String>,
    /// How a person connects to it.
    pub access: Option<Access>,
    /// The server's process.
    pub pid: Option<u32>,
    pub directory: PathBuf,
    /// The directory that its data was copied from.
    pub from: Option<PathBuf>,
    /// The limits in force, as text.
    pub limits: Vec<String>,
}

/// The directory of a server's separate volume.
fn volume(place: &Path, name: &str) -> PathBuf {
    place.join(format!("{name}.storage"))
}
