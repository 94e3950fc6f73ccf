//! How a person comes to a server that rumba runs.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a person comes to a server that rumba runs, with a client of the server's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// What the client is to find in its environment: by it, some are told where a password is.
    pub environment: Vec<(String, String)>,
    /// The client's program and its arguments; no password is among them.
    pub command: Vec<String>,
    /// The file with the password, which its owner alone may read; `None` where the system vouches for who comes.
    pub password_file: Option<PathBuf>,
}
