//! Names, texts and answers of SQL statements.

use rumba_protocol_mysql::WireError;

use crate::counters::Request;

/// Quotes a name with backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Quotes a text.
pub fn text(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

/// The first column of each row.
pub fn firsts(admin: &mut dyn Request, sql: &str) -> Result<Vec<String>, WireError> {
    Ok(admin.fetch(sql)?.rows.into_iter().filter_map(|row| row.into_iter().next()?).collect())
}
