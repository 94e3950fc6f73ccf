//! File-system and network helpers for starting a server.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The longest path in a socket's address, without its terminating zero.
const SOCKET_PATH_MAX: usize = 107;

/// Writes a file that only its owner may read, and replaces an existing one. The directory may belong to a server's
/// user, who could have placed a symbolic link to a file of root's.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}

/// Generates a password of 128 bits.
pub fn password() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // Some servers' password rules require all kinds of characters.
    Ok(bytes.iter().fold("Aa1-".to_owned(), |text, byte| text + &format!("{byte:02x}")))
}

/// A port that was free a moment ago.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A path to the named socket in a directory that is short enough for a socket's address, and the descriptor that must
/// stay open for it.
pub fn short_socket(directory: &Path, name: &str) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    let path = directory.join(name);
    if path.as_os_str().as_bytes().len() <= SOCKET_PATH_MAX {
        return Ok((path, None));
    }
    let directory = OwnedFd::from(File::open(directory)?);
    Ok((format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()).into(), Some(directory)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn private_file_replaces_a_link_and_link_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("server.conf"));
        fs::write(&theirs, "theirs").unwrap();
        symlink(&theirs, &ours).unwrap();
        symlink(&theirs, dir.path().join(".server.conf.new")).unwrap();
        for text in ["first", "second"] {
            write_private(&ours, text).unwrap();
            let there = fs::symlink_metadata(&ours).unwrap();
            assert!(there.is_file() && there.permissions().mode() & 0o777 == 0o600);
            assert_eq!(fs::read_to_string(&ours).unwrap(), text);
        }
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
