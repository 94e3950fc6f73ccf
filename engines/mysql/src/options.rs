//! Parses an experiment's settings and separates rumba's own from the server's variables.

use std::collections::BTreeMap;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Value, info};
use rumba_protocol_mysql::{LoadWay, OnLost};
use rumba_server_kit::own_settings::separate;
use rumba_server_kit::readback::as_switch;

/// rumba's own names among the settings.
pub const OWN: &[SettingInfo] = &[
    info(
        "storage_engine",
        Kind::Text,
        "the engine's own",
        "the engine by the server's name, for engine `mysql`: \"Aria\"",
    ),
    info(
        "row_format",
        Kind::Choice(&["compact", "redundant", "dynamic", "compressed", "page", "fixed"]),
        "by `compression`",
        "ROW_FORMAT of every table",
    ),
    info("key_block_size", Kind::Int(1, 64), "by `compression`", "KEY_BLOCK_SIZE of every table, KiB"),
    info("page_compressed", Kind::Int(0, 9), "by `compression`", "MariaDB's PAGE_COMPRESSION_LEVEL; 0 for none"),
    info(
        "isolation",
        Kind::Choice(ISOLATIONS),
        "repeatable-read; MyRocks read-committed",
        "isolation of every session",
    ),
    info("binlog", Kind::Bool, "false", "write a binary log, synced as set by `durability`"),
    info("load", Kind::Choice(&["auto", "bulk", "load-data", "insert"]), "auto", "how rows are loaded"),
    info("on_lost", Kind::Choice(&["fail", "reconnect"]), "fail", "what a session does after it lost its connection"),
    info("prepared", Kind::Bool, "true", "prepare statements once; false sends each as text with its values"),
    info("contention", Kind::Bool, "false", "time InnoDB's latches of indexes and of the lock system; costs CPU"),
    info(
        "wait_events",
        Kind::Bool,
        "false",
        "time clients' waits for every mutex, lock and condition by name; includes `contention`, costs more CPU",
    ),
    info("tcp", Kind::Bool, "false", "use TCP on loopback (`port`) instead of a Unix socket"),
];

const ISOLATIONS: &[&str] = &["read-uncommitted", "read-committed", "repeatable-read", "serializable"];

/// A setting's name as the server spells it in its list of variables.
pub fn spelled(setting: &str) -> String {
    setting.to_ascii_lowercase().replace('-', "_")
}

/// Parsed settings.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `storage_engine`.
    pub storage_engine: Option<String>,
    /// `row_format`.
    pub row_format: Option<String>,
    /// `key_block_size`, KiB.
    pub key_block_size: Option<i64>,
    /// `page_compressed`: a level.
    pub page_compressed: Option<i64>,
    /// `isolation`, as SQL writes it: `READ COMMITTED`.
    pub isolation: Option<String>,
    /// `binlog`.
    pub binlog: bool,
    /// `load`.
    pub load: LoadWay,
    /// `on_lost`.
    pub on_lost: OnLost,
    /// Whether statements are sent as text instead of `prepared`.
    pub text: bool,
    /// `contention`.
    pub contention: bool,
    /// `wait_events`.
    pub wait_events: bool,
    /// `tcp`.
    pub tcp: bool,
    /// The server's own variables, by name with underscores.
    pub variables: BTreeMap<String, Value>,
}

impl Options {
    /// Separates rumba's own settings from the server's variables.
    ///
    /// # Errors
    /// An invalid value for one of rumba's own settings; a variable that rumba sets itself.
    pub fn read(config: &EngineConfig) -> Result<Self, SettingError> {
        let (own, variables) = separate(config, OWN, spelled, RESERVED)?;
        let text = |name: &str| own.text(name).map(str::to_owned);
        let schema = variables.get("performance_schema").and_then(|value| as_switch(&value.to_string()));
        let timed = ["contention", "wait_events"].into_iter().find(|name| own.bool(name) == Some(true));
        if let Some(name) = timed.filter(|_| schema == Some(false)) {
            let problem = "it needs the performance schema, which `performance_schema = false` switches off";
            return Err(SettingError::new(name, problem, "set performance_schema = true"));
        }
        Ok(Self {
            storage_engine: text("storage_engine"),
            row_format: text("row_format"),
            key_block_size: own.int("key_block_size"),
            page_compressed: own.int("page_compressed"),
            isolation: text("isolation").map(|name| name.to_ascii_uppercase().replace('-', " ")),
            binlog: own.bool("binlog").unwrap_or(false),
            load: match own.text("load") {
                Some("bulk") => LoadWay::BulkExecute,
                Some("load-data") => LoadWay::LoadData,
                Some("insert") => LoadWay::Insert,
                _ => LoadWay::Auto,
            },
            on_lost: if own.text("on_lost") == Some("reconnect") { OnLost::Reconnect } else { OnLost::Fail },
            text: !own.bool("prepared").unwrap_or(true),
            contention: own.bool("contention").unwrap_or(false),
            wait_events: own.bool("wait_events").unwrap_or(false),
            tcp: own.bool("tcp").unwrap_or(false),
            variables,
        })
    }
}

/// Variables that rumba sets itself, and the alternative for each.
const RESERVED: &[(&str, &str)] = &[
    ("datadir", "the data directory is [run] data_dir"),
    ("basedir", "the base directory is `server`"),
    ("socket", "rumba chooses the socket"),
    ("pid_file", "rumba chooses the file"),
    ("log_error", "the server's log is kept with the results, as error.log"),
    ("user", "the server runs as who runs rumba"),
    ("init_file", "rumba needs the one there is"),
    ("bind_address", "it listens only on a socket; `tcp = true` makes it listen on loopback too"),
    ("skip_networking", "write `tcp = true` or leave it out"),
    ("log_bin", "write `binlog = true` or leave it out"),
    ("skip_log_bin", "write `binlog = false` or leave it out"),
    ("transaction_isolation", "write `isolation`"),
    ("tx_isolation", "write `isolation`"),
    ("skip_grant_tables", "the server is run with a password"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config;

    #[test]
    fn own_names_are_distinguished_from_server_variables() {
        let mut requested = config("innodb");
        requested.settings.0.insert("isolation".into(), Value::Text("read-committed".into()));
        requested.settings.0.insert("innodb-page-size".into(), Value::Text("4k".into()));
        let options = Options::read(&requested).unwrap();
        assert_eq!(options.isolation.as_deref(), Some("READ COMMITTED"));
        assert_eq!(options.variables.keys().collect::<Vec<_>>(), ["innodb_page_size"]);
    }

    #[test]
    fn settings_managed_by_rumba_are_refused_with_a_remedy() {
        let mut requested = config("innodb");
        requested.settings.0.insert("log-bin".into(), Value::Text("x".into()));
        assert!(Options::read(&requested).unwrap_err().remedy.contains("binlog"));
    }

    #[test]
    fn timed_waits_are_refused_without_the_performance_schema() {
        for (name, schema) in [("contention", Value::Bool(false)), ("wait_events", Value::Text("OFF".into()))] {
            let mut requested = config("innodb");
            requested.settings.0.insert(name.into(), Value::Bool(true));
            requested.settings.0.insert("performance-schema".into(), schema);
            let error = Options::read(&requested).unwrap_err();
            assert_eq!((error.key.as_str(), error.remedy.as_str()), (name, "set performance_schema = true"));
            requested.settings.0.insert("performance-schema".into(), Value::Bool(true));
            assert!(Options::read(&requested).is_ok());
        }
    }
}
