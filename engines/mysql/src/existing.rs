//! The schema on an existing server: taken only if it is empty or rumba's own, and left as it was found.

use std::path::PathBuf;
use std::time::Duration;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::setting::SettingError;
use rumba_protocol_mysql::{Admin, Target, WireError};
use rumba_server_kit::process::{data_here, listening_at};

use crate::counters::Ask;

/// The table that marks a schema as rumba's.
const MARKER: &str = "rumba_marker";
/// The marker's comment, because a user's table may have the same name.
const MARK: &str = "rumba may remove this schema's tables";
/// The marker's only column.
const MARK_COLUMN: &str = "made_schema";
/// Timeout for connecting and for each answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long a lost connection or a killed trial may still hold the schema. A server notices a closed connection only
/// when it next reads, for example after a long statement.
pub const RELEASE: Duration = Duration::from_secs(10);

const ACCESS_DENIED: u16 = 1045;
const SCHEMA_DENIED: u16 = 1044;

/// The state of the schema.
enum Found {
    Nothing,
    Empty,
    Ours,
    Foreign(String),
}

/// A schema taken for a trial, and the changes to undo.
pub struct Taken {
    schema: String,
    made_schema: bool,
}

/// Quotes a name with backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Quotes a text.
pub fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

fn failed(error: WireError) -> EngineError {
    error.during("schema on the server")
}

/// Connects, and returns an error that names the remedy.
///
/// # Errors
/// Why the connection failed.
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

/// Refuses a schema with tables that rumba did not create.
///
/// # Errors
/// The first such table.
pub fn check(admin: &mut dyn Ask, schema: &str) -> Result<(), SettingError> {
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

fn look(admin: &mut dyn Ask, schema: &str) -> Result<Found, WireError> {
    let name = text(schema);
    let there = admin.ask(&format!("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {name}"))?;
    if there.rows.is_empty() {
        return Ok(Found::Nothing);
    }
    let tables =
        firsts(admin, &format!("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {name}"))?;
    if tables.iter().any(|table| table == MARKER) {
        return Ok(match is_mark(admin, &name)? {
            true => Found::Ours,
            false => Found::Foreign(format!("a table {MARKER} that rumba did not make")),
        });
    }
    let routines = format!("SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {name}");
    let found = tables.into_iter().next().or(firsts(admin, &routines)?.into_iter().next());
    Ok(found.map_or(Found::Empty, Found::Foreign))
}

/// The first column of each row.
fn firsts(admin: &mut dyn Ask, sql: &str) -> Result<Vec<String>, WireError> {
    Ok(admin.ask(sql)?.rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
}

/// Whether the table of the marker's name is the marker, judged by its comment and its column.
fn is_mark(admin: &mut dyn Ask, schema: &str) -> Result<bool, WireError> {
    let of = |what: &str, among: &str| {
        format!(
            "SELECT {what} FROM information_schema.{among} WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = '{MARKER}'"
        )
    };
    let says = firsts(admin, &of("TABLE_COMMENT", "TABLES"))?;
    let columns = firsts(admin, &of("COLUMN_NAME", "COLUMNS"))?;
    Ok(says == [MARK] && columns == [MARK_COLUMN])
}

/// Takes a schema for a trial and removes what an earlier trial left in it. `admin` must stay connected for the trial,
/// because it holds the lock.
///
/// # Errors
/// A schema that is foreign or in use; the server's error.
pub fn take(admin: &mut dyn Ask, schema: &str) -> Result<Taken, EngineError> {
    if !hold(admin, schema, RELEASE).map_err(failed)? {
        let message = format!("another trial uses the schema {schema}; wait until it has ended, or name another");
        return Err(EngineError::failed("schema on the server", message));
    }
    let name = quoted(schema);
    let made_schema = match look(admin, schema).map_err(failed)? {
        Found::Nothing => {
            admin.ask(&format!("CREATE DATABASE {name} DEFAULT CHARACTER SET latin1")).map_err(failed)?;
            true
        }
        Found::Empty => false,
        Found::Ours => {
            let made = firsts(admin, &format!("SELECT {MARK_COLUMN} FROM {name}.{MARKER}")).map_err(failed)?;
            drop_tables(admin, schema).map_err(failed)?;
            made.first().is_some_and(|made| made == "1")
        }
        Found::Foreign(table) => {
            return Err(EngineError::failed("schema on the server", format!("{}; {REMEDY}", foreign(schema, &table))));
        }
    };
    let mark = format!("CREATE TABLE {name}.{MARKER} ({MARK_COLUMN} INT) COMMENT {}", text(MARK));
    admin.ask(&mark).map_err(failed)?;
    admin.ask(&format!("INSERT INTO {name}.{MARKER} VALUES ({})", u8::from(made_schema))).map_err(failed)?;
    Ok(Taken { schema: schema.to_owned(), made_schema })
}

/// Locks a schema against other trials while this connection lives. Returns false if another trial holds the lock and
/// keeps it for `patience`.
///
/// # Errors
/// The server's error.
pub fn hold(admin: &mut dyn Ask, schema: &str, patience: Duration) -> Result<bool, WireError> {
    // Servers hash or truncate longer lock names.
    let name = text(&format!("rumba:{:016x}", rumba_server_kit::cache::number_of(schema)));
    let got = firsts(admin, &format!("SELECT GET_LOCK({name}, {})", patience.as_secs()))?;
    Ok(got == ["1"])
}

/// Drops the existing tables. The statement may run twice after a lost connection, so a table may be gone already.
fn drop_tables(admin: &mut dyn Ask, schema: &str) -> Result<(), WireError> {
    let sql = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} ORDER BY TABLE_NAME = '{MARKER}'",
        text(schema)
    );
    // Drop the marker last: without it the remaining tables would be foreign.
    for table in firsts(admin, &sql)? {
        admin.ask(&format!("DROP TABLE IF EXISTS {}.{}", quoted(schema), quoted(&table)))?;
    }
    Ok(())
}

impl Taken {
    /// Removes the trial's data.
    ///
    /// # Errors
    /// The server's error.
    pub fn give_back(&self, admin: &mut dyn Ask) -> Result<(), EngineError> {
        if self.made_schema {
            return admin.ask(&format!("DROP DATABASE IF EXISTS {}", quoted(&self.schema))).map(drop).map_err(failed);
        }
        drop_tables(admin, &self.schema).map_err(failed)
    }
}

/// The process at the other end of a Unix socket and the server's data directory, if this user can determine them.
pub fn place(target: &Target, admin: &mut dyn Ask) -> (Option<u32>, Option<PathBuf>) {
    let rumba_protocol_mysql::Address::Socket(path) = &target.address else { return (None, None) };
    let pid = listening_at(path);
    let told = firsts(admin, "SELECT @@GLOBAL.datadir").unwrap_or_default();
    (pid, told.into_iter().next().and_then(|data| data_here(pid, data.into())))
}
