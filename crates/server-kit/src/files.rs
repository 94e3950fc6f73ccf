//! What a server that is started needs of the file system and the network.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a socket's address holds, without the zero at its end.
const SOCKET_PATH_MAX: usize = 107;

/// Writes a file that its owner alone may read.
///
/// # Errors
/// The system's words.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// A password of 128 bits.
///
/// # Errors
/// The system's words.
pub fn password() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // Servers with rules for passwords want all kinds of characters.
    Ok(bytes.iter().fold("Aa1-".to_owned(), |text, byte| text + &format!("{byte:02x}")))
}

/// A port that nobody listened on just now.
///
/// # Errors
/// The system's words.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A path to the socket of this name in a directory that fits into a socket's address,
/// and what must stay open for it.
///
/// # Errors
/// The system's words.
pub fn short_socket(directory: &Path, name: &str) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    let path = directory.join(name);
    if path.as_os_str().as_bytes().len() <= SOCKET_PATH_MAX {
        return Ok((path, None));
    }
    let directory = OwnedFd::from(File::open(directory)?);
    Ok((format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()).into(), Some(directory)))
}
