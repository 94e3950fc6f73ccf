//! The database on an existing server: taken only if it is empty or rumba's own, and left as it was found.

use std::path::PathBuf;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, SqlState};
use rumba_engine_api::setting::SettingError;
use rumba_protocol_postgresql::{Address, Admin, PgError, Target};
use rumba_server_kit::process::{data_here, listening_at};

use crate::control::Control;
use crate::failure::{failed, is_denied};
use crate::upkeep;

/// The table that marks a database as rumba's.
const MARKER: &str = "rumba_marker";
/// The marker's comment, because a user's table may have the same name.
const MARK: &str = "rumba may remove the tables of this database";
/// Key of the advisory lock that a trial holds in its database: "rumba" in letters.
const LOCK: u64 = 0x0072_756d_6261;
/// Timeout for connecting and for each answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long a lost connection or a killed trial may still hold the database. A server notices a closed connection only
/// when it next reads, for example after a long statement.
pub const RELEASE: Duration = Duration::from_secs(10);
/// Pause between two attempts to take the database.
const NAP: Duration = Duration::from_millis(100);

/// The database does not exist.
const NO_DATABASE: SqlState = SqlState(*b"3D000");

const CALL: &str = "database on the server";

/// Encodings in which every byte except zero is a character, so that they can store any text of a workload.
const ANY_BYTE: [&str; 3] = ["LATIN1", "SQL_ASCII", "LATIN9"];

/// The state of the database.
enum Found {
    Empty,
    Ours,
    Foreign(String),
}

/// Quotes a name.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn remedy(database: &str) -> String {
    let name = quoted(database);
    format!(
        "name a database that is empty, or let an administrator make one: CREATE DATABASE {name} OWNER the user \
         TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'"
    )
}

/// Connects, and returns an error that names the remedy.
///
/// # Errors
/// Why the connection failed.
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
/// Also refuses a user without the privileges for settle and drain.
///
/// # Errors
/// The obstacle and its remedy.
pub fn check(control: &mut Control, database: &str) -> Result<(), SettingError> {
    let asked =
        |error: PgError| SettingError::new("server", error.to_string(), "see that the user may read pg_catalog");
    if let Found::Foreign(relation) = look(control).map_err(asked)? {
        return Err(SettingError::new("server", foreign(database, &relation), remedy(database)));
    }
    let encoding = first(control, "SHOW server_encoding").map_err(asked)?;
    if !ANY_BYTE.contains(&encoding.as_str()) {
        let problem = format!("the database {database} is in {encoding}, in which not every byte is a character");
        return Err(SettingError::new("server", problem, remedy(database)));
    }
    match control.ask("CHECKPOINT") {
        Err(error) if is_denied(&error) => {
            let problem = format!("settle and drain need what the user may not do: {error}");
            Err(SettingError::new("server", problem, upkeep::REMEDY))
        }
        // Other errors are reported when the command is needed, which is also before the load.
        _ => Ok(()),
    }
}

fn foreign(database: &str, relation: &str) -> String {
    format!("the database {database} is not empty and was not made by rumba (it holds {relation})")
}

fn first(control: &mut Control, sql: &str) -> Result<String, PgError> {
    Ok(firsts(control, sql)?.into_iter().next().unwrap_or_default())
}

/// The first column of each row.
fn firsts(control: &mut Control, sql: &str) -> Result<Vec<String>, PgError> {
    Ok(control.ask(sql)?.rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
}

/// All relations that users created; those of extensions are excluded.
const RELATIONS: &str = "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' \
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') \
    UNION ALL SELECT n.nspname || '.' || p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
    WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' \
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY 1";

fn look(control: &mut Control) -> Result<Found, PgError> {
    let mark = format!("SELECT obj_description(to_regclass('public.{MARKER}'), 'pg_class')");
    if first(control, &mark)? == MARK {
        return Ok(Found::Ours);
    }
    Ok(firsts(control, RELATIONS)?.into_iter().next().map_or(Found::Empty, Found::Foreign))
}

/// Takes the database for a trial and removes what an earlier trial left in it. The control session must stay connected
/// for the trial, because it holds the lock.
///
/// # Errors
/// A database that is foreign or in use; the server's error.
pub fn take(admin: &mut Admin, database: &str) -> Result<(), EngineError> {
    if hold(admin, RELEASE).map_err(|error| failed(CALL, &error))? {
        return Ok(());
    }
    let message = format!("another trial uses the database {database}; wait until it has ended, or name another");
    Err(EngineError::failed(CALL, message))
}

/// Prepares the database: removes its contents and creates rumba's marker.
///
/// # Errors
/// See [`take`].
pub fn make_ready(control: &mut Control, database: &str) -> Result<(), EngineError> {
    match look(control).map_err(|error| failed(CALL, &error))? {
        Found::Empty => {}
        Found::Ours => give_back(control)?,
        Found::Foreign(relation) => {
            let message = format!("{}; {}", foreign(database, &relation), remedy(database));
            return Err(EngineError::failed(CALL, message));
        }
    }
    control.run(CALL, &format!("CREATE TABLE public.{MARKER} ()"))?;
    control.run(CALL, &format!("COMMENT ON TABLE public.{MARKER} IS '{MARK}'")).map(drop)
}

/// Locks the database against other trials while this connection lives. Returns false if another trial holds the lock
/// and keeps it for `patience`.
///
/// # Errors
/// The server's error.
pub fn hold(admin: &mut Admin, patience: Duration) -> Result<bool, PgError> {
    let since = std::time::Instant::now();
    loop {
        let got = admin.query(&format!("SELECT pg_try_advisory_lock({LOCK})"))?;
        if got.rows.first().and_then(|row| row.first()?.as_deref()) == Some("t") {
            return Ok(true);
        }
        if since.elapsed() > patience {
            return Ok(false);
        }
        std::thread::sleep(NAP);
    }
}

/// Removes the trial's data. The marker goes last, because without it the rest would be foreign.
///
/// # Errors
/// The server's error.
pub fn give_back(control: &mut Control) -> Result<(), EngineError> {
    let tables = format!(
        "SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace \
         AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname = '{MARKER}'"
    );
    for table in firsts(control, &tables).map_err(|error| failed(CALL, &error))? {
        control.run(CALL, &format!("DROP TABLE IF EXISTS public.{table} CASCADE"))?;
    }
    Ok(())
}

/// The process at the other end of a Unix socket and the server's data directory, if this user can determine them.
pub fn place(target: &Target, control: &mut Control) -> (Option<u32>, Option<PathBuf>) {
    let Address::Socket(path) = &target.address else { return (None, None) };
    let pid = listening_at(path);
    let told = first(control, "SHOW data_directory").ok().filter(|data| !data.is_empty());
    (pid, told.and_then(|data| data_here(pid, data.into())))
}
