//! Parses an experiment's settings and separates rumba's own from the server's.

use std::collections::BTreeMap;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Value, info};
use rumba_protocol_postgresql::OnLost;
use rumba_server_kit::own_settings::separate;

/// rumba's own settings, then some of the server's.
pub const SETTINGS: &[SettingInfo] = &[
    info("isolation", Kind::Choice(ISOLATIONS), "the server's, read-committed", "isolation of every session"),
    info("fillfactor", Kind::Int(10, 100), "the server's, 100", "percent of each table page that is filled"),
    info("data_checksums", Kind::Bool, "the release's", "pages have checksums"),
    info("on_lost", Kind::Choice(&["fail", "reconnect"]), "fail", "what a session does after it lost its connection"),
    info("prepared", Kind::Bool, "true", "prepare statements once; false sends each as text with its values"),
    info("tcp", Kind::Bool, "false", "use TCP on loopback (`port`) instead of a Unix socket"),
    info("os_user", Kind::Text, "postgres, or else nobody", "user who runs the server if root runs rumba"),
    info("full_page_writes", Kind::Bool, "true", "the first change of a page after a checkpoint logs the whole page"),
    info("checkpoint_timeout", Kind::Text, "5min, the server's", "longest time between two checkpoints"),
    info(
        "max_wal_size",
        Kind::Text,
        "a quarter of the file system",
        "limit of the WAL; a checkpoint starts at about half of it",
    ),
    info(
        "wal_compression",
        Kind::Text,
        "off",
        "how whole pages in the WAL are compressed; `compression` of the experiment also sets it",
    ),
    info("work_mem", Kind::Text, "cache / 64", "memory for a sort or hash before it uses the disk"),
    info("maintenance_work_mem", Kind::Text, "cache / 4", "memory of a vacuum or the making of an index"),
    info("autovacuum_work_mem", Kind::Text, "cache / 8", "memory of each vacuum in the background"),
    info("huge_pages", Kind::Text, "off", "whether the cache uses the host's huge pages"),
    info("io_method", Kind::Text, "worker", "read-ahead method: worker, sync, io_uring; since 18"),
    info("autovacuum", Kind::Bool, "true", "dead rows are removed in the background"),
    info(
        "max_connections",
        Kind::Int(1, 262_143),
        "300",
        "connections that the server accepts, including three for superusers and two of rumba's own",
    ),
];

/// The number of rumba's own settings in [`SETTINGS`].
const OWN: usize = 7;

const ISOLATIONS: &[&str] = &["read-uncommitted", "read-committed", "repeatable-read", "serializable"];

/// Parsed settings.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `isolation`, as SQL writes it: `read committed`.
    pub isolation: Option<String>,
    /// `fillfactor`, percent.
    pub fillfactor: Option<i64>,
    /// `data_checksums`.
    pub data_checksums: Option<bool>,
    /// `on_lost`.
    pub on_lost: OnLost,
    /// Whether statements are sent as text instead of `prepared`.
    pub text: bool,
    /// `tcp`.
    pub tcp: bool,
    /// `os_user`.
    pub os_user: Option<String>,
    /// The server's own settings by name, in its syntax.
    pub settings: BTreeMap<String, String>,
}

impl Options {
    /// Separates rumba's own settings from the server's.
    ///
    /// # Errors
    /// An invalid value for one of rumba's own settings; a setting that rumba sets itself.
    pub fn read(config: &EngineConfig) -> Result<Self, SettingError> {
        let infos = &SETTINGS[..OWN];
        let (own, settings) = separate(config, infos, str::to_ascii_lowercase, RESERVED)?;
        let own = own.with_defaults(infos);
        let text = |name: &str| own.text(name).map(str::to_owned);
        Ok(Self {
            isolation: text("isolation").map(|name| name.replace('-', " ")),
            fillfactor: own.int("fillfactor"),
            data_checksums: own.bool("data_checksums"),
            on_lost: if own.text("on_lost") == Some("reconnect") { OnLost::Reconnect } else { OnLost::Fail },
            text: own.bool("prepared") == Some(false),
            tcp: own.bool("tcp") == Some(true),
            os_user: text("os_user"),
            settings: settings.into_iter().map(|(name, value)| (name, words(&value))).collect(),
        })
    }
}

/// A value in the server's syntax.
fn words(value: &Value) -> String {
    match value {
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    }
}

/// Settings that rumba sets itself, and the alternative for each.
const RESERVED: &[(&str, &str)] = &[
    ("data_directory", "the data directory is [run] data_dir"),
    ("config_file", "rumba writes it"),
    ("hba_file", "rumba writes it: only the user who runs the server may log in"),
    ("ident_file", "rumba writes it"),
    ("external_pid_file", "leave it out"),
    ("unix_socket_directories", "rumba chooses the socket"),
    ("listen_addresses", "it listens only on a socket; `tcp = true` makes it listen on loopback too"),
    ("log_destination", "the server's log is kept with the results, as error.log"),
    ("logging_collector", "the server's log is kept with the results, as error.log"),
    ("default_transaction_isolation", "write `isolation`"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::config;

    #[test]
    fn own_names_are_distinguished_from_server_settings() {
        let mut requested = config();
        requested.settings.0.insert("isolation".into(), Value::Text("repeatable-read".into()));
        requested.settings.0.insert("full_page_writes".into(), Value::Bool(false));
        let options = Options::read(&requested).unwrap();
        assert_eq!(options.isolation.as_deref(), Some("repeatable read"));
        assert_eq!(options.settings["full_page_writes"], "off");
        assert_eq!(options.settings.len(), 1);
    }

    /// The profile's file format.
    #[derive(serde::Deserialize)]
    struct Profile {
        layer: Vec<Layer>,
    }

    #[derive(serde::Deserialize)]
    struct Layer {
        variables: BTreeMap<String, String>,
    }

    /// Settings for which the profile keeps the server's default.
    const SERVER_DEFAULTS: [&str; 5] =
        ["full_page_writes", "checkpoint_timeout", "wal_compression", "io_method", "autovacuum"];
    /// The plan replaces the profile's value by a share of the file system.
    const BY_FILE_SYSTEM: &str = "max_wal_size";

    #[test]
    fn listed_defaults_are_those_of_the_profile() {
        let profile: Profile = toml_edit::de::from_str(include_str!("../profiles/postgresql.toml")).unwrap();
        for info in &SETTINGS[OWN..] {
            let written = profile.layer.iter().find_map(|layer| layer.variables.get(info.name));
            if written.is_none() && SERVER_DEFAULTS.contains(&info.name) || info.name == BY_FILE_SYSTEM {
                continue;
            }
            let written = written.unwrap_or_else(|| panic!("the profile has no {}", info.name));
            let is_same = match (written.strip_prefix("= "), info.kind) {
                // Ignore bounds and unit of a computed value.
                (Some(computed), _) => computed.starts_with(&format!("{} ", info.default)),
                (None, Kind::Bool) => (written == "on") == (info.default == "true"),
                (None, _) => written == info.default,
            };
            assert!(is_same, "{}: {written} in the profile, {} in the list", info.name, info.default);
        }
    }

    #[test]
    fn settings_managed_by_rumba_are_refused_with_a_remedy() {
        let mut requested = config();
        requested.settings.0.insert("listen_addresses".into(), Value::Text("*".into()));
        assert!(Options::read(&requested).unwrap_err().remedy.contains("tcp"));
    }
}
