//! `SHOW GLOBAL STATUS`, and the counters of every server.

use std::collections::BTreeMap;

use super::fetch::cell;
use super::{Reading, Request};

/// Server-level counters for any engine: requested work, access methods, network traffic and the binary log.
#[rustfmt::skip]
const OF_SERVER: [&str; 37] = [
    "Questions", "Com_select", "Com_insert", "Com_update", "Com_delete", "Com_begin", "Com_commit", "Com_rollback",
    "Com_stmt_execute", "Com_stmt_prepare", "Com_stmt_reprepare", "Slow_queries",
    "Handler_commit", "Handler_prepare", "Handler_rollback", "Handler_read_first", "Handler_read_key",
    "Handler_read_last", "Handler_read_next", "Handler_read_prev", "Handler_read_rnd", "Handler_read_rnd_next",
    "Handler_write", "Handler_update", "Handler_delete",
    "Bytes_received", "Bytes_sent", "Threads_connected", "Threads_running", "Threads_created", "Connections",
    "Created_tmp_tables", "Created_tmp_disk_tables", "Table_open_cache_misses", "Opened_tables",
    "Binlog_commits", "Binlog_group_commits",
];

/// The server's status variables.
pub(crate) struct Status(BTreeMap<String, String>);

impl Status {
    /// Reads all status variables.
    pub(crate) fn read_all(admin: &mut dyn Request) -> Result<Self, String> {
        Self::read(admin, "SHOW GLOBAL STATUS")
    }

    pub(crate) fn read_some(admin: &mut dyn Request, names: &[&str]) -> Result<Self, String> {
        Self::read(admin, &format!("SHOW GLOBAL STATUS WHERE Variable_name IN ('{}')", names.join("','")))
    }

    /// Reads names and values with `sql`, which must return two columns.
    pub(crate) fn read(admin: &mut dyn Request, sql: &str) -> Result<Self, String> {
        let rows = admin.fetch(sql).map_err(|error| format!("{sql}: {error}"))?.rows;
        Ok(Self(rows.iter().map(|row| (cell(row, 0).to_owned(), cell(row, 1).to_owned())).collect()))
    }

    /// The number under this name. Percona Server writes TokuDB's names in upper case.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        let in_any_case = || self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        self.0.get(name).or_else(in_any_case)?.parse().ok()
    }

    /// All numbers with their names.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().filter_map(|(name, value)| Some((name.as_str(), value.parse().ok()?)))
    }

    /// Adds those of `names` that the server has.
    pub(crate) fn copy(&self, names: &[&str], reading: &mut Reading) {
        for name in names {
            reading.put_any(name, self.get(name));
        }
    }
}

/// Reports the server-level counters.
pub(crate) fn of_server(status: &Status, reading: &mut Reading) {
    status.copy(&OF_SERVER, reading);
}

/// Reports every numeric variable whose name begins with the engine's, for engines that rumba does not know.
pub(crate) fn by_prefix(status: &Status, engine: &str, reading: &mut Reading) {
    let prefix = format!("{}_", engine.to_ascii_lowercase());
    for (name, value) in status.numbers().filter(|(name, _)| name.to_ascii_lowercase().starts_with(&prefix)) {
        reading.put(name, value);
    }
}
