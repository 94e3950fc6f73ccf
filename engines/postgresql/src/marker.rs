//! The marker of a trial on an existing server: a table that names the tables that the trial creates. rumba drops these
//! tables and no others, also after a kill.

use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::error::{Result, SqlState};
use rumba_protocol_postgresql::{PgError, TableObserver};
use rumba_server_kit::left_behind::KeptTable;

use crate::control::Control;
use crate::failure::failed;

/// The table's name.
pub const MARKER: &str = "rumba_marker";
/// Its comment, because a user's table may have the same name.
pub const MARK: &str = "names the tables that rumba may drop";

const CALL: &str = "clean-up of the database";

/// Another object depends on the table.
const HAS_DEPENDENTS: SqlState = SqlState(*b"2BP01");
/// The name belongs to another kind of object now.
const OTHER_KIND: SqlState = SqlState(*b"42809");
/// The table has another owner now.
const OTHER_OWNER: SqlState = SqlState(*b"42501");
/// One transaction cannot lock so many tables.
const TOO_MANY_LOCKS: SqlState = SqlState(*b"53200");

/// The schemas with a marker.
pub fn schemas(control: &mut Control) -> Result<Vec<String>, PgError> {
    let sql = format!(
        "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relname = '{MARKER}' AND obj_description(c.oid, 'pg_class') = '{MARK}' ORDER BY 1"
    );
    control.firsts(&sql)
}

/// Creates the marker in a schema.
pub fn create(control: &mut Control, schema: &str) -> Result<()> {
    let marker = marker_in(schema);
    // Both statements are one transaction, so there is never a marker without its comment.
    let sql = format!(
        "CREATE TABLE {marker} (schema_name text NOT NULL, table_name text NOT NULL); \
         COMMENT ON TABLE {marker} IS '{MARK}'"
    );
    control.run("marking the database", &sql).map(drop)
}

/// The condition, over columns `schemaname` and `relname`, for the tables that the marker names.
pub fn condition(schema: &str) -> String {
    format!("(s.schemaname::text, s.relname::text) IN (SELECT schema_name, table_name FROM {})", marker_in(schema))
}

/// Drops the tables that the marker names, and then the marker, without which they would be foreign. Returns the tables
/// that cannot be dropped.
pub fn drop_tables(control: &mut Control, schema: &str) -> Result<Vec<KeptTable>> {
    let failed = |error: PgError| failed(CALL, &error);
    let marker = marker_in(schema);
    // The newest table comes first, because it may refer to older ones.
    let names = "quote_ident(schema_name) || '.' || quote_ident(table_name)";
    let tables = control.firsts(&format!("SELECT {names} FROM {marker} ORDER BY ctid DESC")).map_err(failed)?;
    let kept = drop_all(control, &tables).map_err(failed)?;
    if kept.is_empty() {
        control.fetch(&format!("DROP TABLE IF EXISTS {marker}")).map_err(failed)?;
    }
    Ok(kept)
}

/// Drops tables without CASCADE, which would reach other users' views and foreign keys.
fn drop_all(control: &mut Control, tables: &[String]) -> Result<Vec<KeptTable>, PgError> {
    let mut kept = Vec::new();
    if tables.is_empty() {
        return Ok(kept);
    }
    // All at once, because they may refer to each other.
    match control.fetch(&format!("DROP TABLE IF EXISTS {}", tables.join(", "))) {
        Ok(_) => return Ok(kept),
        Err(error) if is_of_one_table(&error) => {}
        Err(error) => return Err(error),
    }
    for table in tables {
        match control.fetch(&format!("DROP TABLE IF EXISTS {table}")) {
            Ok(_) => {}
            Err(error) if is_of_one_table(&error) => {
                kept.push(KeptTable { table: table.clone(), reason: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}

/// Whether an error may concern only one of the tables.
fn is_of_one_table(error: &PgError) -> bool {
    let states = [HAS_DEPENDENTS, OTHER_KIND, OTHER_OWNER, TOO_MANY_LOCKS];
    matches!(error, PgError::Server { sqlstate, .. } if states.contains(sqlstate))
}

fn marker_in(schema: &str) -> String {
    format!("{}.{MARKER}", quoted(schema))
}

/// Records in the marker each table that a session is about to create. `schema` has the trial's tables. A table that
/// exists already is not recorded, because rumba did not create it.
pub fn recorder(control: Arc<Mutex<Control>>, schema: String) -> TableObserver {
    TableObserver::new(move |name| {
        let marker = marker_in(&schema);
        let schema = literal(name.schema.as_deref().unwrap_or(&schema));
        let table = literal(&name.table);
        let sql = format!(
            "INSERT INTO {marker} SELECT {schema}, {table} \
             WHERE to_regclass(quote_ident({schema}) || '.' || quote_ident({table})) IS NULL \
             AND NOT EXISTS (SELECT 1 FROM {marker} WHERE schema_name = {schema} AND table_name = {table})"
        );
        let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
        control.run("recording a table", &sql).map(drop)
    })
}

/// Quotes a name.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
