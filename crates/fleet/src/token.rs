//! The token of a run, by which the coordinator knows its agents.

use std::fmt;
use std::io::Read;
use std::path::Path;

use crate::error::FleetError;

/// The environment variable with the token. A command line would show it to every user of the host.
pub const TOKEN_VARIABLE: &str = "RUMBA_FLEET_TOKEN";
/// The fewest characters of a token.
const SHORTEST: usize = 16;
/// The most characters of a token.
const LONGEST: usize = 1024;

/// The token of a run. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Takes a token's text.
    ///
    /// # Errors
    /// It is too short or too long.
    pub fn new(text: &str) -> Result<Self, FleetError> {
        let text = text.trim();
        if (SHORTEST..=LONGEST).contains(&text.len()) {
            return Ok(Self(text.to_owned()));
        }
        Err(FleetError::Token(format!(
            "the fleet's token has {} characters; use {SHORTEST} to {LONGEST}, for example those of `openssl rand -hex 32`",
            text.len()
        )))
    }

    /// The token of the environment, or of a file.
    ///
    /// # Errors
    /// The token is missing, its file cannot be read, or other users may read the file.
    pub fn find(file: Option<&Path>) -> Result<Self, FleetError> {
        if let Some(file) = file {
            return Self::of_file(file);
        }
        match std::env::var(TOKEN_VARIABLE) {
            Ok(text) => Self::new(&text),
            Err(_) => Err(FleetError::Token(format!(
                "there is no token: set {TOKEN_VARIABLE}, the same for the run and all agents (an agent also takes --token-file)"
            ))),
        }
    }

    fn of_file(file: &Path) -> Result<Self, FleetError> {
        use std::os::unix::fs::PermissionsExt;
        let failed = || FleetError::io(format!("the token's file {}", file.display()));
        let mode = std::fs::metadata(file).map_err(failed())?.permissions().mode();
        if mode & 0o077 != 0 {
            let words = format!("others may read the token's file {0}: run chmod 600 {0}", file.display());
            return Err(FleetError::Token(words));
        }
        Self::new(&std::fs::read_to_string(file).map_err(failed())?)
    }

    /// A new token.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn random() -> Result<Self, FleetError> {
        let mut bytes = [0; 32];
        let mut random = std::fs::File::open("/dev/urandom").map_err(FleetError::io("/dev/urandom"))?;
        random.read_exact(&mut bytes).map_err(FleetError::io("/dev/urandom"))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Its text, for a process's environment or a message.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is the token. The time does not depend on where the texts differ.
    pub fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let differing = own.iter().enumerate().fold(0, |all, (at, byte)| all | (byte ^ given.get(at).unwrap_or(&0)));
        std::hint::black_box(differing) == 0 && own.len() == given.len()
    }
}
