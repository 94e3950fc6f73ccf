//! The schema on an existing server: taken only if it is empty or rumba's own, and left as it was found.

use std::path::PathBuf;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::SettingError;
use rumba_protocol_mysql::{Admin, TableName, Target, WireError};
use rumba_server_kit::left_behind::Container;
use rumba_server_kit::process::{place_of, works_in};

use crate::control::{RELEASE, hold};
use crate::counters::Request;
use crate::marker::{self, MARKER};
use crate::rehearsal;
use crate::sql::{firsts, quoted, text};

const CALL: &str = "schema on the server";
const CONTAINER: Container = Container { call: CALL, noun: "schema", remedy: "remove the cause" };
/// Timeout for connecting and for each answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

const ACCESS_DENIED: u16 = 1045;
const SCHEMA_DENIED: u16 = 1044;
const NO_SUCH_THREAD: u16 = 1094;

/// The state of the schema.
enum Found {
    Nothing,
    Empty,
    Ours,
    Foreign(String),
}

/// A schema taken for a trial, and the changes to undo. The [`marker`] has the tables.
pub struct Taken {
    schema: String,
    made_schema: bool,
}

fn failed(error: WireError) -> EngineError {
    error.during(CALL)
}

/// Connects, and returns an error that names the remedy.
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
pub fn check(admin: &mut dyn Request, schema: &str) -> Result<(), SettingError> {
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

fn look(admin: &mut dyn Request, schema: &str) -> Result<Found, WireError> {
    let name = text(schema);
    let there = admin.fetch(&format!("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {name}"))?;
    if there.rows.is_empty() {
        return Ok(Found::Nothing);
    }
    let objects = objects(admin, schema)?;
    if !objects.iter().any(|object| object == MARKER) {
        return Ok(objects.into_iter().next().map_or(Found::Empty, Found::Foreign));
    }
    if !marker::is_mark(admin, schema)? {
        return Ok(Found::Foreign(format!("a table {MARKER} that rumba did not make")));
    }
    let ours = marker::tables(admin, schema)?;
    let foreign = objects.into_iter().find(|object| object != MARKER && !is_among(&ours, schema, object));
    Ok(foreign.map_or(Found::Ours, Found::Foreign))
}

/// The names of the schema's tables, views, sequences, routines and events.
fn objects(admin: &mut dyn Request, schema: &str) -> Result<Vec<String>, WireError> {
    let mut objects = Vec::new();
    // One statement for each, because the collations of these columns differ in MySQL.
    for (column, table, of) in [
        ("TABLE_NAME", "TABLES", "TABLE_SCHEMA"),
        ("ROUTINE_NAME", "ROUTINES", "ROUTINE_SCHEMA"),
        ("EVENT_NAME", "EVENTS", "EVENT_SCHEMA"),
    ] {
        let schema = text(schema);
        let sql = format!("SELECT {column} FROM information_schema.{table} WHERE {of} = {schema} ORDER BY {column}");
        objects.extend(firsts(admin, &sql)?);
    }
    Ok(objects)
}

/// Whether an object of the schema is one of these tables. Some servers store names in lower case.
fn is_among(tables: &[String], schema: &str, object: &str) -> bool {
    let object = marker::table_in(schema, object);
    tables.iter().any(|table| table.eq_ignore_ascii_case(&object))
}

/// Takes a schema for a trial and removes what an earlier trial left in it. `admin` must stay connected for the trial,
/// because it holds the lock.
///
/// # Errors
/// A schema that is foreign or in use; the server's error.
pub fn take(admin: &mut dyn Request, schema: &str) -> Result<Taken> {
    require_hold(admin, schema)?;
    let made_schema = match look(admin, schema).map_err(failed)? {
        Found::Nothing => {
            let sql = format!("CREATE DATABASE {} DEFAULT CHARACTER SET latin1", quoted(schema));
            admin.fetch(&sql).map_err(failed)?;
            true
        }
        Found::Empty => false,
        Found::Ours => {
            let made = marker::made_schema(admin, schema).map_err(failed)?;
            let kept = marker::drop_tables(admin, schema).map_err(failed)?;
            CONTAINER.left_behind(&kept, &[])?;
            made
        }
        Found::Foreign(table) => {
            return Err(EngineError::failed(CALL, format!("{}; {REMEDY}", foreign(schema, &table))));
        }
    };
    marker::create(admin, schema, made_schema).map_err(failed)?;
    let rehearsed = TableName { schema: None, table: rehearsal::TABLE.to_owned() };
    marker::record(admin, schema, &rehearsed).map_err(failed)?;
    Ok(Taken { schema: schema.to_owned(), made_schema })
}

/// Drops what a killed trial has left in a schema.
///
/// # Errors
/// A schema in use by another trial; see [`Taken::give_back`].
pub fn clean(admin: &mut dyn Request, schema: &str) -> Result<()> {
    require_hold(admin, schema)?;
    let has_marker = objects(admin, schema).map_err(failed)?.iter().any(|object| object == MARKER);
    if !has_marker || !marker::is_mark(admin, schema).map_err(failed)? {
        return Ok(());
    }
    let made_schema = marker::made_schema(admin, schema).map_err(failed)?;
    Taken { schema: schema.to_owned(), made_schema }.give_back(admin)
}

fn require_hold(admin: &mut dyn Request, schema: &str) -> Result<()> {
    if hold(admin, schema, RELEASE).map_err(failed)? {
        return Ok(());
    }
    let message = format!("another trial uses the schema {schema}; wait until it has ended, or name another");
    Err(EngineError::failed(CALL, message))
}

impl Taken {
    /// Drops the tables that the trial created, and the schema if the trial created it and nothing else is in it.
    ///
    /// # Errors
    /// The server's error. It also names the tables that cannot be dropped, and the objects that rumba did not create,
    /// because the next trial needs an empty schema.
    pub fn give_back(&self, admin: &mut dyn Request) -> Result<()> {
        let kept = marker::drop_tables(admin, &self.schema).map_err(failed)?;
        let tables: Vec<String> = kept.iter().map(|kept| kept.table.clone()).collect();
        let mut others = objects(admin, &self.schema).map_err(failed)?;
        others.retain(|object| object != MARKER && !is_among(&tables, &self.schema, object));
        CONTAINER.left_behind(&kept, &others)?;
        if self.made_schema {
            admin.fetch(&format!("DROP DATABASE IF EXISTS {}", quoted(&self.schema))).map_err(failed)?;
        }
        Ok(())
    }
}

/// Ends the sessions of this user in the schema that come from a host with one of these names.
///
/// # Errors
/// The server's error.
pub fn end_sessions(admin: &mut dyn Request, schema: &str, names: &[String]) -> Result<(), EngineError> {
    let names: Vec<String> = names.iter().map(|name| text(name)).collect();
    let sql = format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = {} AND USER = SUBSTRING_INDEX(USER(), '@', 1) \
         AND SUBSTRING_INDEX(HOST, ':', 1) IN ({})",
        text(schema),
        names.join(", ")
    );
    for id in firsts(admin, &sql).map_err(failed)? {
        match admin.fetch(&format!("KILL {id}")) {
            // It has ended meanwhile.
            Err(WireError::Server { code: NO_SUCH_THREAD, .. }) | Ok(_) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// The server's process and data directory, if this user can determine them.
pub fn place(target: &Target, admin: &mut dyn Request) -> (Option<u32>, Option<PathBuf>) {
    let reported = firsts(admin, "SELECT @@GLOBAL.datadir").unwrap_or_default();
    let data = reported.into_iter().next().map(PathBuf::from);
    let is_server = |pid| data.as_deref().and_then(|data| works_in(pid, data)) == Some(true);
    place_of(&target.address, data.clone(), is_server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::tests::server::{Private, run};

    fn creates(admin: &mut dyn Request, table: &str, definition: &str) {
        let name = TableName { schema: None, table: table.to_owned() };
        marker::record(admin, "lab", &name).expect("recorded");
        admin.fetch(&format!("CREATE TABLE lab.{table} {definition}")).expect("a table");
    }

    fn tables(admin: &mut dyn Request) -> Vec<String> {
        firsts(admin, "SHOW TABLES FROM lab").expect("tables")
    }

    #[test]
    #[needs(MariaDb)]
    fn tables_of_a_killed_trial_are_dropped_once_they_can_be() {
        let private = Private::start(&[]);
        let mut killed = private.connect();
        take(&mut killed, "lab").expect("taken");
        // The older table refers to the newer one, so it has to be dropped first.
        creates(&mut killed, "order_line", "(id INT, KEY (id)) ENGINE = InnoDB");
        creates(&mut killed, "stock", "(id INT PRIMARY KEY) ENGINE = InnoDB");
        run(&mut killed, &["ALTER TABLE lab.order_line ADD FOREIGN KEY (id) REFERENCES lab.stock (id)"]);
        drop(killed);
        let mut admin = private.connect();
        check(&mut admin, "lab").expect("what is in it is rumba's");
        let taken = take(&mut admin, "lab").expect("taken");
        assert_eq!(tables(&mut admin), [MARKER]);
        taken.give_back(&mut admin).expect("given back");
        let schemas = admin.fetch("SHOW DATABASES LIKE 'lab'").expect("schemas").rows;
        assert!(schemas.is_empty(), "the killed trial had created the schema");
        let taken = take(&mut admin, "lab").expect("taken");
        creates(&mut admin, "stock", "(id INT PRIMARY KEY) ENGINE = InnoDB");
        let theirs = "CREATE TABLE theirs.orders (id INT, FOREIGN KEY (id) REFERENCES lab.stock (id)) ENGINE = InnoDB";
        run(&mut admin, &["CREATE DATABASE theirs", theirs]);
        let left = taken.give_back(&mut admin).expect_err("another table refers to it").to_string();
        assert!(left.contains("rumba could not drop its tables `lab`.`stock` (server error 1451"), "{left}");
        run(&mut admin, &["DROP DATABASE theirs"]);
        let taken = take(&mut admin, "lab").expect("taken");
        assert_eq!(tables(&mut admin), [MARKER]);
        taken.give_back(&mut admin).expect("given back");
    }
}
