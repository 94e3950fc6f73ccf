//! The database on a server of the user's: taken only when it is empty or rumba's own, and left as it was found.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rumba_core::bson::DocumentBuf;
use rumba_core::error::EngineError;
use rumba_core::setting::SettingError;
use rumba_protocol_mongodb::{Address, Admin, MongoError, Target};

use crate::control::{Control, failed, text_within, within};

/// The collection that marks a database as rumba's: whoever makes one of this name lets it be emptied.
const MARKER: &str = "rumba_marker";
/// How long connecting, and an answer, may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a trial that has just ended, or was killed, may still hold the database.
const RELEASE: Duration = Duration::from_secs(10);
/// Between two attempts to take hold of it.
const NAP: Duration = Duration::from_millis(100);

const CALL: &str = "database on the server";

/// Connects, with an error that names the remedy.
///
/// # Errors
/// What kept it from connecting.
pub fn connect(target: &Target) -> Result<Admin, SettingError> {
    Admin::connect(target, PATIENCE).map_err(|error| {
        let remedy = match &error {
            MongoError::Server { .. } => {
                "check the user in the DSN, the password in RUMBA_MONGODB_PASSWORD and the database that knows the user in \
                 RUMBA_MONGODB_AUTH_SOURCE"
            }
            _ => "check that the server runs and that the DSN names its host and port, or its socket",
        };
        SettingError::new("server", error.to_string(), remedy)
    })
}

/// Refuses a server that takes no writes, and a database that holds what rumba has not made.
///
/// # Errors
/// What is in the way, and how it is mended.
pub fn check(control: &mut Control, database: &str) -> Result<(), SettingError> {
    if !control.is_writable() {
        let remedy = "name the primary of the replica set, or a router";
        return Err(SettingError::new("server", "it takes no writes", remedy));
    }
    let names = control.collections(database).map_err(|error| {
        SettingError::new("server", error.to_string(), "see that the user may read and write the database")
    })?;
    match foreign(&names) {
        Some(name) => Err(SettingError::new("server", told(database, name), remedy())),
        None => Ok(()),
    }
}

/// What is not rumba's in a database that is not marked as its own.
fn foreign(names: &[String]) -> Option<&String> {
    if names.iter().any(|name| name == MARKER) { None } else { names.first() }
}

fn told(database: &str, name: &str) -> String {
    format!("the database {database} is not empty and was not made by rumba (it holds {name})")
}

fn remedy() -> &'static str {
    "name a database that is empty"
}

/// A database that other trials of this host keep off; it is let go of when this is dropped, or its process has ended.
pub struct Held {
    _listener: UnixListener,
}

/// Takes the database for a trial. The server has no lock that ends with a connection, so it is a name without a file,
/// which this host gives to one process at a time.
///
/// # Errors
/// Another trial of this host uses it.
pub fn take(target: &Target, control: &mut Control, database: &str) -> Result<Held, EngineError> {
    // One server may be reached under many names; how it calls itself is the same for all.
    let own = control.told("serverStatus").ok().and_then(|status| text_within(status.get(), &["host"]));
    let mut hasher = DefaultHasher::new();
    (own.unwrap_or_else(|| format!("{:?}", target.address)), database).hash(&mut hasher);
    let name = format!("rumba-mongodb-{:016x}", hasher.finish());
    let since = Instant::now();
    loop {
        let bound = SocketAddr::from_abstract_name(&name).and_then(|name| UnixListener::bind_addr(&name));
        match bound {
            Ok(listener) => return Ok(Held { _listener: listener }),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                return Err(EngineError::failed(CALL, format!("it cannot be held: {error}")));
            }
            Err(_) if since.elapsed() > RELEASE => {
                let message =
                    format!("another trial uses the database {database}; wait until it has ended, or name another");
                return Err(EngineError::failed(CALL, message));
            }
            Err(_) => std::thread::sleep(NAP),
        }
    }
}

/// Makes the database that was taken ready: empty but for rumba's mark.
///
/// # Errors
/// A database that is foreign; the server's words.
pub fn make_ready(control: &mut Control, database: &str) -> Result<(), EngineError> {
    let names = control.collections(database).map_err(failed(CALL))?;
    if let Some(name) = foreign(&names) {
        return Err(EngineError::failed(CALL, format!("{}; {}", told(database, name), remedy())));
    }
    if !names.is_empty() {
        give_back(control, database)?;
    }
    let mark = DocumentBuf::of(|of| of.text("create", MARKER));
    control.ask(database, mark.get()).map(drop).map_err(failed(CALL))
}

/// Removes what the trial has made: the marker last, without which the rest would be foreign.
///
/// # Errors
/// The server's words.
pub fn give_back(control: &mut Control, database: &str) -> Result<(), EngineError> {
    let mut names = control.collections(database).map_err(failed(CALL))?;
    names.sort_by_key(|name| name == MARKER);
    for name in names {
        let drop = DocumentBuf::of(|of| of.text("drop", &name));
        control.ask(database, drop.get()).map_err(failed(CALL))?;
    }
    Ok(())
}

/// The server's process and its data directory, as far as this host and this user can tell: it is one of this host's that
/// has the name of a server.
pub fn place(target: &Target, control: &mut Control) -> (Option<u32>, Option<PathBuf>) {
    let is_here = match &target.address {
        Address::Socket(_) => true,
        Address::Tcp { host, .. } => ["127.0.0.1", "::1", "localhost"].contains(&host.as_str()),
    };
    if !is_here {
        return (None, None);
    }
    let status = control.told("serverStatus").ok();
    let pid = status.and_then(|status| within(status.get(), &["pid"])?.int()).and_then(|pid| u32::try_from(pid).ok());
    let pid = pid.filter(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.starts_with("mongo")
    });
    let options = control.told("getCmdLineOpts").ok();
    let data = options.and_then(|options| text_within(options.get(), &["parsed", "storage", "dbPath"]));
    let data = data.map(PathBuf::from).filter(|data: &PathBuf| pid.is_some() && readable(data));
    (pid, data)
}

fn readable(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rumba_has_not_made_is_never_emptied() {
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(foreign(&names(&[])), None);
        assert_eq!(foreign(&names(&["linktable", MARKER])), None);
        assert_eq!(foreign(&names(&["orders"])).map(String::as_str), Some("orders"));
    }
}
