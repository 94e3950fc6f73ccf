//! The database on an existing server: taken only if it is empty or rumba's own, and left as it was found.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rumba_engine_api::bson::DocumentBuf;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::SettingError;
use rumba_protocol_mongodb::{Address, Admin, MongoError, Target};
use rumba_server_kit::dsn::FLUSH_NO;
use rumba_server_kit::process::{data_held, serving};

use crate::control::{ADMIN, Control, failed, text_within, within};
use crate::plan::without_transactions;

/// The collection that marks a database as rumba's. If it exists, rumba may empty the database.
const MARKER: &str = "rumba_marker";
/// The file of its data directory that a `mongod` keeps open. Its working directory may be elsewhere: it is `/` after a
/// fork to the background.
const LOCK: &str = "mongod.lock";
/// The server's error code for a missing privilege.
const UNAUTHORIZED: i32 = 13;
/// The server's error code for a missing collection. Since version 7.0, dropping a missing one succeeds.
const NO_COLLECTION: i32 = 26;
/// Commands that counters, settle and drain run on the server, and the role that permits each.
const NEEDED: [(&str, &str); 2] = [("serverStatus", "clusterMonitor"), ("fsync", "hostManager")];
/// Timeout for connecting and for each answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a trial that just ended or was killed may still hold the database.
const RELEASE: Duration = Duration::from_secs(10);
/// Pause between two attempts to take the database.
const NAP: Duration = Duration::from_millis(100);

/// The type of the binary value that identifies a session.
const UUID: u8 = 4;

const CALL: &str = "database on the server";

/// Connects, and returns an error that names the remedy.
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

/// Refuses a server that takes no writes, and a database with contents that rumba did not create.
pub fn check(control: &mut Control, database: &str) -> Result<(), SettingError> {
    if !control.is_writable() {
        let remedy = "name the primary of the replica set, or a router";
        return Err(SettingError::new("server", "it takes no writes", remedy));
    }
    let names = control.collections(database).map_err(|error| {
        SettingError::new("server", error.to_string(), "see that the user may read and write the database")
    })?;
    match foreign(&names) {
        Some(name) => Err(SettingError::new("server", reported(database, name), remedy())),
        None => Ok(()),
    }
}

/// Refuses a user without the privileges for counters, settle and drain, which otherwise would fail only after the
/// load.
///
/// # Errors
/// The missing privilege, and the role that grants it.
pub fn check_rights(control: &mut Control) -> Result<(), SettingError> {
    for (command, role) in NEEDED {
        // Other errors are reported when the command is needed.
        if let Err(error @ MongoError::Server { code: UNAUTHORIZED, .. }) = control.reported(command) {
            let problem = format!("the user lacks privileges that counters, settle and drain need: {error}");
            let remedy = format!("{FLUSH_NO}, or let an administrator grant {role} on admin to the user of the DSN");
            return Err(SettingError::new("server", problem, remedy));
        }
    }
    Ok(())
}

/// Returns a foreign collection in a database without rumba's marker.
fn foreign(names: &[String]) -> Option<&String> {
    if names.iter().any(|name| name == MARKER) { None } else { names.first() }
}

fn reported(database: &str, name: &str) -> String {
    format!("the database {database} is not empty and was not made by rumba (it holds {name})")
}

fn remedy() -> &'static str {
    "name a database that is empty"
}

/// Why the server has no transactions, or `None` if it has. An MMAPv1 server in a 4.0 replica set announces
/// transactions in its greeting but refuses the first one.
pub fn lacks_transactions(control: &mut Control) -> Option<String> {
    if !control.greets_with_transactions() {
        return Some("the server is not part of a replica set, or is too old for transactions".to_owned());
    }
    // A router has no storage engine and reports none.
    let status = control.reported("serverStatus").ok()?;
    let engine = text_within(status.get(), &["storageEngine", "name"])?;
    without_transactions(&engine).map(|name| format!("{name} has none"))
}

/// Exclusive use of a database among the trials of this host. It ends when this value is dropped or the process ends.
pub struct Held {
    _listener: UnixListener,
}

/// Takes the database for a trial. The server has no lock that ends with a connection. Therefore rumba binds an
/// abstract socket name, which this host grants to one process at a time.
///
/// # Errors
/// Another trial of this host uses the database.
pub fn take(target: &Target, control: &mut Control, database: &str) -> Result<Held> {
    // A server may be reachable under many names, but the name it reports for itself is unique.
    let own = control.reported("serverStatus").ok().and_then(|status| text_within(status.get(), &["host"]));
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

/// Removes what a killed trial has left in a database.
pub fn clean(target: &Target, control: &mut Control, database: &str) -> Result<()> {
    let _held = take(target, control, database)?;
    let names = control.collections(database).map_err(failed(CALL))?;
    if names.iter().any(|name| name == MARKER) { give_back(control, database) } else { Ok(()) }
}

/// Prepares the database: removes its contents and creates rumba's marker.
///
/// # Errors
/// A foreign database; the server's error.
pub fn make_ready(control: &mut Control, database: &str) -> Result<()> {
    let names = control.collections(database).map_err(failed(CALL))?;
    if let Some(name) = foreign(&names) {
        return Err(EngineError::failed(CALL, format!("{}; {}", reported(database, name), remedy())));
    }
    if !names.is_empty() {
        give_back(control, database)?;
    }
    let mark = DocumentBuf::of(|of| of.text("create", MARKER));
    control.fetch(database, mark.get()).map(drop).map_err(failed(CALL))
}

/// Removes the trial's data. The marker goes last, because without it the rest would be foreign.
pub fn give_back(control: &mut Control, database: &str) -> Result<()> {
    let mut names = control.collections(database).map_err(failed(CALL))?;
    names.sort_by_key(|name| name == MARKER);
    for name in names {
        let command = DocumentBuf::of(|of| of.text("drop", &name));
        match control.fetch(database, command.get()) {
            // The connection was lost with the first answer, and this is the answer to the retry.
            Err(MongoError::Server { code: NO_COLLECTION, .. }) => {}
            answered => drop(answered.map_err(failed(CALL))?),
        }
    }
    Ok(())
}

/// Ends the sessions of this user whose last command came from a host with one of these addresses. Their open
/// transactions are rolled back.
///
/// # Errors
/// The server's error.
pub fn end_sessions(control: &mut Control, hosts: &[String]) -> Result<()> {
    let command = DocumentBuf::of(|of| {
        of.small("aggregate", 1);
        of.array("pipeline", |of| of.document(|of| of.document("$currentOp", |of| of.bool("idleSessions", true))));
        of.document("cursor", |_| ());
    });
    let is_of_host = |of: &DocumentBuf| {
        let client = text_within(of.get(), &["client"]);
        client.is_some_and(|client| hosts.iter().any(|host| client.rsplit_once(':').is_some_and(|(of, _)| of == host)))
    };
    let all = control.all(ADMIN, command.get()).map_err(failed(CALL))?;
    let own: Vec<&[u8]> = all
        .iter()
        .filter(|document| is_of_host(document))
        .filter_map(|document| within(document.get(), &["lsid", "id"])?.bytes())
        .collect();
    if own.is_empty() {
        return Ok(());
    }
    let command = DocumentBuf::of(|of| {
        of.array("killSessions", |of| own.iter().for_each(|id| of.document(|of| of.binary_of("id", UUID, id))));
    });
    control.fetch(ADMIN, command.get()).map(drop).map_err(failed(CALL))
}

/// The process at the other end of a Unix socket and the server's data directory, if this user can determine them. If
/// the server's own process number differs from this host's, it runs in a container. Its path is then valid only there.
pub fn place(target: &Target, control: &mut Control) -> (Option<u32>, Option<PathBuf>) {
    let pid = serving(&target.address);
    let status = control.reported("serverStatus").ok();
    let own = status.and_then(|status| within(status.get(), &["pid"])?.int());
    if pid.is_none() || own != pid.map(i64::from) {
        // A proxy may listen on a loopback port.
        return (pid.filter(|_| matches!(target.address, Address::Socket(_))), None);
    }
    let options = control.reported("getCmdLineOpts").ok();
    let reported = options.and_then(|options| text_within(options.get(), &["parsed", "storage", "dbPath"]));
    (pid, reported.and_then(|data| data_held(pid, data.into(), LOCK)))
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::bson::Value;
    use rumba_protocol_mongodb::OnLost;

    use super::*;
    use crate::tests::scripted::{Server, ok, refused};

    fn control(server: &Server) -> Control {
        Control::new(connect(&server.target()).unwrap(), OnLost::Reconnect)
    }

    /// rumba searched the host for the path that the directory has in the server's container.
    #[test]
    fn server_directory_is_reported_only_if_seen_open() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(LOCK), "").unwrap();
        let place_of = |pid: u32| {
            let path = data.path().display().to_string();
            let server = Server::new(move |name, _| {
                Some(match name {
                    "getCmdLineOpts" => ok(|of| {
                        of.document("parsed", |of| of.document("storage", |of| of.text("dbPath", &path)));
                    }),
                    _ => ok(|of| of.int("pid", i64::from(pid))),
                })
            });
            let by_address = Target::anonymous(Address::Tcp { host: "127.0.0.1".to_owned(), port: 1 });
            assert_eq!(place(&by_address, &mut control(&server)), (None, None));
            place(&server.target(), &mut control(&server))
        };
        let own = std::process::id();
        assert_eq!(place_of(own), (Some(own), None), "no process has its lock open");
        let _lock = std::fs::File::open(data.path().join(LOCK)).unwrap();
        assert_eq!(place_of(own), (Some(own), Some(data.path().to_owned())));
        assert_eq!(place_of(own + 1), (Some(own), None), "it is in another namespace of processes and files");
    }

    /// The server refused the first transaction in the middle of a run.
    #[test]
    fn storage_engine_without_transactions_is_detected() {
        let lacks = |engine: &'static str| {
            let server =
                Server::new(move |_, _| Some(ok(|of| of.document("storageEngine", |of| of.text("name", engine)))));
            lacks_transactions(&mut control(&server))
        };
        assert_eq!(lacks("wiredTiger"), None);
        assert_eq!(lacks("mmapv1").as_deref(), Some("MMAPv1 has none"));
        assert_eq!(lacks("rocksdb").as_deref(), Some("MongoRocks has none"));
        let router = Server::new(|_, _| Some(ok(|_| {})));
        assert_eq!(lacks_transactions(&mut control(&router)), None, "it has no storage engine of its own");
        let alone = || {
            ok(|of| {
                of.bool("isWritablePrimary", true);
                of.small("maxWireVersion", 7);
            })
        };
        let alone = Server::that_greets(alone, |_, _| None);
        assert!(lacks_transactions(&mut control(&alone)).unwrap().contains("not part of a replica set"));
    }

    /// Missing privileges were reported only after the load, with a role that does not grant them.
    #[test]
    fn missing_privileges_are_reported_before_loading() {
        for (denied, role) in [("serverStatus", "clusterMonitor"), ("fsync", "hostManager")] {
            let server = Server::new(move |name, _| Some(if name == denied { refused(13, None) } else { ok(|_| {}) }));
            let error = check_rights(&mut control(&server)).unwrap_err();
            assert!(error.remedy.contains(role) && !error.problem.contains("readWrite"), "{error:?}");
        }
        // Other errors may be temporary.
        let server = Server::new(|_, _| Some(refused(50, None)));
        assert!(check_rights(&mut control(&server)).is_ok());
    }

    #[test]
    fn cleanup_accepts_an_already_dropped_collection() {
        let mut drops = 0;
        let server = Server::new(move |name, _| match name {
            "listCollections" => Some(ok(|of| {
                of.document("cursor", |of| {
                    of.array("firstBatch", |of| of.document(|of| of.text("name", MARKER)));
                    of.int("id", 0);
                });
            })),
            "drop" => {
                drops += 1;
                (drops > 1).then(|| refused(NO_COLLECTION, None))
            }
            _ => Some(ok(|_| {})),
        });
        give_back(&mut control(&server), "lab").unwrap();
        let dropped = server.requested().iter().filter(|command| command.get().blob("drop").is_ok()).count();
        assert_eq!(dropped, 2);
    }

    #[test]
    fn only_sessions_of_the_lost_host_are_ended() {
        let server = Server::new(|name, _| {
            Some(match name {
                "aggregate" => ok(|of| {
                    of.document("cursor", |of| {
                        of.array("firstBatch", |of| {
                            for (client, id) in [("10.0.0.2:50000", b"lost"), ("10.0.0.20:50000", b"here")] {
                                of.document(|of| {
                                    of.text("client", client);
                                    of.document("lsid", |of| of.binary_of("id", UUID, id));
                                });
                            }
                        });
                        of.int("id", 0);
                    });
                }),
                _ => ok(|_| {}),
            })
        });
        let mut control = control(&server);
        end_sessions(&mut control, &["10.0.0.3".to_owned(), "n3".to_owned()]).unwrap();
        end_sessions(&mut control, &["10.0.0.2".to_owned(), "n2".to_owned()]).unwrap();
        let requested = server.requested();
        let ended = requested.iter().find_map(|command| command.get().get("killSessions").ok().flatten());
        let Some(Value::Array(ended)) = ended else { panic!("{ended:?}") };
        let id = |session: Value<'_>| match session {
            Value::Document(session) => session.blob("id").unwrap().to_vec(),
            other => panic!("{other:?}"),
        };
        let ids: Vec<Vec<u8>> = ended.iter().map(|session| id(session.unwrap().1)).collect();
        assert_eq!(ids, [b"lost"]);
    }

    #[test]
    fn foreign_collections_are_never_emptied() {
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(foreign(&names(&[])), None);
        assert_eq!(foreign(&names(&["linktable", MARKER])), None);
        assert_eq!(foreign(&names(&["orders"])).map(String::as_str), Some("orders"));
    }
}
