//! Access to a server that rumba runs.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a person connects to a server that rumba runs, with the server's own client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// Environment variables for the client. Some clients read the location of a password from them.
    pub environment: Vec<(String, String)>,
    /// The client's program and its arguments, without a password.
    pub command: Vec<String>,
    /// The password file, which only its owner may read; `None` if the system authenticates the user.
    pub password_file: Option<PathBuf>,
}
