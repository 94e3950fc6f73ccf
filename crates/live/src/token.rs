//! The secret part of the address.

use std::fs::File;
use std::io::{self, Read};

/// Random bits: more than can be guessed.
const BYTES: usize = 16;

/// A new secret, as text that is valid in an address.
pub fn random() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
