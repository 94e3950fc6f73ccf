//! `ANALYZE TABLE` for a whole schema.

use rumba_core::engine::EngineError;

use crate::counters::{Ask, query};

const CALL: &str = "ANALYZE TABLE";

/// Gathers the statistics of every table of `schema`, outside the binary log.
///
/// # Errors
/// The server's words, with the table.
pub(super) fn tables(admin: &mut dyn Ask, schema: &str) -> Result<(), EngineError> {
    let sql = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{}' AND TABLE_TYPE = 'BASE TABLE' \
         ORDER BY TABLE_NAME",
        schema.replace('\\', "\\\\").replace('\'', "''")
    );
    let names = query(admin, CALL, &sql)?.rows;
    names.iter().filter_map(|row| row.first()?.as_deref()).try_for_each(|table| {
        let answer = query(admin, CALL, &format!("ANALYZE LOCAL TABLE {}.{}", quoted(schema), quoted(table)))?;
        // Failures come as rows: table, operation, kind of message, message.
        let text = |row: &[Option<String>], column: usize| row.get(column).cloned().flatten().unwrap_or_default();
        match answer.rows.iter().find(|row| text(row, 2).eq_ignore_ascii_case("error")) {
            Some(row) => Err(EngineError::failed(CALL, format!("{schema}.{table}: {}", text(row, 3)))),
            None => Ok(()),
        }
    })
}

/// A name in backticks.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
