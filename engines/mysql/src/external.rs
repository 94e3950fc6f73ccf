//! The schema on a server of the user's: taken only when it is empty or rumba's
//! own, and left as it was found.

use std::time::Duration;

use rumba_core::engine::EngineError;
use rumba_core::setting::SettingError;
use rumba_wire::{Admin, Target, WireError};

/// The table that marks a schema as rumba's.
const MARKER: &str = "rumba_marker";
/// How long connecting, and an answer, may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

const ACCESS_DENIED: u16 = 1045;
const SCHEMA_DENIED: u16 = 1044;

/// What there is of the schema.
enum Found {
    Nothing,
    Empty,
    Ours,
    Foreign(String),
}

/// A schema taken for a trial, and what has to be undone.
pub struct Taken {
    schema: String,
    made_schema: bool,
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

fn failed(error: WireError) -> EngineError {
    EngineError::failed("schema on the server", error.to_string())
}

/// Connects, with an error that names the remedy.
///
/// # Errors
/// What kept it from connecting.
pub fn connect(target: &Target) -> Result<Admin, SettingError> {
    Admin::connect(target, PATIENCE).map_err(|error| {
        let remedy = match &error {
            WireError::Server { code: ACCESS_DENIED | SCHEMA_DENIED, .. } => {
                "check the user in the DSN and the password in RUMBA_MYSQL_PASSWORD, MYSQL_PWD or the option file"
            }
            WireError::Tls(_) => {
                "check tls= and ca= in the DSN against what the server offers (SHOW VARIABLES LIKE 'have_ssl')"
            }
            _ => "check that the server runs and that the DSN names its host and port, or its socket",
        };
        SettingError::new("server", error.to_string(), remedy)
    })
}

/// Refuses a schema that holds what rumba has not made.
///
/// # Errors
/// The first table of it.
pub fn check(admin: &mut Admin, schema: &str) -> Result<(), SettingError> {
    let found = look(admin, schema).map_err(|error| {
        SettingError::new("server", error.to_string(), "use a user that may read information_schema")
    })?;
    match found {
        Found::Foreign(table) => Err(SettingError::new("server", foreign(schema, &table), REMEDY)),
        _ => Ok(()),
    }
}

const REMEDY: &str = "name a schema in the DSN that is empty or does not exist: mysql://user@host/rumba";

fn foreign(schema: &str, table: &str) -> String {
    format!("the schema {schema} is not empty and was not made by rumba (it holds {table})")
}

fn look(admin: &mut Admin, schema: &str) -> Result<Found, WireError> {
    let name = text(schema);
    let there = admin.query(&format!("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {name}"))?;
    if there.rows.is_empty() {
        return Ok(Found::Nothing);
    }
    let sql = format!("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {name}");
    let tables: Vec<String> = admin.query(&sql)?.rows.into_iter().filter_map(|row| row.into_iter().next()?).collect();
    let routines = format!("SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {name}");
    let routines = admin.query(&routines)?.rows.into_iter().find_map(|row| row.into_iter().next()?);
    Ok(match (tables.iter().any(|table| table == MARKER), tables.into_iter().next().or(routines)) {
        (true, _) => Found::Ours,
        (false, None) => Found::Empty,
        (false, Some(table)) => Found::Foreign(table),
    })
}

/// Takes a schema for a trial; what an ended trial has left in it is removed.
/// `admin` must stay connected for as long as it is wanted.
///
/// # Errors
/// A schema that is foreign or in use; the server's words.
pub fn take(admin: &mut Admin, schema: &str) -> Result<Taken, EngineError> {
    lock(admin, schema)?;
    let name = quoted(schema);
    let made_schema = match look(admin, schema).map_err(failed)? {
        Found::Nothing => {
            admin.query(&format!("CREATE DATABASE {name} DEFAULT CHARACTER SET latin1")).map_err(failed)?;
            true
        }
        Found::Empty => false,
        Found::Ours => {
            let made = admin.query(&format!("SELECT made_schema FROM {name}.{MARKER}")).map_err(failed)?;
            drop_tables(admin, schema).map_err(failed)?;
            made.rows.first().is_some_and(|row| row.first().is_some_and(|cell| cell.as_deref() == Some("1")))
        }
        Found::Foreign(table) => {
            return Err(EngineError::failed("schema on the server", format!("{}; {REMEDY}", foreign(schema, &table))));
        }
    };
    let mark =
        format!("CREATE TABLE {name}.{MARKER} (made_schema INT) COMMENT 'rumba may remove this schema''s tables'");
    admin.query(&mark).map_err(failed)?;
    admin.query(&format!("INSERT INTO {name}.{MARKER} VALUES ({})", u8::from(made_schema))).map_err(failed)?;
    Ok(Taken { schema: schema.to_owned(), made_schema })
}

/// Holds other trials off for as long as this connection lives.
fn lock(admin: &mut Admin, schema: &str) -> Result<(), EngineError> {
    // Servers hash or cut longer names.
    let name = text(&format!("rumba:{:016x}", crate::cache::number_of(schema)));
    let rows = admin.query(&format!("SELECT GET_LOCK({name}, 0)")).map_err(failed)?.rows;
    match rows.first().and_then(|row| row.first()?.as_deref()) {
        Some("1") => Ok(()),
        _ => {
            let message = format!("another trial uses the schema {schema}; wait until it has ended, or name another");
            Err(EngineError::failed("schema on the server", message))
        }
    }
}

fn drop_tables(admin: &mut Admin, schema: &str) -> Result<(), WireError> {
    let sql = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} ORDER BY TABLE_NAME = '{MARKER}'",
        text(schema)
    );
    // The marker goes last: without it the rest would be foreign.
    for table in admin.query(&sql)?.rows.into_iter().filter_map(|row| row.into_iter().next()?) {
        admin.query(&format!("DROP TABLE {}.{}", quoted(schema), quoted(&table)))?;
    }
    Ok(())
}

impl Taken {
    /// Removes what the trial has made.
    ///
    /// # Errors
    /// The server's words.
    pub fn give_back(&self, admin: &mut Admin) -> Result<(), EngineError> {
        if self.made_schema {
            return admin.query(&format!("DROP DATABASE {}", quoted(&self.schema))).map(drop).map_err(failed);
        }
        drop_tables(admin, &self.schema).map_err(failed)
    }
}

/// The process at the other end of a Unix socket, and the server's data
/// directory, as far as this host and this user can tell.
pub fn place(target: &Target, admin: &mut Admin) -> (Option<u32>, Option<std::path::PathBuf>) {
    let rumba_wire::Address::Socket(path) = &target.address else { return (None, None) };
    let connected = std::os::unix::net::UnixStream::connect(path).ok();
    let peer = connected.and_then(|stream| rustix::net::sockopt::socket_peercred(&stream).ok());
    let pid = peer.map(|peer| peer.pid.as_raw_pid() as u32).filter(|pid| *pid > 1);
    let told = admin.query("SELECT @@GLOBAL.datadir").ok();
    let data = told.and_then(|rows| rows.rows.into_iter().next()?.into_iter().next()?).map(std::path::PathBuf::from);
    (pid, data.filter(|data| std::fs::read_dir(data).is_ok()))
}
