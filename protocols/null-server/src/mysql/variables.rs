//! Variables that drivers query when they connect.

use crate::mysql::VERSION;
use crate::mysql::packet::status;
use crate::mysql::resultset::Value;

/// The connection's state for queries about it.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The connection's number.
    pub id: u32,
    /// Its status.
    pub status: u16,
    /// Its schema.
    pub database: Option<&'a str>,
}

/// Variables with constant values, as in a server of the 8.0 series.
const FIXED: &[(&str, &str)] = &[
    ("auto_increment_increment", "1"),
    ("auto_increment_offset", "1"),
    ("character_set_client", "utf8mb4"),
    ("character_set_connection", "utf8mb4"),
    ("character_set_database", "utf8mb4"),
    ("character_set_results", "utf8mb4"),
    ("character_set_server", "utf8mb4"),
    ("character_set_system", "utf8mb3"),
    ("collation_connection", "utf8mb4_general_ci"),
    ("collation_database", "utf8mb4_general_ci"),
    ("collation_server", "utf8mb4_general_ci"),
    ("default_storage_engine", "NULL"),
    ("error_count", "0"),
    ("foreign_key_checks", "1"),
    ("have_openssl", "NO"),
    ("have_ssl", "NO"),
    ("hostname", "localhost"),
    ("identity", "0"),
    ("init_connect", ""),
    ("innodb_version", VERSION),
    ("interactive_timeout", "28800"),
    ("last_insert_id", "0"),
    ("license", "MIT OR Apache-2.0"),
    ("local_infile", "1"),
    ("lower_case_table_names", "0"),
    ("max_allowed_packet", "67108864"),
    ("max_connections", "100000"),
    ("net_buffer_length", "16384"),
    ("net_read_timeout", "30"),
    ("net_write_timeout", "60"),
    ("performance_schema", "0"),
    ("port", "0"),
    ("protocol_version", "10"),
    ("query_cache_size", "0"),
    ("query_cache_type", "OFF"),
    ("read_only", "0"),
    ("server_id", "1"),
    ("socket", ""),
    ("sql_auto_is_null", "0"),
    ("sql_mode", "STRICT_TRANS_TABLES"),
    ("sql_safe_updates", "0"),
    ("sql_select_limit", "18446744073709551615"),
    ("super_read_only", "0"),
    ("system_time_zone", "UTC"),
    ("time_zone", "SYSTEM"),
    ("transaction_isolation", "REPEATABLE-READ"),
    ("transaction_read_only", "0"),
    ("tx_isolation", "REPEATABLE-READ"),
    ("tx_read_only", "0"),
    ("unique_checks", "1"),
    ("version", VERSION),
    ("version_comment", "rumba null-server: fixed answers"),
    ("version_compile_machine", std::env::consts::ARCH),
    ("version_compile_os", "Linux"),
    ("wait_timeout", "28800"),
    ("warning_count", "0"),
];

/// A variable's value; numbers as numbers.
pub fn variable(name: &str, asker: &Asker<'_>) -> Option<Value> {
    if name.eq_ignore_ascii_case("autocommit") {
        return Some(Value::Int(i64::from(asker.status & status::AUTOCOMMIT != 0)));
    }
    let (_, value) = FIXED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(value.parse().map_or_else(|_| Value::Text((*value).to_owned()), Value::Int))
}

/// All variables whose name matches one of these patterns; without patterns, all variables.
pub fn variables_like(patterns: &[&[u8]], asker: &Asker<'_>) -> Vec<[Value; 2]> {
    let autocommit = if asker.status & status::AUTOCOMMIT != 0 { "ON" } else { "OFF" };
    std::iter::once(&("autocommit", autocommit))
        .chain(FIXED)
        .filter(|(name, _)| patterns.is_empty() || patterns.iter().any(|pattern| like(name.as_bytes(), pattern)))
        .map(|(name, value)| [Value::Text((*name).to_owned()), Value::Text((*value).to_owned())])
        .collect()
}

/// SQL's LIKE, ignoring case: `%` matches any text, `_` any character, and a backslash escapes them.
fn like(name: &[u8], pattern: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'%', rest @ ..] => (0..=name.len()).any(|at| like(&name[at..], rest)),
        [b'_', rest @ ..] => !name.is_empty() && like(&name[1..], rest),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
            name.first().is_some_and(|first| first.eq_ignore_ascii_case(byte)) && like(&name[1..], rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKER: Asker<'_> = Asker { id: 1, status: status::AUTOCOMMIT, database: None };

    #[test]
    fn patterns_choose_variables() {
        let names = |pattern: &str| -> Vec<_> {
            let found = variables_like(&[pattern.as_bytes()], &ASKER);
            found.into_iter().map(|[name, _]| name).collect()
        };
        assert_eq!(names("tx\\_%").len(), 2);
        assert_eq!(names("Port"), [Value::Text("port".into())]);
        assert!(names("x%").is_empty());
        assert!(variables_like(&[], &ASKER).len() > 40);
    }
}
