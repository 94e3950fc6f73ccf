//! The size of InnoDB's redo log, which the server allocates in full before its first use.

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::units::parse_bytes;
use rumba_server_kit::selected::Selected as Server;

use crate::counters::Kind;
use crate::profile::{self, For};
use crate::software::Software;

/// The redo log's size from the experiment's settings or the profile. `None` for a server that rumba does not start, or
/// one that is not installed.
pub fn bytes(kind: &Kind, server: &Server, config: &EngineConfig) -> Option<u64> {
    if matches!(server, Server::Existing(_)) {
        return None;
    }
    let software: Software = server.software().ok()?;
    let (brand, version) = (software.brand, software.version);
    let filled =
        profile::fill(&For { kind, brand, version, cache: config.cache, durability: config.durability }).ok()?;
    let value = |name: &str| {
        let set = config.settings.0.get(name).map(ToString::to_string);
        let usual = || filled.lines.iter().rev().find(|line| line.name == name).map(|line| line.value.clone());
        parse_bytes(set.or_else(usual)?.trim_matches('"')).ok()
    };
    let files = || Some(value("innodb_log_file_size")? * value("innodb_log_files_in_group").unwrap_or(1));
    value("innodb_redo_log_capacity").or_else(files)
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::engine::Durability;
    use rumba_engine_api::setting::Value;

    use super::*;

    fn config(server: Option<&str>, settings: impl IntoIterator<Item = (&'static str, Value)>) -> EngineConfig {
        EngineConfig {
            cache: 1 << 30,
            durability: Durability::Sync,
            server: server.map(str::to_owned),
            settings: settings.into_iter().collect(),
            ..EngineConfig::new("innodb")
        }
    }

    #[test]
    #[needs(MariaDb)]
    fn created_schema_matches_the_servers() {
        let bytes = |server, settings: Option<_>| {
            bytes(&Kind::InnoDb, &Server::of::<Software>(server).unwrap(), &config(server, settings))
        };
        assert_eq!(bytes(None, None), Some(2 << 30), "as the profile has it");
        let set = Some(("innodb_log_file_size", Value::Text("96M".to_owned())));
        assert_eq!(bytes(None, set), Some(96 << 20));
        assert_eq!(bytes(Some("mysql://root@127.0.0.1/lab"), None), None, "its log is its owner's");
    }
}
