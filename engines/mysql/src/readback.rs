//! Compares the effective settings after the start with the requested ones.

use std::collections::BTreeMap;

use rumba_engine_api::error::Result;
use rumba_protocol_mysql::Admin;

use rumba_server_kit::readback::{Match, compare, refused};

use crate::capability::global_variables;
use crate::counters::Kind;
use crate::plan::{Line, Plan};

/// Variables that the record must hold because they determine the meaning of the results, even if the experiment does
/// not set them.
const TELLING: [&str; 22] = [
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_adaptive_hash_index",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_page_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "rocksdb_block_cache_size",
    "rocksdb_db_write_buffer_size",
    "rocksdb_allow_concurrent_memtable_write",
    "rocksdb_manual_wal_flush",
    "rocksdb_flush_log_at_trx_commit",
    "rocksdb_use_direct_reads",
    "rocksdb_default_cf_options",
    "tokudb_cache_size",
    "tokudb_commit_sync",
    "tokudb_fsync_log_period",
    "log_bin",
    "sync_binlog",
    "performance_schema",
];

/// Reads back the configured variables. Returns the effective settings, and those that determine the meaning of
/// results.
///
/// # Errors
/// The first setting that the server changed or ignored.
pub fn settings_in_force(admin: &mut Admin, plan: &Plan) -> Result<Vec<(String, String)>> {
    let call = "reading the settings back";
    let variables = global_variables(admin).map_err(|error| error.during(call))?;
    let mut in_force: Vec<(String, String)> = Vec::new();
    for line in &plan.lines {
        let Some((name, requested)) = variable_of(line) else { continue };
        let Some((name, found)) = name.iter().find_map(|name| variables.get_key_value(*name)) else { continue };
        if in_force.iter().any(|(known, _)| known == name) {
            continue;
        }
        let shown = match compare(requested, found) {
            Match::Same => found.clone(),
            Match::Rounded => format!("{found} (requested: {requested})"),
            Match::Other if line.must_hold => return Err(refused(call, name, requested, found)),
            Match::Other => found.clone(),
        };
        in_force.push((name.clone(), shown));
    }
    if plan.kind == Kind::RocksDb {
        families(admin, plan, call)?;
    }
    for name in TELLING {
        let value = variables.get(name).filter(|_| in_force.iter().all(|(known, _)| known != name));
        in_force.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    Ok(in_force)
}

/// The possible names of the variable that a line sets, and its value. `None` for options that are not variables.
fn variable_of(line: &Line) -> Option<(Vec<&str>, &str)> {
    const NO_VARIABLES: [&str; 8] = [
        "plugin_load_add",
        "plugin_load",
        "performance_schema_instrument",
        "rocksdb",
        "tokudb",
        "port",
        "log_bin",
        "disable_log_bin",
    ];
    if NO_VARIABLES.contains(&line.name.as_str()) {
        return None;
    }
    let names = match line.name.as_str() {
        "transaction_isolation" => vec!["transaction_isolation", "tx_isolation"],
        name => vec![name],
    };
    Some((names, line.value.as_deref()?))
}

/// RocksDB's index types in the order of their numbers.
const INDEX_TYPES: [&str; 4] = ["kBinarySearch", "kHashSearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey"];

/// Compares the requested options of the default column family with those that MyRocks reports.
fn families(admin: &mut Admin, plan: &Plan, call: &'static str) -> Result<()> {
    let Some(requested) = value_of(plan, "rocksdb_default_cf_options") else { return Ok(()) };
    let overriding = value_of(plan, "rocksdb_override_cf_options").and_then(of_default_family).unwrap_or_default();
    let sql = "SELECT OPTION_TYPE, VALUE FROM information_schema.ROCKSDB_CF_OPTIONS WHERE CF_NAME = 'default'";
    let rows = admin.query(sql).map_err(|error| error.during(call))?.rows;
    let found: BTreeMap<String, String> = rows
        .into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter();
            Some((cells.next()??.to_ascii_lowercase(), cells.next()?.unwrap_or_default()))
        })
        .collect();
    let mut parts: BTreeMap<String, String> = parts(requested).into_iter().collect();
    parts.extend(self::parts(overriding));
    for (name, value) in &parts {
        let known = [name.clone(), format!("table_factory::{name}"), format!("{name}_type")];
        let Some(in_force) = known.iter().find_map(|name| found.get(name)) else { continue };
        let holds = match name.as_str() {
            // MyRocks reports the filter's class, not its bits.
            "filter_policy" => value == "nullptr" || in_force != "NULL",
            // MyRocks reports window, level and strategy, including RocksDB's defaults for omitted ones.
            "compression_opts" => in_force.starts_with(value.as_str()) || value.starts_with(in_force.as_str()),
            // MyRocks reports the number in RocksDB's enumeration.
            "index_type" => INDEX_TYPES.iter().position(|name| name == value) == in_force.parse().ok(),
            _ => compare(value, in_force) == Match::Same,
        };
        if !holds {
            return Err(refused(call, &format!("rocksdb_default_cf_options: {name}"), value, in_force));
        }
    }
    Ok(())
}

fn value_of<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    plan.lines.iter().rfind(|line| line.name == name)?.value.as_deref()
}

/// The options of the default family in `default={…};other={…}`.
fn of_default_family(overriding: &str) -> Option<&str> {
    let rest = overriding.split_once("default={")?.1;
    let mut depth = 1;
    let end = rest.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth == 0
    });
    Some(&rest[..end?.0])
}

/// Splits `a=1;b={c=2;d=3}` into a, c and d: nested parts get their own names.
fn parts(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in text.char_indices().chain([(text.len(), ';')]) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c != ';' || depth != 0 {
            continue;
        }
        if let Some((name, value)) = text[begin..at].split_once('=') {
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            match value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
                Some(inner) if name == "block_based_table_factory" => found.extend(parts(inner)),
                _ => found.push((name, value.to_owned())),
            }
        }
        begin = at + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_column_families_are_taken_apart() {
        let text =
            "write_buffer_size=16m;block_based_table_factory={block_size=8192;filter_policy=bloomfilter:10:false};x=1";
        let names: Vec<String> = parts(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["write_buffer_size", "block_size", "filter_policy", "x"]);
        assert_eq!(of_default_family("default={a=1;b={c=2}};other={d=3}"), Some("a=1;b={c=2}"));
    }
}
