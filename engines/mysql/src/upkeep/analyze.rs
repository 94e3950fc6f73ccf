//! `ANALYZE TABLE` for a whole schema.

use rumba_engine_api::error::{EngineError, Result};

use crate::counters::{Request, query};
use crate::sql::{quoted, text};

const CALL: &str = "ANALYZE TABLE";

/// Collects statistics for every table of `schema`, without writing to the binary log.
///
/// # Errors
/// The server's error, with the table.
pub(super) fn tables(admin: &mut dyn Request, schema: &str) -> Result<()> {
    named(admin, CALL, schema)?.iter().try_for_each(|table| {
        let answer = query(admin, CALL, &format!("ANALYZE LOCAL TABLE {}.{}", quoted(schema), quoted(table)))?;
        // Failures are reported as rows: table, operation, kind of message, message.
        let cell = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten().unwrap_or_default();
        match answer.rows.iter().find(|row| cell(row, 2).eq_ignore_ascii_case("error")) {
            Some(row) => Err(EngineError::failed(CALL, format!("{schema}.{table}: {}", cell(row, 3)))),
            None => Ok(()),
        }
    })
}

pub(super) fn named(admin: &mut dyn Request, call: &'static str, schema: &str) -> Result<Vec<String>> {
    let sql = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = 'BASE TABLE' \
         ORDER BY TABLE_NAME",
        text(schema)
    );
    let rows = query(admin, call, &sql)?.rows;
    Ok(rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
}
