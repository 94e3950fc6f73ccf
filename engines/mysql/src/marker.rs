//! The marker of a trial on an existing server: a table that names the schema and the tables that the trial creates.
//!
//! rumba drops these and no others, also after a kill.

use std::sync::{Arc, Mutex, PoisonError};

use rumba_protocol_mysql::{TableName, TableObserver, WireError};
use rumba_server_kit::left_behind::KeptTable;

use crate::control::Control;
use crate::counters::Request;
use crate::sql::{firsts, quoted, text};

/// The table's name.
pub const MARKER: &str = "rumba_marker";
/// Its comment, because a user's table may have the same name.
const MARK: &str = "names the tables that rumba may drop";
/// Its columns. An empty table name means the schema itself.
const COLUMNS: [&str; 3] = ["id", "schema_name", "table_name"];

/// Whether the table of the marker's name is the marker, judged by its comment and its columns.
pub fn is_mark(admin: &mut dyn Request, schema: &str) -> Result<bool, WireError> {
    let condition = format!("TABLE_SCHEMA = {} AND TABLE_NAME = '{MARKER}'", text(schema));
    let says = firsts(admin, &format!("SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE {condition}"))?;
    let columns =
        format!("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE {condition} ORDER BY ORDINAL_POSITION");
    Ok(says == [MARK] && firsts(admin, &columns)? == COLUMNS)
}

/// Creates the marker in a schema. `made_schema` says whether the trial created the schema.
pub fn create(admin: &mut dyn Request, schema: &str, made_schema: bool) -> Result<(), WireError> {
    // Names are bytes here, because the schema's character set may lack some of their characters.
    admin.fetch(&format!(
        "CREATE TABLE {} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, schema_name VARBINARY(256) NOT NULL, \
         table_name VARBINARY(256) NOT NULL) COMMENT {}",
        marker_in(schema),
        text(MARK)
    ))?;
    if made_schema {
        add(admin, schema, schema, "")?;
    }
    Ok(())
}

/// Adds a table to the marker. Twice is harmless, as after a lost connection.
fn add(admin: &mut dyn Request, schema: &str, of: &str, table: &str) -> Result<(), WireError> {
    let marker = marker_in(schema);
    let values = format!("{}, {}", text(of), text(table));
    admin.fetch(&format!("INSERT INTO {marker} (schema_name, table_name) VALUES ({values})")).map(drop)
}

/// Records a table that is about to be created. A table that exists already is not recorded, because the trial did not
/// create it, or has recorded it before.
pub fn record(admin: &mut dyn Request, schema: &str, table: &TableName) -> Result<(), WireError> {
    let of = table.schema.as_deref().unwrap_or(schema);
    let condition = format!("TABLE_SCHEMA = {} AND TABLE_NAME = {}", text(of), text(&table.table));
    let there = firsts(admin, &format!("SELECT 1 FROM information_schema.TABLES WHERE {condition}"))?;
    if there.is_empty() { add(admin, schema, of, &table.table) } else { Ok(()) }
}

/// Whether the marker says that a trial created the schema.
pub fn made_schema(admin: &mut dyn Request, schema: &str) -> Result<bool, WireError> {
    let sql = format!("SELECT 1 FROM {} WHERE table_name = ''", marker_in(schema));
    Ok(!firsts(admin, &sql)?.is_empty())
}

/// The tables that the marker names, each with its schema and quoted. The newest comes first, because it may refer to
/// older ones.
pub fn tables(admin: &mut dyn Request, schema: &str) -> Result<Vec<String>, WireError> {
    let sql =
        format!("SELECT schema_name, table_name FROM {} WHERE table_name <> '' ORDER BY id DESC", marker_in(schema));
    let rows = admin.fetch(&sql)?.rows;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter();
            Some(table_in(&cells.next()??, &cells.next()??))
        })
        .collect())
}

/// A table with its schema, quoted.
pub fn table_in(schema: &str, table: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(table))
}

/// Drops the tables that the marker names, and then the marker, without which they would be foreign. Returns the tables
/// that cannot be dropped. A view of the same name is no table and stays.
///
/// # Errors
/// A lost connection; the server's error about the marker.
pub fn drop_tables(admin: &mut dyn Request, schema: &str) -> Result<Vec<KeptTable>, WireError> {
    let mut left = tables(admin, schema)?;
    loop {
        let before = left.len();
        let kept = drop_each(admin, left)?;
        if kept.is_empty() {
            admin.fetch(&format!("DROP TABLE IF EXISTS {}", marker_in(schema)))?;
            return Ok(kept);
        }
        if kept.len() == before {
            return Ok(kept);
        }
        // A foreign key may lead from an older table to a newer one, which can be dropped after it.
        left = kept.into_iter().map(|kept| kept.table).collect();
    }
}

fn drop_each(admin: &mut dyn Request, tables: Vec<String>) -> Result<Vec<KeptTable>, WireError> {
    let mut kept = Vec::new();
    for table in tables {
        match admin.fetch(&format!("DROP TABLE IF EXISTS {table}")) {
            Ok(_) => {}
            Err(error) if matches!(error, WireError::Server { .. }) && !error.is_lost() => {
                kept.push(KeptTable { table, reason: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}

fn marker_in(schema: &str) -> String {
    table_in(schema, MARKER)
}

/// Records in the marker each table that a session is about to create. `schema` has the trial's tables.
pub fn recorder(control: Arc<Mutex<Control>>, schema: String) -> TableObserver {
    TableObserver::new(move |table| {
        let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
        record(&mut *control, &schema, table).map_err(|error| error.during("recording a table"))
    })
}
