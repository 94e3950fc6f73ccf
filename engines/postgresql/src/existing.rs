//! The database on an existing server. rumba takes it only if it is empty or has rumba's marker. At the end rumba drops
//! what the trial created.

use std::path::PathBuf;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result, SqlState};
use rumba_engine_api::setting::SettingError;
use rumba_protocol_postgresql::{Admin, PgError, Target};
use rumba_server_kit::dsn::{Dsn, FLUSH_NO};
use rumba_server_kit::left_behind::Container;
use rumba_server_kit::process::{parent_of, place_of};

use crate::control::{Control, RELEASE, hold};
use crate::failure::{failed, is_denied};
use crate::marker::{MARK, MARKER, literal, quoted};
use crate::{marker, upkeep};

/// Timeout for connecting and for each answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The database does not exist.
const NO_DATABASE: SqlState = SqlState(*b"3D000");

const CALL: &str = "database on the server";
const CONTAINER: Container = Container { call: CALL, noun: "database", remedy: "drop the objects that depend on them" };

/// Encodings in which every byte except zero is a character, so that they can store any text of a workload.
const ANY_BYTE: [&str; 3] = ["LATIN1", "SQL_ASCII", "LATIN9"];
/// An encoding that has all characters of [`CONVERTED_FROM`], so that the server can convert any text of a workload.
const CONVERTED: &str = "UTF8";
/// The encoding of the sessions of a database in [`CONVERTED`].
const CONVERTED_FROM: &str = "LATIN1";

/// The state of the database.
enum Found {
    Empty,
    /// These schemas have a marker.
    Ours(Vec<String>),
    Foreign(String),
}

/// The schema in which a trial's sessions create tables, and the path that fixes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialSchema {
    /// The schema's name.
    pub name: String,
    /// The value of `search_path`, quoted: the schema, then the others that the user's own path has.
    pub search_path: String,
}

fn remedy(database: &str) -> String {
    let name = quoted(database);
    format!(
        "name a database that is empty, or let an administrator make one: CREATE DATABASE {name} OWNER the user \
         TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'"
    )
}

/// Connects, and returns an error that names the remedy.
pub fn connect(target: &Target) -> Result<Admin, SettingError> {
    Admin::connect(target, PATIENCE).map_err(|error| {
        let database = target.database.as_deref().unwrap_or_default();
        let words = match &error {
            PgError::Server { sqlstate, .. } if *sqlstate == NO_DATABASE => remedy(database),
            PgError::Server { .. } => {
                "check the user in the DSN, the password in RUMBA_POSTGRESQL_PASSWORD, PGPASSWORD \
                                       or the password file, and the server's pg_hba.conf"
                    .to_owned()
            }
            _ => "check that the server runs and that the DSN names its host and port, or its socket".to_owned(),
        };
        SettingError::new("server", error.to_string(), words)
    })
}

/// Refuses a database with tables that rumba did not create, or with an encoding that cannot store the workloads' data.
/// Also refuses a user without the privileges to create tables, and those for settle and drain.
pub fn check(control: &mut Control, dsn: &Dsn) -> Result<(), SettingError> {
    let database = dsn.database.as_str();
    if let Found::Foreign(relation) = look(control).map_err(unreadable)? {
        return Err(SettingError::new("server", foreign(database, &relation), remedy(database)));
    }
    let encoding = server_encoding(control).map_err(unreadable)?;
    if !ANY_BYTE.contains(&encoding.as_str()) && encoding != CONVERTED {
        let problem = format!("the database {database} is in {encoding}, which cannot store every byte of a workload");
        return Err(SettingError::new("server", problem, remedy(database)));
    }
    trial_schema(control)?;
    if dsn.without_flush {
        return Ok(());
    }
    match control.fetch("CHECKPOINT") {
        Err(error) if is_denied(&error) => {
            let problem = format!("the user lacks privileges that settle and drain need: {error}");
            Err(SettingError::new("server", problem, format!("{FLUSH_NO}, or {}", upkeep::REMEDY)))
        }
        // Other errors are reported when the command is needed, which is also before the load.
        _ => Ok(()),
    }
}

fn unreadable(error: PgError) -> SettingError {
    SettingError::new("server", error.to_string(), "check that the user may read pg_catalog")
}

fn server_encoding(control: &mut Control) -> Result<String, PgError> {
    first(control, "SHOW server_encoding")
}

/// The parameters of the sessions' first messages. In a database in UTF8, the sessions use an encoding in which every
/// byte is a character, and the server converts it.
pub fn startup(control: &mut Control) -> Result<Vec<(&'static str, String)>> {
    let encoding = server_encoding(control).map_err(|error| failed(CALL, &error))?;
    let converted = (encoding == CONVERTED).then(|| ("client_encoding", CONVERTED_FROM.to_owned()));
    Ok(converted.into_iter().collect())
}

/// The schema in which the user's sessions create tables, which depends on the user's own `search_path`.
///
/// # Errors
/// There is none, or the user may not create tables in it.
pub fn trial_schema(control: &mut Control) -> Result<TrialSchema, SettingError> {
    const SQL: &str = "SELECT current_schema(), has_schema_privilege(current_schema(), 'CREATE'), \
        (SELECT string_agg(quote_ident(s.name), ', ' ORDER BY s.place) \
         FROM unnest(current_schemas(false)) WITH ORDINALITY AS s (name, place))";
    let answer = control.fetch(SQL).map_err(unreadable)?;
    let mut cells = answer.rows.into_iter().next().unwrap_or_default().into_iter();
    let mut cell = || cells.next().flatten();
    let (name, may_create, search_path) = (cell(), cell(), cell());
    match (name, may_create.as_deref(), search_path) {
        (Some(name), Some("t"), Some(search_path)) => Ok(TrialSchema { name, search_path }),
        (name, ..) => {
            let problem = match name {
                Some(name) => format!("the user may not create tables in {name}, the first schema of its search_path"),
                None => "the user's search_path has no schema that exists".to_owned(),
            };
            let remedy = "let an administrator run GRANT CREATE ON SCHEMA public TO the user, or \
                          CREATE SCHEMA AUTHORIZATION the user";
            Err(SettingError::new("server", problem, remedy))
        }
    }
}

fn foreign(database: &str, relation: &str) -> String {
    format!("the database {database} is not empty and was not made by rumba (it holds {relation})")
}

fn first(control: &mut Control, sql: &str) -> Result<String, PgError> {
    Ok(control.firsts(sql)?.into_iter().next().unwrap_or_default())
}

/// All tables, views, sequences and routines that users created, without markers. Those of extensions are excluded, and
/// indexes and sequences that belong to a table.
fn objects() -> String {
    let users = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'";
    format!(
        "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE {users} AND c.relkind NOT IN ('i', 'I', 't') \
         AND NOT (c.relname = '{MARKER}' AND coalesce(obj_description(c.oid, 'pg_class'), '') = '{MARK}') \
         AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid \
             AND (d.deptype = 'e' OR c.relkind = 'S' AND d.deptype IN ('a', 'i'))) \
         UNION ALL SELECT quote_ident(n.nspname) || '.' || quote_ident(p.proname) \
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {users} \
         AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid \
             AND d.deptype = 'e') ORDER BY 1"
    )
}

fn look(control: &mut Control) -> Result<Found, PgError> {
    let schemas = marker::schemas(control)?;
    if !schemas.is_empty() {
        return Ok(Found::Ours(schemas));
    }
    Ok(control.firsts(&objects())?.into_iter().next().map_or(Found::Empty, Found::Foreign))
}

/// Takes the database for a trial and removes what an earlier trial left in it. The control session must stay connected
/// for the trial, because it holds the lock.
///
/// # Errors
/// A database that is foreign or in use; the server's error.
pub fn take(admin: &mut Admin, database: &str) -> Result<()> {
    if hold(admin, RELEASE).map_err(|error| failed(CALL, &error))? {
        return Ok(());
    }
    let message = format!("another trial uses the database {database}; wait until it has ended, or name another");
    Err(EngineError::failed(CALL, message))
}

/// Drops what a killed trial has left in a database.
pub fn clean(mut admin: Admin, database: &str) -> Result<()> {
    take(&mut admin, database)?;
    let mut control = Control::new(admin, Default::default(), true);
    let schemas = marker::schemas(&mut control).map_err(|error| failed(CALL, &error))?;
    schemas.iter().try_for_each(|schema| give_back(&mut control, schema))
}

/// Prepares the database: drops what an earlier trial left, and creates rumba's marker in the schema of the trial.
pub fn make_ready(control: &mut Control, database: &str) -> Result<TrialSchema> {
    match look(control).map_err(|error| failed(CALL, &error))? {
        Found::Empty => {}
        Found::Ours(schemas) => schemas.iter().try_for_each(|schema| give_back(control, schema))?,
        Found::Foreign(relation) => {
            let message = format!("{}; {}", foreign(database, &relation), remedy(database));
            return Err(EngineError::failed(CALL, message));
        }
    }
    let schema =
        trial_schema(control).map_err(|error| EngineError::failed(CALL, format!("{error}; {}", error.remedy)))?;
    marker::create(control, &schema.name)?;
    Ok(schema)
}

/// Drops the tables that the trial created.
///
/// # Errors
/// The server's error. It also names the tables that cannot be dropped, and the objects that rumba did not create,
/// because the next trial needs an empty database.
pub fn give_back(control: &mut Control, schema: &str) -> Result<()> {
    let kept = marker::drop_tables(control, schema)?;
    let objects = control.firsts(&objects()).map_err(|error| failed(CALL, &error))?;
    let is_kept = |object: &String| kept.iter().any(|kept| kept.table == *object);
    let others: Vec<String> = objects.into_iter().filter(|object| !is_kept(object)).collect();
    CONTAINER.left_behind(&kept, &others)
}

/// Ends the sessions of this user in the database that come from a host with one of these addresses.
///
/// # Errors
/// The server's error.
pub fn end_sessions(control: &mut Control, names: &[String]) -> Result<(), EngineError> {
    let names: Vec<String> = names.iter().map(|name| literal(name)).collect();
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
         AND usename = current_user AND pid <> pg_backend_pid() AND host(client_addr) IN ({})",
        names.join(", ")
    );
    control.fetch(&sql).map(drop).map_err(|error| failed(CALL, &error))
}

/// The server's process and data directory, if this user can determine them.
pub fn place(target: &Target, control: &mut Control) -> (Option<u32>, Option<PathBuf>) {
    let reported = first(control, "SHOW data_directory").ok().filter(|data| !data.is_empty());
    let backend = first(control, "SELECT pg_backend_pid()").ok().and_then(|pid| pid.parse().ok());
    let is_server = |pid| backend.and_then(parent_of) == Some(pid);
    place_of(&target.address, reported.map(PathBuf::from), is_server)
}
