//! The secret part of the address.

use std::fs::File;
use std::io::{self, Read};

/// Bits of chance: more than anybody can try.
const BYTES: usize = 16;

/// A new secret, as text that may stand in an address.
pub fn random() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
